cdef void pa_threshold(double* losses, Py_ssize_t count, double X, double C, int variant, double* Lambda, double* bound) noexcept nogil
