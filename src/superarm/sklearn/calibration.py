"""The threshold of a promised coverage, chosen on held-out rows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import inf

import numpy as np

from superarm._types import Array


@dataclass(frozen=True, slots=True)
class ThresholdCalibration:
    """The threshold of a promised coverage, chosen on held-out rows, and the coverage that it gives there.

    Attributes:
        threshold: q; infinite (everything is shown) where there are too few rows.
        answers: how many held-out rows there are.
        misses: held-out rows whose right label is not shown.
        capped_misses: misses that a larger set_size would have shown.
        shown: how many labels are shown in all.
    """

    threshold: float = inf
    answers: float = 0.0
    misses: float = 0.0
    shown: float = 0.0
    capped_misses: float = 0.0

    @property
    def counts(self) -> dict[str, float]:
        """What `CoverKernel.calibrate` takes in place of its own counts."""
        counts = asdict(self) | {"noes_to_all": 0.0}
        del counts["threshold"]
        return counts

    @classmethod
    def from_rows(cls, p: Array, beliefs: Array, coverage: float, most: int) -> ThresholdCalibration:
        """Return the least threshold that keeps the coverage, if one more row were a miss (split conformal prediction).

        Args:
            p: the probabilities of all labels by a learner that has not learnt from the row, for each row.
            beliefs: how probable each label is the right one, for each row; 0 and 1 where it is known.
            coverage: how often the right label is to be shown.
            most: how many labels may be shown.
        """
        rows = np.arange(len(p))[:, None]
        order = np.argsort(-p, axis=1, kind="stable")
        needed = -np.log(np.maximum(p, 1e-300))[rows, order]  # the threshold from which on a label is shown
        needed[:, 0] = 0.0
        beliefs = beliefs[rows, order]
        kept, capped = needed[:, :most], beliefs[:, most:]
        by_need = np.argsort(kept, axis=None, kind="stable")
        covered = np.cumsum(beliefs[:, :most].ravel()[by_need])
        answers = float(beliefs.sum())
        at = int(np.searchsorted(covered, coverage * (answers + 1.0) - 1e-9))
        threshold = float(kept.ravel()[by_need[at]]) + 1e-6 if at < len(covered) else inf
        is_shown = kept <= threshold
        return cls(
            threshold=threshold,
            answers=answers,
            misses=answers - float(beliefs[:, :most][is_shown].sum()),
            shown=float(is_shown.sum()),
            capped_misses=float(capped[needed[:, most:] <= threshold].sum()),
        )
