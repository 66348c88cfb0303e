"""A spec file: data x learners x set sizes x gammas x seeds, with overrides (docs/experiments.md).

Everything is checked before anything runs; an error names the key and its line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct, structs

from superarm._validation import KeyPath
from superarm.errors import SuperarmError, must
from superarm.experiments.cells import Cell, Data, open_stream
from superarm.experiments.figure import Figure
from superarm.experiments.toml import TomlFile
from superarm.parameters import existing_file

BEST = "best"  # gammas = "best": of each learner, data and m, from the experiment named by best_from

BestGamma = Callable[[str, str, int], float]  # (data, learner, set size) -> gamma
Count = Annotated[int, Meta(gt=0)]
Seed = Annotated[int, Meta(ge=0)]
Gamma = Annotated[float, Meta(gt=0, le=1)]


class Axes(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What may be set for all, for one data set, for one learner, or by an override; None: not set here."""

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

    def updated(self, other: Axes) -> Axes:
        """These, but ``other`` where it says something."""
        ours, theirs = ({n: getattr(axes, n) for n in Axes.__struct_fields__} for axes in (self, other))
        return Axes(**ours | {name: value for name, value in theirs.items() if value is not None})


class DataEntry(Axes, frozen=True, kw_only=True):
    """Data of a spec."""

    source: str
    name: str | None = None
    label: str | None = None
    scale: str = "none"
    first_labels: int | None = None


class LearnerEntry(Axes, frozen=True, kw_only=True):
    """A learner of a spec."""

    use: str
    name: str = ""
    params: dict[str, Any] = {}


class Where(Struct, frozen=True, forbid_unknown_fields=True):
    """The cells that an override is for."""

    data: str | None = None
    learner: str | None = None
    set_size: int | None = None


class Override(Axes, frozen=True, kw_only=True):
    where: Where

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.set_sizes is not None:
            raise ValueError("set_sizes must be left out of an override; give it in data or learners")


class SpecFile(Axes, frozen=True, kw_only=True):
    """The keys of a spec file."""

    title: str | None = None
    order: int = 100
    data: tuple[DataEntry | str, ...] = ()
    learners: tuple[LearnerEntry | str, ...] = ()
    overrides: tuple[Override, ...] = ()
    figures: tuple[Figure, ...] = ()
    best_from: str | None = None
    reference: str | None = None
    open_to_data: bool = True
    quick: Axes = Axes()


@dataclass(frozen=True, slots=True)
class Spec:
    """A checked spec."""

    name: str
    title: str
    order: int
    file: TomlFile
    axes: Axes
    data: tuple[tuple[Data, Axes], ...]
    learners: tuple[LearnerEntry, ...]
    overrides: tuple[Override, ...]
    figures: tuple[Figure, ...]
    best_from: str | None
    reference: str | None  # the learner that others are compared with
    open_to_data: bool  # whether it makes sense on any data; fig6 is about SYNSEP

    def with_data(self, data: list[Data]) -> Spec:
        """The same on other data; what the spec says of single data sets falls away."""
        kept = tuple(override for override in self.overrides if override.where.data is None)
        return replace(self, data=tuple((d, Axes()) for d in data), overrides=kept)

    def with_axes(self, *, rounds: int | None = None, seeds: int | None = None) -> Spec:
        """The same with other numbers of rounds or seeds, everywhere."""
        override = Override(where=Where(), rounds=rounds, seeds=seeds)
        return replace(self, overrides=(*self.overrides, override))

    def cells(self, best: BestGamma | None = None) -> list[Cell]:
        """All runs, each checked by making its learner."""
        from superarm.learners.registry import parse

        cells: dict[str, Cell] = {}
        for data, data_axes in self.data:
            stream, content = self._open(data)
            for entry in self.learners:
                axes = self.axes.updated(data_axes).updated(entry)
                cls, _ = parse(entry.use)
                sizes = (1,) if cls.single_label else axes.set_sizes
                for m in sizes or (1,):
                    here = self._overridden(axes, data, entry, m)
                    seeds = range(here.seeds) if isinstance(here.seeds, int) else here.seeds or (0,)
                    for gamma in self._gammas(here, cls, data, entry, m, best):
                        for seed in seeds:
                            cell = Cell(
                                data=data,
                                content=content,
                                learner=entry.name,
                                use=entry.use,
                                params=tuple(sorted(entry.params.items())),
                                set_size=m,
                                gamma=gamma,
                                seed=seed,
                                rounds=here.rounds or 100_000,
                            )
                            cell = self._with_key(cell, stream, entry)
                            cells[f"{cell.key} {cell.learner} {cell.data.name}"] = cell
        return list(cells.values())

    def _open(self, data: Data) -> tuple[Any, str]:
        from superarm.streams.catalog import identity

        try:
            content = identity(data.source)
            return open_stream(data, content), content
        except SuperarmError as error:
            at = [d for d, _ in self.data].index(data)
            raise self.file.error(("data", at, "source"), error) from error

    def _with_key(self, cell: Cell, stream: Any, entry: LearnerEntry) -> Cell:
        try:
            return cell.with_key(stream)
        except SuperarmError as error:
            at = self.learners.index(entry)
            name = str(error).partition(" ")[0]
            own = {"set_size": "set_sizes", "gamma": "gammas"}.get(name, "use")
            keys: KeyPath = (own,) if getattr(entry, own) is None else ("learners", at, own)
            raise self.file.error(keys, f"{error} ({entry.name} on {cell.data.name})") from error

    def _overridden(self, axes: Axes, data: Data, entry: LearnerEntry, m: int) -> Axes:
        here = (data.name, entry.name, m)
        for override in self.overrides:
            where = structs.astuple(override.where)
            if all(wanted in (None, value) for wanted, value in zip(where, here, strict=True)):
                axes = axes.updated(override)
        return axes

    def _gammas(
        self, axes: Axes, cls: Any, data: Data, entry: LearnerEntry, m: int, best: BestGamma | None
    ) -> tuple[float | None, ...]:
        from superarm.learners.registry import parameters

        if "gamma" not in parameters(cls) or "gamma" in entry.params:
            return (None,)
        if axes.gammas == BEST:
            if best is None:
                raise self.file.error(
                    ("gammas",), f"run {self.best_from} first: its best gammas are used here"
                )
            return (best(data.name, entry.name, m),)
        assert not isinstance(axes.gammas, str)
        return axes.gammas or (None,)


def read_spec(path: Path, *, quick: bool = False) -> Spec:
    """Read and check a spec file.

    Args:
        path: the file; names of files in it are relative to its folder.
        quick: apply what the table ``quick`` says.
    """
    file = TomlFile(str(path), existing_file(path).read_text(encoding="utf-8"))
    keys = file.read(SpecFile)
    spec = Spec(
        name=path.stem,
        title=keys.title or path.stem,
        order=keys.order,
        file=file,
        axes=keys.updated(keys.quick) if quick else keys,
        data=tuple(_data(entry, path.parent) for entry in keys.data),
        learners=tuple(_learner(file, i, path.parent, entry) for i, entry in enumerate(keys.learners)),
        overrides=keys.overrides,
        figures=keys.figures,
        best_from=keys.best_from,
        reference=keys.reference,
        open_to_data=keys.open_to_data,
    )
    learners = [entry.name for entry in spec.learners]
    for key, names in (("data", [data.name for data, _ in spec.data]), ("learners", learners)):
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise file.error((key,), f"the name {twice[0]!r} is used twice; give one of them name = ...")
        if not names and {figure.kind for figure in spec.figures} != {"price"}:
            raise file.error((key,), f"{key} is missing or empty")
    if spec.reference is not None and spec.reference not in learners:
        raise file.must(
            ("reference",), "the name of a learner in it", spec.reference, choices=tuple(learners)
        )
    return spec


def _data(entry: DataEntry | str, folder: Path) -> tuple[Data, Axes]:
    from superarm.streams.catalog import NAMES

    if isinstance(entry, str):
        entry = DataEntry(source=entry)
    embedded = entry.source in NAMES
    data = Data(
        source=entry.source if embedded else str((folder / entry.source).resolve()),
        name=entry.name or (entry.source if embedded else Path(entry.source).stem),
        label=entry.label,
        scale=entry.scale,
        first_labels=entry.first_labels,
    )
    return data, entry


def _learner(file: TomlFile, i: int, folder: Path, entry: LearnerEntry | str) -> LearnerEntry:
    """The learner with its parameters apart from its name, which is looked up."""
    from superarm.learners.registry import parameters, parse

    if isinstance(entry, str):
        entry = LearnerEntry(use=entry)
    use = entry.use
    name, _, rest = use.partition(":")
    if name.endswith(".py"):
        use = f"{(folder / name).resolve()}:{rest}"
        rest = rest.partition(":")[2]
    try:
        cls, params = parse(use)
    except SuperarmError as error:
        raise file.error(("learners", i, "use"), error) from error
    params, known = params | entry.params, parameters(cls)
    for name in params:
        if name not in known:
            wanted = f"one of its parameters {', '.join(known)}"
            message = must(name, cls.__name__, wanted, name, choices=known)
            raise file.error(("learners", i, "params", name), message)
    use = use.removesuffix(f":{rest}") if rest else use
    return structs.replace(entry, use=use, name=entry.name or entry.use, params=params)
