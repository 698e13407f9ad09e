/* Reading the command line by the table of options. */
#include "cli/options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/suggest.h"
#include "base/text.h"
#include "device/device.h"
#include "host/cpu_units.h"
#include "model/tensor_files.h"
#include "support/share_path.h"

static enum lb_status fail_empty(const struct lb_option *option, struct lb_error *err)
{
    return lb_fail(err, LB_INVALID, "%s: it takes %s, and was given nothing", option->name,
                   option->argument);
}

/* Takes the words that follow the option, and moves *at to the last of them. `use` may already have
 * one, which stood after '=', where it may look like an option. */
static enum lb_status take_words(struct lb_option_use *use, int *at, struct lb_error *err)
{
    const struct lb_option *option = use->option;
    size_t least = option->least ? (size_t)option->least : 1;
    size_t most = option->most ? (size_t)option->most : least;
    for (;; ++*at) {
        const char *next = use->options->argv[*at + 1], *value;
        bool needed = use->word_count < least;
        if (!needed && (!next || next[0] == '-' || least == most))
            return LB_OK;
        if (use->word_count == most)
            return lb_fail(err, LB_INVALID,
                           "%s %s: at most %s: '%s' is one word too many; put a layer into quotes",
                           option->name, use->words[0], option->argument, next);
        if (!next || (lb_option_match(next, &value) && (!value || use->word_count > 0)))
            return lb_fail(err, LB_INVALID, "%s: it takes %s, but %s follows %s", option->name,
                           option->argument, next ? next : "nothing",
                           use->word_count > 0 ? use->words[use->word_count - 1] : "it");
        if (!next[0] && most == LB_WORDS_MANY && use->word_count > 0)
            return lb_fail(err, LB_INVALID, "%s: a run has an empty name", option->name);
        if (!next[0] && needed)
            return fail_empty(option, err);
        use->words[use->word_count++] = next;
    }
}

static enum lb_status fail_unknown(const char *word, struct lb_error *err)
{
    const char *suggestion = NULL, *letters = word + strspn(word, "-");
    size_t distance = SIZE_MAX;
    for (size_t i = 0; i < lb_option_count; i++) {
        const char *name = lb_option_table[i].name; /* the dashes, which all share, do not count */
        char meaning[16] = ""; /* the first word of a letter's help: --batch stands for -B */
        if (!name[2])
            snprintf(meaning, sizeof(meaning), "%.*s", (int)strcspn(lb_option_table[i].help, " "),
                     lb_option_table[i].help);
        if (lb_is_closer(letters, name + strspn(name, "-"), &distance) ||
            (word[0] == '-' && word[1] == '-' && lb_is_closer(letters, meaning, &distance)))
            suggestion = name;
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

/* Takes the option at argv[*at] with its words, and moves *at to the last of them. */
static enum lb_status take_option(struct lb_options *options, int *at, struct lb_error *err)
{
    struct lb_option_use use = {.options = options,
                                .word = options->argv[*at],
                                .words = &options->word_pool[*at],
                                .value = ""};
    const char *value;
    const struct lb_option *option = lb_option_match(use.word, &value);
    if (!option)
        return fail_unknown(use.word, err);
    const char **given = &options->given[option - lb_option_table];
    use.option = option;
    if (!*given)
        *given = option->joined ? use.word : option->name;
    if (!option->argument)
        return value ? lb_fail(err, LB_INVALID, "%s: it takes no value", option->name)
                     : option->set(&use, err);
    if (value && !value[0])
        return fail_empty(option, err);
    if (value)
        use.words[use.word_count++] = value;
    LB_CHECK(take_words(&use, at, err));
    use.value = use.words[0];
    return option->set(&use, err);
}

enum lb_status lb_check_effect(const struct lb_option *option, const char *word,
                               enum lb_command command, struct lb_error *err)
{
    char works_with[256] = "";
    if (option->group == LB_GROUP_COMMANDS || option->commands & command ||
        command == LB_CMD_HELP || command == LB_CMD_VERSION)
        return LB_OK;
    for (size_t i = 0; i < lb_option_count; i++)
        if (option->commands & lb_option_command(&lb_option_table[i]))
            lb_append(works_with, sizeof(works_with), "%s%s", works_with[0] ? ", " : "",
                      lb_option_table[i].name);
    return lb_fail(err, LB_INVALID, "%s: it has no effect with %s%s; use it with %s", word,
                   lb_command_name(command),
                   command == LB_CMD_RESUME ? ", because a run goes on as it began" : "",
                   works_with);
}

/* LB_INVALID for an output file (NULL: none) that would replace the records of a run, which nothing
 * could bring back. */
static enum lb_status check_output_file(const char *name, const char *path, struct lb_error *err)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return !path || strcmp(slash ? slash + 1 : path, LB_RUN_FILE_NAME) != 0
               ? LB_OK
               : lb_fail(err, LB_INVALID,
                         "%s %s: a file of this name holds the records of a run; choose another "
                         "name",
                         name, path);
}

static enum lb_status check_combinations(const struct lb_options *options, struct lb_error *err)
{
    const struct lb_given_files *files = &options->given_files;
    const char *devices = options->devices;
    bool draws = options->plots && strcmp(options->plots, "none") != 0;
    bool lists = options->command == LB_CMD_LIST && !options->shard;
    bool sweeps_alone = options->command == LB_CMD_SWEEP && !options->against;
    const struct {
        bool wrong;
        const char *message;
    } rules[] = {
        {lists && options->quick, "--quick: it has no effect with --list without --shard"},
        {lists && !isnan(options->case_time_s),
         "--case-time: it has no effect with --list without --shard"},
        {options->command == LB_CMD_REPORT && !options->out,
         "--report: name the file of the page: -o report.html"},
        {devices && lb_option_given(options, "--device"),
         "--device and --devices exclude each other"},
        {devices && options->shard,
         "--shard and --devices exclude each other: several machines take a shard per GPU, each "
         "with --shard and --device"},
        {devices && files->tune,
         "--tune: with --devices its choices would be measured while other devices are busy; tune "
         "on one device first, with --device"},
        {options->against && (devices || options->shard),
         "--against excludes --devices and --shard"},
        {options->against &&
             (draws || options->hang_limit || options->kernels || options->verbose ||
              options->repetitions > 1 || options->benchmark_json || options->benchmark_out ||
              options->benchmark_count > 0),
         "--against compares pairs of processes and prints that alone: it excludes --hang-limit, "
         "--kernels, --verbose, --plots but none, and --benchmark_ options but the filter"},
        {sweeps_alone && lb_option_given(options, "--margin"),
         "--margin: a sweep compares only --against another program"},
        {sweeps_alone && options->strict,
         "--strict: a sweep compares only --against another program"},
        {sweeps_alone && lb_option_given(options, "--format"),
         "--format: a sweep compares only --against another program"},
        {options->quiet && options->verbose, "--quiet and --verbose exclude each other"},
        {files->prefix && !files->weights, "--prefix: it has no effect without --weights"},
        {files->batch_first && !files->inputs, "--batch-first: it has no effect without --inputs"},
        {options->outputs && (!files->inputs || !files->weights),
         "--outputs: it needs --weights and --inputs, which y was computed from"},
    };
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        if (rules[i].wrong)
            return lb_fail(err, LB_INVALID, "%s", rules[i].message);
    return LB_OK;
}

/* sizes [LB_AXIS_COUNT]: what the files of --weights and --inputs say of each axis; 0: nothing. */
static enum lb_status read_file_sizes(const struct lb_given_files *files, int64_t *sizes,
                                      struct lb_error *err)
{
    struct lb_weights_file *weights;
    struct lb_sequence_file *x;
    struct lb_error why;
    if (files->weights) {
        if (lb_weights_file_read(files->weights, files->prefix ? files->prefix : "", &weights,
                                 &why) != LB_OK)
            return lb_fail(err, LB_INVALID, "--weights %.480s", why.text);
        sizes[LB_AXIS_INPUT] = weights->input;
        sizes[LB_AXIS_HIDDEN] = weights->hidden;
        sizes[LB_AXIS_LAYERS] = weights->layers;
        sizes[LB_AXIS_DIRECTIONS] = weights->directions;
        lb_weights_file_free(weights);
    }
    if (!files->inputs)
        return LB_OK;
    if (lb_sequence_file_read(files->inputs, files->batch_first, &x, &why) != LB_OK)
        return lb_fail(err, LB_INVALID, "--inputs %.480s", why.text);
    int64_t width = x->width, needed = sizes[LB_AXIS_INPUT];
    sizes[LB_AXIS_SEQ_LEN] = x->seq_len;
    sizes[LB_AXIS_BATCH] = x->batch;
    sizes[LB_AXIS_INPUT] = width;
    lb_sequence_file_free(x);
    return needed == 0 || needed == width
               ? LB_OK
               : lb_fail(err, LB_INVALID,
                         "--inputs %.300s: x has %lld features per step, and the layer of "
                         "--weights takes %lld",
                         files->inputs, (long long)width, (long long)needed);
}

/* The sizes that the files of --weights and --inputs fix. With --weights alone, T and B are 128 and
 * 1 where they are not given. */
static enum lb_status take_file_sizes(struct lb_options *options, struct lb_error *err)
{
    const struct lb_given_files *files = &options->given_files;
    const struct lb_axis *cells = &options->selection.axes[LB_AXIS_CELL];
    int64_t sizes[LB_AXIS_COUNT] = {0};
    if (!files->weights && !files->inputs)
        return LB_OK;
    if (options->selection.cases.count > 0)
        return lb_fail(err, LB_INVALID, "%s: the file of %s fixes sizes; give the others alone",
                       lb_option_given(options, "--case") ? "--case" : "--cases",
                       files->weights ? "--weights" : "--inputs");
    for (size_t i = 0; files->weights && i < cells->count; i++)
        if (cells->values[i] != LB_CELL_STANDARD)
            return lb_fail(err, LB_INVALID,
                           "--cell %s: a file of --weights has the standard cell alone",
                           lb_cell_name((enum lb_cell_kind)cells->values[i]));
    LB_CHECK(read_file_sizes(files, sizes, err));
    if (!files->inputs) {
        sizes[LB_AXIS_SEQ_LEN] = lb_option_given(options, "-T") ? 0 : 128;
        sizes[LB_AXIS_BATCH] = lb_option_given(options, "-B") ? 0 : 1;
    }
    for (int i = 0; i < LB_AXIS_COUNT; i++) {
        const char *flag = lb_axis_table[i].flag;
        bool of_weights = files->weights && i != LB_AXIS_SEQ_LEN && i != LB_AXIS_BATCH;
        char text[32];
        if (sizes[i] == 0)
            continue;
        if (lb_option_given(options, flag))
            return lb_fail(err, LB_INVALID, "%s: the file of %s fixes that size", flag,
                           of_weights ? "--weights" : "--inputs");
        snprintf(text, sizeof(text), "%lld", (long long)sizes[i]);
        LB_CHECK(lb_selection_take(&options->selection, flag, text, err));
    }
    return LB_OK;
}

/* --cross-check takes every precision where none is given.
 * Without sizes, a command on cases takes the quick grid: inference and training, in f32 and, where
 * it may be faster, bf16. --ab takes f32 alone; so does --shard, because all machines must cut the
 * same plan. The self-test takes inference alone. */
static enum lb_status choose_defaults(struct lb_options *options, struct lb_error *err)
{
    bool tests = options->command == LB_CMD_SELF_TEST;
    bool plans = options->command & (LB_CMD_SWEEP | LB_CMD_LIST | LB_CMD_PLAN | LB_CMD_AB);
    bool has_dtype = options->selection.axes[LB_AXIS_DTYPE].count > 0;
    char folder[4096], path[4500];
    if (options->command == LB_CMD_CROSS_CHECK && !has_dtype)
        return lb_selection_take(&options->selection, "--dtype", "f64,f32,f16,bf16", err);
    if ((!plans && !tests) || options->sized)
        return LB_OK;
    options->quick |= plans;
    LB_CHECK(lb_share_path("cases", folder, sizeof(folder), err));
    snprintf(path, sizeof(path), "%s/quick.txt", folder);
    LB_CHECK(lb_case_list_read(&options->selection.cases, path, err));
    if (plans && options->selection.axes[LB_AXIS_PASS].count == 0)
        /* In this order the oracle of training also serves inference. */
        LB_CHECK(lb_selection_take(&options->selection, "--pass", "train,infer", err));
    if (plans && options->command != LB_CMD_AB && !options->shard && !has_dtype &&
        (lb_cpu_has(LB_CPU_AVX512BF16, LB_BF16) || lb_cpu_has(LB_CPU_AMX, LB_BF16) ||
         lb_has_nvidia_driver()))
        LB_CHECK(lb_selection_take(&options->selection, "--dtype", LB_QUICK_DTYPES, err));
    return LB_OK;
}

enum lb_status lb_command_line_read(int argc, char **argv, struct lb_options *options,
                                    struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const struct lb_selection *selection = &options->selection;
    *options = lb_options_defaults();
    options->argv = argv;
    options->argc = argc;
    options->given = lb_needed(calloc(lb_option_count, sizeof(*options->given)));
    options->word_pool = lb_needed(calloc((size_t)argc + 1, sizeof(*options->word_pool)));
    for (int at = 1; at < argc; at++)
        LB_TRY(take_option(options, &at, err));
    enum lb_command command = options->command;
    if (command == LB_CMD_NONE)
        LB_TRY(lb_fail(err, LB_INVALID,
                       "no command was given: --sweep, --list, --plan, ...; see --help"));
    for (size_t i = 0; i < lb_option_count; i++)
        if (options->given[i])
            LB_TRY(lb_check_effect(&lb_option_table[i], options->given[i], command, err));
    LB_TRY(check_combinations(options, err));
    LB_TRY(check_output_file("--out", command == LB_CMD_REPORT ? options->out : NULL, err));
    LB_TRY(check_output_file("--benchmark_out", options->benchmark_out, err));
    LB_TRY(take_file_sizes(options, err));
    options->sized = selection->axes[LB_AXIS_SEQ_LEN].count > 0 ||
                     selection->axes[LB_AXIS_BATCH].count > 0 ||
                     selection->axes[LB_AXIS_HIDDEN].count > 0 || selection->cases.count > 0;
    LB_TRY(choose_defaults(options, err));
done:
    if (st != LB_OK)
        lb_options_free(options);
    return st;
}
