/* A case: one implementation, one problem, and one way of running it; and the text form of a case.
 *
 *     impl[:variant] / T_B_I_H[_P][_L][_D] / dtype / pass [/math] [/ragged] [/act-relu]
 *                      [/cell-NAME] [/graph] [/cold] [/batched | /stream [/rateN] [/xN]] [/thN]
 *     cudnn:persist_static/T1024_B16_I768_H768/f16/infer
 *     cpu_ref/T25_B16_I512_H512/f32/train/cell-peephole
 *
 * P, the size of h after the projection, makes the cell projection, which has no word of its own.
 *
 * The text identifies the case in every file. It says nothing about the host, and its meaning never
 * changes between releases. Fields with default values are left out when it is printed. */
#ifndef LB_CASE_H
#define LB_CASE_H

#include "api/problem.h"

#ifdef __cplusplus
extern "C" {
#endif

enum lb_launch { LB_STREAM, LB_GRAPH, LB_LAUNCH_COUNT };
enum lb_cache { LB_HOT, LB_COLD, LB_CACHE_COUNT };

/* A streaming case makes calls of T steps that carry h and c from one to the next, as programs do
 * that answer while their input still arrives. */
enum lb_timing { LB_ISOLATED, LB_BATCHED, LB_STREAMING, LB_TIMING_COUNT };

#define LB_NAME_SIZE    32   /* bytes of an implementation's or variant's name and its terminator */
#define LB_CASE_ID_SIZE 256  /* bytes that are enough for every case text and its terminator */
#define LB_MAX_THREADS  4096 /* and instances */
#define LB_MAX_RATE     1000000

struct lb_case {
    char impl[LB_NAME_SIZE];
    char variant[LB_NAME_SIZE]; /* "" stands for the default, "auto" */
    struct lb_problem problem;
    enum lb_launch launch;
    enum lb_cache cache;
    enum lb_timing timing;
    int threads;   /* at least 1 */
    int rate;      /* calls per second of a stream; 0: each follows the one before at once */
    int instances; /* of a stream, at least 1: they make calls at once, each on its own share of the
                      threads */
};

/* The axes of a command line, in the order in which a plan takes their values. Each sets one field
 * of a case. */
enum lb_axis_id {
    LB_AXIS_SEQ_LEN,
    LB_AXIS_INPUT,
    LB_AXIS_HIDDEN,
    LB_AXIS_LAYERS,
    LB_AXIS_DIRECTIONS,
    LB_AXIS_CELL,
    LB_AXIS_PROJECTION,
    LB_AXIS_BATCH,
    LB_AXIS_DTYPE,
    LB_AXIS_PASS,
    LB_AXIS_MATH,
    LB_AXIS_RAGGED,
    LB_AXIS_ACT,
    LB_AXIS_LAUNCH,
    LB_AXIS_CACHE,
    LB_AXIS_TIMING,
    LB_AXIS_THREADS,
    LB_AXIS_RATE,
    LB_AXIS_INSTANCES,
    LB_AXIS_COUNT
};

struct lb_axis_info {
    const char *flag;         /* "-B", "--dtype" */
    const char *what;         /* its name in messages: "batch" */
    const char *text;         /* what a case text has before the value: "B", "act-"; or "" */
    const char *const *words; /* NULL-terminated, in the order of the field's enum; NULL: numbers */
    int64_t max;              /* numbers from 1 to max are allowed */
    size_t offset, size;      /* of the field in struct lb_case: 8, 4 or 1 bytes */
};

extern const struct lb_axis_info lb_axis_table[LB_AXIS_COUNT];

/* The field of a case that an axis sets, as a number: a size, or the value of an enum. */
int64_t lb_axis_get(const struct lb_case *c, enum lb_axis_id axis);
void lb_axis_set(struct lb_case *c, enum lb_axis_id axis, int64_t value);

/* The word of an axis of words that a case has: "graph" of LB_AXIS_LAUNCH. */
const char *lb_axis_word(const struct lb_case *c, enum lb_axis_id axis);

/* Which fields a case text gave, so that the axes of a command line fill in only the others. T, B
 * and H are always given. The cell, by its word or by the size P, gives the projection too. */
#define LB_GIVEN(axis)   (1u << LB_AXIS_##axis)
#define LB_GIVEN_IMPL    (1u << LB_AXIS_COUNT)
#define LB_GIVEN_VARIANT (2u << LB_AXIS_COUNT)

/* A case with the defaults (f32, infer, ieee, one layer, one direction, stream, hot, isolated, one
 * thread) and without T, B, I, H and implementation. */
struct lb_case lb_case_defaults(void);

/* Reads a case text. The implementation and everything after the sizes may be left out; I defaults
 * to H. Sizes may come in any order, and so may the fields after them.
 * *given (may be NULL) becomes an or of LB_GIVEN. LB_INVALID: err says what is allowed, and
 * *column (may be NULL) is the position of the mistake, from 1. */
enum lb_status lb_case_parse(const char *text, struct lb_case *out, unsigned *given, int *column,
                             struct lb_error *err);

/* Prints the canonical text and returns its length. The text of a case without an implementation
 * begins with its sizes. */
size_t lb_case_print(const struct lb_case *c, char text[LB_CASE_ID_SIZE]);

/* Prints the text without the implementation, as in tables: "T25_B16_I512_H512/f32/infer". Returns
 * its length. */
size_t lb_case_print_problem(const struct lb_case *c, char text[LB_CASE_ID_SIZE]);

/* Checks the rules that connect fields: tf32 and half need f32, batched timing excludes cold caches
 * and the pass backward, a stream has the pass infer, one direction and full lengths, several
 * instances go with a stream and hot caches, a cell other than the standard one needs tanh,
 * projection P below H, and residual two layers. LB_INVALID: err names the rule. */
enum lb_status lb_case_check(const struct lb_case *c, struct lb_error *err);

/* lb_case_same: whether two cases have the same canonical text. lb_case_same_problem ignores
 * implementation, variant, launch, cache, timing, threads, rate and instances: whether they have
 * the same tensors and the same correct results. */
bool lb_case_same(const struct lb_case *a, const struct lb_case *b);
bool lb_case_same_problem(const struct lb_case *a, const struct lb_case *b);

/* Whether text[0..length) may name an implementation or a variant: a-z, 0-9 and _, of 1 to
 * LB_NAME_SIZE - 1 characters. */
bool lb_is_name(const char *text, size_t length);

/* Reads the decimal number text[0..length) into *value. LB_INVALID, with what is allowed, unless it
 * is a whole number from min to 2^63 - 1. */
enum lb_status lb_parse_int(const char *text, size_t length, int64_t min, int64_t *value,
                            struct lb_error *err);

/* Writes which numbers are allowed: "1 or more", "1 or 2", "1 to 4096". Returns text. */
const char *lb_describe_limits(char text[64], int64_t min, int64_t max);

#ifdef __cplusplus
}
#endif
#endif
