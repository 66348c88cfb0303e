"""Learners to model files and back: the parameters, the ledger, and every array of the state."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm import storage
from superarm.errors import ModelFileError
from superarm.learners.answered import Answered
from superarm.named import Names

if TYPE_CHECKING:
    from superarm.learners.base import Learner

__all__ = ["arrays_of", "copied", "read", "write"]


def arrays_of(state: Any, name: str = "state") -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Every array of a state and of the stages nested in it, by its dotted name."""
    for field, value in zip(state._fields, state, strict=True):
        if isinstance(value, np.ndarray):
            yield f"{name}.{field}", value
        elif isinstance(value, tuple):
            yield from arrays_of(value, f"{name}.{field}")
        elif isinstance(value, dict):  # the memory of a PlainLearner
            yield from ((f"{name}.{field}.{key}", v) for key, v in value.items() if isinstance(v, np.ndarray))


def copied(old: Any, new: Any) -> None:
    """Copy the arrays of one state into another of the same kind, which may have room for more."""
    for (_, was), (_, now) in zip(arrays_of(old), arrays_of(new), strict=True):
        now[tuple(slice(size) for size in was.shape)] = was


def write(learner: Learner, path: str | PathLike[str]) -> None:
    """Write the model to a file."""
    home = inspect.getmodule(type(learner))
    header = {
        "class": learner.of,
        "module": type(learner).__module__,
        "file": Path(home.__file__).name if home is not None and home.__file__ else None,
        "recipe": learner.recipe,
        "params": learner.params,
        "sparse": learner.sparse,
        "round": learner.round,
        "growth": learner.growth,
        "id": learner.id,
        "answered": [learner.answered.low, learner.answered.later.hex()],
        "notes": learner.notes,
        "memory": learner.memory_to_json(),
        "names": None if learner.names is None else learner.names.to_dict(),
    }
    storage.write(path, header, {} if learner.state is None else dict(arrays_of(learner.state)))


def read(path: str | PathLike[str], root: type[Learner]) -> Learner:
    """The model in a file, of a class that is known by now."""
    header, arrays = storage.read(path)
    known = {cls.__name__: cls for cls in _subclasses(root)}
    file, name = header.get("file"), header.get("class")
    if isinstance(name, str) and name not in known and header.get("module") is not None:
        wanted = f"imported first: from {Path(file or '').stem or header['module']} import {name} (in {file})"
        raise ModelFileError.must("class", str(path), wanted, name)
    try:
        same = (
            one for one in _subclasses(root) if (one.__module__, one.__name__) == (header["module"], name)
        )
        *_, cls = (known[header["class"]], *same)  # of two with one name, that of the same module
        if header["recipe"] != cls.recipe:
            wanted = f"{cls.recipe}, as this superarm has (train it anew, or use the superarm that made it)"
            raise ModelFileError.must(f"recipe of {cls.__name__}", str(path), wanted, header["recipe"])
        learner = cls(**header["params"])
        learner.round, learner.id = int(header["round"]), str(header["id"])
        learner.growth = [(int(start), int(k)) for start, k in header["growth"]]
        learner.notes = dict(header.get("notes", {}))
        if header.get("names") is not None:
            learner.names = Names.from_dict(header["names"])
        low, later = header["answered"]
        learner.answered = Answered(low, bytes.fromhex(later))
        if header["sparse"] is not None:
            learner._begin(header["sparse"])
            if header.get("memory") is not None:
                learner.memory_from(header["memory"], arrays)
            for name, value in arrays_of(learner.state):
                saved = arrays[name]
                if saved.shape != value.shape or saved.dtype != value.dtype:
                    raise ValueError(name)
                value[...] = saved
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError.must("content", str(path), "a superarm model", f"a broken {error}") from error
    return learner


def _subclasses(cls: type[Learner]) -> Iterable[type[Learner]]:
    for sub in cls.__subclasses__():
        yield sub
        yield from _subclasses(sub)
