/* Random Fourier features of a row (random_features.pyx): projections, cosines and sines, and the way back. */
#include <string.h>

#include "kernels.h"

#define LANES 16
#define ROWS 16
#define SIZE 256
#define WIDE 32 /* a row of lanes twice, so that turned it is contiguous */

/* Walsh-Hadamard over 16 numbers. */
#define BUTTERFLY(a, b) \
  do {                  \
    float sum = a + b;  \
    b = a - b;          \
    a = sum;            \
  } while (0)
#define BUTTERFLIES(a, b, c, e, f, g, h, i) \
  do {                                      \
    BUTTERFLY(a, b);                        \
    BUTTERFLY(c, e);                        \
    BUTTERFLY(f, g);                        \
    BUTTERFLY(h, i);                        \
  } while (0)
#define HADAMARD(v)                                                     \
  do {                                                                  \
    BUTTERFLIES(v##0, v##4, v##1, v##5, v##2, v##6, v##3, v##7);        \
    BUTTERFLIES(v##8, v##12, v##9, v##13, v##10, v##14, v##11, v##15);  \
    BUTTERFLIES(v##0, v##8, v##1, v##9, v##2, v##10, v##3, v##11);      \
    BUTTERFLIES(v##4, v##12, v##5, v##13, v##6, v##14, v##7, v##15);    \
    BUTTERFLIES(v##0, v##1, v##2, v##3, v##4, v##5, v##6, v##7);        \
    BUTTERFLIES(v##8, v##9, v##10, v##11, v##12, v##13, v##14, v##15);  \
    BUTTERFLIES(v##0, v##2, v##1, v##3, v##4, v##6, v##5, v##7);        \
    BUTTERFLIES(v##8, v##10, v##9, v##11, v##12, v##14, v##13, v##15);  \
  } while (0)
#define TAKE(i) float v##i = h[LANES * i + j]
#define TURNED(i) float v##i = s[LANES * i + j] * w[WIDE * i + i + j]
#define ALL(what) \
  what(0); what(1); what(2); what(3); what(4); what(5); what(6); what(7); \
  what(8); what(9); what(10); what(11); what(12); what(13); what(14); what(15)

/* One stage: row i turned by i lanes, signs flipped, and H over the rows. */
static void stage_wide(const float *restrict w, const float *restrict s, float *restrict out) {
#define KEEP(i) out[WIDE * i + j] = out[WIDE * i + LANES + j] = v##i
  for (int j = 0; j < LANES; j++) {
    ALL(TURNED);
    HADAMARD(v);
    ALL(KEEP);
  }
#undef KEEP
}

/* The last stage. Of several blocks, all but the last are only turned, signs flipped, and added up in `sum`. */
static void turn_add(const float *restrict w, const float *restrict s, float *restrict sum) {
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < LANES; j++) sum[LANES * i + j] += s[LANES * i + j] * w[WIDE * i + i + j];
}

#define KEEP(i) out[LANES * i + j] = v##i
static void stage_last(const float *restrict w, const float *restrict s, const float *restrict sum,
                       float *restrict out) {
#define ADDED(i) float v##i = sum[LANES * i + j] + s[LANES * i + j] * w[WIDE * i + i + j]
  for (int j = 0; j < LANES; j++) {
    ALL(ADDED);
    HADAMARD(v);
    ALL(KEEP);
  }
#undef ADDED
}

/* H over the rows alone, for the way back. */
static void over_rows(const float *restrict h, float *restrict out) {
  for (int j = 0; j < LANES; j++) {
    ALL(TAKE);
    HADAMARD(v);
    ALL(KEEP);
  }
}
#undef KEEP

/* Up to 256 columns (each times its relevance, if any), written `copies` times, as rows of lanes. */
static void pad_and_repeat(const float *restrict z, const float *restrict relevance, ptrdiff_t d,
                           ptrdiff_t copies, float *restrict half, float *restrict wide) {
  if (relevance)
    for (ptrdiff_t j = 0; j < d; j++) half[j] = relevance[j] * z[j];
  else
    memcpy(half, z, d * sizeof(float));
  for (ptrdiff_t i = 1; i < copies; i++) memcpy(half + i * d, half, d * sizeof(float));
  memset(half + copies * d, 0, (SIZE - copies * d) * sizeof(float));
  for (int i = 0; i < ROWS; i++) {
    memcpy(wide + WIDE * i, half + LANES * i, LANES * sizeof(float));
    memcpy(wide + WIDE * i + LANES, half + LANES * i, LANES * sizeof(float));
  }
}

/* angle = projections, the first `group_size` of each group: of z in even groups, of relevance z in odd ones; `work` has
   room for 1536 numbers, angle for 256 more than are used. */
static void project(const float *restrict sign, ptrdiff_t groups, ptrdiff_t blocks, const float *restrict z,
                    const float *restrict relevance, ptrdiff_t d, ptrdiff_t copies, ptrdiff_t group_size,
                    float *restrict work, float *restrict angle) {
  float *one = work, *two = work + SIZE * 2, *half = work + SIZE * 4, *sum = work + SIZE * 5;
  const float *s = sign;
  for (ptrdiff_t g = 0; g < groups; g++) {
    memset(sum, 0, SIZE * sizeof(float));
    for (ptrdiff_t b = 0; b < blocks; b++, s += 3 * SIZE) {
      ptrdiff_t first = b * SIZE, n = d - first < SIZE ? d - first : SIZE;
      pad_and_repeat(z + first, g % 2 ? relevance + first : NULL, n, copies, half, one);
      stage_wide(one, s, two);
      stage_wide(two, s + SIZE, one);
      if (b + 1 < blocks)
        turn_add(one, s + 2 * SIZE, sum);
      else
        stage_last(one, s + 2 * SIZE, sum, angle + g * group_size);
    }
  }
}

/* The transpose of the rest of a stage: signs, and row i turned back by i lanes; `w` is room. */
static void turn_back(const float *restrict h, const float *restrict s, float *restrict w,
                      float *restrict out) {
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < LANES; j++) w[WIDE * i + i + j] = s[LANES * i + j] * h[LANES * i + j];
#define FOLD(i)                                          \
  memcpy(out + LANES * i, w + WIDE * i + LANES, i * 4); \
  memcpy(out + LANES * i + i, w + WIDE * i + i, (LANES - i) * 4)
  ALL(FOLD);
#undef FOLD
}

/* columns = the transpose of `project`, applied to angle. */
static void project_back(const float *restrict sign, ptrdiff_t groups, ptrdiff_t blocks,
                         const float *restrict angle, const float *restrict relevance, ptrdiff_t d,
                         ptrdiff_t copies, ptrdiff_t group_size, float *restrict work, float *restrict columns) {
  float *last = work, *half = work + SIZE, *other = work + SIZE * 2, *wide = work + SIZE * 3;
  const float *s = sign;
  memset(columns, 0, d * sizeof(float));
  for (ptrdiff_t g = 0; g < groups; g++) {
    memcpy(half, angle + g * group_size, group_size * sizeof(float));
    memset(half + group_size, 0, (SIZE - group_size) * sizeof(float));
    over_rows(half, last);
    for (ptrdiff_t b = 0; b < blocks; b++, s += 3 * SIZE) {
      turn_back(last, s + 2 * SIZE, wide, half);
      over_rows(half, other);
      turn_back(other, s + SIZE, wide, half);
      over_rows(half, other);
      turn_back(other, s, wide, half);
      ptrdiff_t first = b * SIZE, n = d - first < SIZE ? d - first : SIZE;
      for (ptrdiff_t i = 0; i < copies; i++) {
        const float *restrict copy = half + i * n;
        float *restrict own = columns + first;
        const float *restrict a = relevance + first;
        if (g % 2)
          for (ptrdiff_t j = 0; j < n; j++) own[j] += a[j] * copy[j];
        else
          for (ptrdiff_t j = 0; j < n; j++) own[j] += copy[j];
      }
    }
  }
}

#if defined(__SSE4_1__) || !defined(__SSE2__)
#define FLOOR(x) floorf(x)
#else /* a call, without SSE4: by truncation, which vectorises */
static inline float FLOOR(float x) {
  float t = (float)(int32_t)x;
  return t - (x < t ? 1.0f : 0.0f);
}
#endif

/* To ±MAX_FEATURE, as whole numbers: comparing floats, GCC would not take the two instructions that there are for it. */
static inline float clip(float v) {
  union {
    float f;
    int32_t i;
  } bits = {v}, most = {MAX_FEATURE};
  int32_t size = bits.i & 0x7fffffff, sign = bits.i & (int32_t)0x80000000;
  bits.i = (size < most.i ? size : most.i) | sign;
  return bits.f;
}

/* sin(2 pi t) to 0.001, |t| <= 1/2: a parabola and one correction, which vectorise. */
static inline float sine_of_turns(float t) {
  float s = t * (8.0f - 16.0f * fabsf(t));
  return s * (0.775f + 0.225f * fabsf(s));
}

/* raw = cos and sin of 2 pi scale turns; features = clip((raw - mean) inverse), and their squared norm.
   Two loops: all of it in one is a chain so long that the processor sees too few of them at a time. */
static float random_features(const float *restrict turns, float scale, const float *restrict mean,
                             const float *restrict inverse, float *restrict raw, float *restrict features,
                             ptrdiff_t P) {
  float *restrict sine = raw + P, *restrict last = features + P;
  const float *restrict mean2 = mean + P, *restrict inverse2 = inverse + P;
  float total = 0;
  for (ptrdiff_t i = 0; i < P; i++) {
    float t = turns[i] * scale;
    t = t - FLOOR(t + 0.5f);
    raw[i] = sine_of_turns(0.25f - fabsf(t));
    sine[i] = sine_of_turns(t);
  }
  for (ptrdiff_t i = 0; i < P; i++) {
    float v = clip((raw[i] - mean[i]) * inverse[i]), u = clip((sine[i] - mean2[i]) * inverse2[i]);
    features[i] = v;
    last[i] = u;
    total += v * v + u * u;
  }
  return total;
}

/* x . previous, and previous = x. */
static float dot_and_keep(const float *restrict x, float factor, float *restrict previous, ptrdiff_t d) {
  float total = 0;
  for (ptrdiff_t j = 0; j < d; j++) {
    float v = factor * x[j];
    total += v * previous[j];
    previous[j] = v;
  }
  return total;
}

static void update_mean_var(const float *restrict x, float *restrict mean, float *restrict var, float a,
                            float b, ptrdiff_t n) {
  for (ptrdiff_t i = 0; i < n; i++) {
    float gap = x[i] - mean[i];
    mean[i] += a * gap;
    var[i] = b * (var[i] + a * gap * gap);
  }
}

/* out = sum_r c_r A_r. */
static void weighted_row_sum(const float *restrict A, ptrdiff_t stride, const double *restrict c, ptrdiff_t k,
                             ptrdiff_t d, float *restrict out) {
  ptrdiff_t r = 0;
  memset(out, 0, d * sizeof(float));
  for (; r + 5 <= k; r += 5) {
    const float *a0 = A + r * stride, *a1 = a0 + stride, *a2 = a1 + stride, *a3 = a2 + stride;
    const float *a4 = a3 + stride;
    const float c0 = (float)c[r], c1 = (float)c[r + 1], c2 = (float)c[r + 2], c3 = (float)c[r + 3];
    const float c4 = (float)c[r + 4];
    for (ptrdiff_t j = 0; j < d; j++)
      out[j] += c0 * a0[j] + c1 * a1[j] + c2 * a2[j] + c3 * a3[j] + c4 * a4[j];
  }
  for (; r < k; r++) {
    const float g = (float)c[r], *restrict a = A + r * stride;
    for (ptrdiff_t j = 0; j < d; j++) out[j] += g * a[j];
  }
}

/* The slope along every projection, from that along the features. */
static void angle_slopes(const float *restrict slope, const float *restrict inverse, const float *restrict raw,
                         float *restrict angle, ptrdiff_t P) {
  const float *restrict slope2 = slope + P, *restrict inverse2 = inverse + P, *restrict sine = raw + P;
  for (ptrdiff_t i = 0; i < P; i++)
    angle[i] = slope2[i] * inverse2[i] * raw[i] - slope[i] * inverse[i] * sine[i];
}

/* slope += rate ((scale columns + row_length linear_gradient)^2 - slope); the sum of slope. */
static double update_slopes(float scale, const float *restrict columns, float row_length,
                            const float *restrict linear_gradient, float rate, float *restrict slope,
                            ptrdiff_t d) {
  double total = 0;
  for (ptrdiff_t j = 0; j < d; j++) {
    float v = scale * columns[j] + row_length * linear_gradient[j];
    slope[j] += rate * (v * v - slope[j]);
    total += slope[j];
  }
  return total;
}
