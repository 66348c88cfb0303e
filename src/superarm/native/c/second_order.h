/* Learners with a matrix beside W: SOBA and Newtron (second_order.pyx). */
#include "kernels.h"

/* z' diag(a)^-1 z */
static double quadratic(const float *restrict a, const double *restrict z, ptrdiff_t n) {
  double total = 0;
  for (ptrdiff_t j = 0; j < n; j++) {
    float v = (float)z[j];
    total += v * v / a[j];
  }
  return total;
}

/* With g = scale z:  a += P g^2,  theta -= g,  w = theta / a. */
static void soba_step(float *restrict w, float *restrict a, float *restrict theta, const double *restrict z,
                      double scale, double P, ptrdiff_t n) {
  for (ptrdiff_t j = 0; j < n; j++) {
    double g = scale * z[j];
    a[j] += (float)(P * g * g);
    theta[j] -= (float)g;
    w[j] = theta[j] / a[j];
  }
}

/* With g = c z:  a += weight g^2,  b += slope g,  w = b / a. Returns the change of |w|^2. */
static double newtron_step(float *restrict w, float *restrict a, float *restrict b, const double *restrict z,
                           double c, double weight, double slope, ptrdiff_t n) {
  double change = 0;
  for (ptrdiff_t j = 0; j < n; j++) {
    double g = c * z[j], old = w[j], new_;
    a[j] += (float)(weight * g * g);
    b[j] += (float)(slope * g);
    w[j] = b[j] / a[j];
    new_ = w[j];
    change += new_ * new_ - old * old;
  }
  return change;
}

/* u += v (a - b) */
static void add_difference(double *restrict u, double v, const double *restrict a, const double *restrict b,
                           ptrdiff_t n) {
  for (ptrdiff_t j = 0; j < n; j++) u[j] += v * (a[j] - b[j]);
}

/* a -= v u */
static void subtract(double *restrict a, double v, const double *restrict u, ptrdiff_t n) {
  for (ptrdiff_t j = 0; j < n; j++) a[j] -= v * u[j];
}
