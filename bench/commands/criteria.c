/* What a framework asks of a layer before it runs its fast kernel: rules read from a file of
 * bench/criteria, and the check of a layer's settings against them. */
#include "commands/criteria.h"

#include <ctype.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/suggest.h"
#include "base/text.h"
#include "support/share_path.h"

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

/* Words of a condition: the setting, the test, and what follows. "" behind the last. */
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

/* Reading */

/* Reads the file, and gives the layer the default of each setting, which is a number or the first
 * of some words. */
static enum lb_status read_file(const char *path, struct lb_criteria *criteria,
                                struct lb_error *err)
{
    const char *name;
    json_t *setting;
    json_error_t why;
    criteria->layer = json_object();
    criteria->file = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    if (!criteria->file)
        return lb_fail(err, LB_INVALID, "%.400s: line %d: %s", path, why.line, why.text);
    json_object_foreach(json_object_get(criteria->file, "settings"), name, setting)
    {
        char *number = json_is_number(setting) ? json_dumps(setting, JSON_ENCODE_ANY) : NULL;
        const char *value = number ? number : json_string_value(json_array_get(setting, 0));
        json_object_set_new(criteria->layer, name, json_string(value));
        free(number);
    }
    return LB_OK;
}

/* The path of the criteria's file; LB_INVALID when there is none of that name. */
static enum lb_status find_file(const char *name, char *path, size_t size, struct lb_error *err)
{
    char folder[3800];
    struct lb_hint hint = {0};
    LB_CHECK(lb_share_path("criteria", folder, sizeof(folder), err));
    snprintf(path, size, "%s/%.200s.json", folder, name);
    if (!strchr(name, '/') && access(path, R_OK) == 0)
        return LB_OK;
    DIR *files = opendir(folder);
    for (struct dirent *file; files && (file = readdir(files));) {
        size_t length = strlen(file->d_name);
        if (length <= 5 || strcmp(file->d_name + length - 5, ".json") != 0)
            continue;
        file->d_name[length - 5] = '\0';
        lb_hint_add(&hint, name, file->d_name);
    }
    if (files)
        closedir(files);
    return lb_fail(err, LB_INVALID, "there are no criteria '%.60s'; %s", name, hint.text);
}

enum lb_status lb_criteria_read(const char *name, struct lb_criteria *criteria,
                                struct lb_error *err)
{
    char path[4096];
    *criteria = (struct lb_criteria){0};
    LB_CHECK(find_file(name, path, sizeof(path), err));
    enum lb_status st = read_file(path, criteria, err);
    if (st != LB_OK)
        lb_criteria_free(criteria);
    return st;
}

void lb_criteria_free(struct lb_criteria *criteria)
{
    json_decref(criteria->file);
    json_decref(criteria->layer);
    *criteria = (struct lb_criteria){0};
}

/* The layer */

const char *lb_criteria_value(const struct lb_criteria *criteria, const char *setting)
{
    return json_string_value(json_object_get(criteria->layer, setting));
}

/* LB_INVALID with what is allowed, when the value is none of the setting's. */
static enum lb_status check_value(const char *name, const json_t *setting, const char *value,
                                  struct lb_error *err)
{
    char all[256] = "", *end;
    if (json_is_number(setting))
        return isfinite(strtod(value, &end)) && value[0] && !*end
                   ? LB_OK
                   : lb_fail(err, LB_INVALID, "%s=%s: a number was expected", name, value);
    for (size_t i = 0; i < json_array_size(setting); i++) {
        if (strcmp(word_of(setting, i), value) == 0)
            return LB_OK;
        lb_append(all, sizeof(all), "%s%s", i ? ", " : "", word_of(setting, i));
    }
    return lb_fail(err, LB_INVALID, "%s=%s: allowed are %s", name, value, all);
}

static enum lb_status no_setting(const struct lb_criteria *criteria, const char *name,
                                 struct lb_error *err)
{
    struct lb_hint hint = {0};
    const char *known;
    json_t *setting;
    json_object_foreach(json_object_get(criteria->file, "settings"), known, setting)
        lb_hint_add(&hint, name, known);
    return lb_fail(err, LB_INVALID, "there is no setting '%.60s'; %s", name, hint.text);
}

/* Sets one setting from "name=value". Blanks and quotes are dropped, and upper case becomes lower
 * case. */
static enum lb_status set_one(struct lb_criteria *criteria, const char *part, size_t length,
                              struct lb_error *err)
{
    char copy[200];
    size_t used = 0;
    for (size_t i = 0; i < length && used + 1 < sizeof(copy); i++)
        if (!isspace((unsigned char)part[i]) && part[i] != '"' && part[i] != '\'')
            copy[used++] = (char)tolower((unsigned char)part[i]);
    copy[used] = '\0';
    char *value = strchr(copy, '=');
    if (!value)
        return lb_fail(err, LB_INVALID, "'%.60s': name=value was expected", copy);
    *value++ = '\0';
    const json_t *setting = json_object_get(json_object_get(criteria->file, "settings"), copy);
    if (!setting)
        return no_setting(criteria, copy, err);
    LB_CHECK(check_value(copy, setting, value, err));
    json_object_set_new(criteria->layer, copy, json_string(value));
    return LB_OK;
}

enum lb_status lb_criteria_set(struct lb_criteria *criteria, const char *layer,
                               struct lb_error *err)
{
    enum lb_status st = LB_OK;
    for (const char *part = layer; st == LB_OK && *part;) {
        size_t length = strcspn(part, ",");
        if (strspn(part, " \t\n") < length)
            st = set_one(criteria, part, length, err);
        part += length + (part[length] == ',');
    }
    return st;
}

static bool compare(enum test test, double left, double right)
{
    switch (test) {
    case AT_MOST: return left <= right;
    case AT_LEAST: return left >= right;
    case BELOW: return left < right;
    case ABOVE: return left > right;
    default: return right != 0 && fmod(left, right) == 0;
    }
}

bool lb_condition_holds(const struct lb_criteria *criteria, const json_t *condition)
{
    if (!condition)
        return true;
    const char *name = word_of(condition, 0), *value = lb_criteria_value(criteria, name);
    bool is_number =
        json_is_number(json_object_get(json_object_get(criteria->file, "settings"), name));
    enum test test = test_of(condition);
    bool among = false;
    for (size_t i = 2; i < json_array_size(condition); i++) {
        const char *word = word_of(condition, i);
        const char *other = lb_criteria_value(criteria, word); /* where it is another setting */
        word = other ? other : word;
        if (test > TEST_IS_NOT)
            return compare(test, strtod(value, NULL), strtod(word, NULL));
        among |= is_number ? strtod(value, NULL) == strtod(word, NULL) : strcmp(value, word) == 0;
    }
    return among == (test == TEST_IS);
}

bool lb_rule_holds(const struct lb_criteria *criteria, const json_t *rule)
{
    size_t i;
    json_t *condition;
    if (!lb_condition_holds(criteria, json_object_get(rule, "if")))
        return true;
    json_array_foreach(json_object_get(rule, "when"), i,
                       condition) if (!lb_condition_holds(criteria, condition)) return false;
    return lb_condition_holds(criteria, json_object_get(rule, "needs"));
}

bool lb_criteria_met(const struct lb_criteria *criteria)
{
    size_t i;
    json_t *rule;
    json_array_foreach(json_object_get(criteria->file, "criteria"), i,
                       rule) if (!lb_rule_holds(criteria, rule)) return false;
    return true;
}

const char *lb_criteria_algorithm(const struct lb_criteria *criteria)
{
    size_t i;
    json_t *rule;
    json_array_foreach(
        json_object_get(criteria->file, "algorithms"), i,
        rule) if (lb_rule_holds(criteria, rule)) return json_string_value(json_object_get(rule,
                                                                                          "name"));
    return NULL;
}

void lb_condition_text(const json_t *condition, char *text, size_t size)
{
    size_t count = json_array_size(condition);
    snprintf(text, size, "%s", tests[test_of(condition)].words);
    for (size_t i = 2; i < count; i++) {
        const char *between = i + 1 == count ? " or " : ", ";
        lb_append(text, size, "%s%s", i > 2 ? between : "", word_of(condition, i));
    }
}

/* What this program calls the setting's value; NULL: there is no such setting. */
static const char *called(const struct lb_criteria *criteria, const char *name)
{
    const char *value = lb_criteria_value(criteria, name);
    const json_t *words = json_object_get(json_object_get(criteria->file, "called"), name);
    const char *word = value ? json_string_value(json_object_get(words, value)) : NULL;
    return word ? word : value;
}

/* What the file says under the key, with the values that `value_of` gives for {NAME}. */
static void expand(const struct lb_criteria *criteria, const char *key,
                   const char *(*value_of)(const struct lb_criteria *, const char *), char *text,
                   size_t size)
{
    text[0] = '\0';
    for (const char *at = json_string_value(json_object_get(criteria->file, key)); *at;) {
        char name[64] = "";
        int plain = (int)strcspn(at, "{"), length = 0;
        lb_append(text, size, "%.*s", plain, at);
        at += plain;
        sscanf(at, "{%63[^}]}%n", name, &length);
        const char *word = length > 0 ? value_of(criteria, name) : NULL;
        if (word)
            lb_append(text, size, "%s", word);
        else if (*at)
            lb_append(text, size, "%c", *at);
        at += word ? length : *at != '\0';
    }
}

void lb_criteria_title(const struct lb_criteria *criteria, char *text, size_t size)
{
    expand(criteria, "title", lb_criteria_value, text, size);
}

void lb_criteria_price(const struct lb_criteria *criteria, char *text, size_t size)
{
    expand(criteria, "price", called, text, size);
    const char *projection = lb_criteria_value(criteria, "proj_size");
    if (projection && strtod(projection, NULL) > 0)
        lb_append(text, size, " --cell projection -P %s", projection);
}
