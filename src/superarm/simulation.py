"""One run: learner x stream x oracle -> Trace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import nan
from os import PathLike
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm._extras import require_extra
from superarm._html import format_rate, sparkline, titled_table
from superarm._progress import Progress, progress_bar
from superarm._types import Array
from superarm.data.tables import is_named_rows
from superarm.errors import InvalidInput, Unquoted
from superarm.groups import GroupCoverage, Groups, coverage_by

if TYPE_CHECKING:
    import polars

    from superarm.data.labels import Label
    from superarm.learners import Learner
    from superarm.logs import Writer
    from superarm.streams import Chunk, Stream

RATES = ("error_rate", "miss_rate", "shown_miss_rate")
PROMISE_COLUMNS = ("coverage", "mean_size")  # of a run whose learner promised a coverage
NOT_WARM = "no round after the warm-up"


@dataclass(frozen=True, slots=True, repr=False)
class Trace:
    """The result of a run: mistakes counted at about 200 rounds, evenly spaced in logarithm.

    Attributes:
        learner, data: their names.
        set_size, seed: the learner's; the stream has the same seed.
        rounds: the checkpoints.
        counts: errors, misses and shown misses up to each checkpoint, a row for each.
        seconds: in the compiled loop.
        scaling: how rows reached the learner's weights.
        labels_shown: how many labels were shown up to each checkpoint.
        warm_up: rounds at the start that do not count for a promised coverage.
        promised: the coverage that the learner promised, if it did.
        by_label, by_group: coverage and mean size after the warm-up for each label, and for each group of the stream,
            if it has groups; the labels are there with groups or a promise.
    """

    learner: str
    data: str
    set_size: int
    seed: int
    rounds: Array
    counts: Array
    seconds: float
    scaling: str
    labels_shown: Array
    warm_up: int = 0
    promised: float | None = None
    by_label: tuple[GroupCoverage, ...] = ()
    by_group: tuple[GroupCoverage, ...] = ()

    @property
    def error_rate(self) -> float:
        """The share of rounds whose top label was wrong."""
        return self.rates["error_rate"]

    @property
    def miss_rate(self) -> float:
        """The share of rounds whose top set missed the label."""
        return self.rates["miss_rate"]

    @property
    def shown_miss_rate(self) -> float:
        """The share of rounds whose shown set missed the label."""
        return self.rates["shown_miss_rate"]

    @property
    def coverage(self) -> float:
        """The share of rounds whose shown set had the label, after the warm-up; nan if there is no such round."""
        return 1.0 - self._after_warm_up(self.counts[:, RATES.index("shown_miss_rate")])

    @property
    def mean_size(self) -> float:
        """How many labels were shown on average, after the warm-up; nan if there is no such round."""
        return self._after_warm_up(self.labels_shown)

    @property
    def is_warm(self) -> bool:
        """Whether there are rounds after the warm-up of a promised coverage."""
        return bool(self.rounds[-1] > self.warm_up)

    def _after_warm_up(self, sums: Array) -> float:
        if not self.is_warm:
            return nan
        rounds, before = int(self.rounds[-1]) - self.warm_up, 0
        if self.warm_up:
            before = sums[np.searchsorted(self.rounds, self.warm_up)]
        return float((sums[-1] - before) / rounds)

    @property
    def curves(self) -> dict[str, Array]:
        """The rates of errors, misses and shown misses up to each checkpoint, by name."""
        return dict(zip(RATES, self.counts.T / self.rounds, strict=True))

    @property
    def rates(self) -> dict[str, float]:
        """The rates of errors, misses and shown misses over the whole run, by name."""
        return {name: float(curve[-1]) for name, curve in self.curves.items()}

    @property
    def final_rates(self) -> dict[str, float | None]:
        """The rates, and coverage and mean size after the warm-up; ``None`` if no round came after it."""
        after = {name: getattr(self, name) if self.is_warm else None for name in PROMISE_COLUMNS}
        return self.rates | after

    @property
    def rounds_per_second(self) -> float:
        """Speed of the compiled loop, without making the data."""
        return float(self.rounds[-1] / self.seconds) if self.seconds else 0.0

    def to_row(self) -> dict[str, Any]:
        """Return the run as one row of a table: what was run, its rates at the end, and what became of a promise."""
        return {
            "data": self.data,
            "learner": self.learner,
            "set_size": self.set_size,
            "scaling": self.scaling,
            "seed": self.seed,
            "rounds": int(self.rounds[-1]),
            **(self.rates if self.promised is None else self.final_rates),
            "seconds": self.seconds,
        }

    def to_frame(self) -> polars.DataFrame:
        """Return a Polars frame with a row for each checkpoint: the round, and each rate up to it."""
        require_extra("logs")
        import polars

        return polars.DataFrame({"round": self.rounds} | self.curves)

    def plot(self, y: str = "error_rate") -> Any:
        """Return the rate up to each round, as an Altair chart; the one that the report has.

        Args:
            y: which rate: ``"error_rate"``, ``"miss_rate"`` or ``"shown_miss_rate"``.
        """
        from superarm.report.figures import traces_chart

        return traces_chart({self.learner: (self,)}, y)

    def __repr__(self) -> str:
        promise = ""
        if self.promised is not None and self.is_warm:
            promise = f", coverage {self.coverage:.4f}, mean size {self.mean_size:.2f} after {self.warm_up:,}"
        elif self.promised is not None:
            promise = f", {NOT_WARM} of {self.warm_up:,}"
        return (
            f"Trace({self.learner} on {self.data}, m = {self.set_size}: error {self.error_rate:.4f}, "
            f"miss {self.miss_rate:.4f}, shown miss {self.shown_miss_rate:.4f}{promise}; "
            f"{self.rounds[-1]:,} rounds, scaling {self.scaling})"
        )

    def _repr_html_(self) -> str:
        meanings = ("top label wrong", "label not in the top set", "label not in the shown set")
        rows: list[tuple[Any, ...]] = []
        for (name, curve), meaning in zip(self.curves.items(), meanings, strict=True):
            short_name = name.removesuffix("_rate").replace("_", " ")
            rows.append((short_name, meaning, format_rate(curve[-1]), sparkline(self.rounds, curve)))
        if self.promised is not None:
            meaning, coverage = NOT_WARM, None
            if self.is_warm:
                promise = f"{self.mean_size:.2f} labels, {self.promised:g} promised"
                meaning, coverage = f"label shown after {self.warm_up:,} rounds; {promise}", self.coverage
            rows.append(("coverage", meaning, format_rate(coverage), ""))
        for kind, parts in (("label", self.by_label), ("group", self.by_group)):
            if parts:
                least = min(parts, key=lambda part: part.coverage)
                meaning = f"{least.name}: {least.rows:,} rounds, {least.mean_size:.2f} labels"
                rows.append((f"least by {kind}", meaning, format_rate(least.coverage), ""))
        title = f"{self.learner} on {self.data}: {self.rounds[-1]:,} rounds, m = {self.set_size}"
        return titled_table(title, ("", "", "share of rounds", "over rounds, logarithmic"), rows)

    def window(self, start: float, stop: float) -> dict[str, float]:
        """Return the rates between the shares ``start`` and ``stop`` of the run, to the nearest checkpoints."""
        last = self.rounds[-1]
        a, b = (int(np.argmin(np.abs(self.rounds - share * last))) for share in (start, stop))
        before = self.counts[a] if start > 0 else np.zeros(3)
        n = self.rounds[b] - (self.rounds[a] if start > 0 else 0)
        if n <= 0:
            wanted = "increasing, with a checkpoint between them"
            raise InvalidInput.must("start and stop", "Trace.window", wanted, (start, stop))
        return dict(zip(RATES, ((self.counts[b] - before) / n).tolist(), strict=True))


def checkpoints(rounds: int) -> Array:
    """Return about 200 round numbers up to ``rounds``, evenly spaced in logarithm, and each tenth of them.

    >>> checkpoints(10).tolist()
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    >>> len(checkpoints(1_000_000))
    184
    """
    logarithmic = np.geomspace(1, rounds, 200)
    tenths = np.arange(1, 11) * rounds / 10
    return np.unique(np.round(np.concatenate([logarithmic, tenths])).clip(1).astype(np.int64))


def simulate(
    learner: Learner | Any,
    stream: Stream | Any,
    rounds: int = 100_000,
    *,
    seed: int | None = None,
    log: Writer | None = None,
    progress: Progress = None,
) -> Trace:
    """Run a learner for ``rounds`` rounds on a stream whose labels answer it.

    A table with fewer rows is gone through again and again. Mistakes on rows that it has learnt count, too: they are
    fewer than on new rows. As many rounds as rows visit each row once.

    Args:
        learner: it continues from its present state.
        stream: where rows and labels come from; or a name or file, as `superarm.streams.open_data` takes;
            or a data frame with a column ``label`` (`superarm.streams.from_frame` for any other name). Where it and
            the learner have names of labels, these must be the same, in any order.
        rounds: how many.
        seed: for the order of the stream; the learner's own by default.
        log: gets a row for each decision (`superarm.logs.Writer`); slower, with the same bits.
        progress: True shows a bar; a function is called with the number of rounds done since its last call.

    >>> import superarm as sa
    >>> learner = sa.SetLogit(n_labels=10, n_features=64, set_size=3, seed=0)
    >>> sa.simulate(learner, "digits", 20_000).error_rate < 0.1
    True
    """
    if rounds < 1:
        raise InvalidInput.must("rounds", "simulate", "at least 1", rounds)
    stream = as_stream(stream)
    label_index = _check_fit(learner, stream)
    seed = learner.seed if seed is None else seed
    promise = learner.coverage
    warm_up = 0 if promise is None else max(0, promise.warm_up - learner.round)
    checkpoint_rounds = checkpoints(rounds)
    if 0 < warm_up < rounds:
        checkpoint_rounds = np.union1d(checkpoint_rounds, [warm_up])
    counts = np.zeros((len(checkpoint_rounds), 4), np.int64)
    counts_so_far, seconds, done = np.zeros(4, np.int64), 0.0, 0
    group_sums = _GroupSums.of_stream(stream, learner.labels, promise is not None)
    with progress_bar(rounds, progress=progress) as tick:
        chunks = (chunk._replace(y=label_index[chunk.y]) for chunk in stream.chunks(seed))
        for chunk in _chunks_between(checkpoint_rounds, chunks):
            if done == 0:
                learner.run(chunk.rows, chunk.y, chunk.order[:0])  # make its arrays off the clock
            n = len(chunk.order)
            signed_sizes = np.empty(n, np.intp) if group_sums and done >= warm_up else None
            began = perf_counter()
            if log is None:
                counts_so_far += learner.run(chunk.rows, chunk.y, chunk.order, signed_sizes=signed_sizes)
            else:
                counts_so_far += _run_logged(learner, chunk, log, seed, done, signed_sizes)
            seconds += perf_counter() - began
            if signed_sizes is not None:
                for sums in group_sums:
                    sums.add(chunk, signed_sizes)
            done += n
            tick(n)
            counts[np.searchsorted(checkpoint_rounds, done)] = counts_so_far  # the last chunk ends at it
    if done < rounds:
        wanted = f"at most {done}, as {stream.name} ended there"
        raise InvalidInput.must("rounds", "simulate", wanted, rounds)
    return Trace(
        learner=learner.name,
        data=stream.name,
        set_size=learner.set_size,
        seed=seed,
        rounds=checkpoint_rounds,
        counts=counts[:, :3],
        seconds=seconds,
        scaling=learner.effective_scaling,
        labels_shown=counts[:, 3],
        warm_up=warm_up,
        promised=None if promise is None else promise.promised,
        **{sums.name: coverage_by(sums.groups, sums.sums) for sums in group_sums},
    )


def as_stream(source: Stream | Any) -> Stream:
    """Return a stream: itself, or of a name, a file, or a data frame with a column ``label``."""
    from superarm.streams import from_frame, open_data

    if isinstance(source, str | PathLike):
        return open_data(str(source))
    if is_named_rows(source):
        return from_frame(source)
    if not hasattr(source, "chunks"):
        wanted = "a stream, a name, a file, or a table with a column label; X and y are superarm.streams.Arrays(X, y)"
        raise InvalidInput.must("stream", "superarm", wanted, Unquoted(f"a {type(source).__name__}"))
    return source


def _check_fit(learner: Any, stream: Stream) -> Array:
    """Refuse a learner that cannot learn from a stream; return its index of each label of the stream."""
    from superarm.learners import Learner

    if not isinstance(learner, Learner):
        wanted = "a Learner (an algorithm of your own becomes one as a PlainLearner; compare takes names)"
        raise InvalidInput.must("learner", "simulate", wanted, learner)
    for size in ("n_features", "n_labels"):
        if getattr(learner, size) not in (None, getattr(stream, size)):
            wanted = f"{getattr(stream, size)}, as {stream.name} has"
            raise InvalidInput.must(size, learner.owner, wanted, getattr(learner, size))
    label_index = _label_indices(learner, stream)
    columns, own = getattr(stream, "columns", None), learner.columns
    if columns is not None and learner.inputs.layout is None:
        learner.use_columns(columns)
    elif columns and own and list(columns.kinds.items()) != list(own.kinds.items()):
        wanted = "those that the learner knows (from_frame(…, columns=learner.columns))"
        raise InvalidInput.must("columns", stream.name, wanted, columns)
    return label_index


def _label_indices(learner: Learner, stream: Stream) -> Array:
    """Return the learner's index of each label of a stream: by name, if both have the same names in any order."""
    in_order = np.arange(stream.n_labels)
    if learner.labels is None:
        return in_order
    indices = [learner.vocabulary.index_of_text(name) for name in stream.labels or in_order]
    if stream.labels is None and set(indices) == {None}:  # the learner's names for the stream's indices
        return in_order
    if None in indices:
        unknown = (stream.labels or in_order)[indices.index(None)]
        raise InvalidInput.must("labels", stream.name, "those of the learner, in any order", unknown)
    return np.array(indices)


def _chunks_between(checkpoint_rounds: Array, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Cut chunks at the checkpoints, up to the last one."""
    done, last = 0, int(checkpoint_rounds[-1])
    for chunk in chunks:
        order = chunk.order[: last - done]
        cuts = checkpoint_rounds[(done < checkpoint_rounds) & (checkpoint_rounds < done + len(order))] - done
        for part in np.split(order, cuts):
            yield chunk._replace(order=part)
        done += len(order)
        if done == last:
            return


class _GroupSums:
    """What is added up of the rounds of each label, or of each group."""

    def __init__(self, name: str, groups: Sequence[Any], numbers: Array | None) -> None:
        self.name, self.groups, self.numbers = name, groups, numbers
        self.sums = np.zeros((len(groups), 3))  # rounds, hits, labels shown

    @classmethod
    def of_stream(cls, stream: Stream, names: Sequence[Label] | None, promised: bool) -> list[_GroupSums]:
        """Return the sums by label (``names``: the learner's), and by group; none without groups or promise."""
        groups: Groups | None = getattr(stream, "groups", None)
        if groups is None and not promised:
            return []
        labels = names or stream.labels or range(stream.n_labels)
        by_label = cls("by_label", labels, None)
        return [by_label] if groups is None else [by_label, cls("by_group", *groups)]

    def add(self, chunk: Chunk, signed_sizes: Array) -> None:
        """Rounds, and for each how many labels it showed, less than 0 if the right one was not among them."""
        groups = (chunk.y if self.numbers is None else self.numbers)[chunk.order]
        for column, weights in enumerate((None, signed_sizes > 0, np.abs(signed_sizes))):
            self.sums[:, column] += np.bincount(groups, weights, len(self.groups))


def _run_logged(
    learner: Learner, chunk: Chunk, log: Writer, seed: int, done: int, signed_sizes: Array | None
) -> Array:
    """Do what `Learner.run` does, round by round, with a row in ``log`` for each.

    The true label goes into the log only if the learner is told it, too.
    """
    counts = np.zeros(4, np.int64)
    sees_label = learner.feedback == ("label",)
    for number, i in enumerate(chunk.order):
        label = learner.vocabulary.decode([chunk.y[i]])[0]
        decision = learner.decide(chunk.rows.row(i))
        hit = label in decision.labels
        learner.update(decision, **({"label": label} if sees_label else {"hit": hit}))
        log.add(decision, hit=hit, label=label if sees_label else None, id=f"{seed}-{done + number}")
        counts += [decision.top[0] != label, label not in decision.top, not hit, len(decision.labels)]
        if signed_sizes is not None:
            signed_sizes[number] = len(decision.labels) if hit else -len(decision.labels)
    return counts
