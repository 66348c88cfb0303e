/* Rows on one scale (scaling.pyx). */

static float sum_squares(const float *restrict x, ptrdiff_t d) {
  float total = 0;
  for (ptrdiff_t j = 0; j < d; j++) total += x[j] * x[j];
  return total;
}

/* z = clip((x - mean) inverse); the squared length of z, and how many entries of x are huge. */
static float standardise(const float *restrict x, const float *restrict mean, const float *restrict inverse,
                         float *restrict z, ptrdiff_t d, ptrdiff_t *restrict huge) {
  float total = 0;
  int many = 0;
  for (ptrdiff_t j = 0; j < d; j++) {
    many += !(fabsf(x[j]) <= 1e15f);
    float v = (x[j] - mean[j]) * inverse[j];
    v = v < -5.0f ? -5.0f : v;
    v = v > 5.0f ? 5.0f : v;
    z[j] = v;
    total += v * v;
  }
  *huge = many;
  return total;
}

static void multiply(float *restrict z, float c, ptrdiff_t d) {
  for (ptrdiff_t j = 0; j < d; j++) z[j] *= c;
}

/* Move mean and var by a row; the squared length of z as it was before. */
static float count_in(const float *restrict x, float *restrict mean, float *restrict var,
                      const float *restrict inverse, float a, float b, ptrdiff_t d) {
  float total = 0;
  for (ptrdiff_t j = 0; j < d; j++) {
    float gap = x[j] - mean[j], v = gap * inverse[j];
    v = v < -5.0f ? -5.0f : v;
    v = v > 5.0f ? 5.0f : v;
    total += v * v;
    mean[j] += a * gap;
    var[j] = b * (var[j] + a * gap * gap);
  }
  return total;
}

static void inverse_root(const float *restrict var, float *restrict inverse, ptrdiff_t d) {
  for (ptrdiff_t j = 0; j < d; j++) inverse[j] = var[j] > 1e-30f ? 1.0f / sqrtf(var[j]) : 0.0f;
}
