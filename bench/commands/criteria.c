/* What a framework asks of a layer before it runs its fast kernel: rules read from a file of
 * bench/criteria, and a layer's settings held to them. */
#include "commands/criteria.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/suggest.h"
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

/* Moves an array [count] of elements of that size to one with a zeroed element more. NULL, with the
 * array as it was, when memory runs out. */
static void *grow(void *array, size_t count, size_t size)
{
    char *grown = realloc(array, (count + 1) * size);
    if (grown)
        memset(grown + count * size, 0, size);
    return grown;
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

/* "activation is tanh" */
static enum lb_status read_condition(const struct reader *reader, char *text,
                                     struct lb_condition *condition, struct lb_error *err)
{
    const char *words[LB_RULE_WORDS];
    size_t count, test = 0;
    enum lb_status st = split(reader, text, words, &count, err);
    if (st != LB_OK)
        return st;
    if (count < 3)
        return wrong(reader, err, "a condition is a setting, a test and values, not", text);
    if (!lb_criteria_find(reader->criteria, words[0]))
        return wrong(reader, err, "there is no setting", words[0]);
    while (test_names[test] && strcmp(test_names[test], words[1]) != 0)
        test++;
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
    struct lb_setting *settings =
        grow(criteria->settings, criteria->setting_count, sizeof(*settings));
    if (!settings)
        return lb_fail(err, LB_OOM, "out of memory");
    criteria->settings = settings;
    struct lb_setting *setting = &settings[criteria->setting_count++];
    setting->name = words[0];
    setting->is_number = strcmp(words[1], "number") == 0;
    setting->value = words[2];
    for (size_t i = 3; i < count; i++) {
        char *equals = strchr(words[i], '=');
        if (equals)
            *equals = '\0';
        setting->words[setting->word_count] = words[i];
        setting->called[setting->word_count++] = equals ? equals + 1 : words[i];
    }
    return LB_OK;
}

static enum lb_status read_rule(const struct reader *reader, enum lb_rule_kind kind, char *text,
                                struct lb_error *err)
{
    struct lb_criteria *criteria = reader->criteria;
    struct lb_rule *rules = grow(criteria->rules, criteria->rule_count, sizeof(*rules));
    if (!rules)
        return lb_fail(err, LB_OOM, "out of memory");
    criteria->rules = rules;
    struct lb_rule *rule = &rules[criteria->rule_count++];
    rule->kind = kind;
    rule->text = kind == LB_CRITERION ? "" : text;
    rule->unmet = rule->suggested = rule->changes = "";
    if (kind != LB_CRITERION)
        return LB_OK;
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
    if (strcmp(keyword, "when") == 0 && rule->kind != LB_CRITERION) {
        if (rule->condition_count == LB_RULE_CONDITIONS)
            return wrong(reader, err, "too many conditions at", text);
        return read_condition(reader, text, &rule->conditions[rule->condition_count++], err);
    }
    if (rule->kind == LB_CRITERION && strcmp(keyword, "if") == 0)
        return read_condition(reader, text, &rule->only_if, err);
    const struct {
        const char *keyword;
        const char **target;
    } texts[] = {
        {"unmet", &rule->unmet}, {"suggest", &rule->suggested}, {"changes", &rule->changes}};
    for (size_t i = 0; rule->kind == LB_CRITERION && i < sizeof(texts) / sizeof(texts[0]); i++)
        if (strcmp(keyword, texts[i].keyword) == 0) {
            *texts[i].target = text;
            return LB_OK;
        }
    return wrong(reader, err, "there is no keyword here called", keyword);
}

static enum lb_status read_line(const struct reader *reader, char *keyword, struct lb_error *err)
{
    struct lb_criteria *criteria = reader->criteria;
    const struct {
        const char *keyword;
        const char **target;
    } texts[] = {{"title", &criteria->title},     {"fast", &criteria->fast},
                 {"version", &criteria->version}, {"source", &criteria->source},
                 {"instead", &criteria->instead}, {"price", &criteria->price}};
    bool indented = strchr(blanks, keyword[0]) != NULL;
    keyword += strspn(keyword, blanks);
    char *text = keyword + strcspn(keyword, blanks);
    if (*text)
        *text++ = '\0';
    text += strspn(text, blanks);
    if (indented)
        return read_property(reader, keyword, text, err);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (strcmp(keyword, texts[i].keyword) == 0) {
            *texts[i].target = text;
            return LB_OK;
        }
    if (strcmp(keyword, "setting") == 0)
        return read_setting(reader, text, err);
    if (strcmp(keyword, "criterion") == 0)
        return read_rule(reader, LB_CRITERION, text, err);
    if (strcmp(keyword, "algorithm") == 0)
        return read_rule(reader, LB_ALGORITHM, text, err);
    if (strcmp(keyword, "note") == 0)
        return read_rule(reader, LB_NOTE, text, err);
    return wrong(reader, err, "there is no keyword called", keyword);
}

/* Joins a line that is indented by eight blanks or more to the line before it, by a '\v' in place
 * of the newline. */
static void join_lines(char *text)
{
    for (char *end = strchr(text, '\n'); end; end = strchr(end + 1, '\n'))
        if (strspn(end + 1, " ") >= 8)
            *end = '\v';
}

/* Makes one blank of each run of them behind the indentation. Returns how many lines were joined.
 */
static int squeeze(char *line)
{
    int joined = 0;
    size_t indentation = strspn(line, blanks), length = indentation;
    for (size_t i = indentation; line[i]; i++) {
        bool blank = line[i] == '\v' || strchr(blanks, line[i]);
        joined += line[i] == '\v';
        if (!blank || (length > 0 && line[length - 1] != ' '))
            line[length++] = blank ? ' ' : line[i];
    }
    line[length] = '\0';
    return joined;
}

static enum lb_status read_text(struct reader *reader, char *text, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    int joined = 0;
    join_lines(text);
    for (char *line = text, *next; line && st == LB_OK; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        reader->line += 1 + joined;
        joined = squeeze(line);
        if (line[0] != '#' && line[strspn(line, blanks)])
            st = read_line(reader, line, err);
    }
    const struct lb_criteria *c = reader->criteria;
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
    char folder[3800], all[256] = "", best[100] = "";
    size_t distance = (size_t)-1;
    enum lb_status st = lb_share_path("criteria", folder, sizeof(folder), err);
    if (st != LB_OK)
        return st;
    snprintf(path, size, "%s/%.200s.txt", folder, name);
    if (!strchr(name, '/') && access(path, R_OK) == 0)
        return LB_OK;
    DIR *files = opendir(folder);
    for (struct dirent *file; files && (file = readdir(files));) {
        size_t length = strlen(file->d_name), used = strlen(all);
        if (length <= 4 || strcmp(file->d_name + length - 4, ".txt") != 0)
            continue;
        file->d_name[length - 4] = '\0';
        if (lb_is_closer(name, file->d_name, &distance))
            snprintf(best, sizeof(best), "; did you mean %.60s?", file->d_name);
        snprintf(all + used, sizeof(all) - used, "%s%s", used ? ", " : "", file->d_name);
    }
    if (files)
        closedir(files);
    return lb_fail(err, LB_INVALID, "there are no criteria '%.60s'; there are %.200s%s", name, all,
                   best);
}

bool lb_criteria_exist(const char *name)
{
    char path[4096];
    return find_file(name, path, sizeof(path), NULL) == LB_OK;
}

/* A file's text, NUL-terminated, which the caller frees. */
static enum lb_status read_file(const char *path, char **text, struct lb_error *err)
{
    enum { MOST = 1 << 20 };
    FILE *file = fopen(path, "r");
    if (!file)
        return lb_fail(err, LB_IO, "%s: %s", path, strerror(errno));
    *text = calloc(1, MOST);
    enum lb_status st = *text ? LB_OK : lb_fail(err, LB_OOM, "out of memory");
    if (st == LB_OK && (fread(*text, 1, MOST - 1, file) == MOST - 1 || ferror(file)))
        st = lb_fail(err, LB_IO, "%s: it can't be read, or is larger than 1 MiB", path);
    fclose(file);
    return st;
}

enum lb_status lb_criteria_read(const char *name, struct lb_criteria *criteria,
                                struct lb_error *err)
{
    char path[4096];
    enum lb_status st = LB_OK;
    struct reader reader = {.criteria = criteria, .name = name};
    *criteria = (struct lb_criteria){0};
    LB_TRY(find_file(name, path, sizeof(path), err));
    LB_TRY(read_file(path, &criteria->text, err));
    LB_TRY(read_text(&reader, criteria->text, err));
done:
    if (st != LB_OK)
        lb_criteria_free(criteria);
    return st;
}

void lb_criteria_free(struct lb_criteria *criteria)
{
    for (size_t i = 0; i < criteria->copy_count; i++)
        free(criteria->copies[i]);
    free(criteria->copies);
    free(criteria->settings);
    free(criteria->rules);
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
static enum lb_status check_value(const struct lb_setting *setting, const char *value,
                                  struct lb_error *err)
{
    char all[256] = "", *end;
    if (setting->is_number) {
        double number = strtod(value, &end);
        return value[0] && !*end && isfinite(number)
                   ? LB_OK
                   : lb_fail(err, LB_INVALID, "%s=%s: a number was expected", setting->name, value);
    }
    for (size_t i = 0; i < setting->word_count; i++) {
        size_t used = strlen(all);
        if (strcmp(setting->words[i], value) == 0)
            return LB_OK;
        snprintf(all + used, sizeof(all) - used, "%s%s", used ? ", " : "", setting->words[i]);
    }
    return lb_fail(err, LB_INVALID, "%s=%s: allowed are %s", setting->name, value, all);
}

static enum lb_status no_setting(const struct lb_criteria *criteria, const char *name,
                                 struct lb_error *err)
{
    size_t distance = (size_t)-1;
    const char *best = NULL;
    char all[400] = "";
    for (size_t i = 0; i < criteria->setting_count; i++) {
        size_t used = strlen(all);
        if (lb_is_closer(name, criteria->settings[i].name, &distance))
            best = criteria->settings[i].name;
        snprintf(all + used, sizeof(all) - used, "%s%s", used ? ", " : "",
                 criteria->settings[i].name);
    }
    return best ? lb_fail(err, LB_INVALID, "there is no setting '%.60s'; did you mean %s?", name,
                          best)
                : lb_fail(err, LB_INVALID, "there is no setting '%.60s'; there are %s", name, all);
}

/* Sets one setting from "name=value". Blanks and quotes are dropped, and upper case becomes lower
 * case. */
static enum lb_status set_one(struct lb_criteria *criteria, const char *part, size_t length,
                              struct lb_error *err)
{
    char **copies = grow(criteria->copies, criteria->copy_count, sizeof(*copies));
    if (copies)
        criteria->copies = copies;
    char *copy = copies ? calloc(1, length + 1) : NULL;
    size_t used = 0;
    if (!copy)
        return lb_fail(err, LB_OOM, "out of memory");
    copies[criteria->copy_count++] = copy;
    for (size_t i = 0; i < length; i++)
        if (!isspace((unsigned char)part[i]) && part[i] != '"' && part[i] != '\'')
            copy[used++] = (char)tolower((unsigned char)part[i]);
    char *equals = strchr(copy, '=');
    if (!equals)
        return lb_fail(err, LB_INVALID, "'%.60s': name=value was expected", copy);
    *equals = '\0';
    struct lb_setting *setting = (struct lb_setting *)lb_criteria_find(criteria, copy);
    if (!setting)
        return no_setting(criteria, copy, err);
    setting->value = equals + 1;
    setting->given = true;
    return check_value(setting, setting->value, err);
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
        size_t used = strlen(text);
        bool last = i + 1 == condition->word_count;
        snprintf(text + used, size - used, "%s%s",
                 i == 0 ? ""
                 : last ? " or "
                        : ", ",
                 condition->words[i]);
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
    size_t used = 0;
    text[0] = '\0';
    for (const char *at = criteria->price; *at && used + 1 < size;) {
        size_t length = at[0] == '{' ? strcspn(at, "}") : 0;
        char name[64] = "";
        if (length > 1 && at[length] == '}')
            snprintf(name, sizeof(name), "%.*s", (int)length - 1, at + 1);
        const struct lb_setting *setting = name[0] ? lb_criteria_find(criteria, name) : NULL;
        if (setting) {
            snprintf(text + used, size - used, "%s", called(setting));
            at += length + 1;
        } else {
            snprintf(text + used, size - used, "%c", *at++);
        }
        used = strlen(text);
    }
    const struct lb_setting *projection = lb_criteria_find(criteria, "proj_size");
    if (projection && strtod(projection->value, NULL) > 0)
        snprintf(text + used, size - used, " --cell projection -P %s", projection->value);
}
