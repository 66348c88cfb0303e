"""A learner's facts: labels, rows, rounds, and its parameters."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, Self, TypedDict

from superarm.data.columns import Columns
from superarm.data.labels import Label, Labels
from superarm.errors import InvalidInput
from superarm.explore.rule import Rule
from superarm.learners.inputs import Inputs
from superarm.native.ledger import Ledger
from superarm.parameters import complete_signature, parameters


class CommonParams(TypedDict, total=False):
    """What every learner passes on to `Learner`, which says what it means."""

    n_labels: int | None
    labels: Sequence[Label] | None
    n_features: int | tuple[int, int] | None
    set_size: int | None
    seed: int
    intercept: bool | float
    scaling: str | None


class LearnerInfo:
    """What can be asked of every learner without a row."""

    owner: str  # as error messages name it
    inputs: Inputs  # what rows and labels mean
    core: Any  # the algorithm in compiled code; None before the first row
    _size: int
    _id: str

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        complete_signature(cls)

    def __new__(cls, *args: Any, **params: Any) -> Self:
        """A new learner, if it knows all ``params`` that it is given; ``args`` are for classes that take such."""
        check_params(cls, args, params)
        return super().__new__(cls)

    @property
    def answered(self) -> Ledger:
        """Which rounds have been answered."""
        return Ledger() if self.core is None else self.core.ledger

    @property
    def label_set(self) -> Labels:
        return self.inputs.label_set

    @property
    def labels(self) -> tuple[Label, ...] | None:
        """The names of the labels, if they have names."""
        return self.inputs.label_set.names

    @property
    def n_labels(self) -> int:
        return self.inputs.label_set.count

    @property
    def n_features(self) -> Any:
        """The length of a row, (dense, sparse) if it has both parts; ``None`` before the first row."""
        return self.inputs.n_features

    @property
    def columns(self) -> Columns | None:
        """What the columns of rows with names are."""
        return self.inputs.columns

    @property
    def notices(self) -> dict[str, str]:
        """What is not as declared in the last row with names: a sentence for each column."""
        return self.inputs.notices

    @property
    def notes(self) -> dict[str, Any]:
        """JSON-ready facts that travel with the model file."""
        return self.inputs.notes

    @property
    def round(self) -> int:
        """The next round."""
        return 0 if self.core is None else self.core.round

    @property
    def set_size(self) -> int:
        return self._size

    @set_size.setter
    def set_size(self, size: int) -> None:
        self._size = self.inputs.size(size)
        if self.core is not None:
            self.core.set_size = self._size

    @property
    def id(self) -> str:
        """The id of the learner, which its decisions carry."""
        return self._id

    @id.setter
    def id(self, id_: str) -> None:
        self._id = id_
        if self.core is not None:
            self.core.id = id_

    @property
    def params(self) -> dict[str, Any]:
        """The parameters it was made with, as JSON-ready values."""
        values = {name: self._param(name) for name in parameters(type(self))}
        for name, value in values.items():
            if isinstance(value, tuple | Rule):
                values[name] = value.to_dict() if isinstance(value, Rule) else list(value)
        return values

    @property
    def chosen(self) -> dict[str, Any]:
        """The parameters that are not the usual ones."""
        usual = parameters(type(self))
        if usual["set_size"] is None:  # the usual one depends on whether sizes vary
            usual["set_size"] = self.n_labels if self.inputs.sizes_vary else 1
        values = {name: self._param(name) for name in usual}
        own = {name: value for name, value in values.items() if value is not None and value != usual[name]}
        if self.labels is not None:
            own.pop("n_labels", None)
        return own

    def _param(self, name: str) -> Any:
        """A parameter as it was given; ``coverage`` itself says what was kept, too."""
        return vars(self).get("_coverage") if name == "coverage" else getattr(self, name)

    def __repr__(self) -> str:
        texts = {name: repr(value) for name, value in self.chosen.items()}
        if self.labels is not None:
            few, last = list(self.labels[:3]), self.labels[-1]
            texts["labels"] = (
                repr(list(self.labels)) if len(self.labels) <= 6 else f"{repr(few)[:-1]}, … {last!r}]"
            )
        return f"{type(self).__name__}({', '.join(f'{name}={text}' for name, text in texts.items())})"

    def _repr_html_(self) -> str:
        from superarm._html import learner_html

        return learner_html(self)

    def invalid(self, parameter: str, be: str, got: object) -> InvalidInput:
        return InvalidInput.must(parameter, self.owner, be, got)


def check_params(cls: type, args: Sequence[Any], given: dict[str, Any]) -> None:
    """Refuse parameters that a learner class does not have, in a sentence that names the class."""
    signature, owner = inspect.signature(cls), cls.__name__
    if args and all(p.kind is p.KEYWORD_ONLY for p in signature.parameters.values()):
        raise InvalidInput(f"{owner} takes parameters by name, as in {owner}(n_labels=10), got {args[0]!r}")
    known = parameters(cls)
    for name, value in given.items():
        if name in known:
            continue
        if name in ("coverage", "explore"):
            reason = "its update needs the way in which it chooses its sets, so it promises none"
            if "explore" in known and "gamma" not in known:
                reason = "in Python, explore=Cover(coverage=...) is its promise"
            raise InvalidInput.must(name, owner, f"left out: {reason}", value)
        wanted = f"one of its parameters {', '.join(known)}"
        raise InvalidInput.must(name, owner, wanted, name, among=known)
