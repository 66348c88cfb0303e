"""The rows of SYNSEP and SYNNONSEP (streams/synthetic.py)."""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from superarm.native.arrays cimport float_data, int64_data
from superarm.native.randomness cimport uniform

cdef enum:
    K = 9  # classes
    D = 400  # features
    OWN = 120  # of them, those that classes own
    DRAWN_OFF = 5
    DRAWN_ON = 20


def fill(uint64_t seed, uint64_t first, owned, sizes, double noise, X, y):
    """Rows number ``first`` on, into X (float32, n x D) and y (int64); ``owned`` (K x OWN) and ``sizes`` are int64."""
    cdef Py_ssize_t n = len(X)
    cdef const int64_t* own = int64_data(owned)
    cdef const int64_t* size = int64_data(sizes)
    cdef float* row = float_data(X)
    cdef int64_t* label = int64_data(y)
    cdef int64_t pool[D]
    cdef Py_ssize_t i, j, at, count
    cdef int64_t c, swapped
    cdef uint64_t t
    with nogil:
        for i in range(n):
            t = first + i
            c = <int64_t>(uniform(seed, t, 0) * K)
            count = size[c]
            memset(row, 0, D * sizeof(float))
            for j in range(count):
                pool[j] = own[c * OWN + j]
            for j in range(DRAWN_OFF):  # the first of the pool are those that go off
                at = j + <Py_ssize_t>(uniform(seed, t, 1 + j) * (count - j))
                swapped = pool[j]
                pool[j], pool[at] = pool[at], swapped
            for j in range(DRAWN_OFF, count):
                row[pool[j]] = 1.0
            for j in range(D - OWN):
                pool[j] = OWN + j
            for j in range(DRAWN_ON):
                at = j + <Py_ssize_t>(uniform(seed, t, 10 + j) * (D - OWN - j))
                swapped = pool[j]
                pool[j], pool[at] = pool[at], swapped
                row[pool[j]] = 1.0
            if uniform(seed, t, 40) < noise:
                c = <int64_t>(uniform(seed, t, 41) * K)
            label[i] = c
            row += D
