/* The paths that a launch of a fused kernel takes. */
#include "paths.h"

#include <stdio.h>

static void path(const char *kernel, bool taken, const char *name)
{
    if (taken)
        printf("%s: %s\n", kernel, name);
}

/* One of three paths, by how often a loop runs. */
static void repeats(const char *kernel, int count, const char *what)
{
    const char *times = count == 1 ? "1" : count == 2 ? "2" : "3 or more";
    printf("%s: %s %s\n", kernel, times, what);
}

static int round_up_div(int value, int unit)
{
    return (value + unit - 1) / unit;
}

static void print_common(const char *kernel, const struct path_shape *s, bool backward)
{
    path(kernel, true, "it runs");
    path(kernel, s->ragged, "rows of different lengths");
    path(kernel, s->directions == 2, "two directions");
    path(kernel, !backward && s->train, "gates and cells are stored");
    path(kernel, !backward && !s->train, "no gates are stored");
}

/* The paths of `rows` batch rows in tiles of `columns`. */
static void print_columns(const char *kernel, int rows, int columns)
{
    int last = rows % columns == 0 ? columns : rows % columns;
    path(kernel, rows >= columns, "all columns of a tile are rows");
    path(kernel, last < columns, "columns without a row");
    path(kernel, columns > 8 && last <= 8, "eight columns without a row");
    path(kernel, last % 4 != 0, "a message of four columns that is not full");
    path(kernel, last % 2 != 0, "a message of two columns that is not full");
}

/* ---- Families ---------------------------------------------------------------------------------
 */

void print_cluster_paths(const struct lb_cluster_tile *tile, enum lb_dtype dtype, bool backward,
                         const struct path_shape *shape)
{
    char kernel[96];
    int units = lb_cluster_reach(tile);
    snprintf(kernel, sizeof(kernel), "cluster %s %s %dx%dx%dx%dx%d",
             backward ? "backward" : "forward", lb_dtype_name(dtype), tile->blocks, tile->warps,
             tile->split, tile->resident, tile->columns);
    print_common(kernel, shape, backward);
    path(kernel, shape->cut, "a part of the steps");
    print_columns(kernel, shape->batch, tile->columns);
    path(kernel, shape->batch > tile->columns, "several clusters");
    path(kernel, shape->hidden == units, "all units of a tile");
    path(kernel, shape->hidden < units, "units of padding");
    path(kernel, shape->hidden % 4 != 0, "a warp with units of padding");
    path(kernel, shape->hidden <= units - 4 * tile->warps, "a block without units");
}

static void print_grid_forward(const char *kernel, const struct lb_grid_kernel *k, int hidden)
{
    const struct lb_grid_tile *t = &k->tile;
    int deep = lb_grid_deep(k->math), units = lb_grid_blocks(t, hidden) * t->units;
    int packets = round_up_div(units, deep), each = round_up_div(packets, t->warps);
    repeats(kernel, each, "packets per warp");
    path(kernel, packets % t->warps != 0, "a warp with a packet less");
    path(kernel, packets < t->warps, "a warp without packets");
    path(kernel, units % deep != 0, "a packet that is not full");
    path(kernel, 2 * each * (t->units / 4) > t->resident, "weights in shared memory");
}

static void print_grid_backward(const char *kernel, const struct lb_grid_kernel *k, int hidden)
{
    const struct lb_grid_tile *t = &k->tile;
    int blocks = lb_grid_blocks(t, hidden), quads = t->units * t->columns / 4;
    int window = 8 * (32 * t->warps / quads); /* blocks that all threads read at the same time */
    int row_tiles = round_up_div(blocks * t->units, 16), each = round_up_div(row_tiles, t->warps);
    int packets = 4 * t->units / lb_grid_deep(k->math);
    repeats(kernel, round_up_div(blocks, window), "windows of blocks");
    path(kernel, blocks % window != 0, "a window that is not full");
    repeats(kernel, each, "row tiles per warp");
    path(kernel, t->columns == 8 && k->math != LB_GRID_F32 && each % 2 == 1,
         "a pair of row tiles of which one is padding");
    path(kernel, k->split.chunks > 1 && blocks > window,
         "a window of blocks that is not requested early");
    path(kernel, row_tiles % t->warps != 0, "a warp with a row tile less");
    path(kernel, row_tiles < t->warps, "a warp without row tiles");
    path(kernel, blocks * t->units % 16 != 0, "a row tile that is not full");
    path(kernel, 2 * each * packets > t->resident, "weights in shared memory");
}

void print_grid_paths(const struct lb_grid_kernel *k, const struct path_shape *shape)
{
    static const char *const maths[] = {"f16", "bf16", "tf32", "f32"};
    char kernel[96];
    const struct lb_grid_tile *t = &k->tile;
    int chunks = k->split.chunks;
    snprintf(kernel, sizeof(kernel), "grid %s %s %dx%dx%dx%dx%d",
             k->backward ? "backward" : "forward", maths[k->math], t->units, t->warps, t->packets,
             t->resident, t->columns);
    print_common(kernel, shape, k->backward);
    path(kernel, shape->cut, "a part of the steps");
    print_columns(kernel, k->split.rows, t->columns);
    path(kernel, chunks == 1, "1 chunk");
    path(kernel, chunks == 2 || chunks == 3, "2 or 3 chunks");
    path(kernel, chunks > 3, "4 chunks or more");
    path(kernel, k->split.groups > 1, "several groups");
    path(kernel, shape->batch % k->split.rows != 0, "a group with fewer rows");
    path(kernel, shape->hidden % t->units != 0, "a block with units of padding");
    path(kernel, shape->directions == 2 && !k->beside, "one direction after the other");
    if (k->backward)
        print_grid_backward(kernel, k, shape->hidden);
    else
        print_grid_forward(kernel, k, shape->hidden);
}

void print_step_paths(const struct lb_step_tile *tile, enum lb_dtype dtype, enum lb_math math,
                      bool backward, const struct path_shape *shape)
{
    char kernel[96];
    int units = lb_step_units(tile, backward), slice = 64 * tile->split;
    int row = shape->hidden * (backward ? 4 : 1) * (int)lb_dtype_size(dtype);
    int slices = round_up_div(row, slice), most = round_up_div(slices, tile->blocks);
    int last = (shape->batch - 1) % tile->columns + 1; /* batch rows of the last tile of rows */
    snprintf(kernel, sizeof(kernel), "step %s %s %dx%dx%dx%d", backward ? "backward" : "forward",
             dtype == LB_F32 && math != LB_IEEE ? "tf32" : lb_dtype_name(dtype), tile->row_tiles,
             tile->columns, tile->split, tile->blocks);
    print_common(kernel, shape, backward);
    path(kernel, shape->batch >= tile->columns, "all columns of a tile are rows");
    path(kernel, shape->batch % tile->columns != 0, "columns without a row");
    path(kernel, shape->batch > tile->columns, "several tiles of rows");
    path(kernel, shape->hidden > units, "several blocks of units");
    path(kernel, shape->hidden % units != 0, "a block with units of padding");
    path(kernel, most < LB_STEP_STAGES, "fewer slices than buffers");
    path(kernel, most > LB_STEP_STAGES, "more slices than buffers");
    path(kernel, slices % most != 0, "a block of a cluster with fewer slices");
    path(kernel, slices <= most * (tile->blocks - 1), "a block of a cluster without slices");
    path(kernel, last % tile->blocks != 0, "a block of a cluster with a column less");
    path(kernel, last < tile->blocks, "a block of a cluster without columns");
    path(kernel, row % slice != 0, "a slice that is not full");
    path(kernel, row % 16 == 0, "rows copied by 16 bytes");
    path(kernel, row % 16 != 0, "rows copied by elements");
}
