/* A case: one implementation on one problem under one way of running it; and its text form.
 *
 *     impl[:variant] / T_B_I_H[_L][_D] / dtype / pass [/math] [/ragged] [/act-relu]
 *                      [/graph] [/cold] [/batched] [/thN]
 *     cudnn:persist_static/T1024_B16_I768_H768/f16/infer
 *
 * The text is the case's identity in every file: it holds nothing of the host and never changes
 * its meaning between releases. Defaults are left out when printed. */
#ifndef LB_CASE_H
#define LB_CASE_H

#include "api/problem.h"

#ifdef __cplusplus
extern "C" {
#endif

enum lb_launch { LB_STREAM, LB_GRAPH, LB_LAUNCH_COUNT };
enum lb_cache { LB_HOT, LB_COLD, LB_CACHE_COUNT };
enum lb_timing { LB_ISOLATED, LB_BATCHED, LB_TIMING_COUNT };

#define LB_NAME_SIZE    32  /* of an implementation or a variant, with its terminator */
#define LB_CASE_ID_SIZE 256 /* enough for every case text, with its terminator */
#define LB_MAX_THREADS  4096

struct lb_case {
    char impl[LB_NAME_SIZE];
    char variant[LB_NAME_SIZE]; /* "" is the default, "auto" */
    struct lb_problem problem;
    enum lb_launch launch;
    enum lb_cache cache;
    enum lb_timing timing;
    int threads; /* at least 1 */
};

const char *lb_launch_name(enum lb_launch launch); /* "stream", "graph" */
const char *lb_cache_name(enum lb_cache cache);    /* "hot", "cold" */
const char *lb_timing_name(enum lb_timing timing); /* "isolated", "batched" */

/* What a text said by itself, so that axes fill only what it left out. */
enum lb_given {
    LB_GIVEN_IMPL = 1 << 0,
    LB_GIVEN_VARIANT = 1 << 1,
    LB_GIVEN_DTYPE = 1 << 2,
    LB_GIVEN_PASS = 1 << 3,
    LB_GIVEN_MATH = 1 << 4,
    LB_GIVEN_RAGGED = 1 << 5,
    LB_GIVEN_ACT = 1 << 6,
    LB_GIVEN_LAUNCH = 1 << 7,
    LB_GIVEN_CACHE = 1 << 8,
    LB_GIVEN_TIMING = 1 << 9,
    LB_GIVEN_THREADS = 1 << 10,
    LB_GIVEN_INPUT = 1 << 11,
    LB_GIVEN_LAYERS = 1 << 12,
    LB_GIVEN_DIRECTIONS = 1 << 13 /* T, B and H are always given */
};

/* The defaults: f32, infer, ieee, one layer, one direction, stream, hot, isolated, one thread;
 * no sizes and no implementation yet. */
struct lb_case lb_case_defaults(void);

/* Reads a case text. The implementation may be left out, and everything after the sizes; sizes may
 * come in any order, I defaults to H; the other fields may come in any order.
 * *given (may be NULL) is an or of enum lb_given. On LB_INVALID err says what is allowed and
 * *column (may be NULL) is where, from 1. */
enum lb_status lb_case_parse(const char *text, struct lb_case *out, unsigned *given, int *column,
                             struct lb_error *err);

/* Prints the canonical text; returns its length. A case without implementation starts with T. */
size_t lb_case_print(const struct lb_case *c, char text[LB_CASE_ID_SIZE]);

/* The problem part alone, as printed in tables: "T25_B16_I512_H512/f32/infer". */
size_t lb_case_print_problem(const struct lb_case *c, char text[LB_CASE_ID_SIZE]);

/* Rules that tie fields together: tf32 and half go with f32, batched timing with neither cold
 * caches nor backward alone. LB_INVALID with the rule. */
enum lb_status lb_case_check(const struct lb_case *c, struct lb_error *err);

/* Equal in every field that the canonical text holds: true exactly when the texts are equal.
 * The second leaves out implementation, launch, cache, timing and threads: same tensors. */
bool lb_case_same(const struct lb_case *a, const struct lb_case *b);
bool lb_case_same_problem(const struct lb_case *a, const struct lb_case *b);

/* Equal for cases that are the same in that sense; for tables in memory, not for files. */
uint64_t lb_case_hash(const struct lb_case *c);
uint64_t lb_case_hash_problem(const struct lb_case *c);

/* Reads a decimal 64-bit number of at least min; the whole of text[0..length) must be one.
 * LB_INVALID says what is allowed. */
enum lb_status lb_parse_int(const char *text, size_t length, int64_t min, int64_t *value,
                            struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif
