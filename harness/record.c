/* Rows of a run, to and from JSON. */
#include "record.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stats.h"

static const char *const verdict_names[LB_VERDICT_COUNT] = {
    "ok", "wrong", "unsupported", "absent", "oom", "timeout", "crash", "error", "skipped"};

static const char *const stop_names[LB_STOP_COUNT] = {"none", "precision", "plateau", "time",
                                                      "count"};

const char *lb_verdict_name(enum lb_verdict verdict)
{
    return verdict_names[verdict];
}

bool lb_verdict_is_failure(enum lb_verdict verdict)
{
    return verdict == LB_VERDICT_WRONG || verdict == LB_VERDICT_TIMEOUT ||
           verdict == LB_VERDICT_CRASH || verdict == LB_VERDICT_ERROR;
}

const char *lb_stop_reason_name(enum lb_stop_reason reason)
{
    return stop_names[reason];
}

/* Every number of a row that stands by itself. Derived ones are written, and never read. */
static const struct number_key {
    const char *key;
    size_t offset;
    bool derived;
} number_keys[] = {
#define NUMBER(name)                                \
    {                                               \
#name, offsetof(struct lb_row, name), false \
    }
#define DERIVED(name)                              \
    {                                              \
#name, offsetof(struct lb_row, name), true \
    }
    NUMBER(err_max_abs),      NUMBER(err_max_rel),     NUMBER(err_norm),
    NUMBER(prepare_ns),       NUMBER(verify_ns),       NUMBER(elapsed_ns),
    NUMBER(calls_per_sample), DERIVED(min_ns),         DERIVED(median_ns),
    DERIVED(median_lo_ns),    DERIVED(median_hi_ns),   DERIVED(p5_ns),
    DERIVED(p95_ns),          NUMBER(flops),           NUMBER(bytes),
    NUMBER(floor_ns),         NUMBER(weights_bytes),   NUMBER(gradients_bytes),
    NUMBER(reserve_bytes),    NUMBER(workspace_bytes), NUMBER(peak_bytes),
    NUMBER(sm_mhz),           NUMBER(memory_mhz),      NUMBER(temperature_c),
#undef NUMBER
#undef DERIVED
};

static const struct text_key {
    const char *key;
    size_t offset, size;
} text_keys[] = {
    {"reason", offsetof(struct lb_row, reason), sizeof(((struct lb_row *)0)->reason)},
    {"chosen", offsetof(struct lb_row, chosen), sizeof(((struct lb_row *)0)->chosen)},
    {"warning", offsetof(struct lb_row, warning), sizeof(((struct lb_row *)0)->warning)},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static double *number_of(struct lb_row *row, const struct number_key *key)
{
    return (double *)(void *)((char *)row + key->offset);
}

struct lb_row lb_row_make(const struct lb_case *c)
{
    struct lb_row row = {.c = *c, .verdict = LB_VERDICT_ERROR};
    for (size_t i = 0; i < COUNT(number_keys); i++)
        *number_of(&row, &number_keys[i]) = NAN;
    return row;
}

void lb_row_free(struct lb_row *row)
{
    free(row->samples_ns);
    free(row->blocks);
    row->samples_ns = NULL;
    row->blocks = NULL;
    row->samples = row->block_count = 0;
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
    if (count > 0)
        memcpy(samples + row->samples, samples_ns, count * sizeof(*samples));
    row->samples += count;
    blocks[row->block_count++] = count;
    return LB_OK;
}

enum lb_status lb_row_summarize(struct lb_row *row, struct lb_error *err)
{
    for (size_t i = 0; i < COUNT(number_keys); i++)
        if (number_keys[i].derived)
            *number_of(row, &number_keys[i]) = NAN;
    if (row->samples == 0)
        return LB_OK;

    double *sorted = malloc(row->samples * sizeof(*sorted));
    if (!sorted)
        return lb_fail(err, LB_OOM, "out of memory for %zu samples", row->samples);
    memcpy(sorted, row->samples_ns, row->samples * sizeof(*sorted));
    lb_sort(sorted, row->samples);
    row->min_ns = sorted[0];
    row->median_ns = lb_median(sorted, row->samples);
    row->p5_ns = lb_quantile(sorted, row->samples, 0.05);
    row->p95_ns = lb_quantile(sorted, row->samples, 0.95);
    /* Too few samples leave the bounds unknown, which is what they are. */
    lb_median_interval(sorted, row->samples, 0.95, &row->median_lo_ns, &row->median_hi_ns);
    free(sorted);
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
 * that, the bytes that are not ASCII are. */
static json_t *text_json(const char *text)
{
    json_t *json = json_string(text);
    char plain[sizeof(((struct lb_row *)0)->reason)];
    size_t length = strnlen(text, sizeof(plain));
    if (json)
        return json;
    for (size_t i = 0; i < length; i++)
        plain[i] = (unsigned char)text[i] < 0x80 ? text[i] : '?';
    return json_stringn(plain, length);
}

static json_t *hash_json(uint64_t hash)
{
    char text[17];
    snprintf(text, sizeof(text), "%016" PRIx64, hash);
    return hash ? json_string(text) : json_null();
}

/* Puts the keys that say which case it is; false when memory runs out. */
static bool put_case(json_t *object, const struct lb_case *c)
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
    for (size_t i = 0; i < COUNT(keys); i++)
        done = json_object_set_new(object, keys[i].key, keys[i].value) == 0 && done;
    return done;
}

/* Puts the samples and the sizes of their blocks; false when memory runs out. */
static bool put_samples(json_t *object, const struct lb_row *row)
{
    json_t *samples = json_array(), *blocks = json_array();
    bool done = json_object_set_new(object, "samples_ns", samples) == 0;
    done = json_object_set_new(object, "blocks", blocks) == 0 && done;
    for (size_t i = 0; done && i < row->samples; i++)
        done = json_array_append_new(samples, number_json(row->samples_ns[i])) == 0;
    for (size_t i = 0; done && i < row->block_count; i++)
        done = json_array_append_new(blocks, json_integer((json_int_t)row->blocks[i])) == 0;
    return done;
}

json_t *lb_row_to_json(const struct lb_row *row)
{
    json_t *object = json_object();
    bool done = json_object_set_new(object, "kind", json_string("row")) == 0;
#define PUT(key, value) done = done && json_object_set_new(object, key, value) == 0
    done = done && put_case(object, &row->c);
    PUT("verdict", json_string(lb_verdict_name(row->verdict)));
    for (size_t i = 0; i < COUNT(text_keys); i++)
        PUT(text_keys[i].key, text_json((const char *)row + text_keys[i].offset));
    PUT("stop_reason", json_string(lb_stop_reason_name(row->stop_reason)));
    PUT("hash", hash_json(row->hash));
    for (size_t i = 0; i < COUNT(number_keys); i++)
        PUT(number_keys[i].key,
            number_json(
                *(const double *)(const void *)((const char *)row + number_keys[i].offset)));
    done = done && put_samples(object, row);
#undef PUT
    if (!done) {
        json_decref(object);
        return NULL;
    }
    return object;
}

/* The case is in its text; the keys beside it must say the same where they are there. */
static enum lb_status get_case(const json_t *object, struct lb_case *c, struct lb_error *err)
{
    struct lb_error why;
    const char *text = json_string_value(json_object_get(object, "case"));
    if (!text)
        return lb_fail(err, LB_INVALID, "case: there must be one, as text");
    if (lb_case_parse(text, c, NULL, NULL, &why) != LB_OK)
        return lb_fail(err, LB_INVALID, "case '%s': %.300s", text, why.text);
    if (!c->impl[0])
        return lb_fail(err, LB_INVALID, "case '%s': it names no implementation", text);

    enum lb_status st = LB_OK;
    json_t *expected = json_object();
    if (!put_case(expected, c))
        st = lb_fail(err, LB_OOM, "out of memory");
    const char *key;
    json_t *value;
    json_object_foreach(expected, key, value)
    {
        const json_t *given = json_object_get(object, key);
        bool same = !given || strcmp(key, "case") == 0 || json_equal(given, value);
        if (st == LB_OK && !same)
            st = lb_fail(err, LB_INVALID, "%s: it is not that of case '%s'", key, text);
    }
    json_decref(expected);
    return st;
}

/* Reads a name out of a table of names. */
static enum lb_status get_name(const json_t *object, const char *key, const char *const *names,
                               size_t count, size_t *index, struct lb_error *err)
{
    const char *text = json_string_value(json_object_get(object, key));
    for (*index = 0; text && *index < count; ++*index)
        if (strcmp(text, names[*index]) == 0)
            return LB_OK;
    return lb_fail(err, LB_INVALID, "%s: '%s' is not one of its %zu words, '%s' to '%s'", key,
                   text ? text : "(none)", count, names[0], names[count - 1]);
}

static enum lb_status get_numbers(const json_t *object, struct lb_row *row, struct lb_error *err)
{
    for (size_t i = 0; i < COUNT(number_keys); i++) {
        const struct number_key *key = &number_keys[i];
        const json_t *value = json_object_get(object, key->key);
        if (!value || json_is_null(value) || key->derived)
            continue;
        if (!json_is_number(value) || !(json_number_value(value) >= 0))
            return lb_fail(err, LB_INVALID, "%s: it must be null or a number of 0 or more",
                           key->key);
        *number_of(row, key) = json_number_value(value);
    }
    return LB_OK;
}

static enum lb_status get_texts(const json_t *object, struct lb_row *row, struct lb_error *err)
{
    for (size_t i = 0; i < COUNT(text_keys); i++) {
        const struct text_key *key = &text_keys[i];
        const json_t *value = json_object_get(object, key->key);
        if (value && !json_is_string(value))
            return lb_fail(err, LB_INVALID, "%s: it must be text", key->key);
        if (value)
            snprintf((char *)row + key->offset, key->size, "%s", json_string_value(value));
    }
    const json_t *hash = json_object_get(object, "hash");
    const char *digits = json_string_value(hash);
    if (hash && !json_is_null(hash) &&
        (!digits || strlen(digits) != 16 || strspn(digits, "0123456789abcdef") != 16))
        return lb_fail(err, LB_INVALID, "hash: it must be null or 16 hexadecimal digits");
    row->hash = digits ? strtoull(digits, NULL, 16) : 0;
    return LB_OK;
}

/* One block: the next count samples of the array. */
static enum lb_status get_block(const json_t *samples, size_t count, struct lb_row *row,
                                struct lb_error *err)
{
    enum lb_status st = LB_OK;
    double *values = malloc((count + 1) * sizeof(*values));
    if (!values)
        return lb_fail(err, LB_OOM, "out of memory for %zu samples", count);
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_array_get(samples, row->samples + i);
        values[i] = json_number_value(value);
        if (!json_is_number(value) || !(values[i] >= 0)) {
            st = lb_fail(err, LB_INVALID, "samples_ns[%zu]: it must be a number of 0 or more",
                         row->samples + i);
            goto done;
        }
    }
    st = lb_row_add_block(row, values, count, err);
done:
    free(values);
    return st;
}

static enum lb_status get_samples(const json_t *object, struct lb_row *row, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const json_t *samples = json_object_get(object, "samples_ns");
    const json_t *blocks = json_object_get(object, "blocks");
    size_t total = json_array_size(samples);
    if (samples && !json_is_array(samples))
        return lb_fail(err, LB_INVALID, "samples_ns: it must be an array");
    if (blocks && !json_is_array(blocks))
        return lb_fail(err, LB_INVALID, "blocks: it must be an array");

    for (size_t i = 0; i < json_array_size(blocks); i++) {
        const json_t *count = json_array_get(blocks, i);
        json_int_t left = (json_int_t)(total - row->samples);
        if (!json_is_integer(count) || json_integer_value(count) < 0 ||
            json_integer_value(count) > left)
            return lb_fail(err, LB_INVALID, "blocks[%zu]: it must be a count of 0 to %lld", i,
                           (long long)left);
        LB_TRY(get_block(samples, (size_t)json_integer_value(count), row, err));
    }
    if (!blocks && total > 0)
        LB_TRY(get_block(samples, total, row, err));
    if (row->samples != total)
        st = lb_fail(err, LB_INVALID, "blocks: they hold %zu samples, samples_ns has %zu",
                     row->samples, total);
done:
    return st;
}

enum lb_status lb_row_from_json(const json_t *object, struct lb_row *row, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_case c;
    size_t index;
    *row = (struct lb_row){0};
    LB_TRY(get_case(object, &c, err));
    *row = lb_row_make(&c);
    LB_TRY(get_name(object, "verdict", verdict_names, LB_VERDICT_COUNT, &index, err));
    row->verdict = (enum lb_verdict)index;
    if (json_object_get(object, "stop_reason")) {
        LB_TRY(get_name(object, "stop_reason", stop_names, LB_STOP_COUNT, &index, err));
        row->stop_reason = (enum lb_stop_reason)index;
    }
    LB_TRY(get_texts(object, row, err));
    LB_TRY(get_numbers(object, row, err));
    LB_TRY(get_samples(object, row, err));
    LB_TRY(lb_row_summarize(row, err));
done:
    if (st != LB_OK)
        lb_row_free(row);
    return st;
}
