cdef void epabf_multipliers(double* losses, Py_ssize_t n, Py_ssize_t at, double a, double high, double delta) noexcept nogil
