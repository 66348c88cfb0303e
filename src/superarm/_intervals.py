"""Intervals of shares and of means."""

from __future__ import annotations

from math import sqrt

from superarm._extras import require_extra


def wilson_interval(rate: float, n: float) -> tuple[float, float]:
    """Return the 95 % interval of a share of n (Wilson 1927).

    >>> [round(end, 3) for end in wilson_interval(0.95, 100)]
    [0.888, 0.978]
    """
    c = 1.96**2 / n
    middle, reach = rate + c / 2, sqrt(c * (rate * (1 - rate) + c / 4))
    return max(0.0, (middle - reach) / (1 + c)), min(1.0, (middle + reach) / (1 + c))


def student_margin(error: float, freedom: float, level: float = 0.95) -> float:
    """Return half of Student's interval of a mean with this standard error and these degrees of freedom.

    >>> round(student_margin(10**-0.5, 9), 3)
    0.715
    """
    require_extra("logs", "scipy")
    from scipy.special import stdtrit

    return float(stdtrit(max(freedom, 1.0), 0.5 + level / 2)) * error
