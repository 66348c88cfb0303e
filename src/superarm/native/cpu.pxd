from libc.stdint cimport int32_t

# Loops that must be vectorised, in C: compiled once for each level of processor into such a table (c/kernels.c),
# of which one is chosen at import (cpu.pyx). Cython writes the struct for C to build/cython/.../cpu.h. Their
# pointers are restrict.
cdef public struct Kernels:
    # linear.h
    void (*scores)(const float* W, Py_ssize_t stride, Py_ssize_t k, Py_ssize_t d, const float* x,
                   float factor, float bias, float* s) noexcept nogil
    void (*axpy)(float* w, float c, const float* x, Py_ssize_t d) noexcept nogil
    void (*sparse_scores)(const float* W, Py_ssize_t k, const int32_t* indices, const float* values,
                          Py_ssize_t n, float factor, float* s) noexcept nogil
    int (*all_finite)(const float* s, Py_ssize_t n) noexcept nogil
    void (*dense_add)(float* W, Py_ssize_t stride, const Py_ssize_t* labels, const double* c, Py_ssize_t n,
                      const float* x, Py_ssize_t d, float factor, float bias) noexcept nogil
    void (*sparse_add)(float* W, Py_ssize_t k, Py_ssize_t width, const Py_ssize_t* labels, const double* c,
                       Py_ssize_t n, const int32_t* indices, const float* values, Py_ssize_t stored,
                       float factor, float bias) noexcept nogil
    # scaling.h
    float (*sum_squares)(const float* x, Py_ssize_t d) noexcept nogil
    float (*standardise)(const float* x, const float* mean, const float* inverse, float* z, Py_ssize_t d,
                         Py_ssize_t* huge) noexcept nogil
    void (*multiply)(float* z, float c, Py_ssize_t d) noexcept nogil
    void (*update_clipped)(const float* x, float* mean, float* var, float* n_values, const float* mode,
                           float* nonmode_share, float* outlier_rate, const float* limit, float forget,
                           Py_ssize_t d) noexcept nogil
    void (*update_fast)(const float* x, const float* mean, const float* mode, const float* limit,
                        float* fast_mean, float* fast_var, float* fast_nonmode_share, float rate,
                        Py_ssize_t d) noexcept nogil
    Py_ssize_t (*refresh_limits)(float* mean, float* var, float* n_values, float* nonmode_share,
                                 const float* outlier_rate, float* fast_mean, float* fast_var,
                                 float* fast_nonmode_share, float* limit, Py_ssize_t d) noexcept nogil
    void (*inverse_root)(const float* var, float* inverse, Py_ssize_t d) noexcept nogil
    # second_order.h
    double (*quadratic)(const float* a, const double* z, Py_ssize_t n) noexcept nogil
    void (*soba_step)(float* w, float* a, float* theta, const double* z, double scale, double P,
                      Py_ssize_t n) noexcept nogil
    double (*newtron_step)(float* w, float* a, float* b, const double* z, double c, double weight,
                           double slope, Py_ssize_t n) noexcept nogil
    void (*add_difference)(double* u, double v, const double* a, const double* b, Py_ssize_t n) noexcept nogil
    void (*subtract)(double* a, double v, const double* u, Py_ssize_t n) noexcept nogil
    # ranking.h
    void (*top_positions)(const float* s, Py_ssize_t n, Py_ssize_t* top, Py_ssize_t m) noexcept nogil
    # averaging.h
    void (*step_and_average)(float* w, float* a, float g, const float* x, float rate,
                             Py_ssize_t d) noexcept nogil
    void (*step_rows)(float* W, Py_ssize_t stride, const double* c, Py_ssize_t k, double small,
                      const float* x, float factor, float bias, Py_ssize_t d) noexcept nogil
    void (*mix_scores)(const float* a, const float* b, float share, float rest, float* out,
                       Py_ssize_t k) noexcept nogil
    # exponentials.h
    void (*softmax)(const float* s, double* p, float* e, Py_ssize_t k) noexcept nogil
    double (*exp_sum)(const float* s, float high, float sharp, double* e, Py_ssize_t n) noexcept nogil
    # sparse_steps.h
    double (*label_errors)(double* H, const double* c, double step, double rate, Py_ssize_t k) noexcept nogil
    double (*label_step_sizes)(const double* H, double mean, double soft, double* c, float* g,
                               Py_ssize_t k) noexcept nogil
    void (*adagrad_step)(float* w, const float* g, float v, float inverse, Py_ssize_t k) noexcept nogil
    # random_features.h
    void (*project)(const float* sign, Py_ssize_t groups, Py_ssize_t blocks, const float* z,
                    const float* relevance, Py_ssize_t d, Py_ssize_t copies, Py_ssize_t group_size,
                    float* work, float* angle) noexcept nogil
    void (*project_back)(const float* sign, Py_ssize_t groups, Py_ssize_t blocks, const float* angle,
                         const float* relevance, Py_ssize_t d, Py_ssize_t copies, Py_ssize_t group_size,
                         float* work, float* columns) noexcept nogil
    float (*random_features)(const float* turns, float scale, const float* mean, const float* inverse,
                             float* raw, float* features, Py_ssize_t P) noexcept nogil
    float (*dot_and_keep)(const float* x, float factor, float* previous, Py_ssize_t d) noexcept nogil
    void (*update_mean_var)(const float* x, float* mean, float* var, float a, float b,
                            Py_ssize_t n) noexcept nogil
    void (*weighted_row_sum)(const float* A, Py_ssize_t stride, const double* c, Py_ssize_t k, Py_ssize_t d,
                             float* out) noexcept nogil
    void (*angle_slopes)(const float* slope, const float* inverse, const float* raw, float* angle,
                         Py_ssize_t P) noexcept nogil
    double (*update_slopes)(float scale, const float* columns, float row_length, const float* linear_gradient,
                            float rate, float* slope, Py_ssize_t d) noexcept nogil

cdef const Kernels* kernels
