"""PersistentLearner: what was learnt stays when labels, columns or parameters change, in copies and in model files.

A model file holds the parameters, the answered rounds, and every array of the core.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from superarm import _files, native
from superarm._types import Array
from superarm.data.columns import Columns
from superarm.data.labels import Label
from superarm.data.rows import Layout
from superarm.errors import Description, InvalidInput, ModelFileError
from superarm.learners.base import LearnerBase, copy_state
from superarm.parameters import parameters

if TYPE_CHECKING:
    from superarm.learners.learner import Learner

CORES = ("core", "trial_core", "_trial_key")  # attributes that a copy makes anew
STATE = "state."  # what the names of the core's arrays begin with


class PersistentLearner(LearnerBase):
    """A learner that can be changed, copied and saved with all that it has learnt."""

    def add_labels(self, labels: int | Sequence[Label]) -> None:
        """Add labels to a running learner: their names, or how many if it has no names.

        They start with weights of 0; what has been learnt stays. Decisions made before can still be
        answered, as decisions among the labels of that time.
        """
        label_set, before, old = self.label_set.extended(labels, self.owner), self.n_labels, self.core
        if old is not None and self.fixed_labels:
            raise self.invalid("labels", "left as they are: its matrix couples all labels", labels)
        self.inputs.label_additions.append((self.round, before))
        self.inputs.use_labels(label_set)
        if self.inputs.sizes_vary and self._set_size == before:  # all labels stay all labels
            self._set_size = self.n_labels
        if old is not None:
            self.core = self.rebuild_core(old)
            self.on_labels_added(before)

    def use_columns(self, columns: Columns | dict[str, Any] | str | PathLike[str]) -> None:
        """Declare the columns of rows: before the first row, or the same with new ones at the end.

        Args:
            columns: what `Columns.infer` gave; or a file of columns, or a model file.
        """
        self.inputs.use_columns(Columns.load(columns))
        self.ensure_core()

    def with_params(self, **params: Any) -> Self:
        """Return a copy with other parameters; all that it has learnt stays."""
        return self._with_params(params)

    def with_new_rule(self, **params: Any) -> Self:
        """Return a copy with other parameters, whose rule begins anew; all else that it has learnt stays."""
        return self._with_params(params, with_rule=False)

    def _with_params(self, params: dict[str, Any], *, with_rule: bool = True) -> Self:
        columns = None if self.columns is None else self.columns.copy()
        try:
            new = self._make(
                {**self.params, **params},
                self.id,
                self.inputs.label_additions,
                self.metadata,
                columns,
                self.inputs.layout,
            )
            if self.core is not None:
                if new.n_labels != self.n_labels:
                    wanted = f"left at {self.n_labels}: add_labels adds some"
                    raise self.invalid("n_labels", wanted, new.n_labels)
                core, memory = new.ensure_core(), self.memory_to_json()
                if memory is not None:
                    new.memory_from_json(memory, self.core.state())
                copy_state(self.core, core, with_rule=with_rule)
        except ValueError as error:
            if isinstance(error, InvalidInput):
                raise
            wanted = f"left as it is: what was learnt would have no place ({error})"
            got = Description(", ".join(map(repr, params.values())))
            raise self.invalid(" and ".join(params), wanted, got) from error
        return new

    def resume_from_snapshot(self, old: Self) -> Self:
        """Return a copy of ``old``, a snapshot of this learner, with the rounds, answers, labels and columns of now."""
        new = copy.deepcopy(old)
        missing = self.n_labels - new.n_labels
        if missing > 0:
            new.add_labels(missing if self.labels is None else list(self.labels[-missing:]))
        if self.core is None or self.inputs.layout is None:
            return new
        if self.columns is not None:  # names keep the places that later rows gave them
            new.use_columns(self.columns)
        elif new.inputs.layout is None:  # it had seen no row
            new.inputs.set_layout(self.inputs.layout)
        new.inputs.label_additions = list(self.inputs.label_additions)
        new.ensure_core().restore_rounds(self.core.rounds())
        if (
            self.rule.promises_coverage and new.rule.promises_coverage
        ):  # a promise goes on, whatever the scores are
            new.core.rule.restore(self.core.rule.state())
        return new

    def save(self, path: str | PathLike[str] | BinaryIO) -> None:
        """Write the model to a file, by its path or open for writing bytes; loaded again, it goes on bit for bit."""
        home = inspect.getmodule(type(self))
        inputs, core = self.inputs, self.core
        header = {
            "class": self.owner,
            "module": type(self).__module__,
            "file": Path(home.__file__).name if home is not None and home.__file__ else None,
            "state_version": self.state_version,
            "cpu": native.cpu_level(),
            "params": self.params,
            "layout": inputs.layout,
            "label_additions": inputs.label_additions,
            "id": self.id,
            "rounds": None if core is None else core.rounds(),
            "metadata": self.metadata,
            "memory": self.memory_to_json(),
            "columns": None if inputs.columns is None else inputs.columns.to_dict(),
        }
        arrays = {} if core is None else core.state()
        _files.write_model(path, header, {f"{STATE}{name}": array for name, array in arrays.items()})

    def __getstate__(self) -> dict[str, Any]:
        """Return all of it but what compiled code points at."""
        values = {name: value for name, value in vars(self).items() if name not in CORES}
        core = self.core
        if core is not None:
            values["core"] = (core.state(), core.rounds(), self.memory_to_json())
        return values

    def __setstate__(self, values: dict[str, Any]) -> None:
        saved = values.pop("core", None)
        vars(self).update(values)
        self.core = None
        self.inputs.use_labels(self.inputs.label_set)  # arrays that are compared by identity
        if saved is not None:
            self._restore(*saved)

    @classmethod
    def _make(
        cls,
        params: dict[str, Any],
        id_: str,
        label_additions: Iterable[tuple[int, int]],
        metadata: dict[str, Any],
        columns: Columns | None,
        layout: Layout | None,
    ) -> Self:
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

    def _restore(
        self, state: dict[str, Array], rounds: dict[str, Any], memory: dict[str, Any] | None
    ) -> None:
        core = self.ensure_core()
        if memory is not None:
            self.memory_from_json(memory, state)
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
    header, content = _files.read_model(path)
    arrays = {name.removeprefix(STATE): array for name, array in content.items() if name.startswith(STATE)}
    classes = list(_subclasses(PersistentLearner))
    known = {cls.__name__: cls for cls in classes}
    file, name = header.get("file"), header.get("class")
    if isinstance(name, str) and name not in known and header.get("module") is not None:
        wanted = f"imported first: from {Path(file or '').stem or header['module']} import {name} (in {file})"
        raise ModelFileError.must("class", str(path), wanted, name)
    try:
        same = (sub for sub in classes if (sub.__module__, sub.__name__) == (header["module"], name))
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
        learner: Learner = cls._make(
            known_params,
            str(header["id"]),
            header["label_additions"],
            header["metadata"],
            None if columns is None else Columns.from_dict(columns),
            None if layout is None else Layout(*layout),
        )
        if header["rounds"] is not None:
            learner._restore(arrays, header["rounds"], header["memory"])
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError.must(
            "content", str(path), "a superarm model", Description(f"a broken {error}")
        ) from error
    return learner


def _subclasses(cls: type[Any]) -> Iterable[type[Any]]:
    for sub in cls.__subclasses__():
        yield sub
        yield from _subclasses(sub)
