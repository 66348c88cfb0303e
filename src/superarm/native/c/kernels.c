/* The table of one level: compiled with -DLEVEL=kernels_base, kernels_v3 or kernels_v4 and the flags of that level. */
#include "kernels.h"

#include "averaging.h"
#include "random_features.h"
#include "linear.h"
#include "sparse_steps.h"
#include "ranking.h"
#include "scaling.h"
#include "second_order.h"

const Kernels LEVEL = {
#define KERNEL(result, name, ...) .name = name,
    KERNELS
#undef KERNEL
};
