/* Rows on one scale (scaling.pyx). */

static float sum_squares(const float *restrict x, ptrdiff_t d) {
  float total = 0;
  for (ptrdiff_t j = 0; j < d; j++) total += x[j] * x[j];
  return total;
}

/* Beyond 5 deviations, |v| becomes 7.5 - 12.5 / |v|. */
static inline float bend(float v) {
  float size = fabsf(v), far = 7.5f - 12.5f / (size > 5.0f ? size : 5.0f);
  far = v < 0 ? -far : far;
  return size > 5.0f ? far : v;
}

/* z = bend((x - mean) inverse); the squared length of z, and how many entries of x are huge. Few blocks need to bend. */
static float standardise(const float *restrict x, const float *restrict mean, const float *restrict inverse,
                         float *restrict z, ptrdiff_t d, ptrdiff_t *restrict huge) {
  float total = 0;
  *huge = 0;
  for (ptrdiff_t i = 0; i < d; i += 64) {
    ptrdiff_t end = d - i < 64 ? d : i + 64;
    int many = 0, far = 0;
    float part = 0;
    for (ptrdiff_t j = i; j < end; j++) {
      float v = (x[j] - mean[j]) * inverse[j];
      many += !(fabsf(x[j]) <= 1e15f);
      far += !(fabsf(v) <= 5.0f);
      z[j] = v;
      part += v * v;
    }
    if (far) {
      part = 0;
      for (ptrdiff_t j = i; j < end; j++) {
        z[j] = bend(z[j]);
        part += z[j] * z[j];
      }
    }
    *huge += many;
    total += part;
  }
  return total;
}

static void multiply(float *restrict z, float c, ptrdiff_t d) {
  for (ptrdiff_t j = 0; j < d; j++) z[j] *= c;
}

/* Move the statistics of numbers by a row, by the equations of scaling.pyx; no branches: it must be vectorised. */
static void count_clipped(const float *restrict x, float *restrict mean, float *restrict var, float *restrict count,
                          const float *restrict usual, float *restrict other, float *restrict outside,
                          const float *restrict limit, float forget, ptrdiff_t d) {
  for (ptrdiff_t j = 0; j < d; j++) {
    float most = limit[j], n = count[j], out = outside[j], square = (x[j] - usual[j]) * (x[j] - usual[j]) * other[j];
    int few = (other[j] * (n + 1.0f) < 8.0f) | (other[j] < 8.0f * forget); /* other < 8 rate, without a division */
    int anew = few & (other[j] < 0.25f) & (x[j] != usual[j]) & (out <= 0.5f) & (1024.0f * square < var[j]);
    float middle = anew ? usual[j] : mean[j], v = anew ? square : var[j], gap = x[j] - middle;
    float is_other = x[j] != usual[j] ? 1.0f : 0.0f, is_outside = fabsf(gap) > most ? 1.0f : 0.0f;
    float c = gap < most ? gap : most;
    c = c > -most ? c : -most;
    out += 0.02f * is_other * (is_outside - out);
    n = out > 0.5f && n > 32.0f ? 32.0f : n;
    float rate = 1.0f / (n + 1.0f), least = out > 0.5f ? 0.1f : forget;
    rate = rate > least ? rate : least;
    mean[j] = middle + rate * c;
    var[j] = (1.0f - rate) * (v + rate * c * c);
    other[j] += rate * (is_other - other[j]);
    outside[j] = out;
    count[j] = n + 1.0f;
  }
}

/* The statistics that forget fast. */
static void count_fast(const float *restrict x, const float *restrict mean, const float *restrict usual,
                       const float *restrict limit, float *restrict fast_mean, float *restrict fast_var,
                       float *restrict fast_other, float rate, ptrdiff_t d) {
  for (ptrdiff_t j = 0; j < d; j++) {
    float gap = x[j] - mean[j], most = limit[j], is_other = x[j] != usual[j] ? 1.0f : 0.0f;
    float c = gap < most ? gap : most;
    c = c > -most ? c : -most;
    float f = mean[j] + c - fast_mean[j];
    fast_mean[j] += rate * f;
    fast_var[j] = (1.0f - rate) * (fast_var[j] + rate * f * f);
    fast_other[j] += rate * (is_other - fast_other[j]);
  }
}

/* Take over what forgets fast where a column has become narrower, and limit anew; how many columns are outside. */
static ptrdiff_t renew(float *restrict mean, float *restrict var, float *restrict count, float *restrict other,
                       const float *restrict outside, float *restrict fast_mean, float *restrict fast_var,
                       float *restrict fast_other, float *restrict limit, ptrdiff_t d) {
  ptrdiff_t moving = 0;
  for (ptrdiff_t j = 0; j < d; j++) {
    if (!(fast_var[j] > 1e-30f)) fast_var[j] = 0.0f;
    if (!(fast_other[j] > 1e-30f)) fast_other[j] = 0.0f;
    if (count[j] > 1000.0f && fast_var[j] > 0.0f && 64.0f * fast_var[j] * other[j] < var[j] * fast_other[j]) {
      mean[j] = fast_mean[j];
      var[j] = fast_var[j];
      other[j] = fast_other[j];
      count[j] = 250.0f;
    }
    if (!(var[j] > 1e-30f)) var[j] = 0.0f;
    limit[j] = var[j] > 0.0f ? 4.0f * sqrtf(var[j] / (other[j] > 1e-30f ? other[j] : 1.0f)) : 3e38f;
    moving += outside[j] > 0.5f;
  }
  return moving;
}

static void inverse_root(const float *restrict var, float *restrict inverse, ptrdiff_t d) {
  for (ptrdiff_t j = 0; j < d; j++) inverse[j] = var[j] > 1e-30f ? 1.0f / sqrtf(var[j]) : 0.0f;
}
