/* A step of a sweep: finishes the run with everything that is derived from its file. */
#include <stdlib.h>

#include "base/atomic_file.h"
#include "plot/grouped_run.h"
#include "plot/pictures.h"
#include "report/export.h"
#include "support/cpu_load.h"
#include "support/texts.h"
#include "sweep/sweep.h"
#include "sweep/sweep_steps.h"

bool lb_row_is_noisy(const struct lb_row *row)
{
    return lb_row_is_timed(row) &&
           (row->others_share > LB_BUSY_SHARE || row->slowdown > LB_SLOW_MACHINE);
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

/* lb_file_writer */
static enum lb_status write_json(FILE *out, const void *run, struct lb_error *err)
{
    (void)err;
    lb_export_formats->write(run, out);
    return LB_OK;
}

/* Prints the table on stdout (Google Benchmark JSON with --benchmark_format=json), draws the
 * pictures into the folder, writes the file of --benchmark_out, and lists on stderr where
 * everything is. Without gnuplot there are no pictures, which is reported and is no failure. */
static enum lb_status derive_outputs(const struct lb_run *run, const char *folder,
                                     const struct lb_options *options, bool listed,
                                     struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_grouped_run grouped = {0};
    char machine[1024], word[4 * 4096 + 4];
    struct lb_picture_report report = {0};
    struct lb_error why;

    /* Files first, because a reader of stdout may go away before the table ends. */
    lb_group_run(run, NULL, &grouped);
    if (options->benchmark_out)
        st = lb_write_file_atomically(options->benchmark_out, write_json, run, err);
    enum lb_status drawn = lb_pictures_draw(&grouped, folder, options->plots, &report, &why);
    lb_shell_word(folder, word, sizeof(word));
    if (drawn == LB_ABSENT)
        snprintf(report.notes, sizeof(report.notes),
                 "no pictures: %.200s; once it is, bench-lstm --resume %.1000s draws them",
                 why.text, word);
    else if (drawn != LB_OK)
        snprintf(report.notes, sizeof(report.notes), "no pictures: %s", why.text);
    if (options->benchmark_json) {
        lb_export_formats->write(run, stdout);
    } else if (listed) {
        lb_table_print_summary(stdout, &grouped);
    } else {
        lb_run_machine_line(run, machine, sizeof(machine));
        printf("%s\n", machine);
        lb_table_print(stdout, &grouped);
    }
    fflush(stdout);
    if (!options->quiet)
        fprintf(stderr, "\nrecords   %s/%s\n", folder, LB_RUN_FILE_NAME);
    if (!options->quiet && report.pictures > 0)
        fprintf(stderr, "pictures  %s/plots, %zu, each as .svg and .png\n", folder,
                report.pictures);
    if (!options->quiet && report.notes[0])
        fprintf(stderr, "%s\n", report.notes);
    lb_grouped_run_free(&grouped);
    return st;
}

enum lb_status lb_sweep_finish(const struct lb_session *session, const char *folder, bool listed,
                               int *exit_code, struct lb_error *err)
{
    struct lb_run run = {0};
    enum lb_status st = LB_OK;
    LB_TRY(lb_run_read_by(folder, LB_BY_DEFAULT, &run, err));
    lb_warn(run.doubt);
    st = derive_outputs(&run, folder, session->options, listed, err);
    say_noisy(session->options, &run, folder);
    bool failed = false, fine = run.count == 0 && json_object_get(run.header, "shard");
    for (size_t i = 0; i < run.count; i++) {
        failed |= lb_verdict_is_failure(run.rows[i].verdict);
        fine |= lb_verdict_has_samples(run.rows[i].verdict);
    }
    bool stopped = lb_sweep_interrupted(session); /* possibly while pictures were drawn */
    *exit_code = stopped  ? LB_EXIT_INTERRUPTED
                 : failed ? LB_EXIT_FAILED
                 : fine   ? LB_EXIT_FINE
                          : LB_EXIT_NOTHING;
    if (stopped)
        lb_sweep_say_resume(session->options, folder, "interrupted; continue with", "");
done:
    lb_run_free(&run);
    return st;
}
