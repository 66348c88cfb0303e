/* The table of one level: compiled with -DLEVEL=vectors_base, vectors_v3 or vectors_v4 and the flags of that level. */
#include "vectors.h"

#include "averaging.h"
#include "curves.h"
#include "linear.h"
#include "pace.h"
#include "ranking.h"
#include "scaling.h"
#include "second_order.h"

const Vectors LEVEL = {
    .scores = scores,
    .axpy = axpy,
    .sparse_scores = sparse_scores,
    .all_finite = all_finite,
    .dense_add = dense_add,
    .sparse_add = sparse_add,
    .sum_squares = sum_squares,
    .standardise = standardise,
    .multiply = multiply,
    .count_clipped = count_clipped,
    .count_fast = count_fast,
    .renew = renew,
    .inverse_root = inverse_root,
    .step_average = step_average,
    .quadratic = quadratic,
    .soba_step = soba_step,
    .newtron_step = newtron_step,
    .add_difference = add_difference,
    .subtract = subtract,
    .top_positions = top_positions,
    .exp_sum = exp_sum,
    .steps = steps,
    .mix_scores = mix_scores,
    .softmax = softmax,
    .label_errors = label_errors,
    .label_pace = label_pace,
    .paced = paced,
    .project = project,
    .project_back = project_back,
    .waves = waves,
    .dot_and_keep = dot_and_keep,
    .moments = moments,
    .combine = combine,
    .angle_slopes = angle_slopes,
    .count_slopes = count_slopes,
};
