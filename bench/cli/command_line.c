/* Reading the command line by the table of options. */
#include "cli/command_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "cli/builtin_cases.h"
#include "model/weights_file.h"

struct reader {
    char **argv; /* [argc] */
    int argc, at;
    const char **first_use; /* [lb_option_count] the word of an option when it was used first */
    struct lb_options *options;
};

/* Whether there is no word at that place, or the next option: a value was forgotten. A folder that
 * is called like an option can be given behind '='. */
static bool lacks_value(const struct reader *reader, int at)
{
    const char *word = at < reader->argc ? reader->argv[at] : NULL, *value;
    return !word || (lb_option_match(word, &value) && !value);
}

static enum lb_status fail_missing(const struct lb_option *option, struct lb_error *err)
{
    return lb_fail(err, LB_INVALID, "%s: it takes %s", option->name, option->argument);
}

static enum lb_status fail_empty(const struct lb_option *option, struct lb_error *err)
{
    return lb_fail(err, LB_INVALID, "%s: it takes %s, and was given nothing", option->name,
                   option->argument);
}

/* LB_INVALID, with the name that was probably meant. */
static enum lb_status fail_unknown(const char *word, struct lb_error *err)
{
    const char *suggestion = NULL;
    size_t distance = SIZE_MAX;
    for (size_t i = 0; i < lb_option_count; i++) {
        const struct lb_option *option = &lb_option_table[i];
        if (lb_is_nearer(word, option->name, &distance))
            suggestion = option->name;
        if (option->short_name && lb_is_nearer(word, option->short_name, &distance))
            suggestion = option->short_name;
    }
    if (word[0] != '-')
        return lb_fail(err, LB_INVALID,
                       "'%s': commands and options begin with '-', such as --sweep; see --help",
                       word);
    if (suggestion)
        return lb_fail(err, LB_INVALID, "%s: there is no such option; did you mean %s?", word,
                       suggestion);
    return lb_fail(err, LB_INVALID, "%s: there is no such option; see --help", word);
}

/* The words behind the first one, which the option takes too. Moves reader->at past them. */
static enum lb_status take_more(struct reader *reader, const struct lb_option *option,
                                struct lb_option_words *words, struct lb_error *err)
{
    words->more = &reader->argv[reader->at + 1];
    if (option->extra_words == LB_WORDS_MANY) {
        while (reader->at + 1 < reader->argc && reader->argv[reader->at + 1][0] != '-') {
            words->more_count++;
            reader->at++;
        }
        return LB_OK;
    }
    for (; words->more_count < (size_t)option->extra_words; words->more_count++) {
        if (lacks_value(reader, reader->at + 1))
            return fail_missing(option, err);
        if (!reader->argv[++reader->at][0])
            return fail_empty(option, err);
    }
    return LB_OK;
}

/* Reads the option at reader->at with the words that it takes. */
static enum lb_status take_option(struct reader *reader, struct lb_error *err)
{
    struct lb_option_words words = {.word = reader->argv[reader->at], .value = ""};
    const char *value;
    const struct lb_option *option = lb_option_match(words.word, &value);
    if (!option)
        return fail_unknown(words.word, err);
    size_t row = (size_t)(option - lb_option_table);
    reader->options->given[row] = true;
    if (!reader->first_use[row])
        reader->first_use[row] = option->joined ? words.word : option->name;
    if (!option->argument)
        return value ? lb_fail(err, LB_INVALID, "%s: it takes no value", option->name)
                     : option->set(reader->options, option, &words, err);
    if (!value && lacks_value(reader, reader->at + 1))
        return fail_missing(option, err);
    words.value = value ? value : reader->argv[++reader->at];
    if (!words.value[0])
        return fail_empty(option, err);
    enum lb_status st = take_more(reader, option, &words, err);
    return st == LB_OK ? option->set(reader->options, option, &words, err) : st;
}

enum lb_status lb_check_effect(const struct lb_option *option, const char *word,
                               enum lb_command command, struct lb_error *err)
{
    char works_with[256] = "";
    if (option->command != LB_CMD_NONE || option->commands & 1U << command ||
        command == LB_CMD_HELP || command == LB_CMD_VERSION)
        return LB_OK;
    for (int c = 0; c < LB_CMD_COUNT; c++) {
        size_t used = strlen(works_with);
        if (option->commands & 1U << c)
            snprintf(works_with + used, sizeof(works_with) - used, "%s%s", used ? ", " : "",
                     lb_command_name((enum lb_command)c));
    }
    return lb_fail(err, LB_INVALID, "%s: it has no effect with %s%s; use it with %s", word,
                   lb_command_name(command),
                   command == LB_CMD_RESUME ? ", because a run goes on as it began" : "",
                   works_with);
}

/* Checks that need the whole command line. */
static enum lb_status check_options(const struct reader *reader, struct lb_error *err)
{
    const struct lb_options *options = reader->options;
    enum lb_status st = LB_OK;
    if (options->command == LB_CMD_NONE)
        return lb_fail(err, LB_INVALID,
                       "no command was given: --sweep, --list, --plan, ...; see --help");
    for (size_t i = 0; i < lb_option_count && st == LB_OK; i++)
        if (options->given[i])
            st = lb_check_effect(&lb_option_table[i], reader->first_use[i], options->command, err);
    if (st == LB_OK && options->command == LB_CMD_REPORT && !options->out)
        st = lb_fail(err, LB_INVALID, "--report: name the file of the page: -o report.html");
    if (st == LB_OK && options->quiet && options->verbose)
        st = lb_fail(err, LB_INVALID, "--quiet and --verbose exclude each other");
    return st;
}

/* With --weights, the file says I, H, L and D; T and B are 128 and 1 where they are not given. */
static enum lb_status take_file_sizes(struct lb_options *options, struct lb_error *err)
{
    static const char *const fixed[] = {"-I", "-H", "-L", "-D", "--case", "--cases"};
    struct lb_weights_file *file = NULL;
    struct lb_error why;
    char text[32];
    enum lb_status st = LB_OK;
    if (!options->weights)
        return options->prefix ? lb_fail(err, LB_INVALID,
                                         "--prefix: it has no effect without "
                                         "--weights")
                               : LB_OK;
    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
        if (lb_option_given(options, fixed[i]))
            return lb_fail(err, LB_INVALID,
                           "%s: the file of --weights fixes the sizes; give -T and "
                           "-B",
                           fixed[i]);
    if (lb_weights_file_read(options->weights, options->prefix ? options->prefix : "", &file,
                             &why) != LB_OK)
        return lb_fail(err, LB_INVALID, "--weights %.480s", why.text);
    const int64_t sizes[] = {file->input, file->hidden, file->layers, file->directions};
    lb_weights_file_free(file);
    options->sized = true;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        snprintf(text, sizeof(text), "%lld", (long long)sizes[i]);
        LB_TRY(lb_selection_take(&options->selection, fixed[i], text, err));
    }
    if (!lb_option_given(options, "-T"))
        LB_TRY(lb_selection_take(&options->selection, "-T", "128", err));
    if (!lb_option_given(options, "-B"))
        LB_TRY(lb_selection_take(&options->selection, "-B", "1", err));
done:
    return st;
}

/* Without sizes, a command on cases means the quick grid: inference and training, or for the
 * self-test inference alone. */
static enum lb_status choose_quick(struct lb_options *options, struct lb_error *err)
{
    bool tests = options->command == LB_CMD_SELF_TEST;
    bool plans = options->command == LB_CMD_SWEEP || options->command == LB_CMD_LIST ||
                 options->command == LB_CMD_PLAN || options->command == LB_CMD_AB;
    enum lb_status st = LB_OK;
    if ((!plans && !tests) || options->sized)
        return LB_OK;
    options->quick |= plans;
    LB_TRY(lb_take_cases(&options->selection, "quick", true, err));
    if (plans && options->selection.axes[LB_AXIS_PASS].count == 0)
        LB_TRY(lb_selection_take(&options->selection, "--pass", "infer,train", err));
done:
    return st;
}

enum lb_status lb_command_line_read(int argc, char **argv, struct lb_options *options,
                                    struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct reader reader = {.argv = argv, .argc = argc, .at = 1, .options = options};
    *options = lb_options_defaults();
    options->argv = argv;
    options->argc = argc;
    options->given = calloc(lb_option_count, sizeof(*options->given));
    reader.first_use = calloc(lb_option_count, sizeof(*reader.first_use));
    if (!options->given || !reader.first_use)
        LB_TRY(lb_fail(err, LB_OOM, "out of memory"));
    for (; reader.at < argc; reader.at++)
        LB_TRY(take_option(&reader, err));
    LB_TRY(check_options(&reader, err));
    LB_TRY(take_file_sizes(options, err));
    LB_TRY(choose_quick(options, err));
done:
    free(reader.first_use);
    if (st != LB_OK)
        lb_options_free(options);
    return st;
}
