/* Case files: one problem or whole case per line. */
#include "model/case_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/memory.h"

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

static void add_source(struct lb_case_list *list, const char *name)
{
    list->sources = lb_room(list->sources, list->source_count, sizeof(*list->sources));
    list->sources[list->source_count++] = lb_needed(strdup(name));
}

/* Appends a line of the last source. */
static void add_line(struct lb_case_list *list, struct lb_case_line line)
{
    list->lines = lb_room(list->lines, list->count, sizeof(*list->lines));
    list->lines[list->count++] = line;
}

enum lb_status lb_case_list_add(struct lb_case_list *list, const char *source, const char *text,
                                struct lb_error *err)
{
    struct lb_case_line line = {.source = list->source_count, .column = 1};
    struct lb_error why;
    int column = 1;
    enum lb_status st = lb_case_parse(text, &line.c, &line.given, &column, &why);
    if (st != LB_OK)
        return lb_fail(err, st, "%s %.200s: column %d: %.250s", source, *text ? text : "''", column,
                       why.text);
    add_source(list, source);
    add_line(list, line);
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

    if (strlen(text) < length)
        return lb_fail(err, LB_INVALID,
                       "%s:%zu:%zu: a zero byte: the file is damaged or is no text", path, number,
                       strlen(text) + 1);
    if (number == 1 && strncmp(text, "\xef\xbb\xbf", 3) == 0) /* UTF-8's byte order mark */
        text += 3;
    text[strcspn(text, "#")] = '\0';
    char *start = text + strspn(text, " \t\r\n"), *end = start + strlen(start);
    while (end > start && strchr(" \t\r\n", end[-1]))
        *--end = '\0';
    if (start == end)
        return LB_OK;
    line.column = (size_t)(start - text) + 1;
    enum lb_status st = lb_case_parse(start, &line.c, &line.given, &column, &why);
    if (st != LB_OK)
        return lb_fail(err, st, "%s:%zu:%td: %.300s", path, number, start - text + column,
                       why.text);
    add_line(list, line);
    return LB_OK;
}

enum lb_status lb_case_list_read(struct lb_case_list *list, const char *path, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    size_t count = list->count, capacity = 0;
    char *text = NULL;
    FILE *file = fopen(path, "r");
    if (!file)
        return lb_fail(err, LB_INVALID, "%s: %s", path, strerror(errno));
    add_source(list, path);
    ssize_t length;
    for (size_t number = 1; st == LB_OK && (length = getline(&text, &capacity, file)) >= 0;
         number++)
        st = read_line(list, number, text, (size_t)length, err);
    if (st == LB_OK && ferror(file)) /* a folder, or a failing disk */
        st = lb_fail(err, LB_INVALID, "%s: %s", path, strerror(errno));
    else if (st == LB_OK && list->count == count)
        st = lb_fail(err, LB_INVALID, "%s: the file has no case; one per line is expected", path);
    free(text);
    fclose(file);
    return st;
}
