"""GrowingArray. (arrays.pxd)"""

import numpy as np

cdef Py_ssize_t CHUNK = 2**14  # numbers


cdef class GrowingArray:
    def __init__(self, dtype):
        self.chunks, self.chunk = [], np.empty(0, dtype)
        self.itemsize = self.chunk.itemsize

    cdef void* end(self, Py_ssize_t n) except NULL nogil:
        """Return where the next number goes, with room for ``n`` side by side; who writes them adds them to ``used``."""
        if self.data == NULL or self.used + n > self.capacity:
            with gil:
                self.chunks.append(self.chunk[: self.used])
                self.capacity, self.used = max(n, CHUNK), 0
                self.chunk = np.empty(self.capacity, self.chunk.dtype)
                self.data = <char*>np.PyArray_DATA(self.chunk)
        return self.data + self.itemsize * self.used

    def numbers(self):
        """Return what was written."""
        return np.concatenate([*self.chunks, self.chunk[: self.used]])
