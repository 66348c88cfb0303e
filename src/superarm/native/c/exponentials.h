/* Scores to probabilities (averaging.pyx, leave_out.pyx). */
#include "kernels.h"

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

static inline double exp_block(const float *restrict s, float high, float sharp, double *restrict e) {
  float f[16];
  double total = 0;
  for (int i = 0; i < 16; i++) f[i] = exp_negative(sharp * (s[i] - high));
  for (int i = 0; i < 16; i++) e[i] = f[i];
  for (int i = 0; i < 16; i++) total += f[i];
  return total;
}

/* e = exp(sharp (s - high)), and their sum; high is the largest. The last block is filled up: ten labels are one. */
static double exp_sum(const float *restrict s, float high, float sharp, double *restrict e, ptrdiff_t n) {
  double total = 0;
  ptrdiff_t p = 0;
  for (; p + 16 <= n; p += 16) total += exp_block(s + p, high, sharp, e + p);
  if (p < n) {
    float rest[16];
    double found[16];
    for (int i = 0; i < 16; i++) rest[i] = p + i < n ? s[p + i] : -INFINITY;
    total += exp_block(rest, high, sharp, found);
    for (int i = 0; p + i < n; i++) e[p + i] = found[i];
  }
  return total;
}
