cdef void pa_threshold(
    double* losses, Py_ssize_t count, double X, double max_total, double slack_price, double* Lambda,
    double* bound
) noexcept nogil
cdef void epabf_multipliers(
    double* losses, Py_ssize_t n, Py_ssize_t at, double a, double max_lambda, double diagonal
) noexcept nogil
