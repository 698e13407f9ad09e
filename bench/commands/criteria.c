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
#include "model/tensor_files.h"
#include "support/share_path.h"

static const char blanks[] = " \t\r";

static const char *const test_names[LB_TEST_COUNT + 1] = {
    "is", "is-not", "at-most", "at-least", "below", "above", "multiple-of", NULL};

/* Where the reader is in a file. */
struct reader {
    struct lb_criteria *criteria;
    const char *name; /* of the criteria, for messages */
    int line;
};

static enum lb_status wrong(const struct reader *reader, struct lb_error *err, const char *what,
                            const char *word)
{
    return lb_fail(err, LB_INVALID, "criteria %s, line %d: %s '%s'", reader->name, reader->line,
                   what, word);
}

/* Splits the text, which is changed, into words [*count] at blanks. LB_INVALID when there are more
 * than LB_RULE_WORDS. */
static enum lb_status split(const struct reader *reader, char *text,
                            const char *words[LB_RULE_WORDS], size_t *count, struct lb_error *err)
{
    char *rest = NULL;
    *count = 0;
    for (char *word = strtok_r(text, blanks, &rest); word; word = strtok_r(NULL, blanks, &rest)) {
        if (*count == LB_RULE_WORDS)
            return wrong(reader, err, "too many words at", word);
        words[(*count)++] = word;
    }
    return LB_OK;
}

/* The index of a word among names, which end with NULL; that of NULL when it is not there. */
static size_t index_of(const char *word, const char *const *names)
{
    size_t i = 0;
    while (names[i] && strcmp(names[i], word) != 0)
        i++;
    return i;
}

/* "activation is tanh" */
static enum lb_status read_condition(const struct reader *reader, char *text,
                                     struct lb_condition *condition, struct lb_error *err)
{
    const char *words[LB_RULE_WORDS];
    size_t count;
    enum lb_status st = split(reader, text, words, &count, err);
    if (st != LB_OK)
        return st;
    if (count < 3)
        return wrong(reader, err, "a condition is a setting, a test and values, not", text);
    if (!lb_criteria_find(reader->criteria, words[0]))
        return wrong(reader, err, "there is no setting", words[0]);
    size_t test = index_of(words[1], test_names);
    if (!test_names[test])
        return wrong(reader, err, "there is no test", words[1]);
    condition->setting = words[0];
    condition->test = (enum lb_rule_test)test;
    condition->word_count = count - 2;
    memcpy(condition->words, words + 2, (count - 2) * sizeof(words[0]));
    return LB_OK;
}

/* "activation word tanh tanh relu", "dtype word float32 float32=f32", "units number 128" */
static enum lb_status read_setting(const struct reader *reader, char *text, struct lb_error *err)
{
    const char *words[LB_RULE_WORDS];
    size_t count;
    struct lb_criteria *criteria = reader->criteria;
    enum lb_status st = split(reader, text, words, &count, err);
    if (st != LB_OK)
        return st;
    if (count < 3 || (strcmp(words[1], "number") != 0 && strcmp(words[1], "word") != 0))
        return wrong(reader, err, "a setting is a name, number or word, and a default, not", text);
    if (criteria->setting_count == LB_CRITERIA_SETTINGS)
        return wrong(reader, err, "too many settings at", text);
    struct lb_setting *setting = &criteria->settings[criteria->setting_count++];
    setting->name = words[0];
    setting->is_number = strcmp(words[1], "number") == 0;
    snprintf(setting->value, sizeof(setting->value), "%s", words[2]);
    for (size_t i = 3; i < count; i++) {
        char *equals = strchr(words[i], '=');
        if (equals)
            *equals = '\0';
        setting->words[setting->word_count] = words[i];
        setting->called[setting->word_count++] = equals ? equals + 1 : words[i];
    }
    return LB_OK;
}

/* A keyword whose text is kept, and where in a struct. */
struct text_keyword {
    const char *keyword;
    size_t offset;
};

static const struct text_keyword texts_of_criteria[] = {
    {"title", offsetof(struct lb_criteria, title)},
    {"fast", offsetof(struct lb_criteria, fast)},
    {"version", offsetof(struct lb_criteria, version)},
    {"source", offsetof(struct lb_criteria, source)},
    {"instead", offsetof(struct lb_criteria, instead)},
    {"price", offsetof(struct lb_criteria, price)},
    {NULL, 0}};

static const struct text_keyword texts_of_criterion[] = {
    {"unmet", offsetof(struct lb_rule, unmet)},
    {"suggest", offsetof(struct lb_rule, suggested)},
    {"changes", offsetof(struct lb_rule, changes)},
    {NULL, 0}};

static const char *const rule_kinds[] = {
    [LB_CRITERION] = "criterion", [LB_ALGORITHM] = "algorithm", [LB_NOTE] = "note", NULL};

/* Sets the text of that keyword in the struct; false when there is none. */
static bool set_text(const struct text_keyword *known, void *target, const char *keyword,
                     const char *text)
{
    for (; known->keyword; known++)
        if (strcmp(keyword, known->keyword) == 0) {
            memcpy((char *)target + known->offset, &text, sizeof(text));
            return true;
        }
    return false;
}

static enum lb_status read_rule(const struct reader *reader, enum lb_rule_kind kind, char *text,
                                struct lb_error *err)
{
    struct lb_criteria *criteria = reader->criteria;
    if (criteria->rule_count == LB_CRITERIA_RULES)
        return wrong(reader, err, "too many rules at", text);
    struct lb_rule *rule = &criteria->rules[criteria->rule_count++];
    *rule = (struct lb_rule){.kind = kind, .text = text};
    rule->unmet = rule->suggested = rule->changes = "";
    if (kind != LB_CRITERION)
        return LB_OK;
    rule->text = "";
    rule->condition_count = 1;
    return read_condition(reader, text, &rule->conditions[0], err);
}

/* A line below a rule. */
static enum lb_status read_property(const struct reader *reader, const char *keyword, char *text,
                                    struct lb_error *err)
{
    struct lb_criteria *criteria = reader->criteria;
    struct lb_rule *rule = criteria->rule_count ? &criteria->rules[criteria->rule_count - 1] : NULL;
    if (!rule)
        return wrong(reader, err, "there is nothing above", keyword);
    if (rule->kind == LB_CRITERION && strcmp(keyword, "if") == 0)
        return read_condition(reader, text, &rule->only_if, err);
    if (rule->kind == LB_CRITERION && set_text(texts_of_criterion, rule, keyword, text))
        return LB_OK;
    if (rule->kind == LB_CRITERION || strcmp(keyword, "when") != 0)
        return wrong(reader, err, "there is no keyword here called", keyword);
    if (rule->condition_count == LB_RULE_CONDITIONS)
        return wrong(reader, err, "too many conditions at", text);
    return read_condition(reader, text, &rule->conditions[rule->condition_count++], err);
}

static enum lb_status read_line(const struct reader *reader, char *keyword, struct lb_error *err)
{
    bool indented = strchr(blanks, keyword[0]) != NULL;
    keyword += strspn(keyword, blanks);
    char *text = keyword + strcspn(keyword, blanks);
    if (*text)
        *text++ = '\0';
    text += strspn(text, blanks);
    size_t kind = index_of(keyword, rule_kinds);
    if (indented)
        return read_property(reader, keyword, text, err);
    if (set_text(texts_of_criteria, reader->criteria, keyword, text))
        return LB_OK;
    if (strcmp(keyword, "setting") == 0)
        return read_setting(reader, text, err);
    if (rule_kinds[kind])
        return read_rule(reader, (enum lb_rule_kind)kind, text, err);
    return wrong(reader, err, "there is no keyword called", keyword);
}

/* Ends the line at its newline and makes one blank of each run of them behind the indentation.
 * Lines behind it that are indented by eight blanks or more belong to it. Returns the next line,
 * NULL behind the last, and adds the lines that were joined to *joined. */
static char *cut_line(char *line, int *joined)
{
    size_t indentation = strspn(line, blanks), length = indentation, i = indentation;
    for (; line[i] && (line[i] != '\n' || strspn(line + i + 1, " ") >= 8); i++) {
        bool blank = line[i] == '\n' || strchr(blanks, line[i]);
        *joined += line[i] == '\n';
        if (!blank || (length > 0 && line[length - 1] != ' '))
            line[length++] = blank ? ' ' : line[i];
    }
    char *next = line[i] ? line + i + 1 : NULL;
    line[length] = '\0';
    return next;
}

static enum lb_status read_text(struct reader *reader, char *text, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const struct lb_criteria *c = reader->criteria;
    int joined = 0;
    for (char *line = text, *next; line && st == LB_OK; line = next) {
        reader->line += 1 + joined;
        joined = 0;
        next = cut_line(line, &joined);
        if (line[0] != '#' && line[strspn(line, blanks)])
            st = read_line(reader, line, err);
    }
    if (st == LB_OK && (!c->title || !c->fast || !c->instead || !c->price || !c->version ||
                        !c->source || c->rule_count == 0))
        st = lb_fail(err, LB_INVALID,
                     "criteria %s: title, fast, instead, price, version, source and a criterion "
                     "must be there",
                     reader->name);
    return st;
}

/* The path of the criteria's file; LB_INVALID when there is none of that name. */
static enum lb_status find_file(const char *name, char *path, size_t size, struct lb_error *err)
{
    char folder[3800];
    struct lb_hint hint = {0};
    enum lb_status st = lb_share_path("criteria", folder, sizeof(folder), err);
    if (st != LB_OK)
        return st;
    snprintf(path, size, "%s/%.200s.txt", folder, name);
    if (!strchr(name, '/') && access(path, R_OK) == 0)
        return LB_OK;
    DIR *files = opendir(folder);
    for (struct dirent *file; files && (file = readdir(files));) {
        size_t length = strlen(file->d_name);
        if (length <= 4 || strcmp(file->d_name + length - 4, ".txt") != 0)
            continue;
        file->d_name[length - 4] = '\0';
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
    unsigned char *bytes = NULL;
    size_t size;
    enum lb_status st = LB_OK;
    struct reader reader = {.criteria = criteria, .name = name};
    *criteria = (struct lb_criteria){0};
    LB_TRY(find_file(name, path, sizeof(path), err));
    LB_TRY(lb_file_bytes(path, &bytes, &size, err));
    criteria->text = calloc(1, size + 1);
    if (!criteria->text)
        LB_TRY(lb_fail(err, LB_OOM, "out of memory"));
    memcpy(criteria->text, bytes, size);
    LB_TRY(read_text(&reader, criteria->text, err));
done:
    free(bytes);
    if (st != LB_OK)
        lb_criteria_free(criteria);
    return st;
}

void lb_criteria_free(struct lb_criteria *criteria)
{
    free(criteria->text);
    *criteria = (struct lb_criteria){0};
}

const struct lb_setting *lb_criteria_find(const struct lb_criteria *criteria, const char *name)
{
    for (size_t i = 0; i < criteria->setting_count; i++)
        if (strcmp(criteria->settings[i].name, name) == 0)
            return &criteria->settings[i];
    return NULL;
}

/* LB_INVALID with what is allowed, when value is none of the setting's. */
static enum lb_status check_value(const struct lb_setting *setting, struct lb_error *err)
{
    char all[256] = "", *end;
    const char *value = setting->value;
    if (setting->is_number)
        return isfinite(strtod(value, &end)) && value[0] && !*end
                   ? LB_OK
                   : lb_fail(err, LB_INVALID, "%s=%s: a number was expected", setting->name, value);
    for (size_t i = 0; i < setting->word_count; i++) {
        if (strcmp(setting->words[i], value) == 0)
            return LB_OK;
        lb_append(all, sizeof(all), "%s%s", i ? ", " : "", setting->words[i]);
    }
    return lb_fail(err, LB_INVALID, "%s=%s: allowed are %s", setting->name, value, all);
}

static enum lb_status no_setting(const struct lb_criteria *criteria, const char *name,
                                 struct lb_error *err)
{
    struct lb_hint hint = {0};
    for (size_t i = 0; i < criteria->setting_count; i++)
        lb_hint_add(&hint, name, criteria->settings[i].name);
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
    char *equals = strchr(copy, '=');
    if (!equals)
        return lb_fail(err, LB_INVALID, "'%.60s': name=value was expected", copy);
    *equals = '\0';
    struct lb_setting *setting = (struct lb_setting *)lb_criteria_find(criteria, copy);
    if (!setting)
        return no_setting(criteria, copy, err);
    snprintf(setting->value, sizeof(setting->value), "%s", equals + 1);
    setting->given = true;
    return check_value(setting, err);
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

/* A word of a condition: another setting's value where it is the name of one. */
static const char *value_of(const struct lb_criteria *criteria, const char *word)
{
    const struct lb_setting *setting = lb_criteria_find(criteria, word);
    return setting ? setting->value : word;
}

static bool compare(enum lb_rule_test test, double left, double right)
{
    switch (test) {
    case LB_TEST_AT_MOST: return left <= right;
    case LB_TEST_AT_LEAST: return left >= right;
    case LB_TEST_BELOW: return left < right;
    case LB_TEST_ABOVE: return left > right;
    default: return right != 0 && fmod(left, right) == 0;
    }
}

bool lb_condition_holds(const struct lb_criteria *criteria, const struct lb_condition *condition)
{
    if (!condition->setting)
        return true;
    const struct lb_setting *setting = lb_criteria_find(criteria, condition->setting);
    bool among = false;
    for (size_t i = 0; i < condition->word_count; i++) {
        const char *word = value_of(criteria, condition->words[i]);
        if (condition->test > LB_TEST_IS_NOT)
            return compare(condition->test, strtod(setting->value, NULL), strtod(word, NULL));
        among = among || (setting->is_number ? strtod(setting->value, NULL) == strtod(word, NULL)
                                             : strcmp(setting->value, word) == 0);
    }
    return among == (condition->test == LB_TEST_IS);
}

bool lb_rule_holds(const struct lb_criteria *criteria, const struct lb_rule *rule)
{
    if (rule->only_if.setting && !lb_condition_holds(criteria, &rule->only_if))
        return true;
    for (size_t i = 0; i < rule->condition_count; i++)
        if (!lb_condition_holds(criteria, &rule->conditions[i]))
            return false;
    return true;
}

bool lb_criteria_met(const struct lb_criteria *criteria)
{
    for (size_t i = 0; i < criteria->rule_count; i++)
        if (criteria->rules[i].kind == LB_CRITERION &&
            !lb_rule_holds(criteria, &criteria->rules[i]))
            return false;
    return true;
}

void lb_condition_text(const struct lb_condition *condition, char *text, size_t size)
{
    static const char *const words[LB_TEST_COUNT] = {"",       "not ",   "at most ",    "at least ",
                                                     "below ", "above ", "multiple of "};
    snprintf(text, size, "%s", words[condition->test]);
    for (size_t i = 0; i < condition->word_count; i++) {
        const char *between = i + 1 == condition->word_count ? " or " : ", ";
        lb_append(text, size, "%s%s", i ? between : "", condition->words[i]);
    }
}

/* What this program calls the setting's value. */
static const char *called(const struct lb_setting *setting)
{
    for (size_t i = 0; i < setting->word_count; i++)
        if (strcmp(setting->words[i], setting->value) == 0)
            return setting->called[i];
    return setting->value;
}

void lb_criteria_price(const struct lb_criteria *criteria, char *text, size_t size)
{
    text[0] = '\0';
    for (const char *at = criteria->price; *at;) {
        char name[64] = "";
        int plain = (int)strcspn(at, "{"), length = 0;
        lb_append(text, size, "%.*s", plain, at);
        at += plain;
        sscanf(at, "{%63[^}]}%n", name, &length);
        const struct lb_setting *setting = lb_criteria_find(criteria, name);
        if (setting && length > 0)
            lb_append(text, size, "%s", called(setting));
        else if (*at)
            lb_append(text, size, "%c", *at);
        at += setting && length > 0 ? length : *at != '\0';
    }
    const struct lb_setting *projection = lb_criteria_find(criteria, "proj_size");
    if (projection && strtod(projection->value, NULL) > 0)
        lb_append(text, size, " --cell projection -P %s", projection->value);
}
