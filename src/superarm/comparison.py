"""Several learners on one stream: what `superarm simulate` prints, and a notebook shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from superarm._extras import require_extra
from superarm._html import sparkline, titled_table
from superarm._progress import Progress, progress_bar
from superarm.errors import InvalidInput
from superarm.learners.registry import make, parameters, parse
from superarm.simulation import Trace, simulate

if TYPE_CHECKING:
    import polars

    from superarm.learners import Learner
    from superarm.logs import Writer
    from superarm.streams import Stream


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """Results of several learners on the same rows, in the same order.

    Attributes:
        data: the name of the stream.
        rounds: of each run.
        runs: for each learner a Trace for each seed.
    """

    data: str
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
        from superarm.report.stats import runs_frame

        return runs_frame(self.runs).drop("gamma")

    def table(self) -> polars.DataFrame:
        """Return a row for each learner: means over seeds, and half of their 95 % intervals."""
        require_extra("logs")
        from superarm.report.stats import runs_frame, summary

        return summary(runs_frame(self.runs)).drop("gamma")

    def cells(self) -> tuple[str, list[str], list[list[str]]]:
        """Return a title, heads and rows of text."""
        frame = self.table()
        from superarm.report.tables import text_cells

        seeds = frame["runs"][0]
        title = f"{self.data}: {self.rounds:,} rounds, {seeds} seed{'s' if seeds > 1 else ''}"
        return title, *text_cells(frame.drop("data", "rounds", "runs"))

    def __repr__(self) -> str:
        title, head, rows = self.cells()
        lines = [head, *rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
        return "\n".join([title, *text])

    def _repr_html_(self) -> str:
        title, head, rows = self.cells()
        with_curves = [
            [*row, sparkline(traces[0].rounds, traces[0].counts[:, 0] / traces[0].rounds)]
            for row, traces in zip(rows, self.runs.values(), strict=True)
        ]
        return titled_table(title, [*head, "error over rounds, logarithmic"], with_curves)


def compare(
    learners: Sequence[Learner | str],
    stream: Stream | str,
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
        stream: where rows and labels come from; or a name or file, as `superarm.streams.open_data` takes.
        rounds: of each run.
        set_size: how many labels to show, for learners given by name; of several, those of single labels show one.
            Left out, as each does by itself: 1, or as many as a promised coverage takes.
        gamma: the share of exploration, for learners given by name; of several, those without one ignore it.
        seeds: of the runs of each learner, or how many, from 0 on. All learners see the same rows in the same order.
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
    from superarm.streams import open_data, size_of

    source = open_data(stream) if isinstance(stream, str) else stream
    numbers = range(seeds) if isinstance(seeds, int) else seeds
    if not learners or not numbers:
        raise InvalidInput.must("learners and seeds", "compare", "at least one", (list(learners), seeds))
    common = {name: value for name, value in (("set_size", set_size), ("gamma", gamma)) if value is not None}
    templates = []
    for given in learners:
        if isinstance(given, str):
            usable = common if len(learners) == 1 else usable_options(given, common)
            given = make(given, **size_of(source), **usable)
        templates.append(given)
    runs: dict[str, tuple[Trace, ...]] = {}
    with progress_bar(rounds * len(numbers) * len(templates), progress=progress) as tick:
        for name, learner in zip(_names(learners, templates), templates, strict=True):
            params = learner.params | {"scaling": learner.scaling or scaling}
            copies = [type(learner)(**params | {"seed": learner.seed + seed}) for seed in numbers]
            traces = [
                simulate(one, source, rounds, seed=seed, log=log, progress=tick)
                for one, seed in zip(copies, numbers, strict=True)
            ]
            runs[name] = tuple(replace(trace, learner=name) for trace in traces)
    return Comparison(source.name, rounds, runs)


def usable_options(spec: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return those of the options that a learner has, and its spec does not set; one of single labels shows one."""
    cls, own = parse(spec)
    usable = {name: value for name, value in options.items() if name in parameters(cls) and name not in own}
    return usable | {"set_size": 1} if cls.single_label and "set_size" in usable else usable


def _names(given: Sequence[Learner | str], learners: Sequence[Learner]) -> list[str]:
    """Return a name for each learner: its spec, with m where several have the same spec."""
    names = [
        spec if isinstance(spec, str) else _spec_of(learner)
        for spec, learner in zip(given, learners, strict=True)
    ]
    many = Counter(names)
    names = [
        name if many[name] == 1 else f"{name}, m = {learner.set_size}"
        for name, learner in zip(names, learners, strict=True)
    ]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InvalidInput.must("learners", "compare", "all different", twice[0])
    return names


def _spec_of(learner: Learner) -> str:
    size = ("n_labels", "labels", "n_features", "set_size", "seed")
    params = {name: value for name, value in learner.nondefault_params.items() if name not in size}
    return ":".join([learner.name, *([",".join(f"{k}={v}" for k, v in params.items())] if params else [])])
