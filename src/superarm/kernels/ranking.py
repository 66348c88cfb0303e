"""Scores to orders and probabilities: top-m, softmax, membership."""

from __future__ import annotations

from typing import Any

import numpy as np

from superarm import rows
from superarm.kernels.compiling import kernel

__all__ = ["LARGEST", "all_finite", "best_first", "contains", "position", "softmax", "top_positions"]

LARGEST = np.float32(rows.LARGEST)  # of 32 bits, as what is compared with it


@kernel
def top_positions(s: Any, eligible: Any, top: Any) -> None:
    """The positions in ``eligible`` of the best ``len(top)`` scores, best first; ties: first wins."""
    m = top.shape[0]
    filled = 0
    for p in range(eligible.shape[0]):
        value = s[eligible[p]]
        if filled == m:
            if not value > s[eligible[top[m - 1]]]:
                continue
            i = m - 1
        else:
            i = filled
            filled += 1
        while i > 0 and value > s[eligible[top[i - 1]]]:
            top[i] = top[i - 1]
            i -= 1
        top[i] = p


@kernel
def best_first(s: Any, drawn: Any, labels: Any) -> None:
    """The labels of ``drawn``, by their scores; of equals, the one that was drawn first."""
    for i in range(drawn.shape[0]):
        l, r = i, drawn[i]
        while l > 0 and s[r] > s[labels[l - 1]]:
            labels[l] = labels[l - 1]
            l -= 1
        labels[l] = r


@kernel
def contains(labels: Any, label: int) -> bool:
    for i in range(labels.shape[0]):
        if labels[i] == label:
            return True
    return False


@kernel
def position(values: Any, value: int) -> int:
    """Where ``value`` stands in increasing ``values``."""
    low, high = 0, values.shape[0] - 1
    while low < high:
        middle = (low + high) // 2
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def softmax(s: Any, labels: Any, sharpness: float, p: Any) -> None:
    """p_i = softmax(sharpness s) over the given labels, in their order."""
    n, a = labels.shape[0], np.float32(sharpness)
    high = s[labels[0]]
    for i in range(1, n):
        high = max(high, s[labels[i]])
    total = 0.0
    for i in range(n):
        p[i] = np.exp(a * (s[labels[i]] - high))
        total += p[i]
    scale = 1.0 / total
    for i in range(n):
        p[i] *= scale


@kernel
def all_finite(values: Any) -> bool:
    bad = 0
    for i in range(values.shape[0]):
        bad += not abs(values[i]) <= LARGEST  # also for NaN
    return bad == 0
