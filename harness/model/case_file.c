/* Case files: one problem or whole case per line. */
#include "model/case_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

void lb_case_list_free(struct lb_case_list *list)
{
    for (size_t i = 0; i < list->source_count; i++)
        free(list->sources[i]);
    free(list->sources);
    free(list->lines);
    *list = (struct lb_case_list){0};
}

const char *lb_case_line_origin(const struct lb_case_list *list, const struct lb_case_line *line,
                                char *text, size_t size)
{
    if (line->line)
        snprintf(text, size, "%s:%zu:%zu", list->sources[line->source], line->line, line->column);
    else
        snprintf(text, size, "%s", list->sources[line->source]);
    return text;
}

static enum lb_status add_source(struct lb_case_list *list, const char *name, struct lb_error *err)
{
    char **grown = realloc(list->sources, (list->source_count + 1) * sizeof(*grown));
    if (!grown)
        return lb_fail(err, LB_OOM, "%s: out of memory", name);
    list->sources = grown;
    grown[list->source_count] = strdup(name);
    if (!grown[list->source_count])
        return lb_fail(err, LB_OOM, "%s: out of memory", name);
    list->source_count++;
    return LB_OK;
}

/* Appends a line of the last source. */
static enum lb_status add_line(struct lb_case_list *list, struct lb_case_line line,
                               struct lb_error *err)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 16;
        struct lb_case_line *grown = realloc(list->lines, capacity * sizeof(*grown));
        if (!grown)
            return lb_fail(err, LB_OOM, "%s: out of memory", list->sources[line.source]);
        list->lines = grown;
        list->capacity = capacity;
    }
    list->lines[list->count++] = line;
    return LB_OK;
}

/* Removes the lines and sources that a failed read has appended. */
static void roll_back(struct lb_case_list *list, size_t count, size_t source_count)
{
    list->count = count;
    while (list->source_count > source_count)
        free(list->sources[--list->source_count]);
}

enum lb_status lb_case_list_add(struct lb_case_list *list, const char *source, const char *text,
                                struct lb_error *err)
{
    enum lb_status st = LB_OK;
    size_t count = list->count, source_count = list->source_count;
    struct lb_case_line line = {.source = source_count, .column = 1};
    struct lb_error why;
    int column = 1;

    LB_TRY(add_source(list, source, err));
    st = lb_case_parse(text, &line.c, &line.given, &column, &why);
    if (st != LB_OK)
        lb_fail(err, st, "%s %.200s: column %d: %.250s", source, *text ? text : "''", column,
                why.text);
    else
        st = add_line(list, line, err);
done:
    if (st != LB_OK)
        roll_back(list, count, source_count);
    return st;
}

static bool is_blank(char ch)
{
    return ch == ' ' || ch == '\t' || ch == '\r' || ch == '\n';
}

/* Refuses control characters: they are invisible in an editor, and quoting them in a message could
 * disturb the terminal. */
static enum lb_status check_text(const char *path, size_t number, const char *text, size_t length,
                                 struct lb_error *err)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char ch = (unsigned char)text[i];
        if ((ch < ' ' && !is_blank(text[i])) || ch == 0x7f)
            return lb_fail(
                err, LB_INVALID,
                "%s:%zu:%zu: byte 0x%02x: a case file must be text, with one case per line", path,
                number, i + 1, ch);
    }
    return LB_OK;
}

/* Reads one line of the last source, with its newline; changes text. */
static enum lb_status read_line(struct lb_case_list *list, size_t number, char *text, size_t length,
                                struct lb_error *err)
{
    const char *path = list->sources[list->source_count - 1];
    struct lb_case_line line = {.source = list->source_count - 1, .line = number};
    struct lb_error why;
    int column = 1;

    if (number == 1 && strncmp(text, "\xef\xbb\xbf", 3) == 0) { /* UTF-8's byte order mark */
        text += 3;
        length -= 3;
    }
    enum lb_status st = check_text(path, number, text, length, err);
    if (st != LB_OK)
        return st;
    text[strcspn(text, "#")] = '\0';
    char *start = text + strspn(text, " \t\r\n"), *end = start + strlen(start);
    while (end > start && is_blank(end[-1]))
        *--end = '\0';
    if (start == end)
        return LB_OK;
    line.column = (size_t)(start - text) + 1;
    st = lb_case_parse(start, &line.c, &line.given, &column, &why);
    if (st != LB_OK)
        return lb_fail(err, st, "%s:%zu:%td: %.300s", path, number, start - text + column,
                       why.text);
    return add_line(list, line, err);
}

enum lb_status lb_case_list_read(struct lb_case_list *list, const char *path, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    size_t count = list->count, source_count = list->source_count, capacity = 0;
    char *text = NULL;
    FILE *file = fopen(path, "r");
    if (!file)
        return lb_fail(err, LB_INVALID, "%s: %s", path, strerror(errno));

    LB_TRY(add_source(list, path, err));
    for (size_t number = 1;; number++) {
        errno = 0;
        ssize_t length = getline(&text, &capacity, file);
        if (length < 0)
            break;
        LB_TRY(read_line(list, number, text, (size_t)length, err));
    }
    if (!feof(file)) /* a directory, a failing disk, or no memory for the line */
        st = lb_fail(err, errno == ENOMEM ? LB_OOM : LB_INVALID, "%s: %s", path, strerror(errno));
    else if (list->count == count)
        st = lb_fail(err, LB_INVALID, "%s: the file has no case; one per line is expected", path);
done:
    if (st != LB_OK)
        roll_back(list, count, source_count);
    free(text);
    fclose(file);
    return st;
}
