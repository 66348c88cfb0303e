/* Weights that keep moving, and their running average (averaging.pyx). */
#include "kernels.h"

/* w += g x, and a += rate (w - a). */
static void step_and_average(float *restrict w, float *restrict a, float g, const float *restrict x,
                             float rate, ptrdiff_t d) {
  for (ptrdiff_t j = 0; j < d; j++) {
    float v = w[j] + g * x[j];
    w[j] = v;
    a[j] += rate * (v - a[j]);
  }
}

/* w_r += c_r x for the labels whose c_r is not too small; the constant's weight, which is the last, for all. */
static void step_rows(float *restrict W, ptrdiff_t stride, const double *restrict c, ptrdiff_t k,
                      double small, const float *restrict x, float factor, float bias, ptrdiff_t d) {
  for (ptrdiff_t r = 0; r < k; r++) {
    float *restrict w = W + r * stride, g = (float)c[r];
    if (bias != 0.0f) w[d] += g * bias;
    if (!(fabs(c[r]) > small)) continue;
    g *= factor;
#pragma GCC unroll 4
    for (ptrdiff_t j = 0; j < d; j++) w[j] += g * x[j];
  }
}

/* out = share a + rest b. */
static void mix_scores(const float *restrict a, const float *restrict b, float share, float rest,
                       float *restrict out, ptrdiff_t k) {
  for (ptrdiff_t r = 0; r < k; r++) out[r] = share * a[r] + rest * b[r];
}
