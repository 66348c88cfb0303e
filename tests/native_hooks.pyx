"""Parts of compiled code, one call at a time, for the tests alone. native_hooks.py compiles it.

A row is given by ``x`` (dense), ``indices`` and ``values`` (sparse), each of them optional.
"""

import numpy as np

from superarm.native.arrays cimport double_data, float_data, int32_data, intp_data
from superarm.native.averaging cimport AveragedWeights
from superarm.native.cpu cimport Kernels, kernels
from superarm.native.curves cimport Curves
from superarm.native.first_order cimport epabf_multipliers as multipliers
from superarm.native.first_order cimport pa_threshold as threshold
from superarm.native.likelihood cimport Noise, gate_gradient, given_bit, times_likelihood
from superarm.native.linear cimport Weights
from superarm.native.random_features cimport RandomFeatures
from superarm.native.scaling cimport Scaling
from superarm.native.sparse_steps cimport SparseStepSizes
from superarm.native.types cimport Answer, Round, Row, ScaledRow


cdef object fill_row(x, indices, values, Py_ssize_t d, Py_ssize_t width, Row* row):
    """Fill ``row``; return the arrays behind it, which must live as long."""
    dense = np.zeros(d, np.float32) if x is None else np.ascontiguousarray(x, np.float32)
    index = np.ascontiguousarray([] if indices is None else indices, np.int32)
    value = np.ascontiguousarray([] if values is None else values, np.float32)
    assert dense.shape == (d,) and index.shape == value.shape
    assert not len(index) or 0 <= index.min() <= index.max() < width
    row.dense, row.d = float_data(dense), d
    row.indices, row.values, row.n = int32_data(index), float_data(value), len(index)
    return dense, index, value


cdef class OwnedRow:
    """A scaled row and its arrays: ``factor`` times both parts, and a constant beside each."""

    cdef object arrays
    cdef ScaledRow scaled

    def __init__(self, x, indices, values, Py_ssize_t d, Py_ssize_t width, float factor=1.0, float bias=0.0, float sparse_bias=0.0):
        cdef Row row
        self.arrays = dense, _, value = fill_row(x, indices, values, d, width, &row)
        squared_norm = float((dense.astype(float) ** 2).sum() + (value.astype(float) ** 2).sum()) * <double>factor * <double>factor
        self.scaled = ScaledRow(
            row.dense, d, factor, bias, row.indices, row.values, row.n, factor, sparse_bias, squared_norm
        )


def missing_kernels():
    """Return the positions in `Kernels` for which c/kernels.c has no function."""
    return [i for i in range(sizeof(Kernels) // sizeof(void*)) if (<void**>kernels)[i] == NULL]


# ---------------------------------------------------------------- scaling


def scaled(Scaling scaling, x=None, indices=None, values=None):
    """Return a row as it would reach the weights: (dense part, its constant, sparse values, their constant)."""
    cdef Row row
    cdef ScaledRow out
    cdef Py_ssize_t j
    keep = fill_row(x, indices, values, scaling.d, scaling.width, &row)
    scaling.scale(&row, &out)
    dense = np.array([out.factor * out.dense[j] for j in range(out.d)], np.float32)
    stored = np.array([out.sparse_factor * out.values[j] for j in range(out.n)], np.float32)
    del keep
    return dense, out.bias, stored, out.sparse_bias


def scale_and_count(Scaling scaling, x=None, indices=None, values=None):
    """Scale a row, and count it in."""
    cdef Row row
    cdef ScaledRow out
    keep = fill_row(x, indices, values, scaling.d, scaling.width, &row)
    scaling.scale(&row, &out)
    scaling.update_stats(&row)
    del keep


# ---------------------------------------------------------------- weights


def weighted_scores(Weights weights, x=None, indices=None, values=None, **constants):
    """Return the scores of all labels for one row."""
    cdef OwnedRow row = OwnedRow(x, indices, values, weights.d, weights.width, **constants)
    s = np.zeros(weights.k, np.float32)
    weights.scores(&row.scaled, float_data(s))
    return s


def add_outer(Weights weights, labels, c, x=None, indices=None, values=None, **constants):
    """Add c_r x to w_r for pairs (r, c_r); return False, with nothing done, if a weight might overflow."""
    cdef OwnedRow row = OwnedRow(x, indices, values, weights.d, weights.width, **constants)
    labels, c = np.ascontiguousarray(labels, np.intp), np.ascontiguousarray(c, np.float64)
    return weights.add_outer(intp_data(labels), double_data(c), len(labels), &row.scaled)


def averaged_scores(AveragedWeights weights, x=None, indices=None, values=None, **constants):
    """Return the scores of the average and of the last weights."""
    cdef OwnedRow row = OwnedRow(x, indices, values, weights.d, weights.width, **constants)
    cdef Py_ssize_t r, k = weights.k
    average, last = np.zeros(k, np.float32), np.zeros(k, np.float32)
    if weights.d > 0:
        weights.average_scores(&row.scaled, float_data(average))
        weights.last_scores(&row.scaled, float_data(last))
    if weights.width > 0:
        weights.score_sparse(&row.scaled)
        last += np.array([weights.sparse_scores.last[r] for r in range(k)], np.float32)
        average += np.array([weights.sparse_scores.average[r] for r in range(k)], np.float32)
    return average, last


def averaged_step(AveragedWeights weights, c, x=None, indices=None, values=None, **constants):
    """Add c_r x to w_r for the dense part; the averages of both parts take in an update."""
    cdef OwnedRow row = OwnedRow(x, indices, values, weights.d, weights.width, **constants)
    c = np.ascontiguousarray(c, np.float64)
    assert c.shape == (weights.k,)
    weights.step(double_data(c), &row.scaled)


def sparse_step(SparseStepSizes sizes, AveragedWeights weights, c, indices, values, *, double rate, double sparse_bias=0.0):
    """Make a step of the sparse part of ``weights``, and return c times the label's step size; `averaged_step` must follow."""
    cdef OwnedRow row = OwnedRow(None, indices, values, weights.d, weights.width, sparse_bias=sparse_bias)
    c = np.array(c, np.float64)
    sizes.step(weights, rate, double_data(c), &row.scaled)
    return c


# ---------------------------------------------------------------- random features


cdef transform(RandomFeatures features, x):
    cdef OwnedRow row = OwnedRow(x, None, None, features.d, 0)
    cdef ScaledRow transformed
    features.transform(&row.scaled, &transformed)
    return row


def random_features(RandomFeatures features, x):
    """Return the random features of a scaled row, as it reaches its weights."""
    transform(features, x)
    return np.float32(features.factor) * features._scratch["features"]


def raw_features(RandomFeatures features, x):
    """Return cos u and sin u of a scaled row, before they are standardised."""
    transform(features, x)
    return features._scratch["raw"].copy()


def projected_back(RandomFeatures features, v):
    """Return the transpose of `RandomFeatures.projections` times v: a number for each column."""
    features._scratch["angle"][: features.n_frequencies] = v
    features.project_back()
    return features._scratch["columns"].astype(np.float64) * features.projection_scale


def transform_and_update(RandomFeatures features, x):
    """Transform a scaled row, and update the statistics by it."""
    cdef OwnedRow row = transform(features, x)
    features.update_stats(&row.scaled)


def transform_and_learn(RandomFeatures features, x, feature_gradient, linear_gradient):
    """Transform a scaled row, and take in the slopes of the loss along the features and along the row."""
    transform(features, x)
    v, w = np.ascontiguousarray(feature_gradient, np.float32), np.ascontiguousarray(linear_gradient, np.float32)
    assert v.shape == (2 * features.n_frequencies,) and w.shape == (features.d,)
    features.learn_relevance(float_data(v), float_data(w))


def random_feature_scores(Curves curves, x):
    """Return what the curves add to the scores of a scaled row, by the average and by the last weights; gate apart."""
    return averaged_scores(curves.weights, random_features(curves.random_features, x))


# ---------------------------------------------------------------- answers


def gate_slope(q, a, shown, *, bint hit=False, Py_ssize_t label=-1, likelihood=None, double false_yes=0.0, double false_no=0.0):
    """Return the slope of the log-likelihood of one answer along the gate of scores ``a``, at probabilities ``q``."""
    cdef Noise noise = Noise(false_yes, false_no)
    cdef Answer answer
    cdef Round round
    q, a = np.ascontiguousarray(q, np.float64), np.ascontiguousarray(a, np.float32)
    shown = np.ascontiguousarray(shown, np.intp)
    round.drawn, round.m = intp_data(shown), len(shown)
    answer.hit, answer.label, answer.likelihood = hit, label, NULL
    if likelihood is not None:
        likelihood = np.ascontiguousarray(likelihood, np.float64)
        answer.likelihood = double_data(likelihood)
    return gate_gradient(double_data(q), float_data(a), len(q), &noise, &round, &answer)


def posterior(
    p, shown=(), *, bint hit=False, likelihood=None, mean_posterior=None, double revive=0.0, Py_ssize_t none_label=-1,
    double false_yes=0.0, double false_no=0.0,
):
    """Return the probability of each label given an answer, from the probabilities p before it, as SetLogit has it."""
    cdef Noise noise = Noise(false_yes, false_no)
    cdef Round round
    post = np.array(p, np.float64)
    k = len(post)
    drawn, revive_weights = np.ascontiguousarray(shown, np.intp), np.zeros(k)
    mean_posterior = np.full(k, 1.0 / k) if mean_posterior is None else np.ascontiguousarray(mean_posterior, np.float64)
    if likelihood is not None:
        likelihood = np.ascontiguousarray(likelihood, np.float64)
        times_likelihood(double_data(post), k, double_data(likelihood))
        return post
    round.drawn, round.m = intp_data(drawn), len(drawn)
    given_bit(
        double_data(post), k, &noise, &round, hit, revive, none_label, double_data(mean_posterior), double_data(revive_weights)
    )
    return post


def epabf_multipliers(losses, Py_ssize_t at, double a, double max_lambda, double diagonal):
    """Return lambda for losses / X."""
    own = np.array(losses, np.float64)
    multipliers(double_data(own), len(own), at, a, max_lambda, diagonal)
    return own


def pa_threshold(losses, double X, double max_total, double slack_price):
    """Return Lambda, and the loss above which a label is in the support, of positive losses."""
    cdef double Lambda, bound
    own = np.array(losses, np.float64)
    threshold(double_data(own), len(own), X, max_total, slack_price, &Lambda, &bound)
    return Lambda, bound
