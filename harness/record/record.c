/* Rows of a run, to and from JSON. */
#include "record/record.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "record/record_keys.h"
#include "stats/anomalies.h"

const char *const lb_verdict_names[LB_VERDICT_COUNT] = {
    "ok", "wrong", "unsupported", "absent", "oom", "timeout", "crash", "error", "skipped"};

const char *const lb_stop_names[LB_STOP_COUNT] = {"none", "precision", "plateau", "time", "count"};

const char *lb_verdict_name(enum lb_verdict verdict)
{
    return lb_verdict_names[verdict];
}

bool lb_verdict_is_failure(enum lb_verdict verdict)
{
    return verdict == LB_VERDICT_WRONG || verdict == LB_VERDICT_TIMEOUT ||
           verdict == LB_VERDICT_CRASH || verdict == LB_VERDICT_ERROR;
}

const char *lb_stop_reason_name(enum lb_stop_reason reason)
{
    return lb_stop_names[reason];
}

const struct lb_number_key lb_number_keys[LB_NUMBER_KEYS] = {
#define NUMBER(name)                                \
    {                                               \
#name, offsetof(struct lb_row, name), false \
    }
#define DERIVED(name)                              \
    {                                              \
#name, offsetof(struct lb_row, name), true \
    }
    NUMBER(err_max_abs),
    NUMBER(err_max_rel),
    NUMBER(err_norm),
    NUMBER(prepare_ns),
    NUMBER(verify_ns),
    NUMBER(elapsed_ns),
    NUMBER(calls_per_sample),
    DERIVED(min_ns),
    DERIVED(median_ns),
    DERIVED(median_lo_ns),
    DERIVED(median_hi_ns),
    DERIVED(p5_ns),
    DERIVED(p95_ns),
    DERIVED(mad_ns),
    DERIVED(outliers_mild),
    DERIVED(outliers_severe),
    DERIVED(spread_within),
    DERIVED(spread_between),
    NUMBER(flops),
    NUMBER(bytes),
    NUMBER(floor_ns),
    NUMBER(chain_steps),
    NUMBER(chain_ns),
    DERIVED(floor_multiple),
    NUMBER(weights_bytes),
    NUMBER(gradients_bytes),
    NUMBER(reserve_bytes),
    NUMBER(workspace_bytes),
    NUMBER(peak_bytes),
    NUMBER(sm_mhz),
    NUMBER(memory_mhz),
    NUMBER(temperature_c),
#undef NUMBER
#undef DERIVED
    {"kernel_launches", offsetof(struct lb_row, kernels.launches), false},
    {"kernel_span_ns", offsetof(struct lb_row, kernels.span_ns), false},
    {"kernel_gap_ns", offsetof(struct lb_row, kernels.gap_ns), false},
    {"kernel_longest_gap_ns", offsetof(struct lb_row, kernels.longest_gap_ns), false},
};

const struct lb_text_key lb_text_keys[LB_TEXT_KEYS] = {
    {"reason", offsetof(struct lb_row, reason), sizeof(((struct lb_row *)0)->reason)},
    {"chosen", offsetof(struct lb_row, description), sizeof(((struct lb_row *)0)->description)},
    {"warning", offsetof(struct lb_row, warning), sizeof(((struct lb_row *)0)->warning)},
    {"kernels_reason", offsetof(struct lb_row, kernels_reason),
     sizeof(((struct lb_row *)0)->kernels_reason)},
};

double *lb_row_number(struct lb_row *row, size_t key)
{
    return (double *)(void *)((char *)row + lb_number_keys[key].offset);
}

struct lb_row lb_row_make(const struct lb_case *c)
{
    struct lb_row row = {.c = *c, .verdict = LB_VERDICT_ERROR};
    for (size_t i = 0; i < LB_NUMBER_KEYS; i++)
        *lb_row_number(&row, i) = NAN;
    return row;
}

void lb_row_free(struct lb_row *row)
{
    free(row->samples_ns);
    free(row->blocks);
    lb_kernels_free(&row->kernels);
    free(row->processes);
    row->samples_ns = NULL;
    row->blocks = row->processes = NULL;
    row->samples = row->block_count = row->process_count = 0;
}

void lb_row_drop_samples(struct lb_row *row)
{
    lb_row_free(row);
    for (size_t i = 0; i < LB_NUMBER_KEYS; i++)
        if (lb_number_keys[i].derived)
            *lb_row_number(row, i) = NAN;
    row->calls_per_sample = NAN;
    row->stop_reason = LB_STOP_NONE;
    row->flags = 0;
}

enum lb_status lb_row_add_process(struct lb_row *row, struct lb_error *err)
{
    size_t *grown = realloc(row->processes, (row->process_count + 1) * sizeof(*grown));
    if (!grown)
        return lb_fail(err, LB_OOM, "out of memory for %zu processes", row->process_count + 1);
    row->processes = grown;
    grown[row->process_count++] = 0;
    return LB_OK;
}

enum lb_status lb_row_add_block(struct lb_row *row, const double *samples_ns, size_t count,
                                struct lb_error *err)
{
    double *samples = realloc(row->samples_ns, (row->samples + count + 1) * sizeof(*samples));
    if (samples)
        row->samples_ns = samples;
    size_t *blocks = realloc(row->blocks, (row->block_count + 1) * sizeof(*blocks));
    if (blocks)
        row->blocks = blocks;
    if (!samples || !blocks)
        return lb_fail(err, LB_OOM, "out of memory for %zu samples", row->samples + count);
    if (row->process_count == 0 && lb_row_add_process(row, err) != LB_OK)
        return LB_OOM;
    row->processes[row->process_count - 1]++;
    if (count > 0)
        memcpy(samples + row->samples, samples_ns, count * sizeof(*samples));
    row->samples += count;
    blocks[row->block_count++] = count;
    return LB_OK;
}

bool lb_row_is_timed(const struct lb_row *row)
{
    return row->verdict == LB_VERDICT_OK && row->median_ns > 0;
}

/* Unknown is null; whole numbers are written without a fraction, others so that they read back
 * bit by bit. */
static json_t *number_json(double value)
{
    if (!isfinite(value))
        return json_null();
    if (value == floor(value) && fabs(value) < 0x1p53)
        return json_integer((json_int_t)value);
    return json_real(value);
}

/* Text from implementations and libraries may be cut or in another encoding: a row is not lost for
 * that. */
static json_t *text_json(const char *text)
{
    char clean[sizeof(((struct lb_row *)0)->reason)];
    snprintf(clean, sizeof(clean), "%s", text);
    lb_clean_text(clean);
    return json_string(clean);
}

static json_t *hash_json(uint64_t hash)
{
    char text[17];
    snprintf(text, sizeof(text), "%016" PRIx64, hash);
    return hash ? json_string(text) : json_null();
}

bool lb_put_case(json_t *object, const struct lb_case *c)
{
    const struct lb_problem *p = &c->problem;
    char id[LB_CASE_ID_SIZE];
    lb_case_print(c, id);
    const struct {
        const char *key;
        json_t *value;
    } keys[] = {
        {"case", json_string(id)},
        {"impl", json_string(c->impl)},
        {"variant", json_string(c->variant)},
        {"seq_len", json_integer(p->seq_len)},
        {"batch", json_integer(p->batch)},
        {"input", json_integer(p->input)},
        {"hidden", json_integer(p->hidden)},
        {"layers", json_integer(p->layers)},
        {"directions", json_integer(p->directions)},
        {"dtype", json_string(lb_dtype_name(p->dtype))},
        {"pass", json_string(lb_pass_name(p->pass))},
        {"math", json_string(lb_math_name(p->math))},
        {"ragged", json_boolean(p->ragged)},
        {"act", json_string(lb_act_name(p->act))},
        {"launch", json_string(lb_launch_name(c->launch))},
        {"cache", json_string(lb_cache_name(c->cache))},
        {"timing", json_string(lb_timing_name(c->timing))},
        {"threads", json_integer(c->threads)},
    };
    bool done = true;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        done = json_object_set_new(object, keys[i].key, keys[i].value) == 0 && done;
    return done;
}

/* Puts the counts as an array; false when memory runs out. */
static bool put_counts(json_t *object, const char *key, const size_t *counts, size_t n)
{
    json_t *array = json_array();
    bool done = json_object_set_new(object, key, array) == 0;
    for (size_t i = 0; done && i < n; i++)
        done = json_array_append_new(array, json_integer((json_int_t)counts[i])) == 0;
    return done;
}

/* Puts the samples and the sizes of their blocks and processes; false when memory runs out. */
static bool put_samples(json_t *object, const struct lb_row *row)
{
    json_t *samples = json_array();
    bool done = json_object_set_new(object, "samples_ns", samples) == 0;
    for (size_t i = 0; done && i < row->samples; i++)
        done = json_array_append_new(samples, number_json(row->samples_ns[i])) == 0;
    done = done && put_counts(object, "blocks", row->blocks, row->block_count);
    return done && put_counts(object, "processes", row->processes, row->process_count);
}

/* The names of the flags with a space between. */
static json_t *flags_json(unsigned flags)
{
    char text[128] = "";
    for (size_t i = 0; i < LB_ANOMALY_COUNT; i++) {
        size_t used = strlen(text);
        if (flags & 1U << i)
            snprintf(text + used, sizeof(text) - used, "%s%s", used ? " " : "", lb_anomaly_name(i));
    }
    return json_string(text);
}

json_t *lb_row_to_json(const struct lb_row *row)
{
    json_t *object = json_object();
    bool done = json_object_set_new(object, "kind", json_string("row")) == 0;
#define PUT(key, value) done = done && json_object_set_new(object, key, value) == 0
    done = done && lb_put_case(object, &row->c);
    PUT("verdict", json_string(lb_verdict_name(row->verdict)));
    for (size_t i = 0; i < LB_TEXT_KEYS; i++)
        PUT(lb_text_keys[i].key, text_json((const char *)row + lb_text_keys[i].offset));
    PUT("stop_reason", json_string(lb_stop_reason_name(row->stop_reason)));
    PUT("flags", flags_json(row->flags));
    PUT("hash", hash_json(row->hash));
    for (size_t i = 0; i < LB_NUMBER_KEYS; i++)
        PUT(lb_number_keys[i].key,
            number_json(
                *(const double *)(const void *)((const char *)row + lb_number_keys[i].offset)));
    PUT("tensor_cores",
        row->kernels.items
            ? json_string(lb_tensor_cores_name(lb_kernels_tensor_cores(&row->kernels)))
            : json_null());
    PUT("kernels", lb_kernels_to_json(&row->kernels));
    done = done && put_samples(object, row);
#undef PUT
    if (!done) {
        json_decref(object);
        return NULL;
    }
    return object;
}
