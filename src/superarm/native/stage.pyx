"""Stage: a part of a learner that owns its arrays.

A stage asks for its arrays once, keeps raw pointers into them, and is called without the interpreter. What
it has learnt is `state()`: named arrays, its own and those of the stages inside it. Scratch space is not
part of the state.
"""

import mmap

import numpy as np

from superarm.native.arrays cimport double_data, float_data, int64_data, intp_data

LINE_BYTES = 64  # bytes of a cache line
MIN_HUGE_PAGE_BYTES = 2**22  # bytes from which large pages are worth asking for


def aligned(shape, dtype, value=0.0) -> NDArray[Any]:
    """Return a new array that starts on a cache line, with one to spare behind it."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    buffer = _memory(size + 2 * LINE_BYTES)
    start = -buffer.ctypes.data % LINE_BYTES
    array = buffer[start : start + size].view(dtype).reshape(shape)
    array[...] = value
    return array


def _memory(size):
    """Return bytes; many of them on large pages, where the system has them: sparse rows read all over the
    place, and to find a place among small pages takes as long as the rest of a round."""
    if size < MIN_HUGE_PAGE_BYTES or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.empty(size, np.uint8)
    try:
        pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        pages.madvise(mmap.MADV_HUGEPAGE)
    except OSError:  # a system without them; or no memory, as NumPy will say
        return np.empty(size, np.uint8)
    return np.frombuffer(pages, np.uint8)


cdef class Stage:
    """Named arrays, and stages inside it."""

    def __cinit__(self, *args, **kwargs):
        self.arrays, self.stages, self._scratch = {}, {}, {}

    cdef float* floats(self, str name, shape, double value=0.0) except? NULL:
        """Return the address of a new array that belongs to the state."""
        self.arrays[name] = array = aligned(shape, np.float32, value)
        return float_data(array)

    cdef double* doubles(self, str name, shape, double value=0.0) except? NULL:
        self.arrays[name] = array = aligned(shape, np.float64, value)
        return double_data(array)

    cdef int64_t* integers(self, str name, shape) except? NULL:
        self.arrays[name] = array = aligned(shape, np.int64, 0)
        return int64_data(array)

    cdef float* scratch_floats(self, str name, shape) except? NULL:
        """Return the address of a new array that is not part of the state."""
        self._scratch[name] = array = aligned(shape, np.float32)
        return float_data(array)

    cdef double* scratch_doubles(self, str name, shape) except? NULL:
        self._scratch[name] = array = aligned(shape, np.float64)
        return double_data(array)

    cdef Py_ssize_t* scratch_intp(self, str name, shape) except? NULL:
        self._scratch[name] = array = aligned(shape, np.intp)
        return intp_data(array)

    def state(self) -> dict[str, NDArray[Any]]:
        """Every array of the state by its dotted name. They are live: compiled code writes to them."""
        arrays = dict(self.arrays)
        for name, stage in self.stages.items():
            arrays |= {f"{name}.{inner}": array for inner, array in stage.state().items()}
        return arrays

    def restore(self, state) -> None:
        """Copy the arrays of another stage's `state()`; this one may have room for more."""
        own = self.state()
        if own.keys() != state.keys():
            different = sorted(own.keys() ^ state.keys())
            raise ValueError(f"state must have the same arrays, got a difference in {', '.join(different)}")
        for name, array in own.items():
            saved = state[name]
            if saved.dtype != array.dtype or saved.ndim != array.ndim or any(
                a > b for a, b in zip(saved.shape, array.shape)
            ):
                raise ValueError(name)
            array[tuple(slice(size) for size in saved.shape)] = saved
