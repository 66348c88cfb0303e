/* Loops that must be vectorised: compiled once for each level of processor into a table (kernels.c), and the table
   is chosen at import (cpu.pyx). Every pointer is restrict: whether arrays lie side by side must not change bits. */
#pragma once
#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers that Cython and Python know from here (cpu.pxd). */
#define HUGE_NUMBER 1e15f /* a number beyond it counts as it */
#define CLIP_START 5.0f   /* a standardised number up to it stays as it is ... */
#define CLIP_LIMIT 7.5f   /* ... and none gets beyond this */
#define MAX_FEATURE 5.0f  /* the largest random feature */

/* Every kernel once: what it returns, its name, its arguments (cpu.pxd has their names, for Cython). */
#define KERNELS \
  /* linear.h */ \
  KERNEL(void, scores, const float *, ptrdiff_t, ptrdiff_t, ptrdiff_t, const float *, float, float, float *) \
  KERNEL(void, axpy, float *, float, const float *, ptrdiff_t) \
  KERNEL(void, sparse_scores, const float *, ptrdiff_t, const int32_t *, const float *, ptrdiff_t, float, float *) \
  KERNEL(int, all_finite, const float *, ptrdiff_t) \
  KERNEL(void, dense_add, float *, ptrdiff_t, const ptrdiff_t *, const double *, ptrdiff_t, const float *, ptrdiff_t, \
         float, float) \
  KERNEL(void, sparse_add, float *, ptrdiff_t, ptrdiff_t, const ptrdiff_t *, const double *, ptrdiff_t, \
         const int32_t *, const float *, ptrdiff_t, float, float) \
  /* scaling.h */ \
  KERNEL(float, sum_squares, const float *, ptrdiff_t) \
  KERNEL(float, standardise, const float *, const float *, const float *, float *, ptrdiff_t, ptrdiff_t *) \
  KERNEL(void, multiply, float *, float, ptrdiff_t) \
  KERNEL(void, update_clipped, const float *, float *, float *, float *, const float *, float *, float *, \
         const float *, float, ptrdiff_t) \
  KERNEL(void, update_fast, const float *, const float *, const float *, const float *, float *, float *, float *, \
         float, ptrdiff_t) \
  KERNEL(ptrdiff_t, refresh_limits, float *, float *, float *, float *, const float *, float *, float *, float *, \
         float *, ptrdiff_t) \
  KERNEL(void, inverse_root, const float *, float *, ptrdiff_t) \
  /* averaging.h */ \
  KERNEL(void, step_and_average, float *, float *, float, const float *, float, ptrdiff_t) \
  /* second_order.h */ \
  KERNEL(double, quadratic, const float *, const double *, ptrdiff_t) \
  KERNEL(void, soba_step, float *, float *, float *, const double *, double, double, ptrdiff_t) \
  KERNEL(double, newtron_step, float *, float *, float *, const double *, double, double, double, ptrdiff_t) \
  KERNEL(void, add_difference, double *, double, const double *, const double *, ptrdiff_t) \
  KERNEL(void, subtract, double *, double, const double *, ptrdiff_t) \
  /* ranking.h */ \
  KERNEL(void, top_positions, const float *, ptrdiff_t, ptrdiff_t *, ptrdiff_t) \
  KERNEL(double, exp_sum, const float *, float, float, double *, ptrdiff_t) \
  /* averaging.h, for SetLogit */ \
  KERNEL(void, step_rows, float *, ptrdiff_t, const double *, ptrdiff_t, double, const float *, float, float, \
         ptrdiff_t) \
  KERNEL(void, mix_scores, const float *, const float *, float, float, float *, ptrdiff_t) \
  KERNEL(void, softmax, const float *, double *, float *, ptrdiff_t) \
  /* sparse_steps.h */ \
  KERNEL(double, label_errors, double *, const double *, double, double, ptrdiff_t) \
  KERNEL(double, label_step_sizes, const double *, double, double, double *, float *, ptrdiff_t) \
  KERNEL(void, adagrad_step, float *, const float *, float, float, ptrdiff_t) \
  /* random_features.h */ \
  KERNEL(void, project, const float *, ptrdiff_t, ptrdiff_t, const float *, const float *, ptrdiff_t, ptrdiff_t, \
         ptrdiff_t, float *, float *) \
  KERNEL(void, project_back, const float *, ptrdiff_t, ptrdiff_t, const float *, const float *, ptrdiff_t, ptrdiff_t, \
         ptrdiff_t, float *, float *) \
  KERNEL(float, random_features, const float *, float, const float *, const float *, float *, float *, ptrdiff_t) \
  KERNEL(float, dot_and_keep, const float *, float, float *, ptrdiff_t) \
  KERNEL(void, update_mean_var, const float *, float *, float *, float, float, ptrdiff_t) \
  KERNEL(void, weighted_row_sum, const float *, ptrdiff_t, const double *, ptrdiff_t, ptrdiff_t, float *) \
  KERNEL(void, angle_slopes, const float *, const float *, const float *, float *, ptrdiff_t) \
  KERNEL(double, update_slopes, float, const float *, float, const float *, float, float *, ptrdiff_t)

typedef struct {
#define KERNEL(result, name, ...) result (*name)(__VA_ARGS__);
  KERNELS
#undef KERNEL
} Kernels;

extern const Kernels kernels_base;
#if defined(SUPERARM_ALL_LEVELS)
#define SUPERARM_LEVELS 3
extern const Kernels kernels_v3, kernels_v4;
#else
#define kernels_v3 kernels_base
#define kernels_v4 kernels_base
#define SUPERARM_LEVELS 1
#endif
