/* Rows on one scale (scaling.pyx). */

static float sum_squares(const float *restrict x, ptrdiff_t d) {
  float total = 0;
  for (ptrdiff_t j = 0; j < d; j++) total += x[j] * x[j];
  return total;
}

/* z = clip((x - mean) inverse); the squared length of z, how many entries of x are huge, how many of z were clipped. */
static float standardise(const float *restrict x, const float *restrict mean, const float *restrict inverse,
                         float *restrict z, ptrdiff_t d, ptrdiff_t *restrict huge, ptrdiff_t *restrict far) {
  float total = 0;
  int many = 0, clipped = 0;
  for (ptrdiff_t j = 0; j < d; j++) {
    many += !(fabsf(x[j]) <= 1e15f);
    float v = (x[j] - mean[j]) * inverse[j];
    clipped += fabsf(v) > 5.0f;
    v = v < -5.0f ? -5.0f : v;
    v = v > 5.0f ? 5.0f : v;
    z[j] = v;
    total += v * v;
  }
  *huge = many;
  *far = clipped;
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

/* Move the statistics of every column by a row, no value counting as more than LIMIT deviations; scaling.pyx says how.
   The squared length of z as it was before. */
#define LIMIT 4.0f
#define FAST 0.002f
static float count_robust(const float *restrict x, float *restrict mean, float *restrict var,
                          const float *restrict inverse, float *restrict count, float *restrict outside,
                          float *restrict fast_mean, float *restrict fast_var, float forget, ptrdiff_t d) {
  float total = 0;
  for (ptrdiff_t j = 0; j < d; j++) {
    float gap = x[j] - mean[j], v = gap * inverse[j], size = fabsf(gap);
    v = v < -5.0f ? -5.0f : v;
    v = v > 5.0f ? 5.0f : v;
    total += v * v;
    float limit = var[j] > 1e-30f ? LIMIT * sqrtf(var[j]) : size;
    float c = size > limit ? (gap > 0 ? limit : -limit) : gap;
    float out = outside[j] + 0.02f * ((size > limit ? 1.0f : 0.0f) - outside[j]);
    float n = out > 0.5f && count[j] > 32.0f ? 32.0f : count[j]; /* most are outside: the column has changed */
    float rate = 1.0f / (n + 1.0f), least = out > 0.5f ? 0.1f : forget;
    rate = rate > least ? rate : least;
    float m = mean[j] + rate * c, s = (1.0f - rate) * (var[j] + rate * c * c);
    float f = mean[j] + c - fast_mean[j], fm = fast_mean[j] + FAST * f, fs = (1.0f - FAST) * (fast_var[j] + FAST * f * f);
    int shrunk = n > 1000.0f && fs < s * (1.0f / 64.0f) && fs > 0.0f; /* it has become much narrower */
    outside[j] = out;
    fast_mean[j] = fm;
    fast_var[j] = fs;
    mean[j] = shrunk ? fm : m;
    var[j] = shrunk ? fs : s;
    count[j] = shrunk ? 500.0f : n + 1.0f;
  }
  return total;
}
#undef LIMIT
#undef FAST

static void inverse_root(const float *restrict var, float *restrict inverse, ptrdiff_t d) {
  for (ptrdiff_t j = 0; j < d; j++) inverse[j] = var[j] > 1e-30f ? 1.0f / sqrtf(var[j]) : 0.0f;
}
