/* Rows on one scale (scaling.pyx). */

static float sum_squares(const float *restrict x, ptrdiff_t d) {
  float total = 0;
  for (ptrdiff_t j = 0; j < d; j++) total += x[j] * x[j];
  return total;
}

/* Beyond 5 deviations, half as much again is half as far from 10: |v| becomes 10 - 25 / |v|. */
static inline float bend(float v) {
  float size = fabsf(v), far = 10.0f - 25.0f / (size > 5.0f ? size : 5.0f);
  far = v < 0 ? -far : far;
  return size > 5.0f ? far : v;
}

/* z = bend((x - mean) inverse); the squared length of z, and how many entries of x are huge. */
static float standardise(const float *restrict x, const float *restrict mean, const float *restrict inverse,
                         float *restrict z, ptrdiff_t d, ptrdiff_t *restrict huge) {
  float total = 0;
  int many = 0;
  for (ptrdiff_t j = 0; j < d; j++) {
    many += !(fabsf(x[j]) <= 1e15f);
    float v = bend((x[j] - mean[j]) * inverse[j]);
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
    float gap = x[j] - mean[j], v = bend(gap * inverse[j]);
    total += v * v;
    mean[j] += a * gap;
    var[j] = b * (var[j] + a * gap * gap);
  }
  return total;
}

/* Move the statistics of numbers by a row, by the equations of scaling.pyx; the squared length of z as it was before. */
static float count_clipped(const float *restrict x, float *restrict mean, float *restrict var,
                           const float *restrict inverse, float *restrict count, const float *restrict usual,
                           float *restrict other, float *restrict outside, float *restrict fast_mean,
                           float *restrict fast_var, float *restrict fast_other, float forget, ptrdiff_t d) {
  const float fast = 0.004f;
  float total = 0;
  for (ptrdiff_t j = 0; j < d; j++) { /* no branches: it must be vectorised */
    float old = var[j], share = other[j], n = count[j], out = outside[j];
    float fm = fast_mean[j], fs = fast_var[j], fo = fast_other[j];
    float gap = x[j] - mean[j], size = fabsf(gap), v = bend(gap * inverse[j]);
    total += v * v;
    float is_other = x[j] != usual[j] ? 1.0f : 0.0f, limit = 4.0f * sqrtf(old / (share > 1e-30f ? share : 1.0f));
    limit = old > 1e-30f ? limit : size;
    float is_outside = size > limit ? 1.0f : 0.0f, c = size > limit ? limit : size;
    c = gap < 0.0f ? -c : c;
    out += 0.02f * is_other * (is_outside - out);
    float most = out > 0.5f ? 32.0f : 3e38f, least = out > 0.5f ? 0.1f : forget;
    n = n < most ? n : most;
    float rate = 1.0f / (n + 1.0f);
    rate = rate > least ? rate : least;
    float f = mean[j] + c - fm, m = mean[j] + rate * c, s = (1.0f - rate) * (old + rate * c * c);
    share += rate * (is_other - share);
    s = s > 1e-30f ? s : 0.0f;
    fm += fast * f;
    fs = (1.0f - fast) * (fs + fast * f * f);
    fs = fs > 1e-30f ? fs : 0.0f;
    fo += fast * (is_other - fo);
    fo = fo > 1e-30f ? fo : 0.0f;
    float wide = n > 1000.0f ? s * fo : 0.0f, narrow = 64.0f * fs * share;
    wide = fs > 0.0f ? wide : 0.0f;
    outside[j] = out;
    fast_mean[j] = fm;
    fast_var[j] = fs;
    fast_other[j] = fo;
    mean[j] = narrow < wide ? fm : m;
    var[j] = narrow < wide ? fs : s;
    other[j] = narrow < wide ? fo : share;
    count[j] = narrow < wide ? 500.0f : n + 1.0f;
  }
  return total;
}

static void inverse_root(const float *restrict var, float *restrict inverse, ptrdiff_t d) {
  for (ptrdiff_t j = 0; j < d; j++) inverse[j] = var[j] > 1e-30f ? 1.0f / sqrtf(var[j]) : 0.0f;
}
