/* Loops that must be vectorised: compiled once for each level of processor into a table (vectors.c), and the table
   is chosen at import (cpu.pyx). Every pointer is restrict: whether arrays lie side by side must not change bits. */
#pragma once
#include <math.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
  /* linear.h */
  void (*scores)(const float *, ptrdiff_t, ptrdiff_t, ptrdiff_t, const float *, float, float, float *);
  void (*axpy)(float *, float, const float *, ptrdiff_t);
  void (*sparse_scores)(const float *, ptrdiff_t, const int32_t *, const float *, ptrdiff_t, float, float *);
  int (*all_finite)(const float *, ptrdiff_t);
  void (*dense_add)(float *, ptrdiff_t, const ptrdiff_t *, const double *, ptrdiff_t, const float *, ptrdiff_t, float,
                    float);
  void (*sparse_add)(float *, ptrdiff_t, ptrdiff_t, const ptrdiff_t *, const double *, ptrdiff_t, const int32_t *,
                     const float *, ptrdiff_t, float, float);
  /* scaling.h */
  float (*sum_squares)(const float *, ptrdiff_t);
  float (*standardise)(const float *, const float *, const float *, float *, ptrdiff_t, ptrdiff_t *);
  void (*multiply)(float *, float, ptrdiff_t);
  void (*count_clipped)(const float *, float *, float *, float *, const float *, float *, float *, const float *, float,
                        ptrdiff_t);
  void (*count_fast)(const float *, const float *, const float *, const float *, float *, float *, float *, float,
                     ptrdiff_t);
  ptrdiff_t (*renew)(float *, float *, float *, float *, const float *, float *, float *, float *, float *, ptrdiff_t);
  void (*inverse_root)(const float *, float *, ptrdiff_t);
  /* averaging.h */
  void (*step_average)(float *, float *, float, const float *, float, ptrdiff_t);
  /* second_order.h */
  double (*quadratic)(const float *, const double *, ptrdiff_t);
  void (*soba_step)(float *, float *, float *, const double *, double, double, ptrdiff_t);
  double (*newtron_step)(float *, float *, float *, const double *, double, double, double, ptrdiff_t);
  void (*add_difference)(double *, double, const double *, const double *, ptrdiff_t);
  void (*subtract)(double *, double, const double *, ptrdiff_t);
  /* ranking.h */
  void (*top_positions)(const float *, ptrdiff_t, ptrdiff_t *, ptrdiff_t);
  double (*exp_sum)(const float *, float, float, double *, ptrdiff_t);
  /* setlogit: averaging.h */
  void (*steps)(float *, ptrdiff_t, const double *, ptrdiff_t, double, const float *, float, float, ptrdiff_t);
  void (*mix_scores)(const float *, const float *, float, float, float *, ptrdiff_t);
  void (*softmax)(const float *, double *, float *, ptrdiff_t);
  /* pace.h */
  double (*label_errors)(double *, const double *, double, double, ptrdiff_t);
  double (*label_pace)(const double *, double, double, double *, float *, ptrdiff_t);
  void (*paced)(float *, const float *, float, float, ptrdiff_t);
  /* curves.h */
  void (*project)(const float *, ptrdiff_t, ptrdiff_t, const float *, const float *, ptrdiff_t, ptrdiff_t, ptrdiff_t,
                  float *, float *);
  void (*project_back)(const float *, ptrdiff_t, ptrdiff_t, const float *, const float *, ptrdiff_t, ptrdiff_t,
                       ptrdiff_t, float *, float *);
  float (*waves)(const float *, float, const float *, const float *, float *, float *, ptrdiff_t);
  float (*dot_and_keep)(const float *, float, float *, ptrdiff_t);
  void (*moments)(const float *, float *, float *, float, float, ptrdiff_t);
  void (*combine)(const float *, ptrdiff_t, const double *, ptrdiff_t, ptrdiff_t, float *);
  void (*angle_slopes)(const float *, const float *, const float *, float *, ptrdiff_t);
  double (*count_slopes)(float, const float *, float, const float *, float, float *, ptrdiff_t);
  /* end of setlogit */
} Vectors;

extern const Vectors vectors_base;
#if defined(SUPERARM_ALL_LEVELS)
#define SUPERARM_LEVELS 3
extern const Vectors vectors_v3, vectors_v4;
#else
#define vectors_v3 vectors_base
#define vectors_v4 vectors_base
#define SUPERARM_LEVELS 1
#endif
