/* Rows on one scale (scaling.pyx). */
#include "kernels.h"

static float sum_squares(const float *restrict x, ptrdiff_t d) {
  float total = 0;
  for (ptrdiff_t j = 0; j < d; j++) total += x[j] * x[j];
  return total;
}

/* Beyond 5 deviations, |v| becomes 7.5 - 12.5 / |v|. */
static inline float soft_clip(float v) {
  float size = fabsf(v), most = size > CLIP_START ? size : CLIP_START;
  float far = CLIP_LIMIT - CLIP_START * (CLIP_LIMIT - CLIP_START) / most;
  far = v < 0 ? -far : far;
  return size > CLIP_START ? far : v;
}

/* z = soft_clip((x - mean) inverse); the squared length of z, and how many entries of x are huge.
   Few blocks need clipping. */
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
      many += !(fabsf(x[j]) <= HUGE_NUMBER);
      far += !(fabsf(v) <= CLIP_START);
      z[j] = v;
      part += v * v;
    }
    if (far) {
      part = 0;
      for (ptrdiff_t j = i; j < end; j++) {
        z[j] = soft_clip(z[j]);
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
static void update_clipped(const float *restrict x, float *restrict mean, float *restrict var,
                           float *restrict n_values, const float *restrict mode, float *restrict nonmode_share,
                           float *restrict outlier_rate, const float *restrict limit, float forget, ptrdiff_t d) {
  for (ptrdiff_t j = 0; j < d; j++) {
    float most = limit[j], n = n_values[j], out = outlier_rate[j];
    float square = (x[j] - mode[j]) * (x[j] - mode[j]) * nonmode_share[j];
    /* nonmode_share < 8 rate, without a division */
    int few = (nonmode_share[j] * (n + 1.0f) < 8.0f) | (nonmode_share[j] < 8.0f * forget);
    int anew = few & (nonmode_share[j] < 0.25f) & (x[j] != mode[j]) & (out <= 0.5f) & (1024.0f * square < var[j]);
    float middle = anew ? mode[j] : mean[j], v = anew ? square : var[j], gap = x[j] - middle;
    float is_other = x[j] != mode[j] ? 1.0f : 0.0f, is_outside = fabsf(gap) > most ? 1.0f : 0.0f;
    float c = gap < most ? gap : most;
    c = c > -most ? c : -most;
    out += 0.02f * is_other * (is_outside - out);
    n = out > 0.5f && n > 32.0f ? 32.0f : n;
    float rate = 1.0f / (n + 1.0f), least = out > 0.5f ? 0.1f : forget;
    rate = rate > least ? rate : least;
    mean[j] = middle + rate * c;
    var[j] = (1.0f - rate) * (v + rate * c * c);
    nonmode_share[j] += rate * (is_other - nonmode_share[j]);
    outlier_rate[j] = out;
    n_values[j] = n + 1.0f;
  }
}

/* The statistics that forget fast. */
static void update_fast(const float *restrict x, const float *restrict mean, const float *restrict mode,
                        const float *restrict limit, float *restrict fast_mean, float *restrict fast_var,
                        float *restrict fast_nonmode_share, float rate, ptrdiff_t d) {
  for (ptrdiff_t j = 0; j < d; j++) {
    float gap = x[j] - mean[j], most = limit[j], is_other = x[j] != mode[j] ? 1.0f : 0.0f;
    float c = gap < most ? gap : most;
    c = c > -most ? c : -most;
    float f = mean[j] + c - fast_mean[j];
    fast_mean[j] += rate * f;
    fast_var[j] = (1.0f - rate) * (fast_var[j] + rate * f * f);
    fast_nonmode_share[j] += rate * (is_other - fast_nonmode_share[j]);
  }
}

/* Take over what forgets fast where a column has become narrower, and limit anew.
   Returns how many columns have an outlier rate above one half. */
static ptrdiff_t refresh_limits(float *restrict mean, float *restrict var, float *restrict n_values,
                                float *restrict nonmode_share, const float *restrict outlier_rate,
                                float *restrict fast_mean, float *restrict fast_var,
                                float *restrict fast_nonmode_share, float *restrict limit, ptrdiff_t d) {
  ptrdiff_t moving = 0;
  for (ptrdiff_t j = 0; j < d; j++) {
    if (!(fast_var[j] > 1e-30f)) fast_var[j] = 0.0f;
    if (!(fast_nonmode_share[j] > 1e-30f)) fast_nonmode_share[j] = 0.0f;
    if (n_values[j] > 1000.0f && fast_var[j] > 0.0f &&
        64.0f * fast_var[j] * nonmode_share[j] < var[j] * fast_nonmode_share[j]) {
      mean[j] = fast_mean[j];
      var[j] = fast_var[j];
      nonmode_share[j] = fast_nonmode_share[j];
      n_values[j] = 250.0f;
    }
    if (!(var[j] > 1e-30f)) var[j] = 0.0f;
    float share = nonmode_share[j] > 1e-30f ? nonmode_share[j] : 1.0f;
    limit[j] = var[j] > 0.0f ? 4.0f * sqrtf(var[j] / share) : 3e38f;
    moving += outlier_rate[j] > 0.5f;
  }
  return moving;
}

static void inverse_root(const float *restrict var, float *restrict inverse, ptrdiff_t d) {
  for (ptrdiff_t j = 0; j < d; j++) inverse[j] = var[j] > 1e-30f ? 1.0f / sqrtf(var[j]) : 0.0f;
}
