/* Progress of a sweep on stderr. */
#include "support/progress.h"

#include <stdio.h>

#include "base/clock.h"
#include "support/texts.h"

enum { LINE_EVERY_S = 10 /* without a terminal */ };

void lb_progress_start(struct lb_progress *progress, size_t total)
{
    double now = lb_now_ns();
    *progress = (struct lb_progress){
        .total = total, .start_ns = now, .last_ns = now, .terminal = lb_takes_escapes(stderr)};
}

/* "1:05" or "2:03:00" from seconds. */
static void format_clock(double seconds, char text[32])
{
    long whole = (long)(seconds + 0.5);
    if (whole >= 3600)
        snprintf(text, 32, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
    else
        snprintf(text, 32, "%ld:%02ld", whole / 60, whole % 60);
}

void lb_progress_case(struct lb_progress *progress, const char *id)
{
    double now = lb_now_ns();
    if (progress->quiet || (!progress->terminal && now - progress->last_ns < LINE_EVERY_S * 1e9))
        return;
    progress->last_ns = now;

    char eta[32] = "?", counts[64] = "", line[256];
    double elapsed = (now - progress->start_ns) / 1e9;
    size_t left = progress->total - progress->done;
    if (progress->done > 0)
        format_clock(elapsed / (double)progress->done * (double)left, eta);
    if (progress->failed + progress->skipped > 0)
        snprintf(counts, sizeof(counts), ", %zu failed, %zu skipped", progress->failed,
                 progress->skipped);
    int columns = lb_columns(stderr);
    snprintf(line, sizeof(line), "[%zu/%zu, %s left%s] %s", progress->done + 1, progress->total,
             eta, counts, id);
    if (progress->terminal)
        fprintf(stderr, "\r\033[K%.*s", columns - 1, line);
    else
        fprintf(stderr, "%s\n", line);
}

void lb_progress_done(struct lb_progress *progress, bool failed, bool skipped)
{
    progress->done++;
    progress->failed += failed;
    progress->skipped += skipped;
}

void lb_progress_clear(const struct lb_progress *progress)
{
    if (progress->terminal && !progress->quiet)
        fprintf(stderr, "\r\033[K");
}
