"""superarm evaluate: what would another policy have done?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import product
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar

from typer import Option

from superarm._extras import require_extra
from superarm.cli import options as opt
from superarm.cli.options import AsJson, Force, split_commas
from superarm.cli.output import (
    check_output,
    print_counts,
    print_group_coverage,
    print_json,
    print_note,
    print_table,
)
from superarm.errors import InvalidInput, Unquoted

FIGURES = (".html", ".svg", ".png", ".pdf", ".json")

T = TypeVar("T", int, float)

if TYPE_CHECKING:
    from superarm.explore import Rule
    from superarm.learners import Learner
    from superarm.logs import Evaluation, Log, Policy, PolicyResult

    AnyRule = Rule | Literal["own"] | None
    Remedy = Callable[[PolicyResult], str]


def evaluate(
    log: opt.LogFiles,
    model: Annotated[list[Path] | None, Option(help="A model file; several to compare.")] = None,
    learner: Annotated[
        list[str] | None, Option(help="Train this learner first, on the other rows; several to compare.")
    ] = None,
    fixed: Annotated[
        list[str] | None, Option(help="Always show these labels: a,b,c; several to compare.")
    ] = None,
    set_size: Annotated[str | None, Option(help="How many labels to show; 2,3,4 with --grid.")] = None,
    gamma: Annotated[
        str | None, Option(help="Explore: draw around the top set with this share; 0.1,0.3 with --grid.")
    ] = None,
    coverage: Annotated[
        str | None,
        Option(help="As few labels as this coverage needs, by the learner's threshold as it stands."),
    ] = None,
    draw: Annotated[
        bool, Option("--draw", help="Draw as the learner itself does, with its budget as it stands.")
    ] = False,
    scores: Annotated[
        list[str] | None,
        Option(help="Rank by this column of somebody's scores (or a,b,c: one for each label)."),
    ] = None,
    probabilities: Annotated[list[str] | None, Option(help="The same, where they are probabilities.")] = None,
    rule: Annotated[
        str | None,
        Option(help="Draw by a rule: NAME or file.py:Class, with :key=value, as runner-up:explore=0.5."),
    ] = None,
    grid: Annotated[bool, Option("--grid", help="Compare all of them, one line each.")] = False,
    group: Annotated[
        str | None, Option(help="Tell also what holds for each value of this column of the log.")
    ] = None,
    figure: Annotated[Path | None, Option(help="Draw it: .html, .svg, .png or .pdf.")] = None,
    force: Force = False,
    passes: Annotated[int, Option(help="For --learner: how often to go through the log.", min=1)] = 1,
    holdout: Annotated[
        float | None,
        Option(help="The share of rows to judge by: that of the models' training; else all rows."),
    ] = None,
    seed: Annotated[int, Option(help="Decides which rows.", min=0)] = 0,
    with_propensity: Annotated[
        bool,
        Option(
            "--with-propensity",
            help="Judge by rows with a propensity alone: right if it is chance which lack one.",
        ),
    ] = False,
    labels: opt.Labels = None,
    log_options: opt.LogOptions = opt.LogOptions(),  # noqa: B008  (the options in its fields)
    as_json: AsJson = False,
) -> None:
    """Ask a log how often other policies would have hit, on rows they have not learnt from.

    First comes what the log can tell at all: overlap, the share of rows with a weight for a policy's sets;
    n_eff, their effective sample size; the largest and the mean weight w. The log must say how probable its
    sets were (propensity, or top and gamma).

    ips, snips, dr weight whole sets; pi, pi-dr use that a set's hit rate is the sum over its labels; nested is
    what follows from fewer labels of the same ranking, where only those can be answered for.

    Example: **superarm evaluate log.parquet --learner set-logit --set-size 2,3,4 --grid**
    """
    from superarm._progress import progress_bar
    from superarm.learners import load
    from superarm.logs import evaluate as evaluate_policies
    from superarm.logs import train

    if figure is not None:
        require_extra("plots")
    check_output(figure, "evaluate", force=force, option="--figure", endings=FIGURES)
    rules = _rules(rule, gamma, draw, grid)
    sizes = _numbers("--set-size", set_size, int, grid)
    coverages = _numbers("--coverage", coverage, float, grid)
    other_rankings = {"scores": scores or [], "probabilities": probabilities or [], "fixed": fixed or []}
    if coverage is not None:
        _check_alone(coverage, other_rankings | {"gamma": gamma, "rule": rule, "draw": draw})
    models = {str(path): load(path) for path in model or []}
    if models and (log_options.kinds or log_options.columns is not None):
        got = ", ".join(log_options.kinds) or str(log_options.columns)
        raise InvalidInput.must("columns", "evaluate", "left to --model, which knows its own", got)
    source = log_options.log(log, models.values())
    score_columns = [
        name for text in [*(scores or []), *(probabilities or [])] for name in split_commas(text)
    ]
    source.keep_columns([*score_columns, *([] if group is None else [group])])  # before the first reading
    held_out = _rows_to_judge_by(source, models, bool(learner), holdout, seed, quiet=as_json)
    first_model = next(iter(models.values()), None)
    summary = opt.summarize_log(source, opt.labels_or_count(labels), first_model)
    n_readings = 1 + passes * len(learner or [])
    with progress_bar(summary.rows * n_readings, "rows", progress=not as_json) as tick:
        learners = dict(models)
        for spec in learner or []:
            assert held_out is not None
            learners[spec] = summary.make_learner(spec, held_out.seed, sizes[-1])
            train(source, learners[spec], summary, passes=passes, **held_out._asdict(), progress=tick)
        policies = _policies(learners, other_rankings, sizes, summary.set_size, rules, coverages)
        rows: dict[str, Any] = {"holdout": None} if held_out is None else held_out._asdict()
        rows["with_propensity"] = with_propensity
        evaluation = evaluate_policies(source, policies, summary, **rows, group=group, progress=tick)
    if as_json:
        content = asdict(evaluation)
        for one, result in zip(content["results"], evaluation.results, strict=True):
            one["best"] = None if result.best is None else result.best.name
        print_json({"logs": [str(path) for path in log], **content})
    else:
        _print_evaluation(evaluation, source, summary.answered, held_out, grid, group)
    if figure is not None:
        _save_figure(evaluation, figure, quiet=as_json)


class _HeldOut(NamedTuple):
    """Which rows judge, as `superarm.logs.evaluate` takes it."""

    holdout: float
    seed: int


def _rows_to_judge_by(
    source: Log, models: dict[str, Learner], trains: bool, holdout: float | None, seed: int, *, quiet: bool
) -> _HeldOut | None:
    """Return the rows to judge by: those that the models were not trained with; None for all rows."""
    share = opt.HOLDOUT if holdout is None else holdout
    if not 0.0 < share < 1.0:
        raise InvalidInput.must("--holdout", "evaluate", "in (0, 1)", holdout)
    wanted = _HeldOut(share, seed) if trains or holdout is not None else None
    logs = source.fingerprints()
    holdouts = set[_HeldOut]()
    for name, model in models.items():
        trainings = [note for note in model.metadata.get("training", ()) if logs.keys() & note["logs"].keys()]
        holdouts |= {_HeldOut(note["holdout"], note["seed"]) for note in trainings}
        if any(note["holdout"] == 0.0 for note in trainings):
            raise InvalidInput.must(
                name, source.name, "trained with rows kept out", Unquoted("all rows were learnt")
            )
        trained_logs = {sha for note in trainings for sha in note["logs"]}
        new_logs = [file for sha, file in logs.items() if sha not in trained_logs]
        if new_logs and not quiet:
            unseen = f"{name} was not trained on {', '.join(new_logs)} by superarm train"
            answers = model.answered.count
            own = f", and has learnt from {answers:,} answers to its own decisions" if answers else ""
            print(f"{unseen}{own}: make sure that it never saw these rows, else its hit rate is too high")
    if len(holdouts) > 1 or (wanted is not None and holdouts - {wanted}):
        got = [tuple(held_out) for held_out in sorted(holdouts)]
        raise InvalidInput.must("models", "evaluate", "trained with the same --holdout and --seed", got)
    return holdouts.pop() if holdouts else wanted


def _numbers(option: str, text: str | None, kind: type[T], grid: bool) -> list[T | None]:
    """Return the numbers of an option; ``None`` if it is left out."""
    if text is None:
        return [None]
    try:
        values: list[T | None] = [kind(part) for part in split_commas(text)]
    except ValueError:
        raise InvalidInput.must(option, "evaluate", "numbers with commas between", text) from None
    if not values or (len(values) > 1 and not grid):
        raise InvalidInput.must(option, "evaluate", "one number; add --grid to compare several", text)
    return values


def _check_alone(coverage: str, others: dict[str, object]) -> None:
    """Refuse --coverage with what else chooses sets: it is by the threshold of a learner."""
    for option, value in others.items():
        if value:
            wanted = f"left out with --{option}: it is for --model and --learner, by their own threshold"
            raise InvalidInput.must("--coverage", "evaluate", wanted, coverage)


def _policies(
    learners: dict[str, Learner],
    other_rankings: dict[str, list[str]],
    sizes: list[int | None],
    logged_size: int,
    rules: list[AnyRule],
    coverages: list[float | None],
) -> list[Policy]:
    """Return all combinations; those by scores or probabilities show as many labels as the log, unless told."""
    from superarm.logs import Policy

    policies = [
        Policy(name, learner=learner, set_size=size, rule=rule, coverage=coverage)
        for (name, learner), coverage, size, rule in product(learners.items(), coverages, sizes, rules)
    ]
    for kind, texts in other_rankings.items():
        sizes_shown = [None] if kind == "fixed" else [size or logged_size for size in sizes]
        policies += [
            Policy(text, **{kind: split_commas(text)}, set_size=size, rule=rule)  # type: ignore[arg-type]
            for text, size, rule in product(texts, sizes_shown, rules)
        ]
    if not policies:
        raise InvalidInput("no policy: give --model, --learner, --scores, --probabilities or --fixed")
    return policies


def _rules(text: str | None, gamma: str | None, own: bool, grid: bool) -> list[AnyRule]:
    """Return the rules that --rule, --gamma or --draw name; ``None`` shows the best labels."""
    from superarm.explore import Dilute, rule_from
    from superarm.learners.registry import is_file_spec, make_rule, parse_params

    given = {"--rule": text, "--gamma": gamma, "--draw": own or None}
    options = [option for option, value in given.items() if value is not None]
    if len(options) > 1:
        raise InvalidInput.must(options[1], "evaluate", f"left out with {options[0]}", given[options[1]])
    if own:
        return ["own"]
    if text is None:
        shares = _numbers("--gamma", gamma, float, grid)
        return [None if share is None else Dilute(gamma=share) for share in shares]
    if is_file_spec(text):
        return [make_rule(text, "--rule", "evaluate")]
    name, _, rest = text.partition(":")
    return [rule_from({"name": name} | parse_params(rest, "--rule", "evaluate", text), "evaluate")]


def _save_figure(evaluation: Evaluation, path: Path, *, quiet: bool) -> None:
    """Draw the hit rates into a file, where the log can answer for any policy."""
    if all(result.best is None for result in evaluation.results):
        print_note("no figure: the log can answer for no policy")
        return
    ending = path.suffix.lower()
    scale = 2 if ending == ".png" else 1
    evaluation.plot().save(path, format=ending[1:], scale_factor=scale)  # type: ignore[arg-type]
    if not quiet:
        print(f"figure: {path}")


def _print_evaluation(
    evaluation: Evaluation,
    source: Log,
    answered: int,
    held_out: _HeldOut | None,
    grid: bool,
    group: str | None,
) -> None:
    interval = _interval(evaluation.low, evaluation.high)
    shown = f"what was shown hit {evaluation.hit_rate:.3f} {interval}"
    print(f"{source.name}: judged by {evaluation.rows:,} rows; {shown}")
    print_counts(
        (evaluation.unanswered, "rows have no outcome"),
        (evaluation.bad, f"rows skipped as bad, the first: {source.first_bad}"),
    )
    for warning in evaluation.warnings:
        print(f"WARNING: {warning}")
    holdout = None if held_out is None else held_out.holdout

    def remedy(result: PolicyResult) -> str:
        return result.remedy(answered, holdout, fewer_labels=not grid)

    if grid:
        _print_grid(evaluation.results, remedy)
    else:
        for result in evaluation.results:
            _print_result(result, remedy)
    for result in evaluation.results:
        by_label = result.by_label if result.coverage or group else ()
        print_group_coverage(result.description, by_label=by_label, by_group=result.by_group, group=group)


def _print_grid(results: Sequence[PolicyResult], remedy: Remedy) -> None:
    rows = []
    for result in results:
        best = result.best
        estimate = [f"{result.estimates[-1].n_eff:,.0f}", "", "cannot say", ""]
        if best is not None:
            interval = _interval(best.low, best.high)
            estimate = [f"{best.n_eff:,.0f}", best.name, f"{best.value:.3f}", interval]
        rows.append([result.policy, result.size_text, result.rule or "", *estimate])
    columns = ["policy", "m", "draws", "n_eff", "by", "hit rate", "95 % interval"]
    print_table("The sharpest sound estimate for each policy", columns, rows)
    for result in results:
        if result.best is None:
            why = result.estimates[-1].problem
            print(f"{result.description}: the log cannot answer: {why}; {remedy(result)}")


def _print_result(result: PolicyResult, remedy: Remedy) -> None:
    print()
    print_table(
        f"{result.description}: what the log can tell",
        ["estimate", "overlap", "n_eff", "largest w", "mean w", "hit rate", "95 % interval"],
        [
            [
                e.name,
                f"{e.overlap:.1%}",
                f"{e.n_eff:,.0f}",
                f"{e.max_weight:,.1f}",
                "" if isnan(e.mean_weight) else f"{e.mean_weight:.3f}",
                "cannot say" if e.problem else f"{e.value:.3f}",
                "" if e.problem else _interval(e.low, e.high),
            ]
            for e in result.estimates
        ],
    )
    for problem in dict.fromkeys(e.problem for e in result.estimates if e.problem):
        names = ", ".join(e.name for e in result.estimates if e.problem == problem)
        print(f"{names}: {problem}")
    best = result.best
    if best is None:
        print(f"WARNING: this log cannot answer for this policy; {remedy(result)}.")
        return
    if best.name == "nested":
        print("nested: by fewer labels of the same ranking; with more it hits at least as often")
    if best.unsupported > 0.0005:
        cannot = "of the rows cannot answer, or would need too heavy weights"
        print(f"{best.unsupported:.1%} {cannot}: the interval allows for anything there")
    print(f"read: {best.name}, {best.value:.3f} {_interval(best.low, best.high)}")
    if result.coverage is not None:
        print(f"promised: {result.coverage:g}, at {result.mean_size:.2f} labels on average")


def _interval(low: float, high: float) -> str:
    return f"[{low:.3f}, {high:.3f}]"
