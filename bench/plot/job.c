/* The parts of a drawing job that need code: its notes, and the list of its pages. */
#include "plot/job.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void lb_plot_note(struct lb_plot_job *job, const char *format, ...)
{
    char *notes = job->report->notes;
    size_t used = strlen(notes), size = sizeof(job->report->notes);
    if (used > 0 && used + 1 < size)
        notes[used++] = '\n';
    va_list args;
    va_start(args, format);
    vsnprintf(notes + used, size - used, format, args);
    va_end(args);
}

void lb_plot_pages_free(struct lb_plot_pages *pages)
{
    free(pages->items);
    *pages = (struct lb_plot_pages){0};
}
