"""Checks of parameters that all learners share, each with its one clear sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from superarm.decision import Label
from superarm.errors import InvalidInput

__all__ = ["Parameters"]


class Parameters:
    """What a learner asks of its parameters and of the labels it is given."""

    single_label: ClassVar[bool]  # the theory knows only m = 1
    n_labels: int
    labels: tuple[Label, ...] | None
    _of: str  # as error messages name the learner
    _place: dict[Label, int]

    def _invalid(self, parameter: str, be: str, got: object) -> InvalidInput:
        return InvalidInput.must(parameter, self._of, be, got)

    def _whole(self, parameter: str, value: Any, least: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise self._invalid(parameter, f"a whole number of at least {least}", value)
        if value >= 2**62:
            raise self._invalid(parameter, "below 2**62", value)
        return int(value)

    def _number(self, parameter: str, value: Any, above: float, most: float = np.inf) -> float:
        ok = isinstance(value, int | float | np.number) and above < value <= most and value < np.inf
        if isinstance(value, bool) or not ok:
            limits = f"in ({above:g}, {most:g}]" if most < np.inf else f"a number above {above:g}"
            raise self._invalid(parameter, limits, value)
        return float(value)

    def _share(self, parameter: str, value: Any, most: float) -> float:
        if not isinstance(value, int | float | np.number) or not 0.0 <= value <= most:
            raise self._invalid(parameter, f"in [0, {most:g}]", value)
        return float(value)

    def _choice(self, parameter: str, value: Any, choices: tuple[str, ...]) -> str:
        if value not in choices:
            raise self._invalid(parameter, " or ".join(map(repr, choices)), value)
        return str(value)

    def _names(self, labels: Sequence[Label]) -> tuple[Label, ...]:
        names = tuple(label.item() if isinstance(label, np.generic) else label for label in labels)
        if not all(type(n) in (str, int) for n in names) or len(set(names)) != len(names):
            raise self._invalid("labels", "distinct strings or whole numbers", labels)
        return names

    def _size(self, size: Any) -> int:
        m = self._whole("set_size", size, 1)
        if self.single_label and m != 1:
            raise self._invalid("set_size", "1 (its theory knows no larger sets)", m)
        if m >= self.n_labels:
            raise self._invalid("set_size", f"below n_labels = {self.n_labels}", m)
        return m

    def _indices(self, parameter: str, labels: Iterable[Label]) -> np.ndarray[Any, Any]:
        if isinstance(labels, str) or not isinstance(labels, Iterable):
            raise self._invalid(parameter, "a list of labels", labels)
        given = [label.item() if isinstance(label, np.generic) else label for label in labels]
        found: list[Any]
        if self.labels is None:
            found = [g if type(g) is int and 0 <= g < self.n_labels else None for g in given]
        else:
            found = [self._place.get(g) if type(g) in (str, int) else None for g in given]
        if None in found:
            raise self._invalid(parameter, "known labels", given[found.index(None)])
        if len(set(found)) != len(found) or (parameter == "eligible" and not found):
            raise self._invalid(parameter, "distinct labels, at least one", given)
        return np.array(found, np.int64)
