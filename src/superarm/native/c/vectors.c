/* The table of one level: compiled with -DLEVEL=vectors_base, vectors_v3 or vectors_v4 and the flags of that level. */
#include "vectors.h"

#include "averaging.h"
#include "linear.h"
#include "scaling.h"
#include "second_order.h"

const Vectors LEVEL = {
    .scores = scores,
    .axpy = axpy,
    .sparse_scores = sparse_scores,
    .all_finite = all_finite,
    .sum_squares = sum_squares,
    .standardise = standardise,
    .multiply = multiply,
    .count_in = count_in,
    .inverse_root = inverse_root,
    .step_average = step_average,
    .quadratic = quadratic,
    .soba_step = soba_step,
    .newtron_step = newtron_step,
    .add_difference = add_difference,
    .subtract = subtract,
};
