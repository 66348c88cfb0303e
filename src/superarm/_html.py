"""What a notebook shows: our objects as small tables, bars and curves, in plain HTML.

What comes from outside is escaped; nothing is fetched, and no script runs.

>>> table("Rates", ("label", "share"), [("<b>", bar(0.5))]).count("&lt;b&gt;")
1
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from math import isfinite, log
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from superarm.comparison import Comparison
    from superarm.decisions.decision import Decision
    from superarm.decisions.decisions import Decisions
    from superarm.learners.algorithm import Algorithm
    from superarm.logs import Evaluation, Log, Survey, Verdict
    from superarm.logs.estimates import Estimate
    from superarm.simulation import Trace

FEW = 8  # rows of many
HUE = "#3b82c4"  # to be told from black and from white paper
CELL = "text-align:left;padding:2px 14px 2px 0;vertical-align:middle"
LONG = 60  # characters of a cell that may be broken


class Markup(str):
    """HTML that has been made here: it is not escaped again."""

    __slots__ = ()


def _cell(value: Any) -> str:
    if isinstance(value, Markup):
        return f'<td style="{CELL}">{value}</td>'
    text = str(value)
    wrap = "" if len(text) > LONG else ";white-space:nowrap"
    return f'<td style="{CELL}{wrap}">{escape(text)}</td>'


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> Markup:
    """A table; cells are text, or `Markup`."""
    top = "".join(f'<th style="{CELL};white-space:nowrap">{escape(name)}</th>' for name in head)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    caption = f'<div style="margin:2px 0 4px"><b>{escape(title)}</b></div>'
    head_row = f"<thead><tr>{top}</tr></thead>" if head else ""
    return Markup(f"<div>{caption}<table>{head_row}<tbody>{body}</tbody></table></div>")


def fact_table(title: str, pairs: Iterable[tuple[str, Any]]) -> Markup:
    """Names and values, one a row; values that are ``None`` are left out."""
    return table(title, (), [(name, value) for name, value in pairs if value is not None])


def first_few(values: Sequence[Any], most: int = 6) -> str:
    """The first few, and how many there are.

    >>> first_few(range(100), 3)
    '0, 1, 2, … (100)'
    """
    text = ", ".join(str(value) for value in values[:most])
    return text if len(values) <= most else f"{text}, … ({len(values):,})"


def rate(value: float | None) -> str:
    """A rate for reading."""
    return "–" if value is None or not isfinite(value) else f"{value:.4f}"


def chips(labels: Iterable[Any], quiet: Iterable[Any] = ()) -> Markup:
    """Labels side by side; those in ``quiet`` are outlined only."""
    soft, style = set(quiet), "display:inline-block;border-radius:4px;padding:0 7px;margin:0 4px 2px 0;"
    spans = []
    for label in labels:
        own = f"border:1px solid {HUE}" if label in soft else f"border:1px solid {HUE};background:{HUE}33"
        spans.append(f'<span style="{style}{own}">{escape(str(label))}</span>')
    return Markup("".join(spans))


def _svg(width: int, height: int, inner: str) -> Markup:
    return Markup(
        f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">{inner}</svg>'
    )


def bar(share: float, width: int = 120) -> Markup:
    """A share of 1 as a bar."""
    long = width * min(max(share, 0.0), 1.0)
    ground = f'<rect y="3" width="{width}" height="8" rx="3" fill="currentColor" opacity="0.12"/>'
    return _svg(width, 14, f'{ground}<rect y="3" width="{long:.1f}" height="8" rx="3" fill="{HUE}"/>')


def interval_bar(low: float, high: float, at: float, width: int = 160) -> Markup:
    """An interval in [0, 1], and the estimate in it; empty where there is none."""
    if not (isfinite(low) and isfinite(high) and isfinite(at)):
        return Markup("")
    a, b, c = (width * min(max(value, 0.0), 1.0) for value in (low, high, at))
    ground = f'<rect y="5" width="{width}" height="6" rx="3" fill="currentColor" opacity="0.12"/>'
    reach = f'<rect x="{a:.1f}" y="5" width="{max(b - a, 1.0):.1f}" height="6" fill="{HUE}" opacity="0.5"/>'
    return _svg(
        width, 16, f'{ground}{reach}<rect x="{c - 1.5:.1f}" y="1" width="3" height="14" fill="{HUE}"/>'
    )


def sparkline(x: Any, y: Any, width: int = 220, height: int = 44) -> Markup:
    """A curve of shares over a logarithmic axis that begins at 1 or above; its top is the largest."""
    last, most = log(max(x[-1], 2.0)), max(max(y), 1e-12)
    points = " ".join(
        f"{2 + (width - 4) * log(a) / last:.1f},{2 + (height - 4) * (1.0 - b / most):.1f}"
        for a, b in zip(x, y, strict=True)
    )
    line = f'<polyline points="{points}" fill="none" stroke="{HUE}" stroke-width="1.6"/>'
    floor = f'<line x1="2" x2="{width - 2}" y1="{height - 1}" y2="{height - 1}" stroke="currentColor"'
    return _svg(width, height, f'{floor} opacity="0.25"/>{line}')


# ---------------------------------------------------------------- our objects


def learner_html(learner: Algorithm) -> Markup:
    if learner.columns is not None:
        kinds = [f"{name} ({kind})" for name, kind in learner.columns.descriptions.items()]
        more = ", and more names as they come" if learner.columns.is_open else ""
        rows = f"with names: {first_few(kinds)}{more}" if kinds else "with names, all of them words"
    elif learner.n_features is None:
        rows = "the first one will tell"
    else:
        rows = _features(learner)
    size, past = ("n_labels", "labels", "n_features", "set_size"), learner.notes.get("training", ())
    others = [(name, repr(value)) for name, value in learner.nondefault_params.items() if name not in size]
    return fact_table(
        type(learner).__name__,
        [
            (
                "shows",
                f"{_shown(learner)} of {learner.n_labels:,} labels: {first_few(learner.label_set.all())}",
            ),
            ("rows", rows),
            ("rounds", f"{learner.round:,} decided, {learner.answered.count:,} answered"),
            *(
                (
                    "trained",
                    f"on {log['rows']:,} rows of {first_few([*log['logs'].values()])}, {log['passes']} times",
                )
                for log in past
            ),
            *others,
        ],
    )


def _shown(learner: Algorithm) -> str:
    return f"at most {learner.set_size}" if learner.inputs.sizes_vary else str(learner.set_size)


def _features(learner: Algorithm) -> str:
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
    return fact_table(
        "Decision",
        [
            ("shown", chips(shown, set(shown) - set(top) if top else ())),
            ("top set", chips(top) if top and set(top) != set(shown) else None),
            ("eligible", None if decision.eligible is None else first_few(decision.eligible)),
            ("propensity", None if chance is None else f"{chance:.4g}"),
            ("rule", words),
            ("round", decision.round),
        ],
    )


def decisions_html(decisions: Decisions) -> Markup:
    rows: list[tuple[Any, ...]] = [
        (d.round, chips(d.labels, set(d.labels) - set(d.top)), f"{d.propensity:.4g}") for d in decisions[:FEW]
    ]
    more = [("…", "", "")] if len(decisions) > FEW else []
    head = ("round", "shown, best first", "propensity")
    return table(f"{len(decisions):,} decisions", head, [*rows, *more])


def trace_html(trace: Trace) -> Markup:
    words = ("top label wrong", "label not in the top set", "label not in the shown set")
    curves = (trace.counts / trace.rounds[:, None]).T
    rows = [
        (
            name.removesuffix("_rate").replace("_", " "),
            text,
            rate(value),
            bar(value),
            sparkline(trace.rounds, c),
        )
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
    drawn = [sparkline(trace.rounds, trace.counts[:, 0] / trace.rounds) for trace in first]
    return table(
        title,
        [*head, "error over rounds, logarithmic"],
        [[*row, curve] for row, curve in zip(rows, drawn, strict=True)],
    )


def verdict_html(verdict: Verdict) -> Markup:
    rows = []
    for estimate in verdict.estimates:
        best = " (best)" if estimate is verdict.best else ""
        rows.append((estimate.name + best, *_estimate(estimate), estimate.problem))
    title = f"{verdict.words}: estimates of its hit rate"
    return table(title, ("estimator", "hit rate", "95 % interval", "", "problem"), rows)


def evaluation_html(answer: Evaluation) -> Markup:
    logged = (rate(answer.hit_rate), f"{answer.low:.4f} to {answer.high:.4f}")
    rows: list[tuple[Any, ...]] = [
        ("what was shown", "", *logged, interval_bar(answer.low, answer.high, answer.hit_rate), "")
    ]
    for verdict in answer.verdicts:
        best = verdict.best
        cells = ("–", "the log cannot answer", "") if best is None else _estimate(best)
        size = verdict.set_size if verdict.coverage is None else f"{verdict.mean_size:.2f}"
        rows.append((verdict.words, size, *cells, "" if best is None else best.name))
    head = ("policy", "m", "hit rate", "95 % interval", "", "by")
    estimates = table(f"Judged by {answer.rows:,} rows", head, rows)
    return Markup(estimates + "".join(f"<p>{chips(['!'])}{escape(words)}</p>" for words in answer.warnings))


def log_html(log: Log) -> Markup:
    kinds = [f"{name} ({kind})" for name, kind in log.features.descriptions.items()]
    out = [f"{name} ({why})" for name, why in log.features.left_out.items() if why]
    text = fact_table(
        f"Log of {first_few(log.names)}",
        [("features", first_few(kinds) if kinds else "x"), ("left out", first_few(out) if out else None)],
    )
    rows = []
    for record in islice(log, FEW):
        chance, hit = record.decision.propensity, record.hit
        answer = "–" if hit is None else "yes" if hit else "no"
        rows.append((chips(record.decision.labels), answer, "–" if chance is None else f"{chance:.4g}"))
    head = ("shown", "the right one among them", "propensity")
    return Markup(text + table("Its first rows", head, rows))


def survey_html(survey: Survey) -> Markup:
    known, drawn = survey.with_propensity, survey.with_design
    return fact_table(
        "A log",
        [
            (
                "rows",
                f"{survey.rows:,}" + (f", and {survey.bad:,} that cannot be read" if survey.bad else ""),
            ),
            ("answered", f"{survey.answered:,}, of which {survey.hits:,} hits"),
            ("sets", f"{survey.set_size} of {survey.n_labels:,} labels, mostly"),
            ("labels", first_few(survey.known.all())),
            ("features", f"{survey.n_features:,}"),
            ("propensities", f"{known:,} rows have a propensity, {drawn:,} say how the set was drawn"),
        ],
    )


def _estimate(estimate: Estimate) -> tuple[Any, ...]:
    reach = f"{estimate.low:.4f} to {estimate.high:.4f}" if estimate.low == estimate.low else "–"
    return rate(estimate.value), reach, interval_bar(estimate.low, estimate.high, estimate.value)
