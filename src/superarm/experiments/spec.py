"""A spec file: data x learners x set sizes x gammas x seeds (docs/experiments.md).

Everything is checked before anything runs; an error names the key and its line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

from msgspec import Meta, Struct, structs

from superarm._validation import KeyPath
from superarm.errors import InvalidInput, SuperarmError, must
from superarm.experiments.runs import Run, open_stream
from superarm.experiments.toml import TomlFile
from superarm.learners import Learner
from superarm.learners.registry import is_file_spec, parse
from superarm.parameters import existing_file, parameters
from superarm.simulation import RATES
from superarm.streams import NAMES, Stream
from superarm.streams.catalog import content_digest

FIGURE_KINDS = ("rounds", "gamma", "set-size", "bound", "second-moment")
FINDINGS = ("best-gamma", "final", "gap", "monotone", "ratio", "bound")
CHART_AXES = ("x", "y")
BEST = "best"  # gammas = "best": of each learner, data and m, from the experiment named by best_from

BestGammas = Mapping[tuple[str, str, int], float]  # by data, learner and set size
Count = Annotated[int, Meta(gt=0)]
Seed = Annotated[int, Meta(ge=0)]
Gamma = Annotated[float, Meta(gt=0, le=1)]
AnyGridAxes = TypeVar("AnyGridAxes", bound="GridAxes")


class GridAxes(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What may be set for all, for one data set, or for one learner; None: not set here."""

    set_sizes: tuple[Count, ...] | None = None
    gammas: tuple[Gamma, ...] | str | None = None
    seeds: Count | tuple[Seed, ...] | None = None  # a number of them: 0, 1, 2, ...
    rounds: Count | None = None

    def __post_init__(self) -> None:
        if isinstance(self.gammas, str) and self.gammas != BEST:
            raise ValueError(f"gammas must be a list of numbers, or {BEST!r}")
        for name in ("set_sizes", "gammas", "seeds"):
            values = getattr(self, name)
            if isinstance(values, tuple) and len(set(values)) != max(len(values), 1):
                raise ValueError(f"{name} must be distinct numbers, at least one")

    @property
    def seed_numbers(self) -> Sequence[int]:
        """The seeds, where only their number may be given."""
        return range(self.seeds) if isinstance(self.seeds, int) else self.seeds or (0,)

    def updated(self: AnyGridAxes, other: GridAxes) -> AnyGridAxes:
        """Return a copy with the axes that ``other`` sets."""
        axes = {name: getattr(other, name) for name in GridAxes.__struct_fields__}
        return structs.replace(self, **{name: value for name, value in axes.items() if value is not None})


class DataEntry(GridAxes, frozen=True, kw_only=True):
    """A data set of a spec."""

    source: str
    name: str = ""
    label: str | None = None
    first_labels: int | None = None

    def resolved(self, folder: Path) -> DataEntry:
        """Return a copy with a name, and with the whole path of a file, which is relative to ``folder``."""
        if self.source in NAMES:
            return structs.replace(self, name=self.name or self.source)
        path = folder / self.source
        return structs.replace(self, source=str(path.resolve()), name=self.name or path.stem)


class LearnerEntry(GridAxes, frozen=True, kw_only=True):
    """A learner of a spec."""

    use: str
    name: str = ""
    params: dict[str, Any] = {}


class Figure(Struct, frozen=True, forbid_unknown_fields=True):
    """What is drawn against what, of which runs, and which words go with it."""

    kind: str
    y: str = "error_rate"
    title: str | None = None
    paper: str | None = None  # what the paper says
    note: str | None = None
    log: tuple[str, ...] = ()  # axes that are logarithmic
    one_chart: bool = False  # for all data
    learners: tuple[str, ...] = ()  # only these; none: all
    set_sizes: tuple[int, ...] = ()
    finding: str | None = None  # the kind of sentences; None: that of the figure's kind

    def __post_init__(self) -> None:
        for name, value, choices in (
            ("kind", self.kind, FIGURE_KINDS),
            ("y", self.y, RATES),
            ("finding", self.finding, (None, *FINDINGS)),
        ):
            if value not in choices:
                raise ValueError(f"{name} must be one of {', '.join(filter(None, choices))}")
        if self.one_chart and self.kind == "bound":
            raise ValueError("one_chart must be left out with kind 'bound', whose bound is of one data set")
        if self.kind == "second-moment" and not set(self.set_sizes) <= set(range(1, 10)):
            raise ValueError(
                "set_sizes must be from 1 to 9 with kind 'second-moment', whose chart has 10 labels"
            )
        if not set(self.log) <= set(CHART_AXES):
            raise ValueError(f"log must be a list of the axes {', '.join(CHART_AXES)}")


class SpecFile(GridAxes, frozen=True, kw_only=True):
    """The keys of a spec file."""

    title: str = ""
    order: int = 100
    data: tuple[DataEntry | str, ...] = ()
    learners: tuple[LearnerEntry | str, ...] = ()
    figures: tuple[Figure, ...] = ()
    best_from: str | None = None
    reference: str | None = None  # the learner that others are compared with
    scaling: str | None = None  # of learners that set none; None: each as it does by itself
    data_replaceable: bool = True  # whether it makes sense on any data; fig6 is about SYNSEP
    quick: GridAxes = GridAxes()


class Spec(SpecFile, frozen=True, kw_only=True):
    """A checked spec: the keys of its file, with data and learners that are known."""

    name: str
    file: TomlFile
    data: tuple[DataEntry, ...]
    learners: tuple[LearnerEntry, ...]

    def with_data(self, sources: Sequence[str]) -> Spec:
        """Return the spec on other data; entries of single data sets are dropped."""
        return structs.replace(
            self, data=tuple(DataEntry(source=source).resolved(Path()) for source in sources)
        )

    def with_axes(self, *, rounds: int | None = None, seeds: int | None = None) -> Spec:
        """Return the spec with other numbers of rounds or seeds, in all entries."""
        axes = GridAxes(rounds=rounds, seeds=seeds)
        data, learners = (tuple(e.updated(axes) for e in entries) for entries in (self.data, self.learners))
        return structs.replace(self.updated(axes), data=data, learners=learners)

    def runs(self, best: BestGammas | None = None) -> list[Run]:
        """Return all runs, each checked by making its learner; ``best`` are the gammas of `best_from`."""
        runs: dict[str, Run] = {}
        for i, entry in enumerate(self.data):
            stream, data_digest = self._open(i, entry)
            for learner in self.learners:
                axes: GridAxes = self.updated(entry).updated(learner)
                cls, _ = parse(learner.use)
                scaling = {} if self.scaling is None else {"scaling": self.scaling}
                sizes = (1,) if cls.shows_one_label else axes.set_sizes or (None,)
                for m in sizes:
                    for gamma in self._gammas(axes, cls, entry, learner, m, best):
                        for seed in axes.seed_numbers:
                            run = Run(
                                data=entry.name,
                                source=entry.source,
                                label=entry.label,
                                first_labels=entry.first_labels,
                                data_digest=data_digest,
                                learner=learner.name,
                                learner_spec=learner.use,
                                params=tuple(sorted((scaling | learner.params).items())),
                                set_size=m,
                                gamma=gamma,
                                seed=seed,
                                rounds=axes.rounds or 100_000,
                            )
                            run = self._with_key(run, stream, learner)
                            runs[f"{run.key} {run.learner} {run.data}"] = run
        return list(runs.values())

    def _open(self, i: int, data: DataEntry) -> tuple[Stream, str]:
        try:
            data_digest = content_digest(data.source)
            return open_stream(data.source, data.label, data.first_labels, data_digest), data_digest
        except SuperarmError as error:
            raise self.file.error(("data", i, "source"), error) from error

    def _with_key(self, run: Run, stream: Stream, entry: LearnerEntry) -> Run:
        try:
            return run.with_key(stream)
        except SuperarmError as error:
            parameter = str(error).partition(" ")[0]
            key = {"set_size": "set_sizes", "gamma": "gammas", "scaling": "scaling"}.get(parameter, "use")
            in_entry = getattr(entry, key, None) is not None
            keys: KeyPath = ("learners", self.learners.index(entry), key) if in_entry else (key,)
            raise self.file.error(keys, f"{error} ({entry.name} on {run.data})") from error

    def _gammas(
        self,
        axes: GridAxes,
        cls: type[Learner],
        data: DataEntry,
        entry: LearnerEntry,
        m: int | None,
        best: BestGammas | None,
    ) -> tuple[float | None, ...]:
        if "gamma" not in parameters(cls) or "gamma" in entry.params:
            return (None,)
        if isinstance(axes.gammas, str):  # BEST
            if best is None:
                raise self.file.error(
                    ("gammas",), f"run {self.best_from} first: its best gammas are used here"
                )
            key = data.name, entry.name, m or 1
            if key not in best:
                where = f"{entry.name} with m = {m or 1} on {data.name}"
                raise InvalidInput(f"gammas = 'best': {self.best_from} has no results for {where}")
            return (best[key],)
        return axes.gammas or (None,)


def read_spec(path: Path, *, quick: bool = False) -> Spec:
    """Read and check a spec file.

    Args:
        path: the file; names of files in it are relative to its folder.
        quick: apply the table ``quick``.
    """
    file = TomlFile(str(path), existing_file(path).read_text(encoding="utf-8"))
    keys = file.read(SpecFile)
    entries = [DataEntry(source=entry) if isinstance(entry, str) else entry for entry in keys.data]
    spec = Spec(
        **structs.asdict(keys.updated(keys.quick) if quick else keys)
        | {
            "name": path.stem,
            "title": keys.title or path.stem,
            "file": file,
            "data": tuple(entry.resolved(path.parent) for entry in entries),
            "learners": tuple(_learner(file, i, path.parent, entry) for i, entry in enumerate(keys.learners)),
        }
    )
    learners = [entry.name for entry in spec.learners]
    for key, names in (("data", [entry.name for entry in spec.data]), ("learners", learners)):
        repeated = [name for name in names if names.count(name) > 1]
        if repeated:
            raise file.error((key,), f"the name {repeated[0]!r} is used twice; give one of them name = ...")
        if not names and {figure.kind for figure in spec.figures} != {"second-moment"}:
            raise file.error((key,), f"{key} is missing or empty")
    named: dict[KeyPath, tuple[str | None, ...]] = {("reference",): (spec.reference,)}
    named |= {("figures", i, "learners"): figure.learners for i, figure in enumerate(spec.figures)}
    for place, given in named.items():
        for name in given:
            if name not in (None, *learners):
                raise file.must(place, "the name of a learner in it", name, choices=tuple(learners))
    return spec


def _learner(file: TomlFile, i: int, folder: Path, entry: LearnerEntry | str) -> LearnerEntry:
    """Return a learner's entry with its parameters apart from the checked name of its class."""
    if isinstance(entry, str):
        entry = LearnerEntry(use=entry)
    use = entry.use
    name, _, arguments = use.partition(":")
    if is_file_spec(use):
        use = _in_folder(folder, use)
        arguments = arguments.partition(":")[2]
    try:
        cls, params = parse(use)
    except SuperarmError as error:
        raise file.error(("learners", i, "use"), error) from error
    params = params | entry.params
    names = parameters(cls)
    if "seed" in params:  # the axis gives it: a run's key has that one alone
        wanted = "left out of its parameters: the key seeds gives the seeds of all learners"
        raise file.error(
            ("learners", i, "params", "seed"), must("seed", cls.__name__, wanted, params["seed"])
        )
    for name in params:
        if name not in names:
            wanted = f"one of its parameters {', '.join(names)}"
            message = must(name, cls.__name__, wanted, name, choices=names)
            raise file.error(("learners", i, "params", name), message)
    use = use.removesuffix(f":{arguments}") if arguments else use
    if is_file_spec(params.get("explore")):
        params["explore"] = _in_folder(folder, params["explore"])
    return structs.replace(entry, use=use, name=entry.name or entry.use, params=params)


def _in_folder(folder: Path, spec: str) -> str:
    """Return ``file.py:Class`` with the whole path of a file that a spec in ``folder`` names."""
    name, colon, rest = spec.partition(":")
    return f"{(folder / name).resolve()}{colon}{rest}"
