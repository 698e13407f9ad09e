/* Rows of a run from JSON. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "record/record_keys.h"

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
    if (!lb_put_case(expected, c))
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
    for (size_t i = 0; i < LB_NUMBER_KEYS; i++) {
        const struct lb_number_key *key = &lb_number_keys[i];
        const json_t *value = json_object_get(object, key->key);
        if (!value || json_is_null(value) || key->derived)
            continue;
        if (!json_is_number(value) || !(json_number_value(value) >= 0))
            return lb_fail(err, LB_INVALID, "%s: it must be null or a number of 0 or more",
                           key->key);
        *lb_row_number(row, i) = json_number_value(value);
    }
    return LB_OK;
}

static enum lb_status get_texts(const json_t *object, struct lb_row *row, struct lb_error *err)
{
    for (size_t i = 0; i < LB_TEXT_KEYS; i++) {
        const struct lb_text_key *key = &lb_text_keys[i];
        const json_t *value = json_object_get(object, key->key);
        if (value && !json_is_string(value))
            return lb_fail(err, LB_INVALID, "%s: it must be text", key->key);
        char *text = (char *)row + key->offset;
        snprintf(text, key->size, "%s", value ? json_string_value(value) : "");
        lb_clean_text(text); /* it ends up on terminals */
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
        if (!json_is_number(value) || !(values[i] > 0)) {
            st = lb_fail(err, LB_INVALID, "samples_ns[%zu]: it must be a number above 0",
                         row->samples + i);
            goto done;
        }
    }
    st = lb_row_add_block(row, values, count, err);
done:
    free(values);
    return st;
}

/* The count at array[i], which may be at most left. */
static enum lb_status get_count(const json_t *array, const char *key, size_t i, size_t left,
                                size_t *count, struct lb_error *err)
{
    const json_t *value = json_array_get(array, i);
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        json_integer_value(value) > (json_int_t)left)
        return lb_fail(err, LB_INVALID, "%s[%zu]: it must be a count of 0 to %zu", key, i, left);
    *count = (size_t)json_integer_value(value);
    return LB_OK;
}

/* How the blocks, which are read already, are dealt to processes. */
static enum lb_status get_processes(const json_t *object, struct lb_row *row, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const json_t *processes = json_object_get(object, "processes");
    size_t total = 0;
    if (!processes)
        return LB_OK; /* one process, as adding the blocks has it */
    if (!json_is_array(processes))
        return lb_fail(err, LB_INVALID, "processes: it must be an array");
    row->process_count = 0;
    for (size_t i = 0; i < json_array_size(processes); i++) {
        size_t count = 0;
        LB_TRY(get_count(processes, "processes", i, row->block_count - total, &count, err));
        LB_TRY(lb_row_add_process(row, err));
        row->processes[i] = count;
        total += count;
    }
    if (total != row->block_count)
        st = lb_fail(err, LB_INVALID, "processes: they hold %zu blocks, there are %zu", total,
                     row->block_count);
done:
    return st;
}

static enum lb_status get_samples(const json_t *object, struct lb_row *row, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const json_t *samples = json_object_get(object, "samples_ns");
    const json_t *blocks = json_object_get(object, "blocks");
    size_t total = json_array_size(samples), count = 0;
    if (samples && !json_is_array(samples))
        return lb_fail(err, LB_INVALID, "samples_ns: it must be an array");
    if (blocks && !json_is_array(blocks))
        return lb_fail(err, LB_INVALID, "blocks: it must be an array");

    for (size_t i = 0; i < json_array_size(blocks); i++) {
        LB_TRY(get_count(blocks, "blocks", i, total - row->samples, &count, err));
        LB_TRY(get_block(samples, count, row, err));
    }
    if (!blocks && total > 0)
        LB_TRY(get_block(samples, total, row, err));
    if (row->samples != total)
        LB_TRY(lb_fail(err, LB_INVALID, "blocks: they hold %zu samples, samples_ns has %zu",
                       row->samples, total));
    st = get_processes(object, row, err);
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
    LB_TRY(get_name(object, "verdict", lb_verdict_names, LB_VERDICT_COUNT, &index, err));
    row->verdict = (enum lb_verdict)index;
    if (json_object_get(object, "stop_reason")) {
        LB_TRY(get_name(object, "stop_reason", lb_stop_names, LB_STOP_COUNT, &index, err));
        row->stop_reason = (enum lb_stop_reason)index;
    }
    LB_TRY(get_texts(object, row, err));
    LB_TRY(get_numbers(object, row, err));
    LB_TRY(get_samples(object, row, err));
    LB_TRY(lb_kernels_from_json(json_object_get(object, "kernels"), &row->kernels, err));
    LB_TRY(lb_row_summarize(row, err));
done:
    if (st != LB_OK)
        lb_row_free(row);
    return st;
}
