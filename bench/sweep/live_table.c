/* The table of a sweep on a terminal, problem by problem while the sweep runs. */
#include "sweep/live_table.h"

#include <stdlib.h>
#include <string.h>

#include "plot/table.h"
#include "record/run_devices.h"

static enum lb_status no_memory(struct lb_error *err)
{
    return lb_fail(err, LB_OOM, "out of memory for the table");
}

enum lb_status lb_live_begin(struct lb_live_table *live, json_t *header,
                             const struct lb_case *cases, size_t count, struct lb_error *err)
{
    char problem[LB_CASE_ID_SIZE], machine[1024];
    live->left = json_object();
    live->run.header = json_incref(header);
    live->run.environments = json_pack("[O]", json_object_get(header, "environment"));
    for (size_t i = 0; i < count; i++) {
        lb_case_print_problem(&cases[i], problem);
        json_int_t others = json_integer_value(json_object_get(live->left, problem));
        if (json_object_set_new(live->left, problem, json_integer(others + 1)) != 0)
            return no_memory(err);
    }
    if (!live->run.environments)
        return no_memory(err);
    lb_run_machine_line(&live->run, machine, sizeof(machine));
    printf("%s\n", machine);
    fflush(stdout);
    return LB_OK;
}

/* Takes the rows of the problem out of the table and prints them. */
static enum lb_status print_problem(struct lb_live_table *live, const char *problem,
                                    struct lb_error *err)
{
    struct lb_run shown = live->run;
    struct lb_grouped_run grouped = {0};
    size_t waiting = 0;
    char text[LB_CASE_ID_SIZE];
    shown.count = 0;
    shown.rows = calloc(live->run.count + 1, sizeof(*shown.rows));
    if (!shown.rows)
        return no_memory(err);
    for (size_t i = 0; i < live->run.count; i++) {
        struct lb_row *row = &live->run.rows[i];
        lb_case_print_problem(&row->c, text);
        if (strcmp(text, problem) == 0)
            shown.rows[shown.count++] = *row;
        else
            live->run.rows[waiting++] = *row;
    }
    live->run.count = waiting;
    enum lb_status st = lb_group_run(&shown, NULL, &grouped, err);
    if (st == LB_OK)
        st = lb_table_print_problems(stdout, &grouped, live->baseline, err);
    fflush(stdout);
    lb_grouped_run_free(&grouped);
    for (size_t i = 0; i < shown.count; i++)
        lb_row_free(&shown.rows[i]);
    free(shown.rows);
    return st;
}

enum lb_status lb_live_add(struct lb_live_table *live, struct lb_row *row, struct lb_error *err)
{
    char problem[LB_CASE_ID_SIZE];
    if (!live->left)
        return LB_OK;
    if (live->run.count == live->capacity) {
        size_t capacity = 2 * live->capacity + 16;
        struct lb_row *grown = realloc(live->run.rows, capacity * sizeof(*grown));
        if (!grown)
            return no_memory(err);
        live->run.rows = grown;
        live->capacity = capacity;
    }
    lb_case_print_problem(&row->c, problem);
    live->run.rows[live->run.count++] = *row;
    *row = (struct lb_row){0};
    json_int_t others = json_integer_value(json_object_get(live->left, problem)) - 1;
    if (json_object_set_new(live->left, problem, json_integer(others)) != 0)
        return no_memory(err);
    return others > 0 ? LB_OK : print_problem(live, problem, err);
}

enum lb_status lb_live_end(struct lb_live_table *live, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    while (st == LB_OK && live->run.count > 0) {
        char problem[LB_CASE_ID_SIZE];
        lb_case_print_problem(&live->run.rows[0].c, problem);
        st = print_problem(live, problem, err);
    }
    return st;
}

void lb_live_free(struct lb_live_table *live)
{
    lb_run_free(&live->run);
    json_decref(live->left);
    *live = (struct lb_live_table){0};
}
