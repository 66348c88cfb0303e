/* Scores and steps of one matrix of weights (linear.pyx). */
#include "kernels.h"

static void scores(const float *restrict W, ptrdiff_t stride, ptrdiff_t k, ptrdiff_t d,
                   const float *restrict x, float factor, float bias, float *restrict s) {
  ptrdiff_t r = 0;
  for (; r + 5 <= k; r += 5) { /* x is read once for five labels */
    const float *w0 = W + r * stride, *w1 = w0 + stride, *w2 = w1 + stride, *w3 = w2 + stride;
    const float *w4 = w3 + stride;
    float a = 0, b = 0, c = 0, e = 0, g = 0;
    for (ptrdiff_t j = 0; j < d; j++) {
      float v = x[j];
      a += w0[j] * v;
      b += w1[j] * v;
      c += w2[j] * v;
      e += w3[j] * v;
      g += w4[j] * v;
    }
    s[r] = factor * a + bias * w0[d];
    s[r + 1] = factor * b + bias * w1[d];
    s[r + 2] = factor * c + bias * w2[d];
    s[r + 3] = factor * e + bias * w3[d];
    s[r + 4] = factor * g + bias * w4[d];
  }
  for (; r < k; r++) {
    const float *w = W + r * stride;
    float a = 0;
    for (ptrdiff_t j = 0; j < d; j++) a += w[j] * x[j];
    s[r] = factor * a + bias * w[d];
  }
}

static void axpy(float *restrict w, float c, const float *restrict x, ptrdiff_t d) {
  for (ptrdiff_t j = 0; j < d; j++) w[j] += c * x[j];
}

static void sparse_scores(const float *restrict W, ptrdiff_t k, const int32_t *restrict indices,
                          const float *restrict values, ptrdiff_t n, float factor, float *restrict s) {
  ptrdiff_t i = 0;
  /* four features at a time: memory is asked for more at once, s is read less often */
  for (; i + 4 <= n; i += 4) {
    const float *w0 = W + indices[i] * k, *w1 = W + indices[i + 1] * k;
    const float *w2 = W + indices[i + 2] * k, *w3 = W + indices[i + 3] * k;
    const float a = factor * values[i], b = factor * values[i + 1];
    const float c = factor * values[i + 2], e = factor * values[i + 3];
    for (ptrdiff_t r = 0; r < k; r++) {
      float sum = s[r];
      sum += a * w0[r];
      sum += b * w1[r];
      sum += c * w2[r];
      sum += e * w3[r];
      s[r] = sum;
    }
  }
  for (; i < n; i++) {
    const float v = factor * values[i], *w = W + indices[i] * k;
    for (ptrdiff_t r = 0; r < k; r++) s[r] += v * w[r];
  }
}

static int all_finite(const float *restrict s, ptrdiff_t n) {
  int bad = 0;
  for (ptrdiff_t i = 0; i < n; i++) bad += !(fabsf(s[i]) <= 3.402823466e38f); /* NaN, too */
  return bad == 0;
}

/* w_r += c_r (factor x, bias) for n pairs (r, c_r). */
static void dense_add(float *restrict W, ptrdiff_t stride, const ptrdiff_t *restrict labels,
                      const double *restrict c, ptrdiff_t n, const float *restrict x, ptrdiff_t d, float factor,
                      float bias) {
  for (ptrdiff_t i = 0; i < n; i++) {
    const float g = (float)c[i], h = g * factor;
    float *restrict w = W + labels[i] * stride;
    if (g == 0.0f) continue;
    for (ptrdiff_t j = 0; j < d; j++) w[j] += h * x[j];
    w[d] += g * bias;
  }
}

static void sparse_add_all(float *restrict w, float v, const double *restrict c, ptrdiff_t k) {
  for (ptrdiff_t r = 0; r < k; r++) w[r] += (float)c[r] * v;
}

/* The same for a sparse row; its constant is feature number width. */
static void sparse_add(float *restrict W, ptrdiff_t k, ptrdiff_t width, const ptrdiff_t *restrict labels,
                       const double *restrict c, ptrdiff_t n, const int32_t *restrict indices,
                       const float *restrict values, ptrdiff_t stored, float factor, float bias) {
  ptrdiff_t same = 0; /* labels that stand at their own place: then all of them are side by side */
  if (n == k)
    while (same < n && labels[same] == same) same++;
  for (ptrdiff_t i = 0; i <= stored; i++) {
    const float v = i < stored ? factor * values[i] : bias;
    float *w = W + (i < stored ? (ptrdiff_t)indices[i] : width) * k;
    if (same == k)
      sparse_add_all(w, v, c, k);
    else
      for (ptrdiff_t l = 0; l < n; l++) w[labels[l]] += (float)c[l] * v;
  }
}
