/* --profile: one case in this process, for a profiler that is attached to it. */
#include "commands/commands.h"

#include <math.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "case/options.h"
#include "device/device.h"
#include "device/host_memory.h"
#include "plot/grouped_run.h"
#include "support/texts.h"

static enum lb_status open_registry(const struct lb_options *options, struct lb_registry *registry,
                                    struct lb_error *err)
{
    LB_CHECK(lb_registry_create(lb_impl_table, registry, err));
    for (size_t i = 0; i < options->plugin_count; i++) {
        const struct lb_impl *impl;
        LB_CHECK(lb_plugin_load(options->plugins[i], &impl, err));
        const struct lb_impl_entry impl_entry = {
            .name = (char *)impl->name,
            .summary = (char *)impl->summary,
            .variants = (char **)impl->variants,
            .memory = impl->memory,
            .traits = impl->traits,
            .impl = impl,
            .plugin = (char *)options->plugins[i],
        };
        LB_CHECK(lb_registry_add(registry, &impl_entry, err));
    }
    return lb_options_add_absent(options, registry, err);
}

static char hung[256]; /* what to say when the limit of the present phase is reached */

/* SIGALRM: the phase hangs, so the process ends without its cooperation. */
static void end_hung(int number)
{
    (void)number;
    ssize_t written = write(STDERR_FILENO, hung, strlen(hung));
    (void)written; /* where nobody listens, nothing helps */
    _exit(LB_EXIT_FAILED);
}

/* Limits the time from now on; 0: not at all. The timer counts whole microseconds, of which 0 would
 * be no limit, so the shortest limit is 2 us. 1e9 s stand for all longer limits. */
static void limit_time(double seconds)
{
    struct itimerval timer = {0};
    if (seconds > 0) {
        double limit = fmin(fmax(seconds, 2e-6), 1e9);
        timer.it_value.tv_sec = (time_t)limit;
        timer.it_value.tv_usec = (suseconds_t)(fmod(limit, 1) * 1e6);
    }
    setitimer(ITIMER_REAL, &timer, NULL);
}

/* lb_run_observer.phase. The harness's own work has no limit. */
static void limit_phase(void *user, const char *phase)
{
    const struct lb_options *options = user;
    bool own = strcmp(phase, "oracle") == 0, samples = strcmp(phase, "sample") == 0;
    double calls = samples ? 3 + (double)options->profile_calls : 1; /* three warm up */
    double limit = options->call_limit_s * calls;
    limit_time(0); /* the handler must not read a text that is half written */
    snprintf(hung, sizeof(hung), "bench-lstm: --profile %.150s: %.20s did not return within %g s\n",
             options->words[0], phase, limit);
    limit_time(own ? 0 : limit);
}

/* profile: NULL to trace the GPU kernels of one call. */
static void run_case(const struct lb_options *options, const struct lb_impl *impl,
                     const struct lb_case *c, struct lb_profile *profile, struct lb_row *row)
{
    const struct lb_run_options run = {
        .seed = options->seed,
        .sampler = lb_options_sampler(options),
        .kernels = !profile,
        .profile = profile,
        .loss_scale = options->loss_scale,
        .dynamic_loss_scale = options->dynamic_loss_scale,
    };
    struct lb_run_observer observer = {.user = (void *)(uintptr_t)options};
    if (lb_option_given(options, "--call-limit")) { /* profilers make calls longer than usual */
        observer.phase = limit_phase;
        signal(SIGALRM, end_hung);
    }
    lb_host_limit(options->memory_bytes);
    if (impl->memory == LB_DEVICE)
        lb_device_open(options->device, NULL); /* the row reports a failure */
    lb_case_run(impl, c, &run, &observer, row);
    limit_time(0);
}

static void print_row(const struct lb_row *row, const struct lb_profile *profile)
{
    printf("%s\n", LB_CASE_TEXT(&row->c));
    if (row->verdict != LB_VERDICT_OK) {
        printf("    %s: %s\n", lb_verdict_name(row->verdict), row->reason);
        return;
    }
    printf("    timed    %zu call%s after 3 to warm up, median %s\n", row->samples,
           row->samples == 1 ? "" : "s", LB_NS_TEXT(row->median_ns));
    printf("    range    timed@bench-lstm\n");
    printf("    told     %s\n",
           profile->told[0] ? profile->told : "no profiler, because none is attached");
    fflush(stdout); /* a trace that follows may end the process */
}

enum lb_status lb_profile_case(const struct lb_options *options, int *exit_code,
                               struct lb_error *err)
{
    struct lb_registry registry = {0};
    struct lb_row row = {0}, traced = {0};
    struct lb_case c;
    const struct lb_impl_entry *impl_entry;
    struct lb_profile profile = {.calls = (size_t)options->profile_calls};
    enum lb_status st = LB_OK;
    const char *text = options->words[0];
    struct lb_error why;
    int column;
    LB_TRY(open_registry(options, &registry, err));
    if (lb_case_parse(text, &c, NULL, &column, &why) != LB_OK)
        LB_TRY(lb_fail(err, LB_INVALID, "--profile %s: column %d: %.400s", text, column, why.text));
    if (!c.impl[0])
        LB_TRY(lb_fail(err, LB_INVALID,
                       "--profile %s: the case must name an implementation, as in cpu_simd/%s",
                       text, text));
    if (lb_registry_require(&registry, c.impl, &impl_entry, &why) != LB_OK)
        LB_TRY(lb_fail(err, LB_INVALID, "--profile %s: %.400s", text, why.text));
    row = lb_row_make(&c);
    if (impl_entry->impl) {
        run_case(options, impl_entry->impl, &c, &profile, &row);
    } else {
        row.verdict = LB_VERDICT_ABSENT;
        lb_row_print(&row.reason, "%s", impl_entry->absent);
    }
    print_row(&row, &profile);
    if (options->kernels && row.verdict == LB_VERDICT_OK) { /* of one more call */
        traced = lb_row_make(&c);
        if (impl_entry->memory == LB_DEVICE)
            run_case(options, impl_entry->impl, &c, NULL, &traced);
        else
            lb_row_print(&traced.reason, "it runs on the host, without GPU kernels");
        lb_row_print(&traced.kernels_reason, "%s", traced.reason);
        lb_kernels_print(stdout, &traced);
    }
    *exit_code = row.verdict == LB_VERDICT_OK         ? LB_EXIT_FINE
                 : lb_verdict_is_failure(row.verdict) ? LB_EXIT_FAILED
                                                      : LB_EXIT_NOTHING;
done:
    lb_row_free(&row);
    lb_row_free(&traced);
    lb_registry_destroy(&registry);
    return st;
}
