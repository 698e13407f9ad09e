/* Results of several devices or nodes in one run: keeping them apart, or side by side. */
#include "record/run_file.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "record/environment.h"

/* The labels of environments: one object maps the text of a device or node to its label, and the
 * other maps a label to how often it was given. */
struct labels {
    json_t *by_key, *given;
    bool nodes;
};

/* Returns the text by which environments are distinguished, which the caller frees. */
static char *key_of(const struct labels *labels, const json_t *environment)
{
    char node[256];
    json_t *kind = lb_environment_kind(environment);
    lb_environment_node(environment, node, sizeof(node));
    if (labels->nodes)
        json_object_set_new(kind, "node", json_string(node));
    char *key = json_dumps(kind, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(kind);
    return key;
}

/* Returns the label of an environment, a string that lives as long as the labels do. When two
 * different devices or builds would get the same label, the second one gets a number. */
static json_t *label_of(struct labels *labels, const json_t *environment)
{
    char name[LB_LABEL_SIZE - 8], label[LB_LABEL_SIZE];
    char *key = key_of(labels, environment);
    json_t *known = json_object_get(labels->by_key, key);
    if (!known) {
        if (labels->nodes)
            lb_environment_node(environment, name, sizeof(name));
        else
            lb_environment_device(environment, name, sizeof(name));
        /* Labels appear in pictures, pages and names of files. */
        for (char *at = name; *at; at++)
            if (!isalnum((unsigned char)*at) && !strchr(" .,()+_:#-", *at))
                *at = '-';
        json_int_t times = 1 + json_integer_value(json_object_get(labels->given, name));
        snprintf(label, sizeof(label), times > 1 ? "%s #%d" : "%s", name, (int)times);
        known = json_string(label);
        json_object_set_new(labels->given, name, json_integer(times));
        json_object_set_new(labels->by_key, key, known);
    }
    free(key);
    return known;
}

/* Writes the labels of the environments that the run's rows have into run->labels. *several becomes
 * true when they differ. */
static void label_environments(struct labels *labels, struct lb_run *run, bool *several)
{
    size_t environments = json_array_size(run->environments);
    const json_t *first = NULL;
    run->labels = json_array();
    for (size_t i = 0; i < environments; i++)
        json_array_append_new(run->labels, json_null());
    for (size_t i = 0; i < run->count; i++) {
        size_t number = run->rows[i].environment;
        if (number >= environments || !json_is_null(json_array_get(run->labels, number)))
            continue;
        json_t *label = label_of(labels, json_array_get(run->environments, number));
        json_array_set(run->labels, number, label);
        first = first ? first : label;
        *several |= label != first;
    }
}

/* Combines the rows of one case and one label into the first of them. */
static void pool_rows(struct lb_run *run)
{
    json_t *first = json_object(); /* from the text of case and label to the number of the row */
    size_t kept = 0;
    for (size_t i = 0; i < run->count; i++) {
        char id[LB_ROW_ID_SIZE];
        struct lb_row *row = &run->rows[i];
        lb_row_print_id(row, id);
        size_t number = lb_json_number(first, id, kept);
        if (number < kept) {
            lb_row_pool(&run->rows[number], row);
            lb_row_free(row);
        } else {
            run->rows[kept++] = *row;
        }
    }
    run->count = kept;
    json_decref(first);
}

void lb_run_arrange(struct lb_run *runs, size_t count, enum lb_by by)
{
    struct labels labels = {json_object(), json_object(), by == LB_BY_NODE};
    bool several = false;
    for (size_t i = 0; i < count; i++)
        label_environments(&labels, &runs[i], &several);
    if (by == LB_BY_NONE)
        several = false;
    else if (by != LB_BY_DEFAULT)
        several = json_object_size(labels.by_key) > 1;
    for (struct lb_run *run = runs; run < runs + count; run++) {
        for (size_t i = 0; several && i < run->count; i++) {
            struct lb_row *row = &run->rows[i];
            row->label = json_string_value(json_array_get(run->labels, row->environment));
            row->beside = by != LB_BY_DEFAULT;
        }
        if (json_array_size(run->environments) > 1)
            pool_rows(run);
    }
    json_decref(labels.by_key);
    json_decref(labels.given);
}

enum lb_status lb_run_read_by(const char *path, enum lb_by by, struct lb_run *run,
                              struct lb_error *err)
{
    enum lb_status st = lb_run_read(path, run, err);
    if (st == LB_OK)
        lb_run_arrange(run, 1, by);
    return st;
}

void lb_run_machine_line(const struct lb_run *run, char *line, size_t size)
{
    size_t count = json_array_size(run->environments), i;
    json_t *environment, *number;
    const char *name, *separator = ": ";
    if (count < 2) {
        lb_environment_line(json_object_get(run->header, "environment"), line, size);
        return;
    }
    json_t *counts = json_object();
    json_array_foreach(run->environments, i, environment)
    {
        char device[256];
        lb_environment_device(environment, device, sizeof(device));
        json_int_t before = json_integer_value(json_object_get(counts, device));
        json_object_set_new(counts, device, json_integer(before + 1));
    }
    snprintf(line, size, "%zu environments", count);
    json_object_foreach(counts, name, number)
    {
        lb_append(line, size, "%s%d x %s", separator, (int)json_integer_value(number), name);
        separator = ", ";
    }
    json_decref(counts);
}
