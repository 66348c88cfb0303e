"""The rows of SYNSEP and SYNNONSEP (streams/synthetic.py)."""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from superarm.native.arrays cimport float_data, int64_data
from superarm.native.randomness cimport uniform

cpdef enum:
    N_LABELS = 9
    N_FEATURES = 400
    N_OWNED = 120  # features that labels own, the first ones
    N_OFF = 5
    N_ON = 20


def fill(uint64_t seed, uint64_t first, owned, sizes, double noise, X, y):
    """Write rows from number ``first`` on to X (float32, n x N_FEATURES) and y (int64).

    ``owned`` (N_LABELS x N_OWNED) and ``sizes`` are int64.
    """
    cdef Py_ssize_t n = len(X)
    cdef const int64_t* own = int64_data(owned)
    cdef const int64_t* size = int64_data(sizes)
    cdef float* row = float_data(X)
    cdef int64_t* label = int64_data(y)
    cdef int64_t pool[N_FEATURES]
    cdef Py_ssize_t i, j, at, count
    cdef int64_t c
    cdef uint64_t t
    with nogil:
        for i in range(n):
            t = first + i
            c = <int64_t>(uniform(seed, t, 0) * N_LABELS)
            count = size[c]
            memset(row, 0, N_FEATURES * sizeof(float))
            for j in range(count):
                pool[j] = own[c * N_OWNED + j]
            for j in range(N_OFF):  # the first of the pool are those that go off
                at = j + <Py_ssize_t>(uniform(seed, t, 1 + j) * (count - j))
                pool[j], pool[at] = pool[at], pool[j]
            for j in range(N_OFF, count):
                row[pool[j]] = 1.0
            for j in range(N_FEATURES - N_OWNED):
                pool[j] = N_OWNED + j
            for j in range(N_ON):
                at = j + <Py_ssize_t>(uniform(seed, t, 10 + j) * (N_FEATURES - N_OWNED - j))
                pool[j], pool[at] = pool[at], pool[j]
                row[pool[j]] = 1.0
            if uniform(seed, t, 40) < noise:
                c = <int64_t>(uniform(seed, t, 41) * N_LABELS)
            label[i] = c
            row += N_FEATURES
