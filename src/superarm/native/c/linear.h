/* Scores and steps of one matrix of weights (linear.pyx). */

static void scores(const float *restrict W, ptrdiff_t stride, ptrdiff_t k, ptrdiff_t d, const float *restrict x,
                   float factor, float bias, float *restrict s) {
  ptrdiff_t r = 0;
  for (; r + 5 <= k; r += 5) { /* x is read once for five labels */
    const float *w0 = W + r * stride, *w1 = w0 + stride, *w2 = w1 + stride, *w3 = w2 + stride, *w4 = w3 + stride;
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
  for (ptrdiff_t i = 0; i < n; i++) {
    const float v = factor * values[i], *w = W + (ptrdiff_t)indices[i] * k;
    for (ptrdiff_t r = 0; r < k; r++) s[r] += v * w[r];
  }
}

static int all_finite(const float *restrict s, ptrdiff_t n) {
  int bad = 0;
  for (ptrdiff_t i = 0; i < n; i++) bad += !(fabsf(s[i]) <= 3.402823466e38f); /* NaN, too */
  return bad == 0;
}
