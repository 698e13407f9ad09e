/* A run as CSV. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "report/export.h"

/* Writes the text behind prefix, all of it in quotes. */
static void write_quoted(const char *prefix, const char *text, FILE *out)
{
    fprintf(out, "\"%s", prefix);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

/* Writes one field; text is quoted when RFC 4180 requires it, and null becomes empty. Spreadsheets
 * take text that begins with = + - @ for a formula, which a foreign record must not bring: such
 * text gets an apostrophe in front, which they take for the mark of text. */
static enum lb_status write_field(const json_t *value, FILE *out)
{
    const char *text = json_string_value(value);
    if (json_is_array(value)) {
        fprintf(out, "%zu", json_array_size(value));
    } else if (text && text[0] && strchr("=+-@", text[0])) {
        write_quoted("'", text, out);
    } else if (text && strpbrk(text, ",\"\r\n")) {
        write_quoted("", text, out);
    } else if (text) {
        fputs(text, out);
    } else if (!json_is_null(value)) {
        char *number = json_dumps(value, JSON_ENCODE_ANY);
        if (!number)
            return LB_OOM;
        fputs(number, out);
        free(number);
    }
    return LB_OK;
}

/* Whether the key has no column: the kind of the line is always row, and of the times of the fixed
 * loop nothing would be left but their number, which is that of the blocks. */
static bool is_left_out(const char *key)
{
    return strcmp(key, "kind") == 0 || strcmp(key, "reference_ns") == 0;
}

/* Writes the names of the columns. The column of samples_ns, which has the number of samples, loses
 * the unit. */
static void write_names(json_t *columns, FILE *out)
{
    const char *key, *separator = "";
    json_t *value;
    json_object_foreach(columns, key, value)
    {
        if (is_left_out(key))
            continue;
        fprintf(out, "%s%s", separator, strcmp(key, "samples_ns") == 0 ? "samples" : key);
        separator = ",";
    }
    fputc('\n', out);
}

static enum lb_status write_row(const struct lb_row *row, FILE *out)
{
    const char *key, *separator = "";
    json_t *value, *record = lb_row_to_json(row);
    if (record && row->label)
        json_object_set_new(record, "device", json_string(row->label));
    enum lb_status st = record ? LB_OK : LB_OOM;
    json_object_foreach(record, key, value)
    {
        if (st != LB_OK || is_left_out(key))
            continue;
        fputs(separator, out);
        separator = ",";
        st = write_field(value, out);
    }
    fputc('\n', out);
    json_decref(record);
    return st;
}

enum lb_status lb_export_csv(const struct lb_run *run, FILE *out, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_case c = lb_case_defaults();
    struct lb_row empty = lb_row_make(&c);
    json_t *columns = lb_row_to_json(&empty);
    if (columns && run->count > 0 && run->rows[0].label)
        json_object_set_new(columns, "device", json_null());
    write_names(columns, out);
    st = columns ? LB_OK : LB_OOM;
    for (size_t i = 0; st == LB_OK && i < run->count; i++)
        st = write_row(&run->rows[i], out);
    json_decref(columns);
    return st == LB_OK ? LB_OK : lb_fail(err, st, "csv: out of memory");
}
