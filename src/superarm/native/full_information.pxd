cdef enum:  # variants of PA and EPABF
    PLAIN = 0
    BOUNDED = 1  # -I: multipliers up to C
    SQUARED = 2  # -II: 1 / (2 C) on the diagonal


cdef void pa_threshold(double* losses, Py_ssize_t count, double X, double C, int variant, double* Lambda, double* bound) noexcept nogil
