"""Learners to model files and back: the parameters, the answered rounds, and every array of the core."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from superarm import _files, native
from superarm._types import Array
from superarm.data.columns import Columns
from superarm.data.rows import Layout
from superarm.errors import Description, InvalidInput, ModelFileError
from superarm.learners.base import copy_state
from superarm.parameters import parameters

if TYPE_CHECKING:
    from superarm.learners.learner import Learner

CORES = ("core", "trial_core", "_trial_key")  # attributes that a copy makes anew
STATE = "state."  # what the names of the core's arrays begin with


def resume_from_snapshot(now: Learner, old: Learner) -> Learner:
    """Return a copy of ``old``, an earlier copy of ``now``, with the rounds, answers, labels and columns of ``now``."""
    new = copy.deepcopy(old)
    missing = now.n_labels - new.n_labels
    if missing > 0:
        new.add_labels(missing if now.labels is None else list(now.labels[-missing:]))
    if now.core is None or now.inputs.layout is None:
        return new
    if now.columns is not None:  # names keep the places that later rows gave them
        new.use_columns(now.columns)
    elif new.inputs.layout is None:  # it had seen no row
        new.inputs.set_layout(now.inputs.layout)
    new.inputs.label_additions = list(now.inputs.label_additions)
    new.ensure_core().restore_rounds(now.core.rounds())
    return new


def with_params(learner: Learner, params: dict[str, Any], *, with_rule: bool = True) -> Learner:
    """Return the same learner with other parameters: all that it has learnt stays.

    Args:
        learner: the learner.
        params: the other parameters.
        with_rule: also keep what the rule has learnt; False lets the rule begin anew.
    """
    columns = None if learner.columns is None else learner.columns.copy()
    try:
        new = _make(
            type(learner),
            {**learner.params, **params},
            learner.id,
            learner.inputs.label_additions,
            learner.metadata,
            columns,
            learner.inputs.layout,
        )
        if learner.core is not None:
            if new.n_labels != learner.n_labels:
                wanted = f"left at {learner.n_labels}: add_labels adds some"
                raise learner.invalid("n_labels", wanted, new.n_labels)
            core, memory = new.ensure_core(), learner.memory_to_json()
            if memory is not None:
                new.memory_from_json(memory, learner.core.state())
            copy_state(learner.core, core, with_rule=with_rule)
    except ValueError as error:
        if isinstance(error, InvalidInput):
            raise
        wanted = f"left as it is: what was learnt would have no place ({error})"
        raise learner.invalid(
            " and ".join(params), wanted, Description(", ".join(map(repr, params.values())))
        ) from error
    return new


def _make(
    cls: type[Learner],
    params: dict[str, Any],
    id_: str,
    label_additions: Iterable[tuple[int, int]],
    metadata: dict[str, Any],
    columns: Columns | None,
    layout: Layout | None,
) -> Learner:
    """Return a learner that knows its rows and labels, and has learnt nothing yet."""
    learner = cls(**params)
    learner.id, inputs = id_, learner.inputs
    inputs.label_additions = [(int(start), int(k)) for start, k in label_additions]
    inputs.metadata.update(metadata)
    inputs.columns = columns
    if layout is not None:
        if inputs.n_features not in (None, layout.n_features):
            raise ValueError("layout")
        inputs.set_layout(layout)
    return learner


def write(learner: Learner, path: str | PathLike[str] | BinaryIO) -> None:
    """Write the model to a file."""
    home = inspect.getmodule(type(learner))
    inputs, core = learner.inputs, learner.core
    header = {
        "class": learner.owner,
        "module": type(learner).__module__,
        "file": Path(home.__file__).name if home is not None and home.__file__ else None,
        "state_version": learner.state_version,
        "cpu": native.cpu_level(),
        "params": learner.params,
        "layout": inputs.layout,
        "label_additions": inputs.label_additions,
        "id": learner.id,
        "rounds": None if core is None else core.rounds(),
        "metadata": learner.metadata,
        "memory": learner.memory_to_json(),
        "columns": None if inputs.columns is None else inputs.columns.to_dict(),
    }
    arrays = {} if core is None else core.state()
    _files.write_model(path, header, {f"{STATE}{name}": array for name, array in arrays.items()})


def read(path: str | PathLike[str] | BinaryIO, root: type[Learner]) -> Learner:
    """Return the model in a file; its class must have been imported."""
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
        if header["state_version"] != cls.state_version:
            wanted = (
                f"{cls.state_version}, as this superarm has (train it anew, or use the superarm that made it)"
            )
            raise ModelFileError.must(
                f"state_version of {cls.__name__}", str(path), wanted, header["state_version"]
            )
        own, params = parameters(cls), dict(header["params"])
        known_params = {key: value for key, value in params.items() if key in own or value is not None}
        columns, layout = header["columns"], header["layout"]
        learner = _make(
            cls,
            known_params,
            str(header["id"]),
            header["label_additions"],
            header["metadata"],
            None if columns is None else Columns.from_dict(columns),
            None if layout is None else Layout(*layout),
        )
        if header["rounds"] is not None:
            _restore(learner, arrays, header["rounds"], header["memory"])
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError.must(
            "content", str(path), "a superarm model", Description(f"a broken {error}")
        ) from error
    return learner


def _subclasses(cls: type[Learner]) -> Iterable[type[Learner]]:
    for sub in cls.__subclasses__():
        yield sub
        yield from _subclasses(sub)


# ---------------------------------------------------------------- copies, and worker processes


def get_state(learner: Learner) -> dict[str, Any]:
    """Return all of it but what compiled code points at."""
    values = {name: value for name, value in vars(learner).items() if name not in CORES}
    core = learner.core
    if core is not None:
        values["core"] = (core.state(), core.rounds(), learner.memory_to_json())
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
    learner: Learner, state: dict[str, Array], rounds: dict[str, Any], memory: dict[str, Any] | None
) -> None:
    core = learner.ensure_core()
    if memory is not None:
        learner.memory_from_json(memory, state)
    for name, array in core.state().items():
        if name not in state or state[name].shape != array.shape:
            raise ValueError(name)
    core.restore(state)
    core.restore_rounds(rounds)
