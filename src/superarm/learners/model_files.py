"""Copies of learners and model files: all that was learnt stays.

A model file holds the parameters, the answered rounds, and every array of the core.
"""

from __future__ import annotations

import copy
import inspect
import json
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import numpy as np

from superarm import _files, native
from superarm._types import Array
from superarm.data.columns import Columns
from superarm.data.rows import Layout
from superarm.errors import InvalidInput, ModelFileError, Unquoted, must
from superarm.learners.locking import takes_turns
from superarm.native.call_lock import CallLock
from superarm.native.plain_core import PlainCore
from superarm.parameters import parameters, subclasses

if TYPE_CHECKING:
    from superarm.learners.learner import Learner

NOT_COPIED = ("core", "provisional_core", "lock")  # attributes that a copy makes anew
STATE = "state."  # what the names of the core's arrays begin with in a file
RULE_STATE = "rule."  # what the names of its rule's arrays begin with
MEMORY = "memory."  # what the names of the arrays begin with that a learner in plain Python remembers

AnyLearner = TypeVar("AnyLearner", bound="Learner")


@takes_turns
def copy_with_params(learner: AnyLearner, params: dict[str, Any], *, with_rule: bool = True) -> AnyLearner:
    """Return a copy with other parameters that knows what ``learner`` has learnt; ``with_rule``: its rule, too."""
    header, core = _header(learner), learner.core
    header["params"] |= params
    try:
        new = _make(type(learner), header)
        if core is not None:
            if new.n_labels != learner.n_labels:
                wanted = f"left at {learner.n_labels}: add_labels adds some"
                raise learner.invalid("n_labels", wanted, new.n_labels)
            learnt = {
                name: array
                for name, array in core.state().items()
                if with_rule or not name.startswith(RULE_STATE)
            }
            _restore(new, new.ensure_core().state() | learnt, header["rounds"], header["memory"])
    except ValueError as error:
        if isinstance(error, InvalidInput):
            raise
        wanted = f"left as it is: what was learnt would have no place ({error})"
        got = Unquoted(", ".join(map(repr, params.values())))
        raise learner.invalid(" and ".join(params), wanted, got) from error
    return new


@takes_turns
def resume_from_snapshot(learner: AnyLearner, old: AnyLearner) -> AnyLearner:
    """Return a copy of ``old``, a snapshot of ``learner``, with the rounds, answers, labels and columns of now."""
    new = copy.deepcopy(old)
    missing = learner.n_labels - new.n_labels
    if missing > 0:
        new.add_labels(missing if learner.labels is None else list(learner.labels[-missing:]))
    if learner.core is None or learner.inputs.layout is None:
        return new
    if learner.columns is not None:  # names keep the places that later rows gave them
        new.use_columns(learner.columns)
    elif new.inputs.layout is None:  # it had seen no row
        new.inputs.set_layout(learner.inputs.layout)
    new.inputs.label_additions = list(learner.inputs.label_additions)
    new.ensure_core().restore_rounds(learner.core.rounds())
    # a promise goes on, whatever the scores are
    if learner.rule.promises_coverage and new.rule.promises_coverage:
        new.ensure_core().kernel.restore(learner.core.kernel.state())
    return new


@takes_turns
def save(learner: Learner, path: str | PathLike[str] | BinaryIO) -> None:
    """Write a learner to a model file, by its path or open for writing bytes."""
    home = inspect.getmodule(type(learner))
    header = {
        "class": learner.owner,
        "module": type(learner).__module__,
        "file": Path(home.__file__).name if home is not None and home.__file__ else None,
        "state_version": learner.state_version,
        "cpu": native.cpu_level(),
        **_header(learner),
    }
    arrays = {} if learner.core is None else learner.core.state()
    _files.write_model(path, header, {f"{STATE}{name}": array for name, array in arrays.items()})


def _header(learner: Learner) -> dict[str, Any]:
    """Return what a learner knows beside the arrays of its core: what `_make` and `_restore` read."""
    inputs, core = learner.inputs, learner.core
    return {
        "params": learner.params,
        "layout": inputs.layout,
        "label_additions": inputs.label_additions,
        "id": learner.id,
        "rounds": None if core is None else core.rounds(),
        "metadata": learner.metadata,
        "memory": _values_in_memory(learner),
        "columns": None if inputs.columns is None else inputs.columns.to_dict(),
    }


def _values_in_memory(learner: Learner) -> dict[str, Any] | None:
    """Return what a learner in plain Python remembers beside arrays; ``None`` for compiled ones."""
    if not isinstance(learner.core, PlainCore):
        return None
    values = {name: v for name, v in learner.core.memory.items() if not isinstance(v, np.ndarray)}
    for name, value in values.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError):
            wanted = "an array, or a value that JSON knows (int(…) of a NumPy number)"
            raise TypeError(must(f"memory[{name!r}]", learner.owner, wanted, value)) from None
    return values


@takes_turns
def pickle_state(learner: Learner) -> dict[str, Any]:
    """Return all of a learner but what compiled code points at, as it is now."""
    values = {name: value for name, value in vars(learner).items() if name not in NOT_COPIED}
    values["inputs"] = copy.deepcopy(learner.inputs)  # another thread may go on with them
    core = learner.core
    if core is not None:
        values["core"] = (core.state(), core.rounds(), _values_in_memory(learner))
    return values


def unpickle(learner: Learner, values: dict[str, Any]) -> None:
    """Fill an empty learner with what `pickle_state` gave as ``values``."""
    saved = values.pop("core", None)
    vars(learner).update(values)
    learner.core, learner.lock = None, CallLock()
    learner.inputs.use_labels(learner.inputs.vocabulary)  # arrays that are compared by identity
    if saved is not None:
        _restore(learner, *saved)


def _make(cls: type[AnyLearner], header: dict[str, Any]) -> AnyLearner:
    """Return a learner that knows its rows and labels, and has learnt nothing yet."""
    learner = cls(**header["params"])
    learner.id, inputs = str(header["id"]), learner.inputs
    inputs.label_additions = [(int(start), int(k)) for start, k in header["label_additions"]]
    learner.metadata |= header["metadata"]
    inputs.columns = None if header["columns"] is None else Columns.from_dict(header["columns"])
    if header["layout"] is not None:
        layout = Layout(*header["layout"])
        fits = inputs.n_features in (None, layout.n_features) and 0 <= layout.n_markable <= layout.n_dense
        if not fits:
            raise ValueError("layout")
        inputs.set_layout(layout)
    return learner


def _restore(
    learner: Learner, state: dict[str, Array], rounds: dict[str, Any], memory: dict[str, Any] | None
) -> None:
    """Put back what the core of a learner has learnt."""
    core = learner.ensure_core()
    if isinstance(core, PlainCore) and memory is not None:
        names = {name: name.removeprefix(MEMORY) for name in state if name.startswith(MEMORY)}
        core.memory.clear()
        core.memory.update(memory | {own: state[name].copy() for name, own in names.items()})
    for name, array in core.state().items():
        if name not in state or state[name].shape != array.shape:
            raise ValueError(name)
    core.restore(state)
    core.restore_rounds(rounds)


def load(path: str | PathLike[str] | BinaryIO) -> Learner:
    """Return the learner that `Learner.save` wrote; a class of your own must be imported first.

    Args:
        path: the file, or an open binary file.
    """
    from superarm.learners.learner import Learner  # which imports this module

    header, content = _files.read_model(path)
    arrays = {name.removeprefix(STATE): array for name, array in content.items() if name.startswith(STATE)}
    file, name, module = header.get("file"), header.get("class"), header.get("module")
    classes = {cls.__module__: cls for cls in subclasses(Learner) if cls.__name__ == name}
    if isinstance(name, str) and not classes and module is not None:
        wanted = f"imported first: from {Path(file or '').stem or module} import {name} (in {file})"
        raise ModelFileError.must("class", str(path), wanted, name)
    if module not in classes and len(classes) > 1:
        wanted = f"of its own module {module}: {' and '.join(classes)} have one of this name"
        raise ModelFileError.must("class", str(path), wanted, name)
    try:
        [cls] = [classes[module]] if module in classes else classes.values()
        if header["state_version"] != cls.state_version:
            wanted = (
                f"{cls.state_version}, as this superarm has (train it anew, or use the superarm that made it)"
            )
            raise ModelFileError.must(
                f"state_version of {cls.__name__}", str(path), wanted, header["state_version"]
            )
        own, params = parameters(cls), dict(header["params"])
        known_params = {key: value for key, value in params.items() if key in own or value is not None}
        learner: Learner = _make(cls, {**header, "params": known_params})
        if header["rounds"] is not None:
            _restore(learner, arrays, header["rounds"], header["memory"])
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError.must(
            "content", str(path), "a superarm model", Unquoted(f"a broken {error}")
        ) from error
    return learner
