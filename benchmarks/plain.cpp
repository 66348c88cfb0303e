// MC-DBF (ordered), dense, as one would write it in plain C++: the yardstick for the fused loop.
// Compiled by benchmarks/speed.py with: -O3 -march=native -ffast-math
#include <cmath>
#include <cstdint>
#include <vector>

static inline uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

static inline double uniform(uint64_t seed, uint64_t t, uint64_t i) {
  const uint64_t golden = 0x9E3779B97F4A7C15ull;
  uint64_t z = mix(seed * golden + golden);
  z = mix(z + t * golden + golden);
  z = mix(z + i * golden + golden);
  return (z >> 11) * (1.0 / 9007199254740992.0);
}

// W is k x d, zero at first; returns the number of rounds with a wrong top label.
extern "C" long mcdbf(float *W, const float *X, const long *y, long T, int k, int d, int m,
                      double gamma) {
  std::vector<float> s(k);
  std::vector<int> top(m), pool(m), drawn(m);
  const double a = (1 - gamma) / m + gamma / k, b = gamma / k;
  double tau1 = m;
  for (int i = 0; i < m - 1; i++) tau1 *= k - 2 - i;
  long errors = 0;
  for (long t = 0; t < T; t++) {
    const float *x = X + t * d;
    for (int r = 0; r < k; r++) {
      float sum = 0;
      for (int j = 0; j < d; j++) sum += W[(long)r * d + j] * x[j];
      s[r] = sum;
    }
    int filled = 0;
    for (int r = 0; r < k; r++) {
      int i;
      if (filled == m) {
        if (!(s[r] > s[top[m - 1]])) continue;
        i = m - 1;
      } else {
        i = filled++;
      }
      for (; i > 0 && s[r] > s[top[i - 1]]; i--) top[i] = top[i - 1];
      top[i] = r;
    }
    pool = top;
    double z = 1;
    int inside = 0, outside = 0;
    for (int i = 0; i < m; i++) {
      const double in = (m - inside) * a, rest = in + (k - m - outside) * b;
      const double point = uniform(0, t, i) * rest;
      if (point < in) {
        const int at = std::min((int)(point / a), m - inside - 1);
        drawn[i] = pool[at];
        inside++;
        pool[at] = pool[m - inside];
        z *= a / rest;
      } else {
        int skip = std::min((int)((point - in) / b), k - m - outside - 1);
        for (int r = 0; r < k; r++) {
          bool used = false;
          for (int l = 0; l < m; l++) used |= top[l] == r;
          for (int l = 0; l < i; l++) used |= drawn[l] == r;
          if (!used && skip-- == 0) {
            drawn[i] = r;
            break;
          }
        }
        outside++;
        z *= b / rest;
      }
    }
    errors += top[0] != y[t];
    bool hit = false;
    for (int i = 0; i < m; i++) hit |= drawn[i] == y[t];
    const double weight = hit ? 1 / (z * tau1) : 0;
    for (int i = 0; i < m; i++) {
      bool in = false;
      for (int l = 0; l < m; l++) in |= drawn[l] == top[i];
      const float c = (in ? weight : 0) - 1.0 / m;
      for (int j = 0; j < d; j++) W[(long)top[i] * d + j] += c * x[j];
    }
    if (hit)
      for (int i = 0; i < m; i++) {
        bool in = false;
        for (int l = 0; l < m; l++) in |= top[l] == drawn[i];
        if (!in)
          for (int j = 0; j < d; j++) W[(long)drawn[i] * d + j] += (float)weight * x[j];
      }
  }
  return errors;
}
