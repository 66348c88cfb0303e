/* The tables of vectorised loops, one for each level of processor that was built (cpu.pxd). Every pointer is restrict:
   whether arrays lie side by side must not change bits. */
#pragma once
#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers that Cython and Python know from here (cpu.pyx, scaling.pyx). */
#define HUGE_NUMBER 1e15f /* a number beyond it counts as it */
#define CLIP_START 5.0f   /* a standardised number up to it stays as it is ... */
#define CLIP_LIMIT 7.5f   /* ... and none gets beyond this */
#define MAX_FEATURE 5.0f  /* the largest random feature */

struct Kernels; /* cpu.pxd */
extern const struct Kernels kernels_base;
#if defined(SUPERARM_ALL_LEVELS)
#define SUPERARM_LEVELS 3
extern const struct Kernels kernels_v3, kernels_v4;
#else
#define kernels_v3 kernels_base
#define kernels_v4 kernels_base
#define SUPERARM_LEVELS 1
#endif
