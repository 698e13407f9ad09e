/* AMX's tile instructions in plain C. */
#include "tests/impls/amx_model.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TILES = 8, MAX_ROWS = 16, MAX_BYTES = 64 };

static _Thread_local struct tile {
    size_t rows, bytes; /* 0: not configured */
    unsigned char data[MAX_ROWS][MAX_BYTES];
} tiles[TILES];

static atomic_size_t dot_count;

void (*amx_model_watch)(char instruction);

static void tell(char instruction)
{
    if (amx_model_watch)
        amx_model_watch(instruction);
}

static void refuse(const char *instruction, const char *why)
{
    fprintf(stderr, "AMX model: %s raises an exception: %s\n", instruction, why);
    abort();
}

void amx_model_config(const void *config)
{
    const unsigned char *bytes = config;
    tell('C');
    if (bytes[0] != 1)
        refuse("ldtilecfg", "the palette is not 1");
    for (size_t i = 1; i < 16; i++)
        if (bytes[i] != 0)
            refuse("ldtilecfg", "a reserved byte, or the start row, is not 0");
    memset(tiles, 0, sizeof(tiles));
    for (size_t i = 0; i < TILES; i++) {
        uint16_t row_bytes;
        memcpy(&row_bytes, bytes + 16 + 2 * i, sizeof(row_bytes));
        tiles[i].bytes = row_bytes;
        tiles[i].rows = bytes[48 + i];
        if (tiles[i].bytes > MAX_BYTES || tiles[i].rows > MAX_ROWS)
            refuse("ldtilecfg", "a tile has more than 16 rows or 64 bytes per row");
        if ((tiles[i].bytes == 0) != (tiles[i].rows == 0))
            refuse("ldtilecfg", "only one of rows and bytes per row is 0");
    }
}

void amx_model_release(void)
{
    memset(tiles, 0, sizeof(tiles));
}

static struct tile *configured(int tile, const char *instruction)
{
    if (tile < 0 || tile >= TILES || tiles[tile].rows == 0)
        refuse(instruction, "the tile is not configured");
    return &tiles[tile];
}

void amx_model_load(int tile, const void *base, size_t stride, char instruction)
{
    struct tile *t = configured(tile, "tileloadd");
    tell(instruction);
    memset(t->data, 0, sizeof(t->data));
    for (size_t r = 0; r < t->rows; r++)
        memcpy(t->data[r], (const char *)base + r * stride, t->bytes);
}

void amx_model_store(int tile, void *base, size_t stride)
{
    const struct tile *t = configured(tile, "tilestored");
    tell('W');
    for (size_t r = 0; r < t->rows; r++)
        memcpy((char *)base + r * stride, t->data[r], t->bytes);
}

enum { MAX_HALVES = MAX_BYTES / 2 };

/* The rows of a tile as numbers. */
static void widen(enum lb_dtype dtype, const struct tile *t, float to[MAX_ROWS][MAX_HALVES])
{
    for (size_t r = 0; r < t->rows; r++) {
        double values[MAX_HALVES];
        lb_load(dtype, t->data[r], values, t->bytes / 2);
        for (size_t i = 0; i < t->bytes / 2; i++)
            to[r][i] = (float)values[i];
    }
}

/* sums += left right for fours of int8. */
static void dot_int8(struct tile *sums, const struct tile *left, const struct tile *right)
{
    for (size_t m = 0; m < sums->rows; m++)
        for (size_t n = 0; n < sums->bytes / 4; n++) {
            int32_t sum;
            memcpy(&sum, sums->data[m] + 4 * n, sizeof(sum));
            for (size_t k = 0; k < left->bytes; k++)
                sum += (int8_t)left->data[m][k] * (int8_t)right->data[k / 4][4 * n + k % 4];
            memcpy(sums->data[m] + 4 * n, &sum, sizeof(sum));
        }
}

void amx_model_dot(enum lb_dtype dtype, int c, int a, int b)
{
    struct tile *sums = configured(c, "tdp");
    const struct tile *left = configured(a, "tdp"), *right = configured(b, "tdp");
    float l[MAX_ROWS][MAX_HALVES], r[MAX_ROWS][MAX_HALVES];
    if (c == a || c == b || a == b)
        refuse("tdp", "two operands are the same tile");
    tell('D');
    if (sums->rows != left->rows || sums->bytes != right->bytes || left->bytes / 4 != right->rows)
        refuse("tdp", "the shapes of the tiles don't match");
    atomic_fetch_add(&dot_count, 1);
    if (dtype == LB_INT8) {
        dot_int8(sums, left, right);
        return;
    }
    widen(dtype, left, l);
    widen(dtype, right, r);
    for (size_t m = 0; m < sums->rows; m++)
        for (size_t n = 0; n < sums->bytes / 4; n++) {
            float sum;
            memcpy(&sum, sums->data[m] + 4 * n, sizeof(sum));
            for (size_t k = 0; k < left->bytes / 2; k++)
                sum += l[m][k] * r[k / 2][2 * n + k % 2];
            memcpy(sums->data[m] + 4 * n, &sum, sizeof(sum));
        }
}

size_t amx_model_dot_count(void)
{
    return atomic_load(&dot_count);
}
