/* Weights that keep moving, and their running average (averaging.pyx). */

/* w += g x, and a += rate (w - a). */
static void step_and_average(float *restrict w, float *restrict a, float g, const float *restrict x, float rate,
                         ptrdiff_t d) {
  for (ptrdiff_t j = 0; j < d; j++) {
    float v = w[j] + g * x[j];
    w[j] = v;
    a[j] += rate * (v - a[j]);
  }
}

/* w_r += c_r x for the labels whose c_r is not too small; the constant's weight, which is the last, for all. */
static void step_rows(float *restrict W, ptrdiff_t stride, const double *restrict c, ptrdiff_t k, double small,
                  const float *restrict x, float factor, float bias, ptrdiff_t d) {
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
static void mix_scores(const float *restrict a, const float *restrict b, float share, float rest, float *restrict out,
                       ptrdiff_t k) {
  for (ptrdiff_t r = 0; r < k; r++) out[r] = share * a[r] + rest * b[r];
}

/* e^x for x <= 0 to 2 units in the last place, 0 below -87: Cephes' polynomial, which vectorises as libm's does not.
   The reduction is in double: its two parts in float would be added up beforehand where sums may be reordered. */
static inline float exp_negative(float x) {
  float n = x * 1.44269504088896341f - 0.5f;
  int32_t i = (int32_t)(n < -127.0f ? -127.0f : n); /* the nearest one, as it is cut towards 0 */
  float t = (float)(x - i * 0.6931471805599453), y = 1.9875691500e-4f;
  y = y * t + 1.3981999507e-3f;
  y = y * t + 8.3334519073e-3f;
  y = y * t + 4.1665795894e-2f;
  y = y * t + 1.6666665459e-1f;
  y = y * t + 5.0000001201e-1f;
  y = y * t * t + t + 1.0f;
  union {
    int32_t i;
    float f;
  } power = {(i + 127) << 23};
  return x < -87.0f ? 0.0f : y * power.f; /* NaN stays NaN */
}

/* p = softmax(s). */
static void softmax(const float *restrict s, double *restrict p, float *restrict e, ptrdiff_t k) {
  float best[8], high = s[0];
  for (int i = 0; i < 8; i++) best[i] = high;
  ptrdiff_t q = 0;
  for (; q + 8 <= k; q += 8)
    for (int i = 0; i < 8; i++) best[i] = s[q + i] > best[i] ? s[q + i] : best[i];
  for (; q < k; q++) high = s[q] > high ? s[q] : high;
  for (int i = 0; i < 8; i++) high = best[i] > high ? best[i] : high;
  for (ptrdiff_t r = 0; r < k; r++) e[r] = exp_negative(s[r] - high);
  double total = 0;
  for (ptrdiff_t r = 0; r < k; r++) total += e[r];
  double scale = 1.0 / total;
  for (ptrdiff_t r = 0; r < k; r++) p[r] = e[r] * scale;
}
