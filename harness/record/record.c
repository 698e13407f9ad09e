/* Rows of a run: making and merging them, writing them as JSON, reading them back. */
#include "record/record.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "stats/anomalies.h"

static const char *const verdict_names[LB_VERDICT_COUNT] = {
    "ok",  "suspect", "wrong", "unsupported", "absent",
    "oom", "timeout", "crash", "error",       "skipped"};

static const char *const stop_names[LB_STOP_COUNT] = {"none", "precision", "plateau", "time",
                                                      "count"};

const char *lb_verdict_name(enum lb_verdict verdict)
{
    return verdict_names[verdict];
}

bool lb_verdict_has_samples(enum lb_verdict verdict)
{
    return verdict == LB_VERDICT_OK || verdict == LB_VERDICT_SUSPECT;
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

/* How a later block changes a number of the row (lb_row_merge). */
enum merge_rule {
    FIRST, /* it stays as it is */
    LARGEST,
    SMALLEST,
    SUM,
    LATEST, /* the later one, where it is known */
    DERIVED /* it is written, but readers and later blocks compute it anew */
};

/* Every number of a row. */
static const struct number_key {
    const char *key;
    size_t offset;
    enum merge_rule rule;
} number_keys[] = {
#define NUMBER(name, rule)                         \
    {                                              \
#name, offsetof(struct lb_row, name), rule \
    }
    NUMBER(err_max_abs, LARGEST),
    NUMBER(err_max_rel, LARGEST),
    NUMBER(err_norm, LARGEST),
    NUMBER(tolerance_used, LARGEST),
    NUMBER(error_ratio, LARGEST),
    NUMBER(scheme_error, LARGEST),
    NUMBER(gradient_err_norm, LARGEST),
    NUMBER(loss_scale, SMALLEST),
    NUMBER(overflow_share, LARGEST),
    NUMBER(overflow_check_ns, SMALLEST),
    NUMBER(prepare_ns, FIRST),
    NUMBER(update_ns, SMALLEST),
    NUMBER(verify_ns, SUM),
    NUMBER(elapsed_ns, SUM),
    NUMBER(others_share, LARGEST),
    NUMBER(stream_calls, FIRST),
    NUMBER(harness_ns, LARGEST),
    NUMBER(calls_per_sample, FIRST),
    NUMBER(min_ns, DERIVED),
    NUMBER(median_ns, DERIVED),
    NUMBER(median_lo_ns, DERIVED),
    NUMBER(median_hi_ns, DERIVED),
    NUMBER(p5_ns, DERIVED),
    NUMBER(p95_ns, DERIVED),
    NUMBER(mad_ns, DERIVED),
    NUMBER(outliers_mild, DERIVED),
    NUMBER(outliers_severe, DERIVED),
    NUMBER(spread_within, DERIVED),
    NUMBER(spread_between, DERIVED),
    NUMBER(flops, FIRST),
    NUMBER(bytes, FIRST),
    NUMBER(floor_ns, FIRST),
    NUMBER(chain_steps, FIRST),
    NUMBER(chain_ns, FIRST),
    NUMBER(floor_multiple, DERIVED),
    NUMBER(checked_calls, SUM),
    NUMBER(order_seed, FIRST),
    NUMBER(input_sets, FIRST),
    NUMBER(call_bytes, FIRST),
    NUMBER(working_set_bytes, FIRST),
    NUMBER(deterministic, FIRST),
    NUMBER(weights_bytes, FIRST),
    NUMBER(gradients_bytes, FIRST),
    NUMBER(reserve_bytes, FIRST),
    NUMBER(workspace_bytes, FIRST),
    NUMBER(peak_bytes, LARGEST),
    NUMBER(sm_mhz, LATEST),
    NUMBER(memory_mhz, LATEST),
    NUMBER(temperature_c, LATEST),
#undef NUMBER
    {"kernel_launches", offsetof(struct lb_row, kernels.launches), FIRST},
    {"kernel_span_ns", offsetof(struct lb_row, kernels.span_ns), FIRST},
    {"kernel_gap_ns", offsetof(struct lb_row, kernels.gap_ns), FIRST},
    {"kernel_longest_gap_ns", offsetof(struct lb_row, kernels.longest_gap_ns), FIRST},
};

enum { NUMBER_KEYS = sizeof(number_keys) / sizeof(number_keys[0]) };

static const struct text_key {
    const char *key;
    size_t offset;
} text_keys[] = {
    {"reason", offsetof(struct lb_row, reason)},
    {"description", offsetof(struct lb_row, description)},
    {"warning", offsetof(struct lb_row, warning)},
    {"kernels_reason", offsetof(struct lb_row, kernels_reason)},
};

enum { TEXT_KEYS = sizeof(text_keys) / sizeof(text_keys[0]) };

static double *number_of(struct lb_row *row, size_t key)
{
    return (double *)(void *)((char *)row + number_keys[key].offset);
}

static const char **text_of(struct lb_row *row, size_t key)
{
    return (const char **)(void *)((char *)row + text_keys[key].offset);
}

static const char none[] = ""; /* the text of rows that have none: the only one not to be freed */

static void free_text(const char **text)
{
    if (*text != none)
        free((void *)(uintptr_t)*text);
    *text = none;
}

static void print_text(const char **text, const char *before, const char *format, va_list values)
{
    char line[LB_ROW_TEXT_SIZE];
    size_t used = (size_t)snprintf(line, sizeof(line), "%s", before ? before : "");
    if (used < sizeof(line))
        vsnprintf(line + used, sizeof(line) - used, format, values);
    lb_clean_text(line); /* it may be cut or in another encoding, and goes to JSON and terminals */
    free_text(text);
    if (line[0])
        *text = lb_needed(strdup(line));
}

void lb_row_print(const char **text, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    print_text(text, "", format, values);
    va_end(values);
}

void lb_row_append(const char **text, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    print_text(text, *text, format, values);
    va_end(values);
}

/* Appends those of the remarks, with "; " between them, that the text does not have already. */
static void add_once(const char **text, const char *format, va_list values)
{
    char remarks[LB_ROW_TEXT_SIZE];
    vsnprintf(remarks, sizeof(remarks), format, values);
    for (char *remark = remarks, *next; remark; remark = next) {
        next = strstr(remark, "; ");
        if (next) {
            *next = '\0';
            next += 2;
        }
        if (!strstr(*text, remark))
            lb_row_append(text, "%s%s", **text ? "; " : "", remark);
    }
}

void lb_row_warn(struct lb_row *row, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    add_once(&row->warning, format, values);
    va_end(values);
}

void lb_row_suspect(struct lb_row *row, const char *format, ...)
{
    va_list values;
    if (!lb_verdict_has_samples(row->verdict))
        return;
    row->verdict = LB_VERDICT_SUSPECT;
    va_start(values, format);
    add_once(&row->reason, format, values);
    va_end(values);
}

struct lb_row lb_row_make(const struct lb_case *c)
{
    struct lb_row row = {.c = *c, .verdict = LB_VERDICT_ERROR};
    for (size_t i = 0; i < NUMBER_KEYS; i++)
        *number_of(&row, i) = NAN;
    for (size_t i = 0; i < TEXT_KEYS; i++)
        *text_of(&row, i) = none;
    row.slowdown = NAN;
    return row;
}

static void free_samples(struct lb_row *row)
{
    free(row->samples_ns);
    free(row->blocks);
    free(row->reference_ns);
    lb_kernels_free(&row->kernels);
    free(row->processes);
    row->samples_ns = row->reference_ns = NULL;
    row->blocks = row->processes = NULL;
    row->samples = row->block_count = row->process_count = 0;
}

void lb_row_free(struct lb_row *row)
{
    free_samples(row);
    for (size_t i = 0; i < TEXT_KEYS; i++)
        free_text(text_of(row, i));
}

void lb_row_drop_samples(struct lb_row *row)
{
    free_samples(row);
    for (size_t i = 0; i < NUMBER_KEYS; i++)
        if (number_keys[i].rule == DERIVED)
            *number_of(row, i) = NAN;
    row->calls_per_sample = NAN;
    row->stop_reason = LB_STOP_NONE;
    row->flags = 0;
}

void lb_row_add_process(struct lb_row *row)
{
    row->processes = lb_room(row->processes, row->process_count, sizeof(*row->processes));
    row->processes[row->process_count++] = 0;
}

void lb_row_add_block(struct lb_row *row, const double *samples_ns, size_t count)
{
    size_t block = row->block_count++, total = row->samples + count + 1;
    row->samples_ns = lb_needed(realloc(row->samples_ns, total * sizeof(*row->samples_ns)));
    row->blocks = lb_room(row->blocks, block, sizeof(*row->blocks));
    row->reference_ns = lb_room(row->reference_ns, block, sizeof(*row->reference_ns));
    if (row->process_count == 0)
        lb_row_add_process(row);
    row->processes[row->process_count - 1]++;
    if (count > 0)
        memcpy(row->samples_ns + row->samples, samples_ns, count * sizeof(*samples_ns));
    row->samples += count;
    row->reference_ns[block] = NAN;
    row->blocks[block] = count;
}

void lb_row_set_reference(struct lb_row *row, double reference_ns)
{
    if (row->block_count > 0)
        row->reference_ns[row->block_count - 1] = reference_ns;
}

/* Merges everything of a later block but its samples. */
static void merge_numbers(struct lb_row *row, struct lb_row *block)
{
    double before = (double)row->samples, more = (double)block->samples;
    if (before + more > 0)
        row->calls_per_sample =
            (row->calls_per_sample * before + block->calls_per_sample * more) / (before + more);
    for (size_t i = 0; i < NUMBER_KEYS; i++) {
        double *number = number_of(row, i), later = *number_of(block, i);
        if (number_keys[i].rule == LARGEST)
            *number = fmax(*number, later);
        else if (number_keys[i].rule == SMALLEST)
            *number = fmin(*number, later);
        else if (number_keys[i].rule == SUM)
            *number += later;
        else if (number_keys[i].rule == LATEST && !isnan(later))
            *number = later;
    }
    row->stop_reason = block->stop_reason;
    if (isnan(block->floor_ns)) /* its warning says why */
        row->floor_ns = row->chain_ns = NAN;
    lb_row_warn(row, "%s", block->warning);
    if (block->verdict == LB_VERDICT_SUSPECT)
        lb_row_suspect(row, "%s", block->reason);
}

/* Appends the blocks of `other`; processes: each of its processes becomes one of the row, else they
 * belong to the row's latest. */
static void append_blocks(struct lb_row *row, const struct lb_row *other, bool processes)
{
    size_t sample = 0, block = 0;
    for (size_t p = 0; p < other->process_count; p++) {
        if (processes)
            lb_row_add_process(row);
        for (size_t b = 0; b < other->processes[p]; b++, block++) {
            lb_row_add_block(row, other->samples_ns + sample, other->blocks[block]);
            lb_row_set_reference(row, other->reference_ns[block]);
            sample += other->blocks[block];
        }
    }
    lb_row_summarize(row);
}

/* A deterministic implementation must give the same bits in every block. True when a block does
 * not, which then is wrong. */
static bool bits_differ(const struct lb_row *row, struct lb_row *block)
{
    if (!(row->deterministic > 0) || row->hash == 0 || block->hash == 0 || row->hash == block->hash)
        return false;
    block->verdict = LB_VERDICT_WRONG;
    lb_row_print(
        &block->reason,
        "says it is deterministic, but a later block of samples gave other bits (hash %016" PRIx64
        ") than the first (%016" PRIx64 ")",
        block->hash, row->hash);
    lb_row_drop_samples(block);
    return true;
}

/* Moves the other row into the row, or adds it to the row. */
static void take_in(struct lb_row *row, struct lb_row *other, bool replaces, bool processes)
{
    if (replaces) {
        lb_row_free(row);
        *row = *other;
        *other = (struct lb_row){0};
    } else {
        merge_numbers(row, other);
        append_blocks(row, other, processes);
    }
}

void lb_row_merge(struct lb_row *row, struct lb_row *block, bool first, bool new_process)
{
    if (first || lb_verdict_has_samples(row->verdict))
        take_in(row, block,
                first || !lb_verdict_has_samples(block->verdict) || bits_differ(row, block),
                new_process);
}

static bool did_not_run(const struct lb_row *row)
{
    return row->verdict == LB_VERDICT_SKIPPED || row->verdict == LB_VERDICT_ABSENT;
}

void lb_row_pool(struct lb_row *row, struct lb_row *other)
{
    if (!did_not_run(other) && (lb_verdict_has_samples(row->verdict) || did_not_run(row)))
        take_in(row, other, did_not_run(row) || !lb_verdict_has_samples(other->verdict), true);
}

bool lb_row_is_timed(const struct lb_row *row)
{
    return row->verdict == LB_VERDICT_OK && row->median_ns > 0 && isfinite(row->median_ns);
}

/* Unknown numbers become null. Whole numbers are written without a fraction, others with enough
 * digits to read back the same bits. */
static json_t *number_json(double value)
{
    if (!isfinite(value))
        return json_null();
    if (value == floor(value) && fabs(value) < 0x1p53)
        return json_integer((json_int_t)value);
    return json_real(value);
}

static json_t *hash_json(uint64_t hash)
{
    char text[17];
    snprintf(text, sizeof(text), "%016" PRIx64, hash);
    return hash ? json_string(text) : json_null();
}

static void put_case(json_t *object, const struct lb_case *c)
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
        {"cell", json_string(lb_cell_name((enum lb_cell_kind)p->cell))},
        {"projection", p->projection ? json_integer(p->projection) : json_null()},
        {"launch", json_string(lb_axis_word(c, LB_AXIS_LAUNCH))},
        {"cache", json_string(lb_axis_word(c, LB_AXIS_CACHE))},
        {"timing", json_string(lb_axis_word(c, LB_AXIS_TIMING))},
        {"threads", json_integer(c->threads)},
        {"rate", c->rate ? json_integer(c->rate) : json_null()},
        {"instances", json_integer(c->instances)},
    };
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        json_object_set_new(object, keys[i].key, keys[i].value);
}

/* An array of counts [n], or of numbers where counts is NULL. */
static json_t *array_json(const size_t *counts, const double *numbers, size_t n)
{
    json_t *array = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(array, counts ? json_integer((json_int_t)counts[i])
                                            : number_json(numbers[i]));
    return array;
}

/* The names of the flags, separated by spaces. */
static json_t *flags_json(unsigned flags)
{
    char text[128] = "";
    for (size_t i = 0; i < LB_ANOMALY_COUNT; i++)
        if (flags & 1U << i)
            lb_append(text, sizeof(text), "%s%s", text[0] ? " " : "", lb_anomaly_names[i]);
    return json_string(text);
}

/* Puts the high percentiles of a stream, which readers compute anew. */
static void put_percentiles(json_t *object, const struct lb_row *row)
{
    static const char *const names[LB_PERCENTILES] = {"p90", "p99", "p999"};
    static const char *const bounds[] = {"", "_lo", "_hi"};
    for (int i = 0; i < LB_PERCENTILES; i++) {
        const struct lb_percentile time = lb_row_time(row, i);
        const double ns[] = {time.ns, time.lo_ns, time.hi_ns};
        for (size_t k = 0; k < sizeof(ns) / sizeof(ns[0]); k++) {
            char key[16];
            snprintf(key, sizeof(key), "%s%s_ns", names[i], bounds[k]);
            json_object_set_new(object, key, number_json(ns[k]));
        }
    }
    const double calls_per_s = lb_row_calls_per_s(row);
    json_object_set_new(object, "max_ns", number_json(lb_row_longest(row)));
    json_object_set_new(object, "calls_per_s", number_json(calls_per_s));
    json_object_set_new(object, "sequences_per_s",
                        number_json(calls_per_s * (double)row->c.problem.batch));
}

json_t *lb_row_to_json(const struct lb_row *row)
{
    json_t *object = json_object();
    json_object_set_new(object, "kind", json_string("row"));
    put_case(object, &row->c);
    json_object_set_new(object, "verdict", json_string(lb_verdict_name(row->verdict)));
    for (size_t i = 0; i < TEXT_KEYS; i++)
        json_object_set_new(object, text_keys[i].key,
                            json_string(*text_of((struct lb_row *)row, i)));
    json_object_set_new(object, "stop_reason", json_string(lb_stop_reason_name(row->stop_reason)));
    json_object_set_new(object, "flags", flags_json(row->flags));
    json_object_set_new(object, "hash", hash_json(row->hash));
    for (size_t i = 0; i < NUMBER_KEYS; i++)
        json_object_set_new(object, number_keys[i].key,
                            number_json(*number_of((struct lb_row *)row, i)));
    put_percentiles(object, row);
    enum lb_tensor_cores cores = lb_kernels_tensor_cores(&row->kernels);
    json_object_set_new(object, "tensor_cores",
                        row->kernels.items ? json_string(lb_tensor_cores_name(cores))
                                           : json_null());
    json_object_set_new(object, "kernels", lb_kernels_to_json(&row->kernels));
    json_object_set_new(object, "samples_ns", array_json(NULL, row->samples_ns, row->samples));
    json_object_set_new(object, "blocks", array_json(row->blocks, NULL, row->block_count));
    json_object_set_new(object, "reference_ns",
                        array_json(NULL, row->reference_ns, row->block_count));
    json_object_set_new(object, "processes", array_json(row->processes, NULL, row->process_count));
    return object;
}

void lb_row_print_id(const struct lb_row *row, char id[LB_ROW_ID_SIZE])
{
    size_t length = lb_case_print(&row->c, id);
    if (row->label)
        snprintf(id + length, LB_ROW_ID_SIZE - length, " on %s", row->label);
}

/* Reads the case from its text, which the keys beside it repeat for readers. */
static enum lb_status get_case(const json_t *object, struct lb_case *c, struct lb_error *err)
{
    struct lb_error why;
    const char *text = json_string_value(json_object_get(object, "case"));
    if (!text)
        return lb_fail(err, LB_INVALID, "case: it is missing or not text");
    if (lb_case_parse(text, c, NULL, NULL, &why) != LB_OK)
        return lb_fail(err, LB_INVALID, "case '%s': %.300s", text, why.text);
    return c->impl[0] ? LB_OK
                      : lb_fail(err, LB_INVALID, "case '%s': it names no implementation", text);
}

/* Reads a name and looks up its index in a table of names. */
static enum lb_status get_name(const json_t *object, const char *key, const char *const *names,
                               size_t count, size_t *index, struct lb_error *err)
{
    const char *text = json_string_value(json_object_get(object, key));
    for (*index = 0; text && *index < count; ++*index)
        if (strcmp(text, names[*index]) == 0)
            return LB_OK;
    return lb_fail(err, LB_INVALID, "%s: '%s' is not one of the %zu allowed words, '%s' to '%s'",
                   key, text ? text : "(none)", count, names[0], names[count - 1]);
}

static enum lb_status get_numbers(const json_t *object, struct lb_row *row, struct lb_error *err)
{
    for (size_t i = 0; i < NUMBER_KEYS; i++) {
        const struct number_key *key = &number_keys[i];
        const json_t *value = json_object_get(object, key->key);
        if (!value || json_is_null(value) || key->rule == DERIVED)
            continue;
        if (!json_is_number(value) || !(json_number_value(value) >= 0))
            return lb_fail(err, LB_INVALID, "%s: it must be null or a number of 0 or more",
                           key->key);
        *number_of(row, i) = json_number_value(value);
    }
    return LB_OK;
}

static void get_texts(const json_t *object, struct lb_row *row)
{
    for (size_t i = 0; i < TEXT_KEYS; i++)
        lb_row_print(text_of(row, i), "%s", lb_json_text(object, text_keys[i].key, ""));
    const char *node = json_string_value(json_object_get(object, "node_warning"));
    const char *digits = json_string_value(json_object_get(object, "hash"));
    if (node) /* added by --merge */
        lb_row_warn(row, "%s", node);
    row->hash = digits ? strtoull(digits, NULL, 16) : 0;
}

/* Element i of an array of counts; without an array, the whole. */
static size_t count_at(const json_t *array, size_t i, size_t whole)
{
    return array ? (size_t)json_integer_value(json_array_get(array, i)) : whole;
}

/* Reads the samples, how many each block has (without it they are one block), and how many blocks
 * each process has (without it they are of one process). */
static enum lb_status get_samples(const json_t *object, struct lb_row *row, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const json_t *samples = json_object_get(object, "samples_ns");
    const json_t *blocks = json_object_get(object, "blocks");
    const json_t *references = json_object_get(object, "reference_ns");
    const json_t *processes = json_object_get(object, "processes");
    size_t total = json_array_size(samples);
    size_t block_count = blocks ? json_array_size(blocks) : total > 0;
    size_t process_count = processes ? json_array_size(processes) : block_count > 0;
    bool fits = true;
    double *values = lb_needed(malloc((total + 1) * sizeof(*values)));
    for (size_t i = 0; i < total; i++) {
        values[i] = json_number_value(json_array_get(samples, i));
        if (!(values[i] > 0))
            LB_TRY(lb_fail(err, LB_INVALID, "samples_ns[%zu]: it must be a number above 0", i));
    }
    for (size_t p = 0; p < process_count && fits; p++) {
        lb_row_add_process(row);
        for (size_t left = count_at(processes, p, block_count); left > 0 && fits; left--) {
            size_t block = row->block_count, count = count_at(blocks, block, total);
            double reference = json_number_value(json_array_get(references, block));
            fits = block < block_count && count <= total - row->samples;
            if (fits)
                lb_row_add_block(row, values + row->samples, count);
            if (fits && reference > 0)
                lb_row_set_reference(row, reference);
        }
    }
    if (!fits || row->block_count != block_count || row->samples != total)
        st =
            lb_fail(err, LB_INVALID, "processes, blocks and samples_ns: their counts do not agree");
done:
    free(values);
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
    get_texts(object, row);
    LB_TRY(get_numbers(object, row, err));
    LB_TRY(get_samples(object, row, err));
    LB_TRY(lb_kernels_from_json(json_object_get(object, "kernels"), &row->kernels, err));
    lb_row_summarize(row);
done:
    if (st != LB_OK)
        lb_row_free(row);
    return st;
}
