from superarm.native.types cimport Answer, Round


cdef struct Noise:
    # How often a bit is wrong.
    double false_yes
    double false_no


cdef struct Gate:
    # A number in [0, 1] by which scores are multiplied; the answers move it.
    double value  # g
    double squared_slopes  # G


cdef inline void add_gated(
    float* s, float own_gate, float gate, const float* scores, float* own, Py_ssize_t k
) noexcept nogil:
    """own = s;  s = own_gate own + gate scores"""
    cdef Py_ssize_t r
    for r in range(k):
        own[r] = s[r]
        s[r] = own_gate * own[r] + gate * scores[r]


cdef double gate_gradient(
    const double* q, const float* a, Py_ssize_t k, const Noise* noise, const Round* round,
    const Answer* answer
) noexcept nogil
cdef void step_gate(Gate* gate, double slope, double forget) noexcept nogil
# Turn p, the probabilities of k labels, in place into those given a likelihood of every label, or a bit.
cdef void times_likelihood(double* p, Py_ssize_t k, const double* likelihood) noexcept nogil
cdef void given_bit(
    double* p, Py_ssize_t k, const Noise* noise, const Round* round, bint hit, double revive,
    Py_ssize_t none_label, const double* mean_posterior, double* revive_weights
) noexcept nogil
