/* Layouts of packed weights. */
#include "cuda/fused/common/weight_layout.h"

struct lb_weight_layout lb_weight_layout_begin(int64_t hidden, int64_t columns)
{
    struct lb_weight_layout layout = {
        .hidden = (uint32_t)hidden, .columns = (uint32_t)columns, .elements = 1};
    for (int d = 0; d < LB_WEIGHT_DIGITS; d++) /* a digit that is not used is always zero */
        layout.digit[d].count = 1;
    return layout;
}

void lb_weight_layout_add(struct lb_weight_layout *layout, int64_t count, int64_t gate,
                          int64_t unit, int64_t from)
{
    int32_t shift = 0;
    while (shift < 31 && (int64_t)1 << shift < count)
        shift++;
    layout->digit[layout->digits++] = (struct lb_weight_digit){
        .count = (uint32_t)count,
        .shift = (int64_t)1 << shift == count ? shift : -1,
        .gate = (uint32_t)gate,
        .unit = (uint32_t)unit,
        .from = (uint32_t)from,
    };
    layout->elements *= (uint64_t)count;
}

struct lb_weight_layout lb_weight_layout_by_unit(int64_t hidden, int64_t columns)
{
    struct lb_weight_layout layout = lb_weight_layout_begin(hidden, columns);
    lb_weight_layout_add(&layout, columns, 0, 0, 1);
    lb_weight_layout_add(&layout, 4, 1, 0, 0);
    lb_weight_layout_add(&layout, hidden, 0, 1, 0);
    return layout;
}
