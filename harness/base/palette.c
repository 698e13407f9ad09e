/* The colour of each implementation. */
#include "base/palette.h"

#include <stddef.h>
#include <string.h>

const uint32_t lb_palette[LB_PALETTE_COUNT] = {0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7,
                                               0xe69f00, 0x56b4e9, 0x000000, 0x7f7f7f,
                                               0x882255, 0x332288, 0x999933, 0x44aa99};

static const struct {
    const char *impl;
    int color;
} fixed_colors[] = {{"cudnn", 1},       {"cpu_simd", 2},     {"onednn", 3},
                    {"fused", 4},       {"openblas", 6},     {"cpu_ref", 8},
                    {"pytorch", 9},     {"pytorch_cuda", 9}, {"keras", 10},
                    {"keras_cuda", 10}, {"onnxruntime", 11}, {"onnxruntime_cuda", 11},
                    {"jax", 12},        {"jax_cuda", 12}};

int lb_palette_fixed(const char *impl)
{
    for (size_t i = 0; i < sizeof(fixed_colors) / sizeof(fixed_colors[0]); i++)
        if (strcmp(impl, fixed_colors[i].impl) == 0)
            return fixed_colors[i].color;
    return 0;
}

uint32_t lb_palette_color(const char *impl)
{
    int number = lb_palette_fixed(impl);
    unsigned sum = 0;
    for (const char *at = impl; *at; at++)
        sum = sum * 31 + (unsigned char)*at;
    return lb_palette[number > 0 ? number - 1 : 4 + 2 * (int)(sum % 2)];
}
