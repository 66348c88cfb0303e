"""Several learners on one stream, to look at in a notebook."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from superarm._extras import require_extra
from superarm._html import sparkline, table
from superarm._progress import Progress, progress_ticker
from superarm.errors import InvalidInput
from superarm.learners.registry import make, parse
from superarm.simulation import Trace, simulate

if TYPE_CHECKING:
    import polars

    from superarm.learners import Learner
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
        """A rate against rounds as an Altair chart: means over seeds, with 95 % intervals.

        Args:
            y: which rate: ``"error_rate"``, ``"miss_rate"`` or ``"shown_miss_rate"``.
        """
        from superarm.report.traces import traces_chart

        return traces_chart(self.runs, y)

    def to_frame(self) -> polars.DataFrame:
        """A row for each run."""
        from superarm.report.traces import runs_frame

        return runs_frame(self.runs).drop("gamma")

    def table(self) -> polars.DataFrame:
        """A row for each learner: means over seeds, and half of their 95 % intervals."""
        from superarm.report.stats import summary
        from superarm.report.traces import runs_frame

        return summary(runs_frame(self.runs)).drop("gamma")

    def cells(self) -> tuple[str, list[str], list[list[str]]]:
        """A title, heads and rows of text, for reading."""
        from superarm.report.tables import text_cells

        frame = self.table()
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
        return table(title, [*head, "error over rounds, logarithmic"], with_curves)


def compare(
    learners: Sequence[Learner | str],
    stream: Stream | str,
    rounds: int = 20_000,
    *,
    set_size: int = 3,
    seeds: int = 1,
    scaling: str | None = "standard",
    progress: Progress = None,
) -> Comparison:
    """Run learners on a stream whose labels answer them.

    Args:
        learners: names as on the command line (``"mc-dbf:gamma=0.3"``), or learners: these give their
            parameters, and stay as they are.
        stream: where rows and labels come from; or a name or file, as `superarm.streams.open_data` takes.
        rounds: of each run.
        set_size: how many labels to show, for those given by name; learners of single labels show one.
        seeds: how many runs of each, with seeds from 0 on. All see the same rows in the same order.
        scaling: how rows reach the weights of all learners that have no ``scaling`` of their own: ``"standard"``,
            each column by its mean and spread, learnt online; ``"unit"``, rows of length 1; ``None``, as each
            learner does by itself (the paper's: unit). The table says what each had.
        progress: True shows a bar; a function is called with the number of rounds done since its last call.

    >>> import superarm as sa
    >>> comparison = sa.compare(["set-logit", "banditron"], "digits", rounds=2_000)
    >>> comparison.table()["learner"].to_list()
    ['set-logit', 'banditron']
    """
    require_extra("logs")
    from superarm.streams import open_data, size_of

    source = open_data(stream) if isinstance(stream, str) else stream
    if not learners or seeds < 1:
        raise InvalidInput.must("learners and seeds", "compare", "at least one", (list(learners), seeds))
    templates = [_learner(given, size_of(source), set_size) for given in learners]
    runs: dict[str, tuple[Trace, ...]] = {}
    with progress_ticker(progress, rounds * seeds * len(templates)) as tick:
        for name, learner in zip(_names(learners, templates), templates, strict=True):
            shared = {"scaling": learner.scaling or scaling}
            learners_by_seed = [
                type(learner)(**learner.params | shared | {"seed": learner.seed + i}) for i in range(seeds)
            ]
            traces = [
                simulate(run, source, rounds, seed=i, progress=tick) for i, run in enumerate(learners_by_seed)
            ]
            runs[name] = tuple(replace(trace, learner=name) for trace in traces)
    return Comparison(source.name, rounds, runs)


def _learner(given: Learner | str, size: dict[str, Any], set_size: int) -> Learner:
    if not isinstance(given, str):
        return given
    cls, params = parse(given)
    if "coverage" in params:  # as few as needed, of all labels
        return make(given, **size)
    return make(given, **size, set_size=1 if cls.single_label else set_size)


def _names(given: Sequence[Learner | str], learners: Sequence[Learner]) -> list[str]:
    """A name for each: as it was given, or in the same spelling; with m where that alone tells them apart."""
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
