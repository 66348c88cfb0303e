"""Several learners on one stream: what `superarm simulate` prints, and a notebook shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm._extras import require_extra
from superarm._html import sparkline, titled_table
from superarm._intervals import student_margin
from superarm._progress import Progress, progress_bar
from superarm.errors import InvalidInput, MissingExtra
from superarm.groups import GroupCoverage, pool_coverage
from superarm.learners import Learner
from superarm.learners.registry import make, parse
from superarm.parameters import parameters
from superarm.simulation import NOT_WARM, RATES, Trace, as_stream, simulate

if TYPE_CHECKING:
    import polars

    from superarm.logs import Writer
    from superarm.streams import Stream


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """Results of several learners on the same rows, in the same order.

    Attributes:
        data, n_labels: the name of the stream, and how many labels it has.
        n_rows: how many rows the stream has; 0 if it is endless.
        rounds: how many rounds each run has.
        runs: for each learner a Trace for each seed.
    """

    data: str
    n_labels: int
    n_rows: int
    rounds: int
    runs: dict[str, tuple[Trace, ...]]

    def plot(self, y: str = "error_rate") -> Any:
        """Return an Altair chart of a rate against rounds: means over seeds, with 95 % intervals.

        Args:
            y: which rate: ``"error_rate"``, ``"miss_rate"`` or ``"shown_miss_rate"``.
        """
        from superarm.report.figures import traces_chart

        return traces_chart(self.runs, y)

    def to_frame(self) -> polars.DataFrame:
        """Return a row for each run."""
        require_extra("logs")
        import polars

        rows = [run.to_row() for runs in self.runs.values() for run in runs]
        return polars.DataFrame(rows, infer_schema_length=None)

    def table(self) -> polars.DataFrame:
        """Return a row for each learner: means over seeds, and half of their 95 % intervals."""
        require_extra("logs")
        from superarm.report.stats import summary

        return summary(self.to_frame())

    def group_coverage(self, learner: str) -> dict[str, tuple[GroupCoverage, ...]]:
        """Return the coverage ``by_label`` and ``by_group`` of a learner over all its runs, where runs have it."""
        runs = self.runs[learner]
        parts = {by: pool_coverage(getattr(run, by) for run in runs) for by in ("by_label", "by_group")}
        return {by: coverages for by, coverages in parts.items() if coverages}

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return JSON-ready values for each learner: its runs, their means, and the coverage by label and group."""
        results = []
        for name, runs in self.runs.items():
            result = {
                "learner": name,
                "data": self.data,
                "set_size": runs[0].set_size,
                "scaling": runs[0].scaling,
                "rounds": self.rounds,
                "runs": [
                    {"seed": run.seed, **run.final_rates, "rounds_per_second": run.rounds_per_second}
                    for run in runs
                ],
                "mean": {
                    rate: None if value is None else mean(getattr(run, rate) for run in runs)
                    for rate, value in runs[0].final_rates.items()
                },
            }
            coverages = self.group_coverage(name).items()
            results.append(result | {by: [asdict(part) for part in parts] for by, parts in coverages})
        return results

    def cells(self) -> tuple[str, list[str], list[list[str]]]:
        """Return a title, heads and rows of text: the means of each learner, ± half of their 95 % intervals."""
        runs_of = list(self.runs.values())
        seeds, rounds = len(runs_of[0]), f"{self.rounds:,} rounds"
        if 0 < self.n_rows < self.rounds:
            rounds = f"{self.n_rows:,} rows, visited {self.rounds / self.n_rows:.1f} times in {rounds}"
        title = f"{self.data}: {rounds}, {self.n_labels} labels, {seeds} seed(s)"
        with_intervals = seeds > 1
        if with_intervals:
            try:
                require_extra("logs", "scipy")
                title += ", mean ± half of the 95 % interval"
            except MissingExtra as error:
                with_intervals = False
                title += f", no intervals: {error}"

        def cell(values: Sequence[float], digits: int = 4) -> str:
            text = f"{mean(values):.{digits}f}"
            if not with_intervals:
                return text
            return f"{text} ± {student_margin(stdev(values) / seeds**0.5, seeds - 1):.{digits}f}"

        promised = any(run.promised is not None for runs in runs_of for run in runs)
        head = ["learner", "m", "scaling", "error", "miss", "shown miss"]
        rows = []
        for name, runs in self.runs.items():
            row = [name, str(runs[0].set_size), runs[0].scaling]
            row += [cell([run.rates[rate] for run in runs]) for rate in RATES]
            if promised and runs[0].is_warm:
                row += [cell([run.coverage for run in runs]), cell([run.mean_size for run in runs], 2)]
            elif promised:
                row += [NOT_WARM, ""]
            rows.append([*row, f"{mean(run.rounds_per_second for run in runs):,.0f}"])
        return title, [*head, *(["coverage", "mean size"] if promised else []), "rounds/s"], rows

    def __repr__(self) -> str:
        title, head, rows = self.cells()
        lines = [head, *rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
        return "\n".join([title, *text])

    def _repr_html_(self) -> str:
        title, head, rows = self.cells()
        with_curves = [
            [*row, sparkline(runs[0].rounds, runs[0].curves["error_rate"])]
            for row, runs in zip(rows, self.runs.values(), strict=True)
        ]
        return titled_table(title, [*head, "error over rounds, logarithmic"], with_curves)


def compare(
    learners: Sequence[Learner | str],
    stream: Stream | Any,
    rounds: int = 20_000,
    *,
    set_size: int | None = None,
    gamma: float | None = None,
    seeds: int | Sequence[int] = 1,
    scaling: str | None = "standard",
    log: Writer | None = None,
    progress: Progress = None,
) -> Comparison:
    """Run learners on a stream whose labels answer them.

    Args:
        learners: names as on the command line (``"mc-dbf:gamma=0.3"``), or learners: these give their
            parameters, and stay as they are.
        stream: where rows and labels come from; or a name, a file or a data frame, as `superarm.simulate` takes.
        rounds: how many rounds each run has.
        set_size: how many labels to show, for learners given by name; those that can only show one show one.
            Left out, as each does by itself: 1, or as many as a promised coverage takes.
        gamma: the share of exploration, for learners given by name; of several, those without one ignore it.
        seeds: one for each run of a learner, or how many, from 0 on. All learners see the same rows in the same order.
        scaling: how rows reach the weights of all learners that have no ``scaling`` of their own: ``"standard"``,
            each column by its mean and spread, learnt online; ``"unit"``, rows of length 1; ``None``, as each
            learner does by itself (the paper's: unit). The table has a column for it.
        log: gets a row for each decision (`superarm.logs.Writer`); slower, with the same bits.
        progress: True shows a bar; a function is called with the number of rounds done since its last call.

    >>> import superarm as sa
    >>> comparison = sa.compare(["set-logit", "banditron"], "digits", rounds=2_000, set_size=3)
    >>> comparison.table()["learner"].to_list()
    ['set-logit', 'banditron']
    """
    from superarm.streams import size_of

    source = as_stream(stream)
    numbers = range(seeds) if isinstance(seeds, int | np.integer) else [int(seed) for seed in seeds]
    if not learners or not numbers:
        raise InvalidInput.must("learners and seeds", "compare", "at least one", (list(learners), seeds))
    common = {name: value for name, value in (("set_size", set_size), ("gamma", gamma)) if value is not None}
    templates = []
    for given in learners:
        if isinstance(given, str):
            usable = common if len(learners) == 1 else usable_options(given, common)
            given = make(given, **size_of(source), **usable)
        elif not isinstance(given, Learner):
            raise InvalidInput.must("learners", "compare", "learners, or names as on the command line", given)
        templates.append(given)
    runs: dict[str, tuple[Trace, ...]] = {}
    with progress_bar(rounds * len(numbers) * len(templates), progress=progress) as tick:
        for name, learner in zip(_names(learners, templates), templates, strict=True):
            traces = []
            for seed in numbers:
                own = {"scaling": learner.scaling or scaling, "seed": learner.seed + seed}
                copy = type(learner)(**learner.params | own)
                trace = simulate(copy, source, rounds, seed=seed, log=log, progress=tick)
                traces.append(replace(trace, learner=name))
            runs[name] = tuple(traces)
    return Comparison(source.name, source.n_labels, len(getattr(source, "y", ())), rounds, runs)


def usable_options(spec: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that a learner has and its spec does not set; set_size is 1 where it shows one label."""
    cls, own = parse(spec)
    usable = {name: value for name, value in options.items() if name in parameters(cls) and name not in own}
    return usable | {"set_size": 1} if cls.shows_one_label and "set_size" in usable else usable


def _names(given: Sequence[Learner | str], learners: Sequence[Learner]) -> list[str]:
    """Return a name for each learner: its spec, with m where several have the same spec."""
    specs = [one if isinstance(one, str) else _spec_of(one) for one in given]
    counts = Counter(specs)
    names = [
        spec if counts[spec] == 1 else f"{spec}, m = {learner.set_size}"
        for spec, learner in zip(specs, learners, strict=True)
    ]
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InvalidInput.must("learners", "compare", "all different", repeated[0])
    return names


def _spec_of(learner: Learner) -> str:
    """Return the spec of a learner, without what depends on the data, set size and seed."""
    left_out = ("n_labels", "labels", "n_features", "set_size", "seed")
    params = learner.nondefault_params.items()
    text = ",".join(f"{name}={value}" for name, value in params if name not in left_out)
    return f"{learner.name}:{text}" if text else learner.name
