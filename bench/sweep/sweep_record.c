/* A step of a sweep: records one row of the run. */
#include <stdio.h>

#include "base/text.h"
#include "support/cpu_load.h"
#include "support/number_text.h"
#include "sweep/sweep_steps.h"

bool lb_row_is_noisy(const struct lb_row *row)
{
    return lb_row_is_timed(row) &&
           (row->others_share > LB_BUSY_SHARE || row->slowdown > LB_SLOW_MACHINE);
}

/* Adds a warning to the row of a case with a time when a limit stopped the case early. */
static void warn_of_early_stop(const struct lb_sweep_run *sweep, struct lb_row *row)
{
    const struct lb_settings *settings = &sweep->settings;
    const char *limit = lb_sweep_reached_hang_limit(sweep, &row->c) ? "hang limit" : "time budget";
    bool by_process = settings->processes > 1;
    char warning[128];
    if (row->verdict != LB_VERDICT_OK ||
        row->block_count >= (size_t)settings->processes * (size_t)settings->repetitions)
        return;
    snprintf(warning, sizeof(warning), "the %s left it %zu of %d %s", limit,
             by_process ? row->process_count : row->block_count,
             by_process ? settings->processes : settings->repetitions,
             by_process ? "processes" : "blocks");
    lb_row_warn(row, warning);
}

/* Adds a warning to the row of a case that was measured while others used its CPUs. */
static void warn_of_others(struct lb_row *row)
{
    char warning[128];
    snprintf(warning, sizeof(warning),
             "other programs used %.0f %% of its CPUs while it was measured",
             100 * row->others_share);
    if (lb_row_is_timed(row) && row->others_share > LB_BUSY_SHARE)
        lb_row_warn(row, warning);
}

/* --verbose: "ok           1.05 ms  cpu_ref/..." or "timeout  cpu_ref/...: the reason". */
static void say_result(const struct lb_sweep_run *sweep, const struct lb_row *row)
{
    char id[LB_CASE_ID_SIZE], time[32], line[LB_CASE_ID_SIZE + LB_ROW_TEXT_SIZE + 64];
    lb_case_print(&row->c, id);
    lb_format_ns(row->median_ns, time);
    if (lb_row_is_timed(row))
        snprintf(line, sizeof(line), "%-11s %9s  %s", lb_verdict_name(row->verdict), time, id);
    else
        snprintf(line, sizeof(line), "%-11s %9s  %s: %s", lb_verdict_name(row->verdict), "", id,
                 row->reason);
    lb_clean_text(line);
    lb_progress_say(&sweep->progress, line);
}

enum lb_status lb_sweep_record(struct lb_sweep_run *sweep, struct lb_row *row, struct lb_error *err)
{
    warn_of_early_stop(sweep, row);
    warn_of_others(row);
    if (sweep->session->options->verbose)
        say_result(sweep, row);
    return lb_run_append(&sweep->file, row, err);
}

enum lb_status lb_sweep_record_canary(struct lb_sweep_run *sweep, struct lb_row *row,
                                      const char *when, struct lb_error *err)
{
    warn_of_others(row);
    return lb_run_append_canary(&sweep->file, row, when, err);
}
