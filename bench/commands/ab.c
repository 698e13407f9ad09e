/* --ab: two implementations, or two builds of one plug-in, measured alternately in one process. */
#include "commands/ab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "commands/compare.h"
#include "commands/plan_time.h"
#include "run/device_query.h"
#include "run/interleaved_blocks.h"
#include "support/progress.h"
#include "sweep/run_settings.h"

enum { PAIRS = 60 /* of blocks per case, unless --benchmark_repetitions is given */ };

/* The state of one --ab command. */
struct ab {
    const struct lb_session *session;
    struct lb_registry others; /* of the second plug-in, which may have the first one's name */
    struct lb_side sides[2];
    int pairs; /* of blocks per case */
    struct lb_plan plan;
    char folders[2][4200];
    struct lb_run_file files[2];
};

static bool is_plugin(const char *word)
{
    size_t length = strlen(word);
    return strchr(word, '/') || (length > 3 && strcmp(word + length - 3, ".so") == 0);
}

/* Resolves one of the two words of the command line. */
static enum lb_status find_side(struct ab *ab, const char *word, struct lb_registry *registry,
                                struct lb_side *side, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_named_impl named = {NULL, ""};
    if (is_plugin(word)) {
        LB_TRY(lb_pool_add_plugin(ab->session->pool, word, registry, err));
        side->impl_entry = &registry->impl_entries[registry->count - 1];
    } else {
        LB_TRY(lb_named_impl_parse(registry, "--ab", word, &named, err));
        side->impl_entry = lb_registry_find(registry, named.name);
    }
    side->variant = named.variant;
    snprintf(side->label, sizeof(side->label), "%s", word);
done:
    return st;
}

/* Plans the problems as cases of a placeholder implementation that stands for both sides. */
static enum lb_status plan_problems(struct ab *ab, struct lb_error *err)
{
    static char name[] = "both";
    struct lb_impl_entry both = {.name = name};
    const struct lb_registry registry = {.impl_entries = &both, .count = 1};
    const struct lb_selection *selection = &ab->session->options->selection;
    return lb_plan_build(selection, &registry, &ab->plan, err);
}

/* The header of one side. It leaves out the plug-in of the other side, which may have the same
 * name.
 */
static enum lb_status side_header(const struct ab *ab, int side, json_t **header,
                                  struct lb_error *err)
{
    struct lb_options options = *ab->session->options;
    const struct lb_sampler_options sampler = lb_block_sampler();
    const char *word = side == 0 ? options.subject : options.run;
    const char **plugins = calloc(options.plugin_count + 1, sizeof(*plugins));
    if (!plugins)
        return lb_fail(err, LB_OOM, "out of memory");
    for (size_t i = 0; i < options.plugin_count; i++)
        plugins[i] = options.plugins[i];
    if (is_plugin(word))
        plugins[options.plugin_count++] = word;
    options.plugins = plugins;
    options.repetitions = ab->pairs;
    enum lb_status st = lb_settings_to_header(&options, &sampler, ab->plan.cases, ab->plan.count,
                                              ab->session->libraries, header, err);
    free(plugins);
    return st;
}

/* Creates the runs in folder/a and folder/b. Their headers share an id of the pair. */
static enum lb_status open_files(struct ab *ab, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    char folder[4096], pair_id[64];
    json_t *header = NULL;
    snprintf(pair_id, sizeof(pair_id), "%lld-%ld", (long long)time(NULL), (long)getpid());
    LB_TRY(lb_name_folder(ab->session->options->out, folder, sizeof(folder), err));
    for (int s = 0; s < 2; s++) {
        struct lb_case *cases = ab->plan.cases;
        for (size_t i = 0; i < ab->plan.count; i++) {
            snprintf(cases[i].impl, sizeof(cases[i].impl), "%s", ab->sides[s].impl_entry->name);
            snprintf(cases[i].variant, sizeof(cases[i].variant), "%s", ab->sides[s].variant);
        }
        LB_TRY(side_header(ab, s, &header, err));
        lb_gpu_annotate(ab->session, json_object_get(header, "environment"));
        json_object_set_new(header, "interleaved", json_string(pair_id));
        json_object_set_new(header, "side", json_string(ab->sides[s].label));
        snprintf(ab->folders[s], sizeof(ab->folders[s]), "%s/%c", folder, 'a' + s);
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
    memset(rows, 0, sizeof(rows));
    lb_progress_start(&progress, ab->plan.count);
    for (size_t i = 0; i < ab->plan.count; i++) {
        char id[LB_CASE_ID_SIZE];
        lb_case_print_problem(&ab->plan.cases[i], id);
        lb_progress_case(&progress, id);
        LB_TRY(lb_measure_pairs(session, &ab->plan.cases[i], ab->sides, ab->pairs, &random, rows,
                                err));
        bool failed =
            lb_verdict_is_failure(rows[0].verdict) || lb_verdict_is_failure(rows[1].verdict);
        for (int s = 0; s < 2; s++) {
            LB_TRY(lb_run_append(&ab->files[s], &rows[s], err));
            lb_row_free(&rows[s]);
        }
        lb_progress_done(&progress, failed, false);
    }
    for (int s = 0; s < 2; s++)
        LB_TRY(lb_run_finish(&ab->files[s], false, err));
done:
    lb_progress_clear(&progress);
    for (int s = 0; s < 2; s++)
        lb_row_free(&rows[s]);
    return st;
}

static enum lb_status compare(const struct ab *ab, int *exit_code, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_run runs[2] = {{0}, {0}};
    char names[2][4400];
    for (int s = 0; s < 2; s++) {
        LB_TRY(lb_run_read(ab->folders[s], &runs[s], err));
        snprintf(names[s], sizeof(names[s]), "%.4100s (%.250s)", ab->folders[s],
                 ab->sides[s].label);
    }
    st = lb_compare_print(runs, names[0], names[1], ab->session->options, exit_code, err);
done:
    for (int s = 0; s < 2; s++)
        lb_run_free(&runs[s]);
    return st;
}

enum lb_status lb_ab(struct lb_session *session, int *exit_code, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const struct lb_options *options = session->options;
    struct ab *ab = calloc(1, sizeof(*ab));
    if (!ab)
        return lb_fail(err, LB_OOM, "out of memory");
    ab->session = session;
    ab->pairs = options->repetitions > 1 ? options->repetitions : PAIRS;
    LB_TRY(lb_registry_create(lb_impl_table, &ab->others, err));
    LB_TRY(find_side(ab, options->subject, session->registry, &ab->sides[0], err));
    bool second_plugin = is_plugin(options->run);
    LB_TRY(find_side(ab, options->run, second_plugin ? &ab->others : session->registry,
                     &ab->sides[1], err));
    LB_TRY(plan_problems(ab, err));
    if (ab->plan.count == 0) {
        lb_plan_print_empty(&ab->plan);
        *exit_code = LB_EXIT_NOTHING;
        goto done;
    }
    if (ab->sides[0].impl_entry->memory == LB_DEVICE ||
        ab->sides[1].impl_entry->memory == LB_DEVICE)
        LB_TRY(lb_gpu_find(session, err));
    LB_TRY(open_files(ab, err));
    LB_TRY(measure_all(ab, err));
    LB_TRY(compare(ab, exit_code, err));
done:
    for (int s = 0; s < 2; s++)
        lb_run_close(&ab->files[s]);
    lb_plan_free(&ab->plan);
    lb_registry_destroy(&ab->others);
    free(ab);
    return st;
}
