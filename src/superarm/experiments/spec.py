"""A spec file: data x learners x set sizes x gammas x seeds, with overrides (docs/experiments.md).

Everything is checked before anything runs; an error names the key and its line.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from superarm.errors import InvalidInput, SuperarmError, must
from superarm.experiments.cells import Cell, Data, open_stream
from superarm.experiments.figure import Figure
from superarm.experiments.toml import KeyPath, Table

__all__ = ["BEST", "Axes", "LearnerEntry", "Spec", "read_spec"]

BEST = "best"  # gammas = "best": of each learner, data and m, from the experiment named by best_from

BestGamma = Callable[[str, str, int], float]  # (data, learner, set size) -> gamma


@dataclass(frozen=True, slots=True)
class Axes:
    """What may be set for all, for one data set, for one learner, or by an override; None: not set here."""

    set_sizes: tuple[int, ...] | None = None
    gammas: tuple[float, ...] | str | None = None
    seeds: tuple[int, ...] | None = None
    rounds: int | None = None

    def under(self, other: Axes) -> Axes:
        """These, but ``other`` where it says something."""
        names = ("set_sizes", "gammas", "seeds", "rounds")
        given = {n: getattr(other, n) for n in names if getattr(other, n) is not None}
        return replace(self, **given)


@dataclass(frozen=True, slots=True)
class LearnerEntry:
    """A learner of a spec."""

    use: str
    name: str
    params: tuple[tuple[str, Any], ...]
    axes: Axes


@dataclass(frozen=True, slots=True)
class Override:
    where: dict[str, Any]
    axes: Axes


@dataclass(frozen=True, slots=True)
class Spec:
    """A checked spec."""

    name: str
    title: str
    order: int
    text: str  # the file itself
    axes: Axes
    data: tuple[tuple[Data, Axes], ...]
    learners: tuple[LearnerEntry, ...]
    overrides: tuple[Override, ...]
    figures: tuple[Figure, ...]
    best_from: str | None
    reference: str | None  # the learner that others are compared with
    open_to_data: bool  # whether it makes sense on any data; fig6 is about SYNSEP
    table: Table  # for errors

    def with_data(self, data: list[Data]) -> Spec:
        """The same on other data; what the spec says of single data sets falls away."""
        kept = tuple(o for o in self.overrides if "data" not in o.where)
        return replace(self, data=tuple((d, Axes()) for d in data), overrides=kept)

    def with_axes(self, *, rounds: int | None = None, seeds: int | None = None) -> Spec:
        """The same with other numbers of rounds or seeds, everywhere."""
        axes = Axes(rounds=rounds, seeds=None if seeds is None else tuple(range(seeds)))
        return replace(self, overrides=(*self.overrides, Override({}, axes)))

    def cells(self, best: BestGamma | None = None) -> list[Cell]:
        """All runs, each checked by making its learner."""
        from superarm.learners.registry import parse

        cells: dict[str, Cell] = {}
        for data, data_axes in self.data:
            stream, content = self._open(data)
            for entry in self.learners:
                axes = self.axes.under(data_axes).under(entry.axes)
                cls, _ = parse(entry.use)
                sizes = (1,) if cls.single_label else axes.set_sizes
                for m in sizes or (1,):
                    here = self._overridden(axes, data, entry, m)
                    for gamma in self._gammas(here, cls, data, entry, m, best):
                        for seed in here.seeds or (0,):
                            cell = Cell(
                                data=data,
                                content=content,
                                learner=entry.name,
                                use=entry.use,
                                params=entry.params,
                                set_size=m,
                                gamma=gamma,
                                seed=seed,
                                rounds=here.rounds or 100_000,
                            )
                            cell = self._keyed(cell, stream, entry)
                            cells[f"{cell.key} {cell.learner} {cell.data.name}"] = cell
        return list(cells.values())

    def _open(self, data: Data) -> tuple[Any, str]:
        from superarm.streams.catalog import identity

        try:
            content = identity(data.source)
            return open_stream(data, content), content
        except SuperarmError as error:
            at = [d for d, _ in self.data].index(data)
            raise self.table.wrong(("data", at, "source"), error) from error

    def _keyed(self, cell: Cell, stream: Any, entry: LearnerEntry) -> Cell:
        try:
            return cell.keyed(stream)
        except SuperarmError as error:
            at = self.learners.index(entry)
            name = str(error).partition(" ")[0]
            own = {"set_size": "set_sizes", "gamma": "gammas"}.get(name, "use")
            above = "learners" if getattr(entry.axes, own, None) is not None or own == "use" else own
            keys: KeyPath = ("learners", at, own) if above == "learners" else (own,)
            raise self.table.wrong(keys, f"{error} ({entry.name} on {cell.data.name})") from error

    def _overridden(self, axes: Axes, data: Data, entry: LearnerEntry, m: int) -> Axes:
        here = {"data": data.name, "learner": entry.name, "set_size": m}
        for override in self.overrides:
            if all(here[k] == v for k, v in override.where.items()):
                axes = axes.under(override.axes)
        return axes

    def _gammas(
        self, axes: Axes, cls: Any, data: Data, entry: LearnerEntry, m: int, best: BestGamma | None
    ) -> tuple[float | None, ...]:
        from superarm.learners.registry import parameters

        if "gamma" not in parameters(cls) or "gamma" in dict(entry.params):
            return (None,)
        if axes.gammas == BEST:
            if best is None:
                raise self.table.wrong(
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
    if not path.is_file():
        raise InvalidInput.must("spec", "superarm run", "an existing .toml file", str(path))
    text = path.read_text(encoding="utf-8")
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{path}: {error}") from error
    table = Table(content, (), str(path), text)
    axes = _axes(table)
    fast = table.table("quick")
    if fast is not None:
        hurried = _axes(fast)
        fast.finish()
        axes = axes.under(hurried) if quick else axes
    spec = Spec(
        name=path.stem,
        title=table.get("title", str, path.stem),
        order=table.get("order", int, 100),
        text=text,
        axes=axes,
        data=tuple(_data(one, path.parent) for one in table.entries("data", "source")),
        learners=tuple(_learner(one, path.parent) for one in table.entries("learners", "use")),
        overrides=tuple(_override(one) for one in table.entries("overrides")),
        figures=tuple(Figure.read(one) for one in table.entries("figures")),
        best_from=table.get("best_from", str, None),
        reference=table.get("reference", str, None),
        open_to_data=table.get("open_to_data", bool, True),
        table=table,
    )
    table.finish()
    for what, names in (
        ("data", [data.name for data, _ in spec.data]),
        ("learners", [one.name for one in spec.learners]),
    ):
        twice = [n for n in names if names.count(n) > 1]
        if twice:
            raise table.wrong((what,), f"the name {twice[0]!r} is used twice; give one of them name = ...")
        if not names and {figure.kind for figure in spec.figures} != {"price"}:
            raise table.wrong((what,), f"{what} of {path} must be given, at least one")
    if spec.reference is not None and spec.reference not in [one.name for one in spec.learners]:
        raise table.wrong(
            ("reference",), must("reference", str(path), "the name of a learner in it", spec.reference)
        )
    return spec


def _axes(table: Table) -> Axes:
    gammas = table.get("gammas", (list, str), None)
    if isinstance(gammas, str) and gammas != BEST:
        raise table.wrong(("gammas",), must("gammas", table.owner, f"a list of numbers, or {BEST!r}", gammas))
    if isinstance(gammas, list):
        gammas = tuple(table.numbers("gammas", gammas, float, above=0.0, most=1.0))
    seeds = table.get("seeds", (int, list), None)
    if isinstance(seeds, int):
        seeds = list(range(table.numbers("seeds", [seeds], int, above=0)[0]))
    sizes = table.get("set_sizes", list, None)
    rounds = table.get("rounds", int, None)
    return Axes(
        set_sizes=None if sizes is None else tuple(table.numbers("set_sizes", sizes, int, above=0)),
        gammas=gammas,
        seeds=None if seeds is None else tuple(table.numbers("seeds", seeds, int, above=-1)),
        rounds=None if rounds is None else table.numbers("rounds", [rounds], int, above=0)[0],
    )


def _data(table: Table, folder: Path) -> tuple[Data, Axes]:
    from superarm.streams.catalog import NAMES

    source = table.get("source", str)
    path = source if source in NAMES else str((folder / source).resolve())
    data = Data(
        source=path,
        name=table.get("name", str, source if source in NAMES else Path(source).stem),
        label=table.get("label", str, None),
        scale=table.get("scale", str, "none"),
        first_labels=table.get("first_labels", int, None),
    )
    axes = _axes(table)
    table.finish()
    return data, axes


def _learner(table: Table, folder: Path) -> LearnerEntry:
    from superarm.learners.registry import parameters, parse

    use = given = table.get("use", str)
    name, _, rest = use.partition(":")
    if name.endswith(".py"):
        use = f"{(folder / name).resolve()}:{rest}"
        rest = rest.partition(":")[2]
    try:
        cls, params = parse(use)
    except SuperarmError as error:
        raise table.wrong(("use",), error) from error
    if rest:  # parameters are kept apart from the name
        use = use[: -len(rest) - 1]
    params = params | table.get("params", dict, {})
    known = parameters(cls)
    for name in params:
        if name not in known:
            wanted = f"one of its parameters {', '.join(known)}"
            raise table.wrong(("params", name), must(name, cls.__name__, wanted, name, among=known))
    entry = LearnerEntry(
        use=use, name=table.get("name", str, given), params=tuple(sorted(params.items())), axes=_axes(table)
    )
    table.finish()
    return entry


def _override(table: Table) -> Override:
    where = table.get("where", dict)
    unknown = set(where) - {"data", "learner", "set_size"}
    if unknown:
        raise table.wrong(
            ("where",), must("where", table.owner, "made of data, learner and set_size", sorted(unknown))
        )
    axes = _axes(table)
    if axes.set_sizes is not None:
        raise table.wrong(
            ("set_sizes",), "set_sizes of an override must be left out; give it in data or learners"
        )
    table.finish()
    return Override(where, axes)
