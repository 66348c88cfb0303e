"""The likelihood of one bit about a set, for anybody's network.

The model: p = softmax(logits), and the answer to a set S is yes with probability

    q = (1 - false_no) P + false_yes (1 - P),    P = sum over S of p

The loss is -log of the probability of the observed answer. All of it is computed in the logarithm, so
that neither very sure nor very wrong networks give infinities. The same code serves NumPy, JAX, PyTorch
and other libraries with the array API; gradients are by their own autograd.
"""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from superarm._types import Array
from superarm.errors import InvalidInput, Unquoted

__all__ = ["array_namespace", "posterior", "set_nll", "softmax"]

LOG_ZERO = -1e30  # stands for the logarithm of 0; finite, so that no gradient becomes NaN


def set_nll(
    logits: Any,
    shown: Any,
    hit: Any,
    *,
    false_yes: float = 0.0,
    false_no: float = 0.0,
    reduction: str = "mean",
) -> Any:
    """Return the negative log-likelihood of yes/no answers about sets.

    Args:
        logits: n x k scores, a row for each example.
        shown: the labels that were shown: n x m label indices, or an n x k mask of booleans.
        hit: n answers: whether the right label was among them (true/false, or 1/0).
        false_yes: the probability of a "yes" although the right label was not shown.
        false_no: the probability of a "no" although it was (the person did not look).
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Lists and NumPy arrays are checked: label indices out of range and answers that are neither yes nor no
    (``None``, NaN) are refused. Tensors of JAX and PyTorch, which may be traced or on another device, are not.

    >>> import numpy as np
    >>> logits = np.log([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
    >>> float(np.round(np.exp(-set_nll(logits, [[0, 1], [0, 1]], [True, False], reduction="none")), 3)[1])
    0.8
    """
    owner = "set_nll"
    if reduction not in ("mean", "sum", "none"):
        raise InvalidInput.must("reduction", owner, "'mean', 'sum' or 'none'", reduction)
    xp, logits, mask, yes = _validate(owner, logits, shown, hit, false_yes, false_no)
    log_in, log_out = _log_sum(xp, logits, mask), _log_sum(xp, logits, ~mask)
    log_if_shown, log_if_not = _log_answer_probabilities(xp, logits, yes, false_yes, false_no)
    loss = _log_add(xp, log_in, log_out) - _log_add(xp, log_if_shown + log_in, log_if_not + log_out)
    if reduction == "none":
        return loss
    return xp.sum(loss) / loss.shape[0] if reduction == "mean" else xp.sum(loss)


def posterior(logits: Any, shown: Any, hit: Any, *, false_yes: float = 0.0, false_no: float = 0.0) -> Any:
    """Return the probability of every label, given the answer about a set: n x k, each row sums to 1.

    These are the weights of expectation-maximisation: fit any classifier to each row with every label, so weighted.

    ``logits``, ``shown``, ``hit``, ``false_yes`` and ``false_no`` are as for `set_nll`.

    >>> import numpy as np
    >>> np.round(posterior(np.log([[0.5, 0.3, 0.2]]), [[0, 1]], [True]), 3).tolist()
    [[0.625, 0.375, 0.0]]
    """
    xp, logits, mask, yes = _validate("posterior", logits, shown, hit, false_yes, false_no)
    log_if_shown, log_if_not = _log_answer_probabilities(xp, logits, yes, false_yes, false_no)
    log_weights = logits + xp.where(mask, log_if_shown[:, None], log_if_not[:, None])
    weights = xp.exp(log_weights - _row_max(xp, log_weights)[:, None])
    return weights / xp.sum(weights, axis=1)[:, None]


def softmax(scores: Array) -> Array:
    """Return the probability of every label for each row of NumPy's ``scores``, in float64."""
    p = np.exp(scores.astype(np.float64) - scores.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def array_namespace(array: Any, owner: str = "set_nll") -> Any:
    """Return the module whose functions take this ``array`` of ``owner``: by the array API, or by its package."""
    if hasattr(array, "__array_namespace__"):
        return array.__array_namespace__()
    if _is_torch(array):
        import torch

        return torch
    raise InvalidInput.must("logits", owner, "an array of NumPy, JAX or PyTorch", array)


def _validate(
    owner: str, logits: Any, shown: Any, hit: Any, false_yes: float, false_no: float
) -> tuple[Any, Any, Any, Any]:
    """Return the array library, the logits, the mask of shown labels (n x k), and which answers were yes."""
    xp = array_namespace(logits, owner)
    if not (0.0 <= false_yes < 1.0 and 0.0 <= false_no < 1.0 and false_yes + false_no < 1.0):
        raise InvalidInput.must(
            "false_yes and false_no", owner, "at least 0, and below 1 together", (false_yes, false_no)
        )
    if isinstance(logits, np.ndarray) and np.isnan(logits).any():
        raise InvalidInput.must("logits", owner, "numbers", Unquoted("NaN among them"))
    if len(logits.shape) != 2:
        raise InvalidInput.must("logits", owner, "n x k", Unquoted(f"shape {tuple(logits.shape)}"))
    mask = _shown_mask(xp, logits, shown, owner)
    yes = _to_library(xp, logits, hit if _is_tensor(hit) else _check_hits(hit, owner))
    if tuple(yes.shape) != (logits.shape[0],):
        wanted = f"{logits.shape[0]} answers, one for each row of logits"
        raise InvalidInput.must("hit", owner, wanted, Unquoted(f"shape {tuple(yes.shape)}"))
    if getattr(logits.dtype, "itemsize", 4) < 4:  # half precision has no `LOG_ZERO`
        logits = logits + xp.zeros_like(logits, dtype=xp.float32)
    return xp, logits, mask, yes if yes.dtype == mask.dtype else yes != 0


def _check_hits(hit: Any, owner: str) -> Array:
    """Return answers as booleans; one that is neither yes nor no is refused."""
    hits = np.asarray(hit)
    if hits.dtype.kind not in "biuf":  # objects, such as True beside None
        numbers = [value if isinstance(value, int | float | np.generic) else None for value in hits.flat]
        hits = np.array(numbers, object).reshape(hits.shape)
    invalid = np.flatnonzero(~np.asarray((hits == 0) | (hits == 1), bool))
    if invalid.size:
        row = int(invalid[0])
        wanted = "true or false (leave out rows without an answer)"
        raise InvalidInput.must(f"hit[{row}]", owner, wanted, np.asarray(hit).flat[row])
    return hits.astype(bool)


def _shown_mask(xp: Any, logits: Any, shown: Any, owner: str) -> Any:
    """Return the mask of the shown labels, n x k."""
    n, k = logits.shape
    if not _is_tensor(shown):
        shown = _check_shown(shown, k, owner)
    shown = _to_library(xp, logits, shown)
    if len(shown.shape) != 2 or shown.shape[0] != n:
        raise InvalidInput.must(
            "shown", owner, f"n x m, with n = {n}", Unquoted(f"shape {tuple(shown.shape)}")
        )
    if shown.dtype == (logits == logits).dtype:
        if shown.shape[1] != k:
            wanted = f"n x k of true and false, with k = {k}"
            raise InvalidInput.must("shown", owner, wanted, Unquoted(f"shape {tuple(shown.shape)}"))
        return shown
    labels = _to_library(xp, logits, np.arange(k))
    return xp.any(shown[:, :, None] == labels[None, None, :], axis=1)


def _check_shown(shown: Any, k: int, owner: str) -> Array:
    """Return sets as an array; sets of different sizes and label indices out of range are refused."""
    try:
        sets = np.asarray(shown)
    except ValueError:  # NumPy has no arrays of rows with different lengths
        sets = np.empty(0, object)
    if sets.dtype.kind not in "biu":
        wanted = "n x m label indices (sets of one size), or a mask of n x k booleans"
        raise InvalidInput.must("shown", owner, wanted, shown)
    if sets.dtype.kind == "b" or sets.ndim != 2:
        return sets
    outside = sets[(sets < 0) | (sets >= k)]
    if outside.size:
        raise InvalidInput.must("shown", owner, f"label indices from 0 to {k - 1}", int(outside[0]))
    if sets.shape[1] == k > 1 and (np.diff(np.sort(sets, axis=1), axis=1) == 0).any():
        wanted = "distinct labels in each row; for a mask, use booleans"
        raise InvalidInput.must("shown", owner, wanted, sets.tolist())
    return sets


def _is_torch(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "torch"


def _is_tensor(value: Any) -> bool:
    """Return whether a value is an array of another library than NumPy: its values may not be known yet."""
    is_array = hasattr(value, "__array_namespace__") or _is_torch(value)
    return is_array and not isinstance(value, np.ndarray | np.generic)


def _to_library(xp: Any, logits: Any, value: Any) -> Any:
    """Return an array of the library of the logits, on their device."""
    if type(value) is type(logits):
        return value
    return xp.asarray(value, device=logits.device) if hasattr(logits, "device") else xp.asarray(value)


def _log_answer_probabilities(
    xp: Any, logits: Any, yes: Any, false_yes: float, false_no: float
) -> tuple[Any, Any]:
    """Return the log-probability of each answer if the right label was shown, and if it was not."""
    zeros = xp.zeros_like(logits[:, 0])  # of two plain numbers, `where` would not know the type
    log_if_shown = xp.where(yes, zeros + _log(1.0 - false_no), zeros + _log(false_no))
    log_if_not = xp.where(yes, zeros + _log(false_yes), zeros + _log(1.0 - false_yes))
    return log_if_shown, log_if_not


def _log(value: float) -> float:
    return log(value) if value > 0.0 else LOG_ZERO


def _row_max(xp: Any, x: Any) -> Any:
    """Return the largest value of each row as a constant: where it is only subtracted, its gradient cancels."""
    largest = (xp.amax if _is_torch(x) else xp.max)(x, axis=1)  # torch.max gives the indices, too
    return _stop_gradient(largest)


def _log_sum(xp: Any, logits: Any, mask: Any) -> Any:
    """Return log sum exp over the labels in a mask; `LOG_ZERO` if there are none."""
    x = xp.where(mask, logits, LOG_ZERO)
    largest = _row_max(xp, x)
    return xp.log(xp.sum(xp.exp(x - largest[:, None]), axis=1)) + largest


def _log_add(xp: Any, a: Any, b: Any) -> Any:
    """Return log(exp a + exp b)."""
    largest = _stop_gradient(xp.where(a > b, a, b))
    return largest + xp.log(xp.exp(a - largest) + xp.exp(b - largest))


def _stop_gradient(x: Any) -> Any:
    """Return PyTorch's tensor without its gradient; JAX's needs no such care."""
    return x.detach() if hasattr(x, "detach") else x
