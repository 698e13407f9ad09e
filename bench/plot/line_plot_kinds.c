/* The table of line pictures: time per step, ratios of passes and precisions, memory. */
#include "plot/line_plot_kinds.h"

#include <math.h>
#include <string.h>

static const struct lb_value nothing = {(double)NAN, (double)NAN, (double)NAN, 1, (double)NAN};

static bool take_time(const struct lb_row_index *index, const struct lb_row *row,
                      struct lb_value *value)
{
    (void)index;
    *value = nothing;
    value->divisor = (double)row->c.problem.seq_len;
    value->lower_bound = row->floor_ns;
    if (lb_row_is_timed(row)) {
        value->value = row->median_ns;
        value->lo = row->median_lo_ns;
        value->hi = row->median_hi_ns;
    }
    return true;
}

/* Computes the ratio of two times, with the widest interval that their two intervals allow. */
static bool take_ratio(const struct lb_row *above, const struct lb_row *below,
                       struct lb_value *value)
{
    *value = nothing;
    if (above && below && lb_row_is_timed(above) && lb_row_is_timed(below)) {
        value->value = above->median_ns / below->median_ns;
        value->lo = above->median_lo_ns / below->median_hi_ns;
        value->hi = above->median_hi_ns / below->median_lo_ns;
    }
    return true;
}

/* Computes the time of training divided by that of inference. The row is the training case. */
static bool take_training(const struct lb_row_index *index, const struct lb_row *row,
                          struct lb_value *value)
{
    struct lb_case c = row->c;
    c.problem.pass = LB_INFER;
    return row->c.problem.pass == LB_TRAIN &&
           take_ratio(row, lb_row_index_find(index, &c, row), value);
}

/* Computes the time in f32 divided by that in the row's own precision. */
static bool take_precision(const struct lb_row_index *index, const struct lb_row *row,
                           struct lb_value *value)
{
    struct lb_case c = row->c;
    c.problem.dtype = LB_F32;
    c.problem.math = LB_IEEE;
    if (row->c.problem.dtype == LB_F32 && row->c.problem.math == LB_IEEE)
        return false;
    return take_ratio(lb_row_index_find(index, &c, row), row, value);
}

static bool take_memory(const struct lb_row_index *index, const struct lb_row *row,
                        struct lb_value *value)
{
    (void)index;
    *value = nothing;
    if (row->verdict == LB_VERDICT_OK && row->peak_bytes > 0)
        value->value = row->peak_bytes;
    return true;
}

#define TIME_READING                                                                         \
    "Lower is better. The median time of a call divided by T; bars show its 95 % interval. " \
    "A gap is a case without a time."
#define TIME_COLUMNS "median_ns median_lo_ns median_hi_ns case steps lower_bound_ns"

static const struct lb_measure measures[] = {
    {"time-t", LB_PLOT_AXIS_T, "time per step over", TIME_READING, TIME_COLUMNS, "time per step",
     "no implementation has times", LB_PLOT_TIME, take_time},
    {"time-b", LB_PLOT_AXIS_B, "time per step over", TIME_READING, TIME_COLUMNS, "time per step",
     "no implementation has times", LB_PLOT_TIME, take_time},
    {"time-h", LB_PLOT_AXIS_H, "time per step over", TIME_READING, TIME_COLUMNS, "time per step",
     "no implementation has times", LB_PLOT_TIME, take_time},
    {"training", LB_PLOT_AXIS_H, "training time relative to inference, over",
     "Lower is better. The median of a training call divided by that of inference of the same "
     "implementation; bars show the widest interval that both allow.",
     "ratio ratio_lo ratio_hi case 1 nan", "training / inference",
     "no implementation has times for both passes", LB_PLOT_RATIO, take_training},
    {"precision", LB_PLOT_AXIS_H, "speed-up over f32, over",
     "Higher is better. The median in f32 divided by that in this precision, for the same "
     "implementation; bars show the widest interval that both allow.",
     "ratio ratio_lo ratio_hi case 1 nan", "f32 / this precision",
     "no implementation has times in f32 and another precision", LB_PLOT_RATIO, take_precision},
    {"memory", LB_PLOT_AXIS_H, "peak memory over",
     "Lower is better. The most memory that the case used at a time: tensors, packed weights, "
     "reserve and workspace.",
     "peak_bytes nan nan case 1 nan", "peak memory",
     "no implementation has a recorded peak of memory", LB_PLOT_BYTES, take_memory},
};

const struct lb_measure *lb_measure_find(const char *kind)
{
    for (size_t i = 0; i < sizeof(measures) / sizeof(measures[0]); i++)
        if (strcmp(measures[i].kind, kind) == 0)
            return &measures[i];
    return NULL;
}
