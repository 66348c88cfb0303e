/* Scores to ranks (rule.pyx, leave_out.pyx). */
#include "kernels.h"

/* above[i]: how many of v are larger than v[i]; all at once, and without a branch to guess. */
static inline void count_above(const float *restrict v, int32_t *restrict above, const int lanes) {
  for (int i = 0; i < lanes; i++) {
    int32_t larger = 0;
    for (int j = 0; j < lanes; j++) larger += v[j] > v[i];
    above[i] = larger;
  }
}

/* One best after the other. */
static inline void select_few(const float *restrict s, ptrdiff_t n, ptrdiff_t *restrict top, ptrdiff_t m) {
  float v[80];
  for (ptrdiff_t i = 0; i < n; i++) v[i] = s[i];
  for (ptrdiff_t r = 0; r < m; r++) {
    float best = v[0];
    ptrdiff_t at = 0;
    for (ptrdiff_t i = 1; i < n; i++) {
      const int better = v[i] > best;
      best = better ? v[i] : best;
      at = better ? i : at;
    }
    top[r] = at;
    v[at] = -INFINITY;
  }
}

/* Up to 16 or 32 scores of which no two are equal; else it returns 0. */
static inline int rank_few(const float *restrict s, ptrdiff_t n, ptrdiff_t *restrict top, ptrdiff_t m,
                           const int lanes) {
  float v[32];
  int32_t rank[32] = {0};
  ptrdiff_t at[32];
  uint32_t taken = 0;
  for (int i = 0; i < lanes; i++) v[i] = i < n ? s[i] : -INFINITY;
  count_above(v, rank, lanes);
  for (int i = 0; i < n; i++) {
    at[rank[i]] = i;
    taken |= (uint32_t)1 << rank[i];
  }
  if (taken != UINT32_MAX >> (32 - n)) return 0;
  for (int i = 0; i < m; i++) top[i] = at[i];
  return 1;
}

/* No more than the m-th best: that of the best of each of 16 columns. Scores below it need not be looked at. */
static inline float bound_below(const float *restrict s, ptrdiff_t n, ptrdiff_t m) {
  float best[16], found = INFINITY;
  int32_t above[16];
  for (int i = 0; i < 16; i++) best[i] = s[i];
  for (ptrdiff_t p = 16; p + 16 <= n; p += 16)
    for (int i = 0; i < 16; i++) best[i] = s[p + i] > best[i] ? s[p + i] : best[i];
  count_above(best, above, 16);
  for (int i = 0; i < 16; i++) found = above[i] < m && best[i] < found ? best[i] : found;
  return found;
}

/* The positions of the best m of n scores, best first; ties: first wins. */
static void top_positions(const float *restrict s, ptrdiff_t n, ptrdiff_t *restrict top, ptrdiff_t m) {
  if (m > 1 && n <= 32 && (n <= 16 ? rank_few(s, n, top, m, 16) : rank_few(s, n, top, m, 32))) return;
  if (n <= 32 || n * m <= 80) {
    select_few(s, n, top, m);
    return;
  }
  float least = m <= 16 ? bound_below(s, n, m) : -INFINITY;
  ptrdiff_t filled = 0;
  for (ptrdiff_t p = 0; p < n; p += 16) {
    const ptrdiff_t stop = p + 16 < n ? p + 16 : n;
    if (p + 16 <= n) {
      int any = 0;
      for (int i = 0; i < 16; i++) any |= s[p + i] >= least;
      if (!any) continue;
    }
    for (ptrdiff_t q = p; q < stop; q++) {
      if (!(s[q] >= least)) continue;
      ptrdiff_t i = filled;
      if (filled < m)
        filled++;
      else if (s[q] > s[top[m - 1]])
        i = m - 1;
      else
        continue;
      for (; i > 0 && s[q] > s[top[i - 1]]; i--) top[i] = top[i - 1];
      top[i] = q;
      if (filled == m) least = s[top[m - 1]];
    }
  }
}
