/* Weights that keep moving, and their running average (averaging.pyx). */

/* w += g x, and a += rate (w - a). */
static void step_average(float *restrict w, float *restrict a, float g, const float *restrict x, float rate,
                         ptrdiff_t d) {
  for (ptrdiff_t j = 0; j < d; j++) {
    float v = w[j] + g * x[j];
    w[j] = v;
    a[j] += rate * (v - a[j]);
  }
}
