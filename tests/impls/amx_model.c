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

enum { COLUMNS = MAX_BYTES / 4 /* of 32 bits */ };

/* sums += left right for pairs of halves. The sums of a row are taken side by side, each in the
 * order of its terms; those of columns that a tile lacks are of no use. */
static void dot_halves(enum lb_dtype dtype, struct tile *sums, const struct tile *left,
                       const struct tile *right)
{
    enum { TERMS = MAX_BYTES / 2 };
    double row[TERMS];
    float terms[TERMS][COLUMNS];
    for (size_t k = 0; k < right->rows; k++) {
        lb_load(dtype, right->data[k], row, TERMS);
        for (size_t i = 0; i < TERMS; i++)
            terms[2 * k + i % 2][i / 2] = (float)row[i];
    }
    for (size_t m = 0; m < sums->rows; m++) {
        float sum[COLUMNS];
        lb_load(dtype, left->data[m], row, TERMS);
        memcpy(sum, sums->data[m], sizeof(sum));
        for (size_t k = 0; k < left->bytes / 2; k++) {
            float factor = (float)row[k];
            for (size_t n = 0; n < COLUMNS; n++)
                sum[n] += factor * terms[k][n];
        }
        memcpy(sums->data[m], sum, sizeof(sum));
    }
}

/* The same for fours of int8. */
static void dot_int8(struct tile *sums, const struct tile *left, const struct tile *right)
{
    int32_t terms[MAX_BYTES][COLUMNS];
    for (size_t k = 0; k < 4 * right->rows; k++)
        for (size_t n = 0; n < COLUMNS; n++)
            terms[k][n] = (int8_t)right->data[k / 4][4 * n + k % 4];
    for (size_t m = 0; m < sums->rows; m++) {
        int32_t sum[COLUMNS];
        memcpy(sum, sums->data[m], sizeof(sum));
        for (size_t k = 0; k < left->bytes; k++) {
            int32_t factor = (int8_t)left->data[m][k];
            for (size_t n = 0; n < COLUMNS; n++)
                sum[n] += factor * terms[k][n];
        }
        memcpy(sums->data[m], sum, sizeof(sum));
    }
}

void amx_model_dot(enum lb_dtype dtype, int c, int a, int b)
{
    struct tile *sums = configured(c, "tdp");
    const struct tile *left = configured(a, "tdp"), *right = configured(b, "tdp");
    if (c == a || c == b || a == b)
        refuse("tdp", "two operands are the same tile");
    tell('D');
    if (sums->rows != left->rows || sums->bytes != right->bytes || left->bytes / 4 != right->rows)
        refuse("tdp", "the shapes of the tiles don't match");
    atomic_fetch_add(&dot_count, 1);
    if (dtype == LB_INT8)
        dot_int8(sums, left, right);
    else
        dot_halves(dtype, sums, left, right);
}

size_t amx_model_dot_count(void)
{
    return atomic_load(&dot_count);
}
