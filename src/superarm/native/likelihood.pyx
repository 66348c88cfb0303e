"""What one answer says: the posterior of the labels, and which way a gate goes.

A gate g in [0, 1] starts at 1 and climbs the likelihood of the answers, by AdaGrad: for scores s + g a,

    slope = E[a | answer] - E[a] under softmax(s + g a);   G += slope^2;   g += 0.5 slope / sqrt(1 + G)
"""

from libc.math cimport signbit, sqrt

cdef double GATE_RATE = 0.5


cdef inline double probability_inside(const Noise* noise, bint hit) noexcept nogil:
    """Return the probability of this bit where the right label is among the shown ones."""
    return 1.0 - noise.false_no if hit else noise.false_no


cdef inline double probability_outside(const Noise* noise, bint hit) noexcept nogil:
    """Return the probability of this bit where it is not."""
    return noise.false_yes if hit else 1.0 - noise.false_yes


cdef double gate_gradient(
    const double* q, const float* a, Py_ssize_t k, const Noise* noise, const Round* round, const Answer* answer
) noexcept nogil:
    """d log Pr(answer) / dg: the mean of a under q given the answer, minus its mean."""
    cdef double every = 0.0, shown = 0.0, part = 0.0, high = 0.0, inside, outside, total
    cdef Py_ssize_t i, r
    for r in range(k):
        every += q[r] * a[r]
    if answer.label >= 0:
        return a[answer.label] - every
    if answer.likelihood != NULL:
        for r in range(k):
            high = max(high, answer.likelihood[r])
            part += q[r] * answer.likelihood[r]
            shown += q[r] * answer.likelihood[r] * a[r]
        return shown / part - every if part >= 1e-6 * high and part > 0.0 else 0.0
    for i in range(round.m):
        r = round.drawn[i]
        part += q[r]
        shown += q[r] * a[r]
    inside, outside = probability_inside(noise, answer.hit), probability_outside(noise, answer.hit)
    total = inside * part + outside * max(0.0, 1.0 - part)
    if total < 1e-6:  # what was next to impossible says nothing about the gate
        return 0.0
    return (inside * shown + outside * (every - shown)) / total - every


cdef void step_gate(Gate* gate, double slope, double forget) noexcept nogil:
    """One step of g by AdaGrad."""
    gate.squared_slopes = (1.0 - forget) * gate.squared_slopes + slope * slope
    gate.value = min(1.0, max(0.0, gate.value + GATE_RATE * slope / sqrt(1.0 + gate.squared_slopes)))


cdef void times_likelihood(double* p, Py_ssize_t k, const double* likelihood) noexcept nogil:
    """Turn p, in place, into post: the probability of each label given the likelihood."""
    cdef double total = 0.0, high = 0.0
    cdef Py_ssize_t r
    for r in range(k):
        total += p[r] * likelihood[r]
        high = max(high, likelihood[r])
    if not total > 1e-20 * high:  # it had probability 0: nothing can be learnt from it
        return
    for r in range(k):
        p[r] *= likelihood[r] / total


cdef void given_bit(
    double* p, Py_ssize_t k, const Noise* noise, const Round* round, bint hit, double revive, Py_ssize_t none_label,
    const double* mean_posterior, double* revive_weights,
) noexcept nogil:
    """Turn p, in place, into post: the probability of each label given the bit."""
    cdef double inside = probability_inside(noise, hit), outside = probability_outside(noise, hit)
    cdef double shown = 0.0, total, revived = 0.0 if hit else revive, given = 0.0, spread = 0.0, floor = 0.01 / k
    cdef Py_ssize_t i, r
    for i in range(round.m):
        shown += p[round.drawn[i]]
    total = shown * inside + max(1.0 - shown, 0.0) * outside
    if total < 1e-20:  # the bit had probability 0: nothing can be learnt from it
        return
    for i in range(round.m):
        p[round.drawn[i]] *= -inside / total  # marked by a minus
    for r in range(k):
        if signbit(p[r]):
            p[r] = -p[r]
        else:
            p[r] *= outside / total
            if revived > 0.0 and r != none_label:
                given += revived * p[r]
                p[r] *= 1.0 - revived
                # until the total is known, what r receives waits
                revive_weights[r] = 1.0 / (mean_posterior[r] + floor)
                spread += revive_weights[r]
                continue
        revive_weights[r] = 0.0
    if given > 0.0:
        for r in range(k):
            p[r] += given * revive_weights[r] / spread
