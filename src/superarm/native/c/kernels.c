/* The table of one level: compiled with -DLEVEL=kernels_base, kernels_v3 or kernels_v4 and the flags of that level. */
#include "cpu.h" /* made by Cython from cpu.pxd */
#include "kernels.h"

#include "averaging.h"
#include "exponentials.h"
#include "linear.h"
#include "random_features.h"
#include "ranking.h"
#include "scaling.h"
#include "second_order.h"
#include "sparse_steps.h"

const struct Kernels LEVEL = {
    /* linear.h */
    .scores = scores, .axpy = axpy, .sparse_scores = sparse_scores, .all_finite = all_finite,
    .dense_add = dense_add, .sparse_add = sparse_add,
    /* scaling.h */
    .sum_squares = sum_squares, .standardise = standardise, .multiply = multiply,
    .update_clipped = update_clipped, .update_fast = update_fast, .refresh_limits = refresh_limits,
    .inverse_root = inverse_root,
    /* second_order.h */
    .quadratic = quadratic, .soba_step = soba_step, .newtron_step = newtron_step,
    .add_difference = add_difference, .subtract = subtract,
    /* ranking.h */
    .top_positions = top_positions,
    /* averaging.h */
    .step_and_average = step_and_average, .step_rows = step_rows, .mix_scores = mix_scores,
    /* exponentials.h */
    .softmax = softmax, .exp_sum = exp_sum,
    /* sparse_steps.h */
    .label_errors = label_errors, .label_step_sizes = label_step_sizes, .adagrad_step = adagrad_step,
    /* random_features.h */
    .project = project, .project_back = project_back, .random_features = random_features,
    .dot_and_keep = dot_and_keep, .update_mean_var = update_mean_var, .weighted_row_sum = weighted_row_sum,
    .angle_slopes = angle_slopes, .update_slopes = update_slopes,
};
