"""Learners to model files and back: the parameters, the ledger, and every array of the core."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from superarm import _files, native
from superarm._types import Array
from superarm.data.columns import Columns
from superarm.data.rows import Layout
from superarm.errors import ModelFileError
from superarm.learners.algorithm import copy_state
from superarm.parameters import parameters

if TYPE_CHECKING:
    from superarm.learners.learner import Learner

STATE = "state."  # what the names of the core's arrays begin with


def bring_up_to_date(old: Learner, now: Learner) -> None:
    """Let an earlier copy of a learner go on from now: rounds, answers, labels and columns are today's."""
    missing = now.n_labels - old.n_labels
    if missing > 0:
        old.add_labels(missing if now.labels is None else list(now.labels[-missing:]))
    if now.core is None or now.inputs.layout is None:
        return
    if now.columns is not None:  # names keep the places that later rows gave them
        old.use_columns(now.columns)
    elif old.inputs.layout is None:  # it had seen no row
        old.inputs.set_layout(now.inputs.layout)
    old.inputs.growth = list(now.inputs.growth)
    core = old.ensure_core()
    core.round = now.core.round
    core.ledger.restore(now.core.ledger.low, now.core.ledger.later)


def with_params(learner: Learner, params: dict[str, Any]) -> Learner:
    """The same learner with other parameters: all that it has learnt stays."""
    new = type(learner)(**{**learner.params, **params})
    new.id, new.inputs.growth = learner.id, list(learner.inputs.growth)
    new.notes.update(learner.notes)
    if learner.core is not None and learner.inputs.layout is not None:
        new.inputs.columns = None if learner.columns is None else learner.columns.copy()
        new.inputs.set_layout(learner.inputs.layout)
        core = new.ensure_core()
        memory = learner.memory_to_json()
        if memory is not None:
            new.memory_from_json(memory, learner.core.state())
        copy_state(learner.core, core)
    return new


def write(learner: Learner, path: str | PathLike[str]) -> None:
    """Write the model to a file."""
    home = inspect.getmodule(type(learner))
    inputs, core = learner.inputs, learner.core
    header = {
        "class": learner.owner,
        "module": type(learner).__module__,
        "file": Path(home.__file__).name if home is not None and home.__file__ else None,
        "recipe": learner.recipe,
        "cpu": native.cpu_level(),
        "params": learner.params,
        "layout": inputs.layout,
        "round": learner.round,
        "growth": inputs.growth,
        "id": learner.id,
        "answered": [0, ""] if core is None else [core.ledger.low, core.ledger.later.hex()],
        "notes": learner.notes,
        "memory": learner.memory_to_json(),
        "columns": None if inputs.columns is None else inputs.columns.to_dict(),
    }
    arrays = {} if core is None else core.state()
    _files.write_model(path, header, {f"{STATE}{name}": array for name, array in arrays.items()})


def read(path: str | PathLike[str], root: type[Learner]) -> Learner:
    """The model in a file, of a class that is known by now."""
    header, content = _files.read_model(path)
    arrays = {name.removeprefix(STATE): array for name, array in content.items() if name.startswith(STATE)}
    known = {cls.__name__: cls for cls in _subclasses(root)}
    file, name = header.get("file"), header.get("class")
    if isinstance(name, str) and name not in known and header.get("module") is not None:
        wanted = f"imported first: from {Path(file or '').stem or header['module']} import {name} (in {file})"
        raise ModelFileError.must("class", str(path), wanted, name)
    try:
        same = (
            sub for sub in _subclasses(root) if (sub.__module__, sub.__name__) == (header["module"], name)
        )
        *_, cls = (known[header["class"]], *same)  # of two with one name, that of the same module
        if header["recipe"] != cls.recipe:
            wanted = f"{cls.recipe}, as this superarm has (train it anew, or use the superarm that made it)"
            raise ModelFileError.must(f"recipe of {cls.__name__}", str(path), wanted, header["recipe"])
        own, params = parameters(cls), header["params"]
        learner = cls(**{name: value for name, value in params.items() if name in own or value is not None})
        learner.id = str(header["id"])
        inputs = learner.inputs
        inputs.growth = [(int(start), int(k)) for start, k in header["growth"]]
        inputs.notes.update(header.get("notes", {}))
        if header.get("columns") is not None:
            inputs.columns = Columns.from_dict(header["columns"])
        if header["layout"] is not None:
            layout = Layout(*header["layout"])
            if inputs.n_features not in (None, layout.n_features):
                raise ValueError("layout")
            inputs.set_layout(layout)
            low, later = header["answered"]
            answered = low, bytes.fromhex(later)
            _restore(learner, arrays, int(header["round"]), answered, header.get("memory"))
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError.must("content", str(path), "a superarm model", f"a broken {error}") from error
    return learner


def _subclasses(cls: type[Learner]) -> Iterable[type[Learner]]:
    for sub in cls.__subclasses__():
        yield sub
        yield from _subclasses(sub)


# ---------------------------------------------------------------- copies, and worker processes


def get_state(learner: Learner) -> dict[str, Any]:
    """All of it but what compiled code points at."""
    values = {name: value for name, value in vars(learner).items() if name not in ("core", "trial_core")}
    core = learner.core
    if core is not None:
        answered = core.ledger.low, bytes(core.ledger.later)
        values["core"] = (core.state(), core.round, answered, learner.memory_to_json())
    return values


def set_state(learner: Learner, values: dict[str, Any]) -> None:
    """Put back what `get_state` gave."""
    saved = values.pop("core", None)
    vars(learner).update(values)
    learner.core = None
    learner.inputs.use_labels(learner.inputs.label_set)  # arrays that are compared by identity
    if saved is not None:
        _restore(learner, *saved)


def _restore(
    learner: Learner,
    state: dict[str, Array],
    round_: int,
    answered: tuple[int, bytes],
    memory: dict[str, Any] | None,
) -> None:
    core = learner.ensure_core()
    if memory is not None:
        learner.memory_from_json(memory, state)
    for name, array in core.state().items():
        if name not in state or state[name].shape != array.shape:
            raise ValueError(name)
    core.restore(state)
    core.round = round_
    core.ledger.restore(*answered)
