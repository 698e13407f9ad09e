/* --ab: two implementations, or two builds of one plug-in, measured alternately in one process.
 * --against: two builds of this program, whose fresh processes measure each case alternately. */
#include "commands/commands.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "support/texts.h"
#include "sweep/sweep.h"

enum {
    BLOCK_PAIRS = 60,  /* of blocks per case, unless --benchmark_repetitions is given */
    PROCESS_PAIRS = 15 /* of processes per case, unless --processes is given */
};

int lb_against_pairs(const struct lb_options *options)
{
    return options->processes > 1 ? options->processes : PROCESS_PAIRS;
}

struct lb_sampler_options lb_block_sampler(void)
{
    return (struct lb_sampler_options){.min_samples = 6, .max_samples = 25, .max_ns = 10e6};
}

/* The case as this side runs it. */
static struct lb_case case_of(const struct lb_case *problem, const struct lb_side *side)
{
    struct lb_case c = *problem;
    if (!side->impl_entry)
        return c;
    snprintf(c.impl, sizeof(c.impl), "%s", side->impl_entry->name);
    snprintf(c.variant, sizeof(c.variant), "%s", side->variant);
    return c;
}

static const struct lb_impl_entry *entry_of(const struct lb_session *session,
                                            const struct lb_case *c, const struct lb_side *side)
{
    return side->impl_entry ? side->impl_entry : lb_registry_find(session->registry, c->impl);
}

static enum lb_status measure_block(const struct lb_session *session, const struct lb_case *c,
                                    const struct lb_side *side, struct lb_row *row,
                                    struct lb_error *err)
{
    struct lb_row block = {0};
    bool first = row->samples == 0, fresh = side->pool != NULL;
    const struct lb_job job = {
        .c = c,
        .seed = session->options->seed,
        .sampler = fresh ? lb_options_sampler(session->options) : lb_block_sampler(),
        .process = fresh ? NULL : "both sides",
        .loss_scale = fresh ? session->options->loss_scale : 0,
        .dynamic_loss_scale = fresh && session->options->dynamic_loss_scale,
    };
    if (fresh)
        lb_pool_renew(side->pool);
    enum lb_status st = lb_pool_run(fresh ? side->pool : session->pool, entry_of(session, c, side),
                                    &job, &block, err);
    if (st == LB_OK)
        lb_row_merge(row, &block, first, fresh);
    lb_row_free(&block);
    return st;
}

enum lb_status lb_measure_pairs(const struct lb_session *session, const struct lb_case *problem,
                                const struct lb_side sides[2], int pairs, uint64_t *random,
                                struct lb_row rows[2], struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const struct lb_case cases[2] = {case_of(problem, &sides[0]), case_of(problem, &sides[1])};
    for (int s = 0; s < 2; s++) {
        rows[s] = lb_row_make(&cases[s]);
        rows[s].verdict = LB_VERDICT_OK;
    }
    bool sound = true;
    for (int i = 0; i < pairs && sound; i++) {
        int first = (int)(lb_random_next(random) & 1);
        for (int j = 0; j < 2; j++) {
            int s = j == 0 ? first : 1 - first;
            if (lb_verdict_has_samples(rows[s].verdict))
                LB_TRY(measure_block(session, &cases[s], &sides[s], &rows[s], err));
            sound &= lb_verdict_has_samples(rows[s].verdict);
        }
    }
done:
    if (st != LB_OK)
        for (int s = 0; s < 2; s++)
            lb_row_free(&rows[s]);
    return st;
}

/* The state of one command. */
struct ab {
    const struct lb_session *session;
    struct lb_registry others; /* of the second plug-in, which may have the first one's name */
    struct lb_side sides[2];
    int pairs; /* of blocks or processes per case */
    struct lb_plan plan;
    char commit[64]; /* of the other program; "": both sides are this one */
    bool dirty;      /* it was built with changes that the commit lacks */
    char folders[2][4200];
    struct lb_run_file files[2];
    bool failed; /* a case of the new side */
};

static bool is_plugin(const char *word)
{
    size_t length = strlen(word);
    return strchr(word, '/') || (length > 3 && strcmp(word + length - 3, ".so") == 0);
}

static enum lb_status find_side(struct ab *ab, const char *word, struct lb_registry *registry,
                                struct lb_side *side, struct lb_error *err)
{
    struct lb_named_impl named = {NULL, ""};
    if (is_plugin(word)) {
        LB_CHECK(lb_pool_add_plugin(ab->session->pool, word, registry, err));
        side->impl_entry = &registry->impl_entries[registry->count - 1];
    } else {
        LB_CHECK(lb_named_impl_parse(registry, "--ab", word, &named, err));
        side->impl_entry = lb_registry_find(registry, named.name);
    }
    side->variant = named.variant;
    snprintf(side->label, sizeof(side->label), "%s", word);
    return LB_OK;
}

/* The header of one side. It leaves out the plug-in of the other side, which may have its name. */
static enum lb_status side_header(const struct ab *ab, int side, json_t **header,
                                  struct lb_error *err)
{
    struct lb_options options = *ab->session->options;
    bool fresh = ab->sides[side].pool != NULL;
    const struct lb_sampler_options sampler =
        fresh ? lb_options_sampler(&options) : lb_block_sampler();
    char **plugins = lb_needed(calloc(options.plugin_count + 1, sizeof(*plugins)));
    for (size_t i = 0; i < options.plugin_count; i++)
        plugins[i] = options.plugins[i];
    if (!fresh && is_plugin(options.words[side]))
        plugins[options.plugin_count++] = (char *)(uintptr_t)options.words[side];
    options.plugins = plugins;
    *(fresh ? &options.processes : &options.repetitions) = ab->pairs;
    enum lb_status st = lb_settings_to_header(&options, &sampler, ab->plan.cases, ab->plan.count,
                                              ab->session->libraries, header, err);
    free(plugins);
    return st;
}

/* Creates a run per side. Their headers share an id of the pair. */
static enum lb_status open_files(struct ab *ab, struct lb_error *err)
{
    static const char *const names[2][2] = {{"a", "base"}, {"b", "new"}};
    enum lb_status st = LB_OK;
    char folder[4096], pair_id[64];
    json_t *header = NULL;
    snprintf(pair_id, sizeof(pair_id), "%lld-%ld", (long long)time(NULL), (long)getpid());
    LB_TRY(lb_name_folder(ab->session->options->out, folder, sizeof(folder), err));
    for (int s = 0; s < 2; s++) {
        const struct lb_side *side = &ab->sides[s];
        for (size_t i = 0; i < ab->plan.count; i++)
            ab->plan.cases[i] = case_of(&ab->plan.cases[i], side);
        LB_TRY(side_header(ab, s, &header, err));
        json_t *environment = json_object_get(header, "environment");
        lb_gpu_annotate(ab->session, environment);
        if (s == 0 && ab->commit[0])
            json_object_update_new(
                environment, json_pack("{s:s, s:b}", "commit", ab->commit, "dirty", ab->dirty));
        json_object_set_new(header, "interleaved", json_string(pair_id));
        json_object_set_new(header, side->pool ? "program" : "side", json_string(side->label));
        snprintf(ab->folders[s], sizeof(ab->folders[s]), "%s/%s", folder,
                 names[s][side->pool != NULL]);
        LB_TRY(lb_run_create(ab->folders[s], header, &ab->files[s], err));
        json_decref(header);
        header = NULL;
    }
done:
    json_decref(header);
    return st;
}

static enum lb_status measure_all(struct ab *ab, struct lb_error *err)
{
    const struct lb_session *session = ab->session;
    enum lb_status st = LB_OK;
    struct lb_progress progress;
    struct lb_row rows[2];
    uint64_t random = session->options->seed ^ (uint64_t)time(NULL);
    double start_ns = lb_now_ns(), budget_s = session->options->time_budget_s;
    memset(rows, 0, sizeof(rows));
    lb_progress_start(&progress, ab->plan.count);
    progress.quiet = session->options->quiet;
    for (size_t i = 0; i < ab->plan.count; i++) {
        const struct lb_case *c = &ab->plan.cases[i];
        lb_progress_case(&progress, ab->sides[0].impl_entry ? LB_PROBLEM_TEXT(c) : LB_CASE_TEXT(c));
        bool skipped = (lb_now_ns() - start_ns) / 1e9 > budget_s;
        for (int s = 0; s < 2 && skipped; s++) {
            rows[s] = lb_row_make(c);
            rows[s].verdict = LB_VERDICT_SKIPPED;
            lb_row_print(&rows[s].reason, "the time budget of %.3g s ran out", budget_s);
        }
        if (!skipped)
            LB_TRY(lb_measure_pairs(session, c, ab->sides, ab->pairs, &random, rows, err));
        bool fails = lb_verdict_is_failure(rows[1].verdict);
        bool failed = fails || lb_verdict_is_failure(rows[0].verdict);
        ab->failed |= fails;
        for (int s = 0; s < 2; s++) {
            LB_TRY(lb_run_append(&ab->files[s], &rows[s], err));
            lb_row_free(&rows[s]);
        }
        lb_progress_done(&progress, failed, skipped);
    }
    for (int s = 0; s < 2; s++)
        LB_TRY(lb_run_finish(&ab->files[s], false, err));
done:
    lb_progress_clear(&progress);
    for (int s = 0; s < 2; s++)
        lb_row_free(&rows[s]);
    return st;
}

/* Measures both sides and compares them. */
static enum lb_status run(struct ab *ab, int *exit_code, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_run runs[2] = {{0}, {0}};
    char names[2][4400];
    LB_TRY(open_files(ab, err));
    LB_TRY(measure_all(ab, err));
    for (int s = 0; s < 2; s++) {
        LB_TRY(lb_run_read(ab->folders[s], &runs[s], err));
        snprintf(names[s], sizeof(names[s]), "%.4100s (%.250s)", ab->folders[s],
                 ab->sides[s].label);
    }
    LB_TRY(lb_compare_print(runs, 2, names[0], names[1], ab->session->options, exit_code, err));
    if (*exit_code == LB_EXIT_FINE && ab->failed) /* it failed before, too */
        *exit_code = LB_EXIT_FAILED;
done:
    for (int s = 0; s < 2; s++) {
        lb_run_free(&runs[s]);
        lb_run_close(&ab->files[s]);
    }
    return st;
}

static enum lb_status check_lines(const struct lb_case_list *cases, struct lb_error *err)
{
    char origin[256];
    for (size_t i = 0; i < cases->count; i++)
        if (cases->lines[i].given & LB_GIVEN_IMPL)
            return lb_fail(err, LB_INVALID,
                           "%s: --ab names the implementations, so that its cases name none: "
                           "leave out '%s/'",
                           lb_case_line_origin(cases, &cases->lines[i], origin, sizeof(origin)),
                           LB_IMPL_LABEL(&cases->lines[i].c));
    return LB_OK;
}

enum lb_status lb_ab(struct lb_session *session, int *exit_code, struct lb_error *err)
{
    static char name[] = "both";
    struct lb_impl_entry both = {.name = name}; /* stands for both sides while they are planned */
    const struct lb_registry problems = {.impl_entries = &both, .count = 1};
    enum lb_status st = LB_OK;
    const struct lb_options *options = session->options;
    struct ab *ab = lb_needed(calloc(1, sizeof(*ab)));
    ab->session = session;
    ab->pairs = options->repetitions > 1 ? options->repetitions : BLOCK_PAIRS;
    LB_TRY(lb_registry_create(lb_impl_table, &ab->others, err));
    LB_TRY(find_side(ab, options->words[0], session->registry, &ab->sides[0], err));
    bool second_plugin = is_plugin(options->words[1]);
    LB_TRY(find_side(ab, options->words[1], second_plugin ? &ab->others : session->registry,
                     &ab->sides[1], err));
    LB_TRY(check_lines(&options->selection.cases, err));
    LB_TRY(lb_plan_build(&options->selection, &problems, &ab->plan, err));
    if (ab->plan.count == 0) {
        lb_plan_print_empty(&ab->plan, exit_code);
        goto done;
    }
    if (ab->sides[0].impl_entry->memory == LB_DEVICE ||
        ab->sides[1].impl_entry->memory == LB_DEVICE)
        LB_TRY(lb_machine_find(session, true, err));
    st = run(ab, exit_code, err);
done:
    lb_plan_free(&ab->plan);
    lb_registry_destroy(&ab->others);
    free(ab);
    return st;
}

/* LB_INVALID: the program is no bench-lstm, or this one can't use its workers. */
static enum lb_status ask_commit(const char *program, struct ab *ab, struct lb_error *err)
{
    char line[256] = "", plus[2], word[4 * 4096 + 4], command[sizeof(word) + 16];
    int protocol = 0;
    lb_shell_word(program, word, sizeof(word));
    snprintf(command, sizeof(command), "%s --version", word);
    FILE *answer = popen(command, "r");
    while (answer && fgets(line, sizeof(line), answer)) {
        ab->dirty |= sscanf(line, "bench-lstm %*s (commit %63[0-9a-z]%1[+]", ab->commit, plus) == 2;
        sscanf(line, "worker protocol %d", &protocol);
    }
    if (answer)
        pclose(answer);
    if (!ab->commit[0])
        return lb_fail(err, LB_INVALID, "--against %s: it is no bench-lstm, or can't be started",
                       program);
    return protocol == LB_WORKER_PROTOCOL
               ? LB_OK
               : lb_fail(
                     err, LB_INVALID,
                     "--against %s: its workers take other messages (protocol %d, and %d here), "
                     "so they can't take turns: sweep with each program, and --compare the runs",
                     program, protocol, LB_WORKER_PROTOCOL);
}

enum lb_status lb_against(struct lb_session *session, struct lb_plan *plan, int *exit_code,
                          struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const struct lb_options *options = session->options;
    struct ab *ab = lb_needed(calloc(1, sizeof(*ab)));
    ab->session = session;
    ab->pairs = lb_against_pairs(options);
    ab->plan = *plan;
    LB_TRY(ask_commit(options->against, ab, err));
    ab->sides[0].pool = lb_pool_create(options, options->against, session->stop);
    ab->sides[1].pool = session->pool;
    snprintf(ab->sides[0].label, sizeof(ab->sides[0].label), "%s", options->against);
    snprintf(ab->sides[1].label, sizeof(ab->sides[1].label), "this program");
    st = run(ab, exit_code, err);
done:
    lb_pool_destroy(ab->sides[0].pool);
    free(ab);
    return st;
}
