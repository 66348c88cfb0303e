"""Our objects as HTML: each function is the `_repr_html_` of one class."""

from __future__ import annotations

from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any

from superarm.view.parts import Markup, bar, between, chips, facts, rate, some, spark, table

if TYPE_CHECKING:
    from superarm.comparison import Comparison
    from superarm.decisions.decision import Decision
    from superarm.decisions.decisions import Decisions
    from superarm.learners.info import LearnerInfo
    from superarm.logs import Evaluation, Log, Survey, Verdict
    from superarm.logs.estimates import Estimate
    from superarm.simulation import Trace

FEW = 8  # rows of many


def learner_html(learner: LearnerInfo) -> Markup:
    if learner.columns is not None:
        kinds = [f"{name} ({kind})" for name, kind in learner.columns.described.items()]
        more = ", and more names as they come" if learner.columns.is_open else ""
        rows = f"with names: {some(kinds)}{more}" if kinds else "with names, all of them words"
    elif learner.n_features is None:
        rows = "the first one will tell"
    else:
        rows = _features(learner)
    size, past = ("n_labels", "labels", "n_features", "set_size"), learner.notes.get("training", ())
    others = [(name, repr(value)) for name, value in learner.chosen.items() if name not in size]
    return facts(
        type(learner).__name__,
        [
            ("shows", f"{_shown(learner)} of {learner.n_labels:,} labels: {some(learner.known.all())}"),
            ("rows", rows),
            ("rounds", f"{learner.round:,} decided, {learner.answered.count:,} answered"),
            *(
                (
                    "trained",
                    f"on {one['rows']:,} rows of {some([*one['logs'].values()])}, {one['passes']} times",
                )
                for one in past
            ),
            *others,
        ],
    )


def _shown(learner: LearnerInfo) -> str:
    return f"at most {learner.set_size}" if learner.inputs.sizes_vary else str(learner.set_size)


def _features(learner: LearnerInfo) -> str:
    layout = learner.inputs.layout
    if isinstance(learner.n_features, tuple):
        d, width = learner.n_features
        return f"{d:,} dense and {width:,} sparse features"
    return f"{learner.n_features:,} {'' if layout is None else layout.kind + ' '}features"


def decision_html(decision: Decision) -> Markup:
    """Labels that are not of the top set are outlined only."""
    shown, top, rule = decision.labels, decision.top, decision.rule
    chance = decision.propensity
    numbers = {} if rule is None else {n: v for n, v in rule.items() if isinstance(v, int | float)}
    words = None if rule is None else ", ".join([rule["name"], *(f"{n} = {v:g}" for n, v in numbers.items())])
    return facts(
        "Decision",
        [
            ("shown", chips(shown, set(shown) - set(top) if top else ())),
            ("top set", chips(top) if top and set(top) != set(shown) else None),
            ("eligible", None if decision.eligible is None else some(decision.eligible)),
            ("propensity", None if chance is None else f"{chance:.4g}"),
            ("rule", words),
            ("round", decision.round),
        ],
    )


def decisions_html(decisions: Decisions) -> Markup:
    rows: list[tuple[Any, ...]] = [
        (one.round, chips(one.labels, set(one.labels) - set(one.top)), f"{one.propensity:.4g}")
        for one in decisions[:FEW]
    ]
    more = [("…", "", "")] if len(decisions) > FEW else []
    head = ("round", "shown, best first", "propensity")
    return table(f"{len(decisions):,} decisions", head, [*rows, *more])


def trace_html(trace: Trace) -> Markup:
    words = ("top label wrong", "label not in the top set", "label not in the shown set")
    curves = (trace.counts / trace.rounds[:, None]).T
    rows = [
        (name.removesuffix("_rate").replace("_", " "), text, rate(value), bar(value), spark(trace.rounds, c))
        for (name, value), text, c in zip(trace.rates.items(), words, curves, strict=True)
    ]
    if trace.promised is not None:
        text = f"label shown after {trace.warm_up:,} rounds; {trace.mean_size:.2f} labels, {trace.promised:g} promised"
        cells = (text, rate(trace.coverage), bar(trace.coverage))
        if not trace.is_warm:
            cells = ("no round after the warm-up", "–", Markup(""))
        rows.append(("coverage", *cells, Markup("")))
    for what, parts in (("label", trace.by_label), ("group", trace.by_group)):
        if parts:
            least = min(parts, key=lambda part: part.coverage)
            text = f"{least.name}: {least.rows:,} rounds, {least.mean_size:.2f} labels"
            rows.append((f"least by {what}", text, rate(least.coverage), bar(least.coverage), Markup("")))
    title = f"{trace.learner} on {trace.data}: {trace.rounds[-1]:,} rounds, m = {trace.set_size}"
    return table(title, ("", "", "share of rounds", "", "over rounds, logarithmic"), rows)


def comparison_html(comparison: Comparison) -> Markup:
    title, head, rows = comparison.cells()
    first = [traces[0] for traces in comparison.runs.values()]
    drawn = [spark(one.rounds, one.counts[:, 0] / one.rounds) for one in first]
    return table(
        title,
        [*head, "error over rounds, logarithmic"],
        [[*row, curve] for row, curve in zip(rows, drawn, strict=True)],
    )


def verdict_html(verdict: Verdict) -> Markup:
    rows = []
    for one in verdict.estimates:
        best = " (best)" if one is verdict.best else ""
        rows.append((one.name + best, *_estimate(one), one.problem))
    title = f"{verdict.words}: estimates of its hit rate"
    return table(title, ("estimator", "hit rate", "95 % interval", "", "what speaks against it"), rows)


def evaluation_html(answer: Evaluation) -> Markup:
    logged = (rate(answer.hit_rate), f"{answer.low:.4f} to {answer.high:.4f}")
    rows: list[tuple[Any, ...]] = [
        ("what was shown", "", *logged, between(answer.low, answer.high, answer.hit_rate), "")
    ]
    for one in answer.verdicts:
        best = one.best
        cells = ("–", "the log cannot answer", "") if best is None else _estimate(best)
        size = one.set_size if one.coverage is None else f"{one.mean_size:.2f}"
        rows.append((one.words, size, *cells, "" if best is None else best.name))
    head = ("policy", "m", "hit rate", "95 % interval", "", "by")
    estimates = table(f"Judged by {answer.rows:,} rows", head, rows)
    return Markup(estimates + "".join(f"<p>{chips(['!'])}{escape(words)}</p>" for words in answer.warnings))


def log_html(log: Log) -> Markup:
    kinds = [f"{name} ({kind})" for name, kind in log.features.described.items()]
    out = [f"{name} ({why})" for name, why in log.features.left_out.items() if why]
    text = facts(
        f"Log of {some(log.names)}",
        [("features", some(kinds) if kinds else "x"), ("left out", some(out) if out else None)],
    )
    rows = []
    for record in islice(log, FEW):
        chance, hit = record.decision.propensity, record.hit
        answer = "–" if hit is None else "yes" if hit else "no"
        rows.append((chips(record.decision.labels), answer, "–" if chance is None else f"{chance:.4g}"))
    head = ("shown", "the right one among them", "propensity")
    return Markup(text + table("Its first rows", head, rows))


def survey_html(facts_: Survey) -> Markup:
    known, drawn = facts_.with_propensity, facts_.with_design
    return facts(
        "A log",
        [
            (
                "rows",
                f"{facts_.rows:,}" + (f", and {facts_.bad:,} that cannot be read" if facts_.bad else ""),
            ),
            ("answered", f"{facts_.answered:,}, of which {facts_.hits:,} hits"),
            ("sets", f"{facts_.set_size} of {facts_.n_labels:,} labels, mostly"),
            ("labels", some(facts_.known.all())),
            ("features", f"{facts_.n_features:,}"),
            ("propensities", f"{known:,} rows have a propensity, {drawn:,} say how the set was drawn"),
        ],
    )


def _estimate(one: Estimate) -> tuple[Any, ...]:
    reach = f"{one.low:.4f} to {one.high:.4f}" if one.low == one.low else "–"
    return rate(one.value), reach, between(one.low, one.high, one.value)
