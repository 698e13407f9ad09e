/* --explain FRAMEWORK 'units=512, ...': whether a framework runs its fast kernel for a layer. */
#include "commands/commands.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/criteria.h"
#include "plot/grouped_run.h"
#include "record/run_file.h"
#include "support/terminal.h"

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static void print_table(const struct lb_criteria *criteria)
{
    size_t i;
    json_t *rule;
    printf("%-22s %-16s %-40s %s\n", "criterion", "yours", "needed", "met");
    json_array_foreach(json_object_get(criteria->file, "criteria"), i, rule)
    {
        char needed[200];
        const json_t *needs = json_object_get(rule, "needs");
        const char *setting = json_string_value(json_array_get(needs, 0));
        lb_condition_text(needs, needed, sizeof(needed));
        bool matters = lb_condition_holds(criteria, json_object_get(rule, "if"));
        printf("%-22s %-16s %-40s %s\n", setting, lb_criteria_value(criteria, setting), needed,
               !matters                        ? "does not matter"
               : lb_rule_holds(criteria, rule) ? "yes"
                                               : "no");
    }
    putchar('\n');
}

/* What runs instead when some criteria are not met, and which settings meet them. */
static void print_slow(const struct lb_criteria *criteria)
{
    size_t i;
    json_t *rule;
    printf("runs      not %s\n", text_of(criteria->file, "fast"));
    lb_print_labelled("instead   ", text_of(criteria->file, "instead"));
    json_array_foreach(json_object_get(criteria->file, "criteria"), i, rule)
    {
        if (lb_rule_holds(criteria, rule))
            continue;
        const char *setting = json_string_value(json_array_get(json_object_get(rule, "needs"), 0));
        printf("\n%s=%s\n", setting, lb_criteria_value(criteria, setting));
        lb_print_labelled("  then    ", text_of(rule, "unmet"));
        lb_print_labelled("  suggest ", text_of(rule, "suggest"));
        lb_print_labelled("  changes ", text_of(rule, "changes"));
    }
}

/* The word behind an option of a command; NULL when it is not there. Words are split at blanks. */
static char *value_after(char *const *words, size_t count, const char *option)
{
    for (size_t i = 0; i + 1 < count; i++)
        if (strcmp(words[i], option) == 0)
            return words[i + 1];
    return NULL;
}

/* Whether a row is of that implementation, "name" or "name:variant", where auto is the default. */
static bool is_of(const struct lb_row *row, const char *impl)
{
    const char *colon = strchr(impl, ':'), *variant = colon ? colon + 1 : "auto";
    size_t length = colon ? (size_t)(colon - impl) : strlen(impl);
    const char *has = row->c.variant[0] ? row->c.variant : "auto";
    return strlen(row->c.impl) == length && memcmp(row->c.impl, impl, length) == 0 &&
           strcmp(has, variant) == 0;
}

/* The row of an implementation and a pass that has a time and the sizes of the command. */
static const struct lb_row *find_row(const struct lb_run *run, char *const *words, size_t count,
                                     const char *impl, enum lb_pass pass)
{
    for (size_t i = 0; i < run->count; i++) {
        const struct lb_row *row = &run->rows[i];
        const struct lb_problem *p = &row->c.problem;
        const struct {
            const char *option;
            int64_t size, usual; /* usual: where the command does not give it */
        } sizes[] = {{"-T", p->seq_len, 1},   {"-B", p->batch, 1},  {"-I", p->input, 1},
                     {"-H", p->hidden, 1},    {"-L", p->layers, 1}, {"-D", p->directions, 1},
                     {"-P", p->projection, 0}};
        const char *dtype = value_after(words, count, "--dtype");
        bool same = p->pass == pass && row->verdict == LB_VERDICT_OK && is_of(row, impl) &&
                    (!dtype || strcmp(dtype, lb_dtype_name(p->dtype)) == 0) && !p->ragged &&
                    (p->cell == LB_CELL_STANDARD || p->cell == LB_CELL_PROJECTION);
        for (size_t s = 0; same && s < sizeof(sizes) / sizeof(sizes[0]); s++) {
            const char *given = value_after(words, count, sizes[s].option);
            same = (given ? strtoll(given, NULL, 10) : sizes[s].usual) == sizes[s].size;
        }
        if (same)
            return row;
    }
    return NULL;
}

/* The ratio of the two implementations that the command compares, per pass that the run has. */
static void print_measured(const struct lb_run *run, const char *from, char *price)
{
    char *words[64], *rest = NULL;
    size_t count = 0;
    bool found = false;
    for (char *word = strtok_r(price, " ", &rest); word && count < 64;
         word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    char *impls = value_after(words, count, "--impl");
    char *second = impls ? strchr(impls, ',') : NULL;
    if (second)
        *second++ = '\0';
    for (int pass = 0; second && pass < LB_PASS_COUNT; pass++) {
        const struct lb_row *fast = find_row(run, words, count, impls, (enum lb_pass)pass);
        const struct lb_row *slow = find_row(run, words, count, second, (enum lb_pass)pass);
        if (!fast || !slow)
            continue;
        found = true;
        printf("measured  %s: %s takes %.3g ms, %s %.3g ms, %.3g times as long\n",
               lb_pass_name((enum lb_pass)pass), impls, fast->median_ns / 1e6, second,
               slow->median_ns / 1e6, slow->median_ns / fast->median_ns);
    }
    if (!found)
        printf("measured  %s has no times of both %s and %s for this layer\n", from,
               impls ? impls : "", second ? second : "");
}

/* What the run says of the price of the cell that the layer has. */
static void print_cell(const struct lb_criteria *criteria, const struct lb_run *run)
{
    static const struct {
        const char *setting;
        enum lb_cell_kind cell;
    } cells[] = {{"proj_size", LB_CELL_PROJECTION},
                 {"recurrent_dropout", LB_CELL_RECURRENT_DROPOUT}};
    size_t count;
    struct lb_price *prices = lb_prices(run, NULL, &count);
    for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
        const char *value = lb_criteria_value(criteria, cells[i].setting);
        for (size_t k = 0; value && strtod(value, NULL) > 0 && k < count; k++)
            if (prices[k].cell == cells[i].cell)
                lb_print_labelled("measured  ", prices[k].text);
    }
    free(prices);
}

static void print_layer(const struct lb_criteria *criteria)
{
    size_t i;
    json_t *note;
    char title[200];
    const char *algorithm = lb_criteria_algorithm(criteria);
    lb_criteria_title(criteria, title, sizeof(title));
    printf("%s\n\n", title);
    print_table(criteria);
    if (!lb_criteria_met(criteria))
        print_slow(criteria);
    else
        printf("runs      %s\n", text_of(criteria->file, "fast"));
    if (algorithm && lb_criteria_met(criteria))
        printf("algorithm %s\n", algorithm);
    putchar('\n');
    json_array_foreach(json_object_get(criteria->file, "notes"), i,
                       note) if (lb_rule_holds(criteria, note))
        lb_print_labelled("note      ", text_of(note, "text"));
}

enum lb_status lb_explain_layer(const char *name, const char *layer, const char *from,
                                struct lb_error *err)
{
    struct lb_criteria criteria = {0};
    struct lb_run run = {0};
    struct lb_error why;
    char price[1000];
    enum lb_status st = LB_OK;
    LB_TRY(lb_criteria_read(name, &criteria, &why));
    LB_TRY(lb_criteria_set(&criteria, layer, &why));
    if (from)
        LB_TRY(lb_run_read(from, &run, &why));
    print_layer(&criteria);
    lb_criteria_price(&criteria, price, sizeof(price));
    lb_print_labelled("price     ", price);
    if (from) {
        print_measured(&run, from, price);
        print_cell(&criteria, &run);
    }
    lb_print_labelled("version   ", text_of(criteria.file, "version"));
    lb_print_labelled("source    ", text_of(criteria.file, "source"));
done:
    lb_run_free(&run);
    lb_criteria_free(&criteria);
    return st == LB_OK ? LB_OK : lb_fail(err, st, "--explain %.60s: %.400s", name, why.text);
}
