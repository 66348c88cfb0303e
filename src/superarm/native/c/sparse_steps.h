/* Steps of sparse rows, a pace for each label and each feature (sparse_steps.pyx). */
#include "kernels.h"

/* H_r += rate ((c_r / step)^2 - H_r); the sum of H. */
static double label_errors(double *restrict H, const double *restrict c, double step, double rate, ptrdiff_t k) {
  double total = 0;
  for (ptrdiff_t r = 0; r < k; r++) {
    double e = c[r] / step;
    H[r] += rate * (e * e - H[r]);
    total += H[r];
  }
  return total;
}

/* c_r *= sqrt((mean + tiny) / (H_r + soft)), in float too; the sum of c^2. */
static double label_step_sizes(const double *restrict H, double mean, double soft, double *restrict c,
                               float *restrict g, ptrdiff_t k) {
  double total = 0;
  for (ptrdiff_t r = 0; r < k; r++) {
    double v = c[r] * sqrt(mean / (H[r] + soft));
    c[r] = v;
    g[r] = (float)v;
    total += v * v;
  }
  return total;
}

/* W += v g and A += v g / omega, side by side: w holds k numbers of W, then k of A. */
static void adagrad_step(float *restrict w, const float *restrict g, float v, float inverse, ptrdiff_t k) {
  float *restrict a = w + k;
  for (ptrdiff_t r = 0; r < k; r++) {
    float step = g[r] * v;
    w[r] += step;
    a[r] += inverse * step;
  }
}
