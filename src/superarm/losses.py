"""The likelihood of one bit about a set, for anybody's network.

The model: p = softmax(logits), and the answer to a set S is yes with probability

    q = (1 - false_no) P + false_yes (1 - P),    P = sum over S of p

The loss is -log of the probability of the answer that came. All of it is computed in the logarithm, so
that neither very sure nor very wrong networks give infinities. The same code serves NumPy, JAX and
PyTorch, and everything else with the array API; gradients are by their own autograd.
"""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from superarm._types import Array
from superarm.errors import InvalidInput

__all__ = ["namespace", "posterior", "set_nll", "softmax"]

NEVER = -1e30  # the logarithm of nothing; finite, so that no gradient becomes NaN


def set_nll(
    logits: Any,
    shown: Any,
    hit: Any,
    *,
    false_yes: float = 0.0,
    false_no: float = 0.0,
    reduction: str = "mean",
) -> Any:
    """The negative log-likelihood of yes/no answers about sets.

    Args:
        logits: n x k scores, a row for each example.
        shown: which labels were shown: n x m numbers of labels, or n x k of true and false.
        hit: n answers: whether the right label was among them (true/false, or 1/0).
        false_yes: the chance of a "yes" although it was not.
        false_no: the chance of a "no" although it was (nobody looked).
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    >>> import numpy as np
    >>> logits = np.log([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
    >>> float(np.round(np.exp(-set_nll(logits, [[0, 1], [0, 1]], [True, False], reduction="none")), 3)[1])
    0.8
    """
    owner = "set_nll"
    if reduction not in ("mean", "sum", "none"):
        raise InvalidInput.must("reduction", owner, "'mean', 'sum' or 'none'", reduction)
    xp, inside, yes = _checked(owner, logits, shown, hit, false_yes, false_no)
    log_in, log_out = _log_sum(xp, logits, inside), _log_sum(xp, logits, ~inside)
    a = xp.where(yes, _log(1.0 - false_no), _log(false_no)) + log_in
    b = xp.where(yes, _log(false_yes), _log(1.0 - false_yes)) + log_out
    loss = _log_add(xp, log_in, log_out) - _log_add(xp, a, b)
    if reduction == "none":
        return loss
    return xp.sum(loss) / loss.shape[0] if reduction == "mean" else xp.sum(loss)


def posterior(logits: Any, shown: Any, hit: Any, *, false_yes: float = 0.0, false_no: float = 0.0) -> Any:
    """The probability of every label, given the answer about a set: n x k, each row sums to 1.

    They are the weights of expectation-maximisation: fit any classifier to each row with every label, weighted so.

    ``logits``, ``shown``, ``hit``, ``false_yes`` and ``false_no`` are as for `set_nll`.

    >>> import numpy as np
    >>> np.round(posterior(np.log([[0.5, 0.3, 0.2]]), [[0, 1]], [True]), 3).tolist()
    [[0.625, 0.375, 0.0]]
    """
    xp, inside, yes = _checked("posterior", logits, shown, hit, false_yes, false_no)
    log_if_shown = xp.where(yes, _log(1.0 - false_no), _log(false_no))
    log_if_not = xp.where(yes, _log(false_yes), _log(1.0 - false_yes))
    x = logits + xp.where(inside, log_if_shown[:, None], log_if_not[:, None])
    top = xp.max(x, 1)
    top = top.values if hasattr(top, "values") else top  # PyTorch gives the places, too
    weights = xp.exp(x - top[:, None])
    return weights / xp.sum(weights, 1)[:, None]


def softmax(scores: Array) -> Array:
    """The probability of every label for each row of NumPy's ``scores``, in float64."""
    p = np.exp(scores.astype(np.float64) - scores.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def _checked(
    owner: str, logits: Any, shown: Any, hit: Any, false_yes: float, false_no: float
) -> tuple[Any, Any, Any]:
    """Whose functions to use, which labels were shown (n x k), and which answers were yes."""
    xp = namespace(logits, owner)
    if not (0.0 <= false_yes < 1.0 and 0.0 <= false_no < 1.0 and false_yes + false_no < 1.0):
        raise InvalidInput.must(
            "false_yes and false_no", owner, "at least 0, and below 1 together", (false_yes, false_no)
        )
    if len(logits.shape) != 2:
        raise InvalidInput.must("logits", owner, "n x k", f"shape {tuple(logits.shape)}")
    n, inside = logits.shape[0], _mask(xp, logits, shown, owner)
    yes = _like(xp, logits, hit)
    if yes.dtype != inside.dtype:
        yes = yes != 0
    if tuple(yes.shape) != (n,):
        raise InvalidInput.must(
            "hit", owner, f"{n} answers, one for each row of logits", f"shape {tuple(yes.shape)}"
        )
    return xp, inside, yes


def namespace(array: Any, owner: str = "set_nll") -> Any:
    """The module whose functions take this ``array`` of ``owner``: by the array API, or by the array's own home."""
    if hasattr(array, "__array_namespace__"):
        return array.__array_namespace__()
    home = type(array).__module__.partition(".")[0]
    if home == "torch":
        import torch

        return torch
    raise InvalidInput.must("logits", owner, "an array of NumPy, JAX or PyTorch", array)


def _log(value: float) -> float:
    return log(value) if value > 0.0 else NEVER


def _like(xp: Any, logits: Any, value: Any) -> Any:
    """An array of the same kind, where the logits are."""
    if type(value) is type(logits):
        return value
    if hasattr(value, "tolist") and xp is not np and not hasattr(value, "__array_namespace__"):
        value = value.tolist()
    return xp.asarray(value, device=logits.device) if hasattr(logits, "device") else xp.asarray(value)


def _mask(xp: Any, logits: Any, shown: Any, owner: str) -> Any:
    """n x k of true and false."""
    n, k = logits.shape
    shown = _like(xp, logits, shown)
    if len(shown.shape) != 2 or shown.shape[0] != n:
        raise InvalidInput.must("shown", owner, f"n x m, with n = {n}", f"shape {tuple(shown.shape)}")
    if shown.dtype == (logits == logits).dtype:
        if shown.shape[1] != k:
            raise InvalidInput.must(
                "shown", owner, f"n x k of true and false, with k = {k}", f"shape {tuple(shown.shape)}"
            )
        return shown
    every = _like(xp, logits, list(range(k)))
    return xp.any(shown[:, :, None] == every[None, None, :], 1)


def _log_sum(xp: Any, logits: Any, inside: Any) -> Any:
    """log sum exp over the labels in a mask; `NEVER` for none."""
    x = xp.where(inside, logits, NEVER)
    top = xp.max(x, 1)
    top = top.values if hasattr(top, "values") else top  # PyTorch gives the places, too
    top = _constant(top)
    return xp.log(xp.sum(xp.exp(x - top[:, None]), 1)) + top


def _log_add(xp: Any, a: Any, b: Any) -> Any:
    """log(exp a + exp b)"""
    top = _constant(xp.where(a > b, a, b))
    return top + xp.log(xp.exp(a - top) + xp.exp(b - top))


def _constant(top: Any) -> Any:
    """The largest term is only taken out: its slope cancels."""
    return top.detach() if hasattr(top, "detach") else top
