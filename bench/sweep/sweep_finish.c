/* A step of a sweep: finishes the run with everything that is derived from its file. */
#include <stdio.h>

#include "record/run_file.h"
#include "run/derived_outputs.h"
#include "support/cpu_load.h"
#include "support/terminal.h"
#include "support/texts.h"
#include "sweep/sweep_steps.h"

bool lb_row_is_noisy(const struct lb_row *row)
{
    return lb_row_is_timed(row) &&
           (row->others_share > LB_BUSY_SHARE || row->slowdown > LB_SLOW_MACHINE);
}

static int exit_code_of(const struct lb_run *run)
{
    size_t ok = 0;
    for (size_t i = 0; i < run->count; i++) {
        if (lb_verdict_is_failure(run->rows[i].verdict))
            return LB_EXIT_FAILED;
        ok += lb_verdict_has_samples(run->rows[i].verdict);
    }
    bool empty_shard = run->count == 0 && json_object_get(run->header, "shard");
    return ok > 0 || empty_shard ? LB_EXIT_FINE : LB_EXIT_NOTHING;
}

void lb_sweep_say_resume(const struct lb_options *options, const char *folder, const char *why,
                         const char *more)
{
    char word[4 * 4096 + 4];
    lb_shell_word(folder, word, sizeof(word));
    fprintf(stderr, "%s: bench-lstm --resume %s%s", why, word, more);
    for (size_t i = 0; i < options->plugin_count; i++) {
        lb_shell_word(options->plugins[i], word, sizeof(word));
        fprintf(stderr, " --plugin %s", word);
    }
    if (options->given_files.tuned) {
        lb_shell_word(options->given_files.tuned, word, sizeof(word));
        fprintf(stderr, " --tuned %s", word);
    }
    fprintf(stderr, "\n");
}

/* Says how many cases were measured while others used their CPUs or the machine was slow, which
 * those are, and what measures them again. */
static void say_noisy(const struct lb_options *options, const struct lb_run *run,
                      const char *folder)
{
    enum { NAMED = 10 };
    size_t noisy = 0;
    for (size_t i = 0; i < run->count; i++)
        noisy += lb_row_is_noisy(&run->rows[i]);
    if (noisy == 0)
        return;
    fprintf(
        stderr,
        "noisy     %zu of %zu case%s %s measured while other programs used more than %.0f %% of "
        "%s CPUs, or while the machine was more than %.0f %% slower than in most of the run:\n",
        noisy, run->count, run->count == 1 ? "" : "s", noisy == 1 ? "was" : "were",
        100 * LB_BUSY_SHARE, noisy == 1 ? "its" : "their", 100 * (LB_SLOW_MACHINE - 1));
    for (size_t i = 0, named = 0; i < run->count && named < NAMED; i++) {
        const struct lb_row *row = &run->rows[i];
        if (!lb_row_is_noisy(row))
            continue;
        bool others = row->others_share > LB_BUSY_SHARE;
        fprintf(stderr, "          %s (%s%.0f %%%s)\n", LB_CASE_TEXT(&row->c),
                others ? "others " : "", 100 * (others ? row->others_share : row->slowdown - 1),
                others ? "" : " slower");
        named++;
    }
    if (noisy > NAMED)
        fprintf(stderr, "          and %zu more\n", noisy - NAMED);
    lb_sweep_say_resume(options, folder,
                        noisy == 1 ? "          measure it again with"
                                   : "          measure them again with",
                        " --retry noisy");
}

enum lb_status lb_sweep_finish(const struct lb_session *session, const char *folder, bool listed,
                               int *exit_code, struct lb_error *err)
{
    struct lb_run run = {0};
    enum lb_status st = LB_OK;
    LB_TRY(lb_run_read_by(folder, LB_BY_DEFAULT, &run, err));
    lb_warn(run.doubt);
    st = lb_derive_outputs(&run, folder, session->options, listed, err);
    say_noisy(session->options, &run, folder);
    bool stopped = lb_sweep_interrupted(session); /* possibly while pictures were drawn */
    *exit_code = stopped ? LB_EXIT_INTERRUPTED : exit_code_of(&run);
    if (stopped)
        lb_sweep_say_resume(session->options, folder, "interrupted; continue with", "");
done:
    lb_run_free(&run);
    return st;
}
