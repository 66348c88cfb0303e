"""A new journal is given its learner, once; all later starts must agree with it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from superarm.learners import Learner, SetLogit, load
from superarm.learners.registry import make, parse
from superarm.service.core.changes import Settings
from superarm.service.core.faults import JournalForeign
from superarm.service.core.holder import Hold
from superarm.service.core.model import totals
from superarm.service.core.parts import describe, pieces, write_snapshot
from superarm.service.core.schema import create
from superarm.service.core.shadows import Judge
from superarm.service.core.snapshots import made_by, model_bytes
from superarm.service.core.stats import Stats

__all__ = ["UNIFORM", "check", "first", "found"]

# The share of uniform sets of a SetLogit of which nothing else was said. It costs UNIFORM (1 - m/k) shown
# misses, and makes a log worth having: docs/evaluation.md, benchmarks/uniform_share.py
UNIFORM = 0.02


def check(path: Path | str, meta: dict[str, Any], asked: dict[str, Any]) -> None:
    """Refuse to use a journal for something else than it was made for."""
    for name, value in asked.items():
        if value is None:
            continue
        is_, was = (list(value) if name == "labels" else value), meta[name]
        if name == "learner" and _is_file(value) and _is_file(was):  # the file may have moved
            is_, was = value.partition(":")[2], was.partition(":")[2]
        if is_ != was:
            wanted = f"left out or {meta[name]!r}, which {path} was made for"
            raise JournalForeign.must(name, "superarm serve", wanted, value)


def _is_file(spec: str) -> bool:
    return spec.partition(":")[0].endswith(".py")


def first(asked: dict[str, Any], model: str | Path | None) -> tuple[dict[str, Any], dict[str, bytes], Any]:
    """What a new journal is made for, the parts of its first snapshot, and its totals."""
    learner, spec = _given(asked, model) if model is not None else _new(asked)
    if learner.labels is None or not all(isinstance(label, str) for label in learner.labels):
        raise JournalForeign.must("labels", "superarm serve", "names (strings)", learner.labels)
    common = {name: getattr(learner, name) for name in ("labels", "n_features", "set_size", "seed")}
    meta = {"learner": spec, "id": learner.id, "made": time.time(), **common, "labels": list(learner.labels)}
    nothing = totals(Stats(learner.labels), Settings(), Judge())
    return meta, {"model": model_bytes(learner)}, nothing


def found(path: Path, asked: dict[str, Any], model: str | Path | None) -> None:
    """A new journal with its learner, whole or not at all: nothing is left behind if it cannot be made."""
    meta, parts, nothing = first(asked, model)

    def fill(connection: Any, chain: bytes) -> None:
        for number, piece in enumerate(pieces(parts["model"])):
            connection.execute("INSERT INTO chunks VALUES (?, 0, 'model', ?)", (number, piece))
        write_snapshot(connection.execute, chain, 0, meta["made"], nothing, made_by(), describe(parts))

    lock = Hold(path)
    try:
        if not path.exists():
            create(path, meta, fill)
    finally:
        lock.close()


def _given(asked: dict[str, Any], model: str | Path) -> tuple[Learner, str]:
    if asked["learner"] is not None:
        parse(asked["learner"])  # a class of the user's own must be imported before it can be loaded
    learner = load(model)
    for name in ("labels", "n_features", "set_size", "seed"):
        has = getattr(learner, name)
        if asked[name] is not None and (tuple(asked[name]) if name == "labels" else asked[name]) != has:
            wanted = f"left out or {has!r}, which {model} has"
            raise JournalForeign.must(name, "superarm serve", wanted, asked[name])
    spec = asked["learner"] or learner.name
    cls, params = parse(spec)
    if type(learner) is not cls:
        wanted = f"the class in {model}, {type(learner).__name__}"
        raise JournalForeign.must("--learner", "superarm serve", wanted, spec)
    for name, value in params.items():
        if learner.params.get(name, value) != value:
            wanted = f"left out or {learner.params[name]!r}, which {model} has"
            raise JournalForeign.must(name, "superarm serve", wanted, value)
    return learner, spec


def _new(asked: dict[str, Any]) -> tuple[Learner, str]:
    if asked["labels"] is None:
        raise JournalForeign.must("--labels", "superarm serve", "given for a new journal", None)
    spec = asked["learner"] or "set-logit"
    common = {"labels": list(asked["labels"]), "n_features": asked["n_features"], "seed": asked["seed"] or 0}
    if asked["set_size"] is not None:
        common["set_size"] = asked["set_size"]
    cls, given = parse(spec)
    if issubclass(cls, SetLogit) and not given.keys() & {"explore", "uniform"}:
        common["uniform"] = UNIFORM
    return make(spec, **common), spec
