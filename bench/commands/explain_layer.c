/* --explain FRAMEWORK 'units=512, ...': whether a framework runs its fast kernel for a layer, by
 * the rules of a file of bench/criteria. */
#include "commands/commands.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/suggest.h"
#include "base/text.h"
#include "plot/grouped_run.h"
#include "support/share_path.h"
#include "support/texts.h"

/* The criteria of one framework, and a layer. bench/criteria/README.md describes the file. */
struct criteria {
    json_t *file;     /* as it was read; owned */
    json_t *settings; /* in the file */
    json_t *layer;    /* object: the value of each setting as a text, first its default; owned */
};

enum test { TEST_IS, TEST_IS_NOT, AT_MOST, AT_LEAST, BELOW, ABOVE, MULTIPLE_OF, TEST_COUNT };

/* The tests of conditions, and how a sentence says them. */
static const struct {
    const char *name, *words;
} tests[TEST_COUNT] = {{"is", ""},
                       {"is-not", "not "},
                       {"at-most", "at most "},
                       {"at-least", "at least "},
                       {"below", "below "},
                       {"above", "above "},
                       {"multiple-of", "multiple of "}};

static const char *word_of(const json_t *condition, size_t index)
{
    const char *word = json_string_value(json_array_get(condition, index));
    return word ? word : "";
}

static enum test test_of(const json_t *condition)
{
    enum test test = TEST_IS;
    while (test < TEST_COUNT && strcmp(word_of(condition, 1), tests[test].name) != 0)
        test++;
    return test;
}

/* ---- Reading ---- */

/* LB_INVALID: there are no criteria of that name; err suggests some or lists all. */
static enum lb_status find_file(const char *name, char *path, size_t size, struct lb_error *err)
{
    char folder[3800];
    struct lb_hint hint = {0};
    LB_CHECK(lb_share_path("criteria", folder, sizeof(folder), err));
    snprintf(path, size, "%s/%.200s.json", folder, name);
    if (!strchr(name, '/') && access(path, R_OK) == 0)
        return LB_OK;
    lb_hint_add_files(&hint, name, folder, ".json");
    return lb_fail(err, LB_INVALID, "there are no criteria '%.60s'; %s", name, hint.text);
}

static enum lb_status read_criteria(const char *name, struct criteria *criteria,
                                    struct lb_error *err)
{
    char path[4096];
    const char *key;
    json_t *setting;
    json_error_t why;
    LB_CHECK(find_file(name, path, sizeof(path), err));
    criteria->file = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    if (!criteria->file)
        return lb_fail(err, LB_INVALID, "%.400s: line %d: %s", path, why.line, why.text);
    criteria->layer = json_object();
    criteria->settings = json_object_get(criteria->file, "settings");
    json_object_foreach(criteria->settings, key, setting)
    { /* the default is a number, or the first of some words */
        char *number = json_is_number(setting) ? json_dumps(setting, JSON_ENCODE_ANY) : NULL;
        json_object_set_new(criteria->layer, key,
                            json_string(number ? number : word_of(setting, 0)));
        free(number);
    }
    return LB_OK;
}

/* ---- The layer ---- */

/* NULL: there is no such setting. */
static const char *value_of(const struct criteria *criteria, const char *setting)
{
    return json_string_value(json_object_get(criteria->layer, setting));
}

/* Sets one setting from "name=value"; nothing from blanks. Blanks, quotes and case do not matter.
 */
static enum lb_status set_one(struct criteria *criteria, const char *part, struct lb_error *err)
{
    char copy[200] = "";
    struct lb_hint hint = {0};
    for (size_t used = 0; *part; part++)
        if (!strchr(" \t\n\v\f\r\"'", *part))
            copy[used++] = (char)tolower((unsigned char)*part);
    char *value = strchr(copy, '=');
    if (!copy[0])
        return LB_OK;
    if (!value)
        return lb_fail(err, LB_INVALID, "'%.60s': name=value was expected", copy);
    *value++ = '\0';
    json_t *setting = json_object_get(criteria->settings, copy);
    char all[256] = "", *end;
    const char *known;
    if (!setting) {
        json_object_foreach(criteria->settings, known, setting) lb_hint_add(&hint, copy, known);
        return lb_fail(err, LB_INVALID, "there is no setting '%.60s'; %s", copy, hint.text);
    }
    bool number = json_is_number(setting), fits = false;
    if (number) /* of digits alone, as the options of the printed command take it */
        fits = value[0] && !value[strspn(value, "0123456789.")] && isfinite(strtod(value, &end)) &&
               !*end;
    for (size_t i = 0; i < json_array_size(setting); i++) {
        fits |= strcmp(word_of(setting, i), value) == 0;
        lb_append(all, sizeof(all), "%s%s", i ? ", " : "", word_of(setting, i));
    }
    if (!fits)
        return lb_fail(err, LB_INVALID, "%s=%s: %s%s", copy, value,
                       number ? "a number was expected, such as 512 or 0.1" : "allowed are ", all);
    json_object_set_new(criteria->layer, copy, json_string(value));
    return LB_OK;
}

/* Whether a condition, ["units", "at-most", "1024"], holds for the layer. NULL always holds. */
static bool condition_holds(const struct criteria *criteria, const json_t *condition)
{
    if (!condition)
        return true;
    const char *name = word_of(condition, 0), *value = value_of(criteria, name);
    bool is_number = json_is_number(json_object_get(criteria->settings, name)), among = false;
    enum test test = test_of(condition);
    for (size_t i = 2; i < json_array_size(condition); i++) {
        const char *word = word_of(condition, i);
        const char *other = value_of(criteria, word); /* where it is another setting */
        word = other ? other : word;
        double left = strtod(value, NULL), right = strtod(word, NULL);
        switch (test) {
        case AT_MOST: return left <= right;
        case AT_LEAST: return left >= right;
        case BELOW: return left < right;
        case ABOVE: return left > right;
        case MULTIPLE_OF: return right != 0 && fmod(left, right) == 0;
        default: among |= is_number ? left == right : strcmp(value, word) == 0;
        }
    }
    return among == (test == TEST_IS);
}

/* Whether all conditions of a criterion, an algorithm or a note hold, or its "if" does not. */
static bool rule_holds(const struct criteria *criteria, const json_t *rule)
{
    size_t i;
    json_t *condition;
    if (!condition_holds(criteria, json_object_get(rule, "if")))
        return true;
    json_array_foreach(json_object_get(rule, "when"), i, condition)
    {
        if (!condition_holds(criteria, condition))
            return false;
    }
    return condition_holds(criteria, json_object_get(rule, "needs"));
}

static void condition_text(const json_t *condition, char *text, size_t size)
{
    size_t count = json_array_size(condition);
    snprintf(text, size, "%s", tests[test_of(condition)].words);
    for (size_t i = 2; i < count; i++) {
        const char *between = i + 1 == count ? " or " : ", ";
        lb_append(text, size, "%s%s", i > 2 ? between : "", word_of(condition, i));
    }
}

/* What the file says under the key, with the layer's values for {NAME}; in_command: as this program
 * calls them. */
static void expand(const struct criteria *criteria, const char *key, bool in_command, char *text,
                   size_t size)
{
    const json_t *called = json_object_get(criteria->file, in_command ? "called" : "");
    text[0] = '\0';
    for (const char *at = lb_json_text(criteria->file, key, ""); *at;) {
        char name[64] = "";
        int plain = (int)strcspn(at, "{"), length = 0;
        lb_append(text, size, "%.*s", plain, at);
        at += plain;
        sscanf(at, "{%63[^}]}%n", name, &length);
        const char *value = length > 0 ? value_of(criteria, name) : NULL;
        const char *word = json_string_value(json_object_get(json_object_get(called, name), value));
        if (value)
            lb_append(text, size, "%s", word ? word : value);
        else if (*at)
            lb_append(text, size, "%c", *at);
        at += value ? length : *at != '\0';
    }
}

/* ---- The command ---- */

static void print_table(const struct criteria *criteria)
{
    size_t i;
    json_t *rule;
    printf("%-22s %-16s %-40s %s\n", "criterion", "yours", "needed", "met");
    json_array_foreach(json_object_get(criteria->file, "criteria"), i, rule)
    {
        char needed[200], limit[100];
        const json_t *needs = json_object_get(rule, "needs"), *when = json_object_get(rule, "if");
        const char *setting = json_string_value(json_array_get(needs, 0));
        condition_text(needs, needed, sizeof(needed));
        if (when) {
            condition_text(when, limit, sizeof(limit));
            lb_append(needed, sizeof(needed), ", if %s is %s", word_of(when, 0), limit);
        }
        bool matters = condition_holds(criteria, when);
        printf("%-22s %-16s %-40s %s\n", setting, value_of(criteria, setting), needed,
               !matters                     ? "does not matter"
               : rule_holds(criteria, rule) ? "yes"
                                            : "no");
    }
    putchar('\n');
}

/* The row of an implementation ("name", "name:variant", or "name:auto", the default) and a pass
 * that has a time and the problem that the axes choose. */
static const struct lb_row *find_row(const struct lb_run *run, const struct lb_axis *axes,
                                     const char *impl, enum lb_pass pass)
{
    const struct lb_case usual = lb_case_defaults();
    for (size_t i = 0; i < run->count; i++) {
        const struct lb_row *row = &run->rows[i];
        const char *label = LB_IMPL_LABEL(&row->c);
        size_t length = strlen(label);
        bool same = row->c.problem.pass == pass && row->verdict == LB_VERDICT_OK &&
                    strncmp(label, impl, length) == 0 &&
                    (!impl[length] || strcmp(impl + length, ":auto") == 0);
        for (enum lb_axis_id a = 0; same && a < LB_AXIS_LAUNCH; a++)
            same = a == LB_AXIS_PASS ||
                   lb_axis_get(&row->c, a) ==
                       (axes[a].count > 0 ? axes[a].values[0] : lb_axis_get(&usual, a));
        if (same)
            return row;
    }
    return NULL;
}

/* The ratio of the two implementations that the command compares, per pass. */
static void print_measured(const struct lb_run *run, const char *from, char *price)
{
    char *words[64], *rest = NULL, impls[2][2 * LB_NAME_SIZE] = {"one implementation", "another"};
    int count = 0;
    bool found = false;
    struct lb_options command;
    struct lb_error why = {""};
    for (char *word = strtok_r(price, " ", &rest); word && count < 63;
         word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    words[count] = NULL;
    bool read = lb_command_line_read(count, words, &command, &why) == LB_OK;
    if (read && command.selection.impl_count > 0) {
        const char *list = command.selection.impls[0];
        lb_next_item(&list, impls[0], sizeof(impls[0]));
        lb_next_item(&list, impls[1], sizeof(impls[1]));
    }
    for (int pass = 0; read && pass < LB_PASS_COUNT; pass++) {
        const struct lb_axis *axes = command.selection.axes;
        const struct lb_row *fast = find_row(run, axes, impls[0], (enum lb_pass)pass);
        const struct lb_row *slow = find_row(run, axes, impls[1], (enum lb_pass)pass);
        if (!fast || !slow)
            continue;
        found = true;
        printf("measured  %s: %s takes %.3g ms, %s %.3g ms, %.3g times as long\n",
               lb_pass_name((enum lb_pass)pass), impls[0], fast->median_ns / 1e6, impls[1],
               slow->median_ns / 1e6, slow->median_ns / fast->median_ns);
    }
    if (!read)
        printf("measured  nothing is looked for in %s: %s\n", from, why.text);
    else if (!found)
        printf("measured  %s has no times of both %s and %s for this layer\n", from, impls[0],
               impls[1]);
    lb_options_free(&command);
}

static void print_cell(const struct criteria *criteria, const struct lb_run *run)
{
    static const struct {
        const char *setting;
        enum lb_cell_kind cell;
    } cells[] = {{"proj_size", LB_CELL_PROJECTION},
                 {"recurrent_dropout", LB_CELL_RECURRENT_DROPOUT}};
    size_t count;
    struct lb_price *prices = lb_prices(run, NULL, &count);
    for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
        const char *value = value_of(criteria, cells[i].setting);
        for (size_t k = 0; value && strtod(value, NULL) > 0 && k < count; k++)
            if (prices[k].cell == cells[i].cell)
                lb_print_labelled("measured  ", prices[k].text);
    }
    free(prices);
}

static void print_layer(const struct criteria *criteria)
{
    size_t i;
    json_t *rule, *note;
    char title[200];
    const char *algorithm = NULL; /* that the fast kernel takes, where the file says it */
    bool met = true;
    json_array_foreach(json_object_get(criteria->file, "criteria"), i, rule)
    {
        met &= rule_holds(criteria, rule);
    }
    json_array_foreach(json_object_get(criteria->file, "algorithms"), i, rule)
    {
        if (!algorithm && rule_holds(criteria, rule))
            algorithm = lb_json_text(rule, "name", "");
    }
    expand(criteria, "title", false, title, sizeof(title));
    printf("%s\n\n", title);
    print_table(criteria);
    printf("runs      %s%s\n", met ? "" : "not ", lb_json_text(criteria->file, "fast", ""));
    if (!met)
        lb_print_labelled("instead   ", lb_json_text(criteria->file, "instead", ""));
    json_array_foreach(json_object_get(criteria->file, "criteria"), i, rule)
    {
        if (rule_holds(criteria, rule))
            continue;
        const char *setting = word_of(json_object_get(rule, "needs"), 0);
        printf("\n%s=%s\n", setting, value_of(criteria, setting));
        lb_print_labelled("  then    ", lb_json_text(rule, "unmet", ""));
        lb_print_labelled("  suggest ", lb_json_text(rule, "suggest", ""));
        lb_print_labelled("  changes ", lb_json_text(rule, "changes", ""));
    }
    if (algorithm && met)
        printf("algorithm %s\n", algorithm);
    putchar('\n');
    json_array_foreach(json_object_get(criteria->file, "notes"), i, note)
    {
        if (rule_holds(criteria, note))
            lb_print_labelled("note      ", lb_json_text(note, "text", ""));
    }
}

bool lb_has_criteria(const char *name)
{
    char path[4096];
    return find_file(name, path, sizeof(path), NULL) == LB_OK;
}

enum lb_status lb_explain_layer(const char *name, const char *layer, const char *from,
                                struct lb_error *err)
{
    struct criteria criteria = {0};
    struct lb_run run = {0};
    struct lb_error why;
    char part[200], price[1000];
    enum lb_status st = LB_OK;
    LB_TRY(read_criteria(name, &criteria, &why));
    while (lb_next_item(&layer, part, sizeof(part)))
        LB_TRY(set_one(&criteria, part, &why));
    if (from)
        LB_TRY(lb_run_read(from, &run, &why));
    print_layer(&criteria);
    expand(&criteria, "price", true, price, sizeof(price));
    const char *projection = value_of(&criteria, "proj_size");
    if (projection && strtod(projection, NULL) > 0)
        lb_append(price, sizeof(price), " --cell projection -P %s", projection);
    lb_print_labelled("price     ", price);
    if (from) {
        print_measured(&run, from, price);
        print_cell(&criteria, &run);
    }
    lb_print_labelled("version   ", lb_json_text(criteria.file, "version", ""));
    lb_print_labelled("source    ", lb_json_text(criteria.file, "source", ""));
done:
    lb_run_free(&run);
    json_decref(criteria.file);
    json_decref(criteria.layer);
    return st == LB_OK ? LB_OK : lb_fail(err, st, "--explain %.60s: %.400s", name, why.text);
}
