/* Reading the file of a run back, up to its last whole line. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "record/run_file.h"

/* Where the reader is. */
struct reader {
    FILE *stream;
    const char *path;
    size_t line;
    json_t *index;   /* object: case text to the number of its row */
    size_t capacity; /* of run->rows */
};

static enum lb_status read_header(struct reader *reader, const json_t *object, struct lb_run *run,
                                  struct lb_error *err)
{
    const json_t *schema = json_object_get(object, "schema");
    if (!json_is_integer(schema))
        return lb_fail(err, LB_INVALID, "%s:%zu: the header has no schema version", reader->path,
                       reader->line);
    if (json_integer_value(schema) != LB_SCHEMA_VERSION)
        return lb_fail(err, LB_INVALID, "%s:%zu: schema version %lld, this program reads %d",
                       reader->path, reader->line, (long long)json_integer_value(schema),
                       LB_SCHEMA_VERSION);
    if (!run->header)
        run->header = json_incref((json_t *)object);
    return LB_OK;
}

/* Adds the row, or puts it in the place of an earlier one of the same case. */
static enum lb_status read_row(struct reader *reader, const json_t *object, struct lb_run *run,
                               struct lb_error *err)
{
    struct lb_row row;
    struct lb_error why;
    enum lb_status st = lb_row_from_json(object, &row, &why);
    if (st != LB_OK)
        return lb_fail(err, st, "%s:%zu: %.400s", reader->path, reader->line, why.text);

    char id[LB_CASE_ID_SIZE];
    lb_case_print(&row.c, id);
    const json_t *earlier = json_object_get(reader->index, id);
    if (earlier) {
        struct lb_row *place = &run->rows[json_integer_value(earlier)];
        lb_row_free(place);
        *place = row;
        run->duplicates++;
        return LB_OK;
    }
    if (run->count == reader->capacity) {
        size_t capacity = reader->capacity ? 2 * reader->capacity : 64;
        struct lb_row *rows = realloc(run->rows, capacity * sizeof(*rows));
        if (!rows)
            goto no_memory;
        run->rows = rows;
        reader->capacity = capacity;
    }
    if (json_object_set_new(reader->index, id, json_integer((json_int_t)run->count)) != 0)
        goto no_memory;
    run->rows[run->count++] = row;
    return LB_OK;
no_memory:
    lb_row_free(&row);
    return lb_fail(err, LB_OOM, "%s:%zu: out of memory", reader->path, reader->line);
}

/* One whole line; text [length] without its end. */
static enum lb_status read_line(struct reader *reader, const char *text, size_t length,
                                struct lb_run *run, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    json_error_t why;
    json_t *object = json_loadb(text, length, JSON_REJECT_DUPLICATES, &why);
    const char *kind = json_string_value(json_object_get(object, "kind"));
    run->finished = run->interrupted = false;
    if (!object)
        st = lb_fail(err, LB_INVALID, "%s:%zu: not JSON: %.200s", reader->path, reader->line,
                     why.text);
    else if (!kind || (!run->header && strcmp(kind, "header") != 0))
        st = lb_fail(err, LB_INVALID, "%s:%zu: not a line of a run: %s", reader->path, reader->line,
                     run->header ? "it has no kind" : "the first must be the header");
    else if (strcmp(kind, "header") == 0)
        st = read_header(reader, object, run, err);
    else if (strcmp(kind, "row") == 0)
        st = read_row(reader, object, run, err);
    else if (strcmp(kind, "resume") == 0)
        st = json_array_append(run->resumes, object) == 0
                 ? LB_OK
                 : lb_fail(err, LB_OOM, "%s:%zu: out of memory", reader->path, reader->line);
    else if (strcmp(kind, "footer") == 0) {
        run->finished = true;
        run->interrupted = json_is_true(json_object_get(object, "interrupted"));
    } else
        st = lb_fail(err, LB_INVALID,
                     "%s:%zu: kind '%.40s' is not one of header, row, resume, footer", reader->path,
                     reader->line, kind);
    json_decref(object);
    return st;
}

static enum lb_status read_lines(struct reader *reader, struct lb_run *run, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    char *text = NULL;
    size_t size = 0;
    ssize_t length;
    reader->index = json_object();
    run->resumes = json_array();
    while ((length = getline(&text, &size, reader->stream)) > 0) {
        reader->line++;
        run->torn = text[length - 1] != '\n';
        if (run->torn)
            break;
        LB_TRY(read_line(reader, text, (size_t)length - 1, run, err));
        run->whole_bytes += length;
    }
    if (ferror(reader->stream))
        st = lb_fail(err, LB_IO, "%s: %s", reader->path, strerror(errno));
    else if (!run->header)
        st = lb_fail(err, LB_INVALID, "%s: it holds no whole line of a run", reader->path);
done:
    free(text);
    json_decref(reader->index);
    return st;
}

enum lb_status lb_run_read(const char *path, struct lb_run *run, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct stat status;
    char *inside = NULL;
    struct reader reader = {.path = path};
    *run = (struct lb_run){0};
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        reader.path = inside = lb_run_path(path);
    if (!reader.path)
        return lb_fail(err, LB_OOM, "%s: out of memory", path);
    reader.stream = fopen(reader.path, "r");
    if (!reader.stream) {
        st = lb_fail(err, LB_IO, "%s: %s", reader.path, strerror(errno));
        goto done;
    }
    LB_TRY(read_lines(&reader, run, err));
done:
    if (reader.stream)
        fclose(reader.stream);
    free(inside);
    if (st != LB_OK)
        lb_run_free(run);
    return st;
}

void lb_run_free(struct lb_run *run)
{
    for (size_t i = 0; i < run->count; i++)
        lb_row_free(&run->rows[i]);
    free(run->rows);
    json_decref(run->header);
    json_decref(run->resumes);
    *run = (struct lb_run){0};
}
