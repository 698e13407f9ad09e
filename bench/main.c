/* bench-lstm: starts the program and hands each command to the function that carries it out. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "commands/commands.h"
#include "plot/pictures.h"
#include "record/environment.h"
#include "support/library_versions.h"
#include "support/texts.h"
#include "sweep/sweep.h"

static volatile sig_atomic_t stop;

/* The first signal asks the program to end in good order, the second one kills it. */
static void on_signal(int number)
{
    stop = 1;
    signal(number, SIG_DFL);
}

/* When the reader of stderr left, nobody watches the program, which then ends in good order; a
 * reader of stdout that leaves ends the program at once, as is usual. */
static void on_broken_pipe(int number)
{
    if (lb_reader_left(stderr)) {
        stop = 1;
        return;
    }
    signal(number, SIG_DFL);
    raise(number);
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal}, was;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (sigaction(SIGHUP, NULL, &was) == 0 && was.sa_handler != SIG_IGN) /* as nohup sets it */
        sigaction(SIGHUP, &action, NULL);
    action.sa_handler = on_broken_pipe;
    sigaction(SIGPIPE, &action, NULL);
}

/* --baseline must name an implementation, and a variant, that exist. Warns before a long sweep, not
 * after it, when no case of the plan is of the baseline. */
static enum lb_status check_baseline(const struct lb_session *session, const struct lb_plan *plan,
                                     struct lb_error *err)
{
    const char *baseline = session->options->baseline;
    struct lb_named_impl impl;
    if (!baseline)
        return LB_OK;
    LB_CHECK(lb_named_impl_parse(session->registry, "--baseline", baseline, &impl, err));
    for (size_t i = 0; i < plan->count; i++)
        if (strcmp(plan->cases[i].impl, impl.name) == 0 &&
            strcmp(plan->cases[i].variant, impl.variant) == 0)
            return LB_OK;
    if (plan->count > 0)
        fprintf(stderr, "warning: --baseline %s: no case runs it, so there are no speed-ups\n",
                baseline);
    return LB_OK;
}

/* --list, --plan, --self-test, --cross-check and --sweep: the commands that work on a plan. */
static enum lb_status run_planned(struct lb_session *session, int *exit_code, struct lb_error *err)
{
    const struct lb_options *options = session->options;
    enum lb_command command = options->command;
    struct lb_plan plan = {0};
    enum lb_status st = LB_OK;
    LB_TRY(lb_plan_build(&options->selection, session->registry, &plan, err));
    LB_TRY(lb_sweep_filter(options, &plan, err));
    LB_TRY(check_baseline(session, &plan, err));
    /* --device says that results belong to that GPU, also those of the host's implementations. */
    bool wanted = lb_option_given(options, "--device") && lb_gpu_wanted(session, NULL);
    for (size_t i = 0; i < plan.count && !wanted; i++)
        wanted = lb_gpu_wanted(session, plan.cases[i].impl);
    LB_TRY(lb_machine_find(session, wanted, err));
    size_t whole = plan.count; /* a shard may be empty, and is then run all the same */
    if (options->shard) {
        struct lb_sampler_options sampler = lb_options_sampler(options);
        LB_TRY(lb_shard_keep(options->shard, &sampler, &plan, err));
    }
    if (command == LB_CMD_SWEEP && whole > 0 && plan.left_out > 0)
        fprintf(stderr, "%zu combination%s left out: %s\n", plan.left_out,
                plan.left_out == 1 ? " was" : "s were", plan.because.text);
    st = whole == 0                      ? lb_plan_print_empty(&plan, exit_code)
         : command == LB_CMD_LIST        ? lb_list_print(session, &plan, err)
         : command == LB_CMD_PLAN        ? lb_plan_print(session, &plan)
         : command == LB_CMD_SELF_TEST   ? lb_self_test(session, &plan, exit_code, err)
         : command == LB_CMD_CROSS_CHECK ? lb_cross_check(session, &plan, exit_code, err)
         : options->devices              ? lb_devices_sweep(session, exit_code, err)
         : options->against              ? lb_against(session, &plan, exit_code, err)
                                         : lb_sweep(session, &plan, exit_code, err);
done:
    lb_plan_free(&plan);
    return st;
}

static enum lb_status run_session(const struct lb_options *options, int *exit_code,
                                  struct lb_error *err)
{
    enum lb_command command = options->command;
    enum lb_status st = LB_OK;
    struct lb_registry registry = {0};
    struct lb_session session = {.options = options, .registry = &registry, .stop = &stop};

    LB_TRY(lb_registry_create(lb_impl_table, &registry, err));
    session.pool = lb_pool_create(options, NULL, &stop);
    for (size_t i = 0; i < options->plugin_count; i++)
        LB_TRY(lb_pool_add_plugin(session.pool, options->plugins[i], &registry, err));
    LB_TRY(lb_options_add_absent(options, &registry, err));
    LB_TRY(lb_pool_libraries(session.pool, &registry, &session.libraries, err));
    bool devices = command == LB_CMD_RESUME && lb_is_devices_run(options->words[0]);
    st = devices                      ? lb_devices_sweep(&session, exit_code, err)
         : command == LB_CMD_RESUME   ? lb_sweep_resume(&session, exit_code, err)
         : command == LB_CMD_AB       ? lb_ab(&session, exit_code, err)
         : command == LB_CMD_EXPLAIN  ? lb_explain_print(&session, err)
         : command == LB_CMD_CEILINGS ? lb_ceilings_print(&session, err)
                                      : run_planned(&session, exit_code, err);
done:
    json_decref(session.gpu);
    json_decref(session.libraries);
    lb_pool_destroy(session.pool);
    lb_registry_destroy(&registry);
    return st;
}

static enum lb_status run_command(const struct lb_options *options, int *exit_code,
                                  struct lb_error *err)
{
    const struct lb_given_files *files = &options->given_files;
    LB_CHECK(lb_pictures_check_kinds("--plots", options->plots, err));
    if (options->command != LB_CMD_RESUME) { /* which takes them from its run */
        if (files->tuned && !files->tune && access(files->tuned, R_OK) != 0)
            return lb_fail(err, LB_INVALID, "--tuned %s: %s; --tune would create it", files->tuned,
                           strerror(errno));
        lb_give_files(files);
    }
    if (options->command == LB_CMD_EXPLAIN && options->word_count > 1)
        return lb_explain_layer(options->words[0], options->words[1], options->measured, err);
    switch (options->command) {
    case LB_CMD_HELP: lb_help_print(stdout); return LB_OK;
    case LB_CMD_VERSION:
        printf("bench-lstm %s (commit %s)\n", lb_version(), lb_commit());
        printf("worker protocol %d\n", LB_WORKER_PROTOCOL);
        lb_libraries_print();
        return LB_OK;
    case LB_CMD_EXPORT: return lb_export_command(options, err);
    case LB_CMD_PLOT: return lb_plot_one(options, exit_code, err);
    case LB_CMD_HISTORY: return lb_history(options, exit_code, err);
    case LB_CMD_PROFILE: return lb_profile_case(options, exit_code, err);
    case LB_CMD_REPORT: return lb_html_report(options, &stop, err);
    case LB_CMD_MERGE:
        return lb_merge_runs(options->words + 1, options->word_count - 1, options->words[0], stdout,
                             exit_code, err);
    case LB_CMD_COMPARE: return lb_compare_command(options, exit_code, err);
    default: return run_session(options, exit_code, err);
    }
}

/* Opens the standard streams that the program got closed: else the next file that it opens would
 * get the number of one. */
static void open_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
            return;
}

int main(int argc, char **argv)
{
    struct lb_options options = {0};
    struct lb_error err = {""};
    int exit_code = LB_EXIT_FINE;

    open_standard_streams();
    lb_json_needs_memory();
    if (argc == 4 && strcmp(argv[1], "--worker") == 0)
        return lb_worker_main(strtol(argv[2], NULL, 10), (int)strtol(argv[3], NULL, 10));
    enum lb_status st = lb_command_line_read(argc, argv, &options, &err);
    /* These have nothing to save or to clean up when they are stopped, and end at once. */
    if (!(options.command &
          (LB_CMD_LIST | LB_CMD_PLAN | LB_CMD_PROFILE | LB_CMD_EXPORT | LB_CMD_COMPARE)))
        catch_signals();
    signal(SIGXFSZ, SIG_IGN); /* a file that grows too large is an error of write(), not the end */
    lb_gnuplot_set_stop(&stop);
    if (st == LB_OK)
        st = run_command(&options, &exit_code, &err);
    bool printed = fflush(stdout) == 0 && !ferror(stdout);
    if (st == LB_OK && !printed)
        st = lb_fail(&err, LB_IO, "stdout: not everything could be written");
    if (st == LB_INTERRUPTED)
        exit_code = LB_EXIT_INTERRUPTED;
    else if (st != LB_OK) {
        lb_clean_text(err.text);
        fprintf(stderr, "bench-lstm: %s\n", err.text);
        exit_code = st == LB_INVALID || st == LB_IO ? LB_EXIT_USAGE : LB_EXIT_FAILED;
    }
    lb_options_free(&options);
    return exit_code;
}
