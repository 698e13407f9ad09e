/* What the kinds of line pictures show: time a step, ratios of passes and precisions, memory. */
#include "plot/line_kinds.h"

#include <math.h>
#include <string.h>

static const struct lb_value nothing = {(double)NAN, (double)NAN, (double)NAN, 1, (double)NAN};

static bool take_time(const struct lb_row_index *index, const struct lb_row *row,
                      struct lb_value *value)
{
    (void)index;
    *value = nothing;
    value->divisor = (double)row->c.problem.seq_len;
    value->floor = row->floor_ns;
    if (lb_row_is_timed(row)) {
        value->value = row->median_ns;
        value->lo = row->median_lo_ns;
        value->hi = row->median_hi_ns;
    }
    return true;
}

/* The quotient of two times, and the widest that their intervals allow. */
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

/* Training over inference; the row is that of training. */
static bool take_training(const struct lb_row_index *index, const struct lb_row *row,
                          struct lb_value *value)
{
    struct lb_case c = row->c;
    c.problem.pass = LB_INFER;
    return row->c.problem.pass == LB_TRAIN && take_ratio(row, lb_row_index_find(index, &c), value);
}

/* f32 over the row's own precision. */
static bool take_precision(const struct lb_row_index *index, const struct lb_row *row,
                           struct lb_value *value)
{
    struct lb_case c = row->c;
    c.problem.dtype = LB_F32;
    c.problem.math = LB_IEEE;
    if (row->c.problem.dtype == LB_F32 && row->c.problem.math == LB_IEEE)
        return false;
    return take_ratio(lb_row_index_find(index, &c), row, value);
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

#define TIME_READING                                                                        \
    "Lower is better. Median time of a call over its T steps; bars are its 95 % interval. " \
    "A gap is a case without a time."
#define TIME_COLUMNS "median_ns median_lo_ns median_hi_ns case steps floor_ns"

static const struct lb_measure measures[] = {
    {"time-t", LB_PLOT_AXIS_T, "time a step over", TIME_READING, TIME_COLUMNS, "time a step",
     "no implementation has times", LB_PLOT_TIME, take_time},
    {"time-b", LB_PLOT_AXIS_B, "time a step over", TIME_READING, TIME_COLUMNS, "time a step",
     "no implementation has times", LB_PLOT_TIME, take_time},
    {"time-h", LB_PLOT_AXIS_H, "time a step over", TIME_READING, TIME_COLUMNS, "time a step",
     "no implementation has times", LB_PLOT_TIME, take_time},
    {"training", LB_PLOT_AXIS_H, "time over that of inference, over",
     "Lower is better. Median of a training call over that of inference, of the same "
     "implementation; bars are the widest that both intervals allow.",
     "ratio ratio_lo ratio_hi case 1 nan", "training / inference",
     "no implementation has times of both passes", LB_PLOT_RATIO, take_training},
    {"precision", LB_PLOT_AXIS_H, "speed-up over f32, over",
     "Higher is better. Median in f32 over that in this precision, of the same implementation; "
     "bars are the widest that both intervals allow.",
     "ratio ratio_lo ratio_hi case 1 nan", "f32 / this precision",
     "no implementation has times in f32 and another precision", LB_PLOT_RATIO, take_precision},
    {"memory", LB_PLOT_AXIS_H, "peak memory over",
     "Lower is better. Most memory in use by the case: tensors, packed weights, reserve, "
     "workspace.",
     "peak_bytes nan nan case 1 nan", "peak memory", "no implementation has its memory recorded",
     LB_PLOT_BYTES, take_memory},
};

const struct lb_measure *lb_measure_find(const char *kind)
{
    for (size_t i = 0; i < sizeof(measures) / sizeof(measures[0]); i++)
        if (strcmp(measures[i].kind, kind) == 0)
            return &measures[i];
    return NULL;
}
