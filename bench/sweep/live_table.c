/* The table of a sweep on a terminal, problem by problem while the sweep runs. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "plot/grouped_run.h"
#include "record/run_file.h"
#include "sweep/sweep_steps.h"

void lb_live_begin(struct lb_live_table *live, json_t *header, const struct lb_case *cases,
                   size_t count)
{
    char problem[LB_CASE_ID_SIZE], machine[1024];
    live->left = json_object();
    live->run.header = json_incref(header);
    live->run.environments = json_pack("[O]", json_object_get(header, "environment"));
    for (size_t i = 0; i < count; i++) {
        lb_case_print_problem(&cases[i], problem);
        json_int_t others = json_integer_value(json_object_get(live->left, problem));
        json_object_set_new(live->left, problem, json_integer(others + 1));
    }
    lb_run_machine_line(&live->run, machine, sizeof(machine));
    printf("%s\n", machine);
    fflush(stdout);
}

/* Takes the rows of the problem out of the table and prints them. */
static void print_problem(struct lb_live_table *live, const char *problem)
{
    struct lb_run shown = live->run;
    struct lb_grouped_run grouped;
    size_t waiting = 0;
    char text[LB_CASE_ID_SIZE];
    shown.count = 0;
    shown.rows = lb_needed(calloc(live->run.count, sizeof(*shown.rows)));
    for (size_t i = 0; i < live->run.count; i++) {
        struct lb_row *row = &live->run.rows[i];
        lb_case_print_problem(&row->c, text);
        if (strcmp(text, problem) == 0)
            shown.rows[shown.count++] = *row;
        else
            live->run.rows[waiting++] = *row;
    }
    live->run.count = waiting;
    lb_group_run(&shown, NULL, &grouped);
    lb_table_print_problems(stdout, &grouped, live->baseline);
    fflush(stdout);
    lb_grouped_run_free(&grouped);
    for (size_t i = 0; i < shown.count; i++)
        lb_row_free(&shown.rows[i]);
    free(shown.rows);
}

void lb_live_add(struct lb_live_table *live, struct lb_row *row)
{
    char problem[LB_CASE_ID_SIZE];
    lb_case_print_problem(&row->c, problem);
    live->run.rows = lb_room(live->run.rows, live->run.count, sizeof(*live->run.rows));
    live->run.rows[live->run.count++] = *row;
    *row = (struct lb_row){0};
    json_int_t others = json_integer_value(json_object_get(live->left, problem)) - 1;
    json_object_set_new(live->left, problem, json_integer(others));
    if (others <= 0)
        print_problem(live, problem);
}

void lb_live_end(struct lb_live_table *live)
{
    while (live->run.count > 0) {
        char problem[LB_CASE_ID_SIZE];
        lb_case_print_problem(&live->run.rows[0].c, problem);
        print_problem(live, problem);
    }
}

void lb_live_free(struct lb_live_table *live)
{
    lb_run_free(&live->run);
    json_decref(live->left);
    *live = (struct lb_live_table){0};
}
