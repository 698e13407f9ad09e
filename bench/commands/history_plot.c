/* The picture of a history. */
#include "commands/history_plot.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "plot/gnuplot.h"
#include "plot/plot_page.h"
#include "support/share_path.h"

enum { MOST_CASES = LB_HISTORY_PANELS * LB_HISTORY_PAGES, PAGE_TIME_LIMIT_S = 30 };

/* Selects the cases to draw, those with change points first. selected [MOST_CASES]. Returns how
 * many there are. */
static size_t select_cases(const struct lb_history_line *lines, size_t line_count,
                           const struct lb_history_line **selected)
{
    size_t count = 0;
    for (int changed = 1; changed >= 0; changed--)
        for (size_t i = 0; i < line_count && count < MOST_CASES; i++)
            if ((lines[i].point_count > 0) == (changed == 1))
                selected[count++] = &lines[i];
    return count;
}

/* Each panel is a data set of lines "run median change"; change is 1 where a new level begins. */
static void write_data(FILE *data, const struct lb_history_line *const *lines, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t point = 0;
        fprintf(data, "# %s: number of the run, median in us, 1 at a change point\n", lines[i]->id);
        for (size_t r = 0; r < lines[i]->count; r++) {
            bool changes = point < lines[i]->point_count && lines[i]->points[point] == r;
            point += changes;
            fprintf(data, "%zu", lines[i]->run[r] + 1);
            lb_page_number(data, lines[i]->median_ns[r] / 1e3);
            fprintf(data, " %d\n", changes);
        }
        fputs("\n\n", data);
    }
}

static void write_settings(FILE *script, const char *name,
                           const struct lb_history_line *const *lines, size_t count)
{
    fprintf(script,
            "# A history of runs. Draw it again: gnuplot %s.gp\nname = '%s'\ndata = '%s.dat'\n"
            "panels = %zu\narray panel_title[%zu]\n",
            name, name, name, count, count);
    for (size_t i = 0; i < count; i++) {
        fprintf(script, "panel_title[%zu] = ", i + 1);
        lb_page_quote(script, lines[i]->id);
        fputc('\n', script);
    }
}

/* Opens FOLDER/NAMEENDING for writing; LB_IO with the path and the reason when that fails. */
static enum lb_status open_file(FILE **file, const char *folder, const char *name,
                                const char *ending, struct lb_error *err)
{
    char path[4300];
    int length = snprintf(path, sizeof(path), "%s/%s%s", folder, name, ending);
    if (length < 0 || (size_t)length >= sizeof(path))
        return lb_fail(err, LB_IO, "%s: the path of %s%s in it is too long", folder, name, ending);
    *file = fopen(path, "w");
    if (!*file)
        return lb_fail(err, LB_IO, "%s: %s", path, strerror(errno));
    return LB_OK;
}

/* Writes one picture's NAME.dat and NAME.gp. */
static enum lb_status write_page(const char *plots, const char *name, const char *shared,
                                 const struct lb_history_line *const *lines, size_t count,
                                 struct lb_error *err)
{
    enum lb_status st = LB_OK;
    FILE *data = NULL, *script = NULL;
    LB_TRY(open_file(&data, plots, name, ".dat", err));
    LB_TRY(open_file(&script, plots, name, ".gp", err));
    write_data(data, lines, count);
    write_settings(script, name, lines, count);
    LB_TRY(lb_page_append(shared, "history.gp", script, err));
    bool failed = fclose(data) != 0;
    failed |= fclose(script) != 0;
    data = script = NULL;
    if (failed)
        st = lb_fail(err, LB_IO, "%s: %s", plots, strerror(errno));
done:
    if (data)
        fclose(data);
    if (script)
        fclose(script);
    return st;
}

enum lb_status lb_history_draw(const char *folder, const struct lb_history_line *lines,
                               size_t line_count, struct lb_error *err)
{
    static const char *const endings[] = {".svg", ".png", NULL};
    enum lb_status st = LB_OK;
    const struct lb_history_line *selected[MOST_CASES];
    size_t count = select_cases(lines, line_count, selected), pages = 0;
    char plots[4200], shared[4096], names[LB_HISTORY_PAGES][32], *scripts[LB_HISTORY_PAGES];
    if (count == 0)
        return lb_fail(err, LB_INVALID, "no case has a time");
    LB_TRY(lb_share_path("plots", shared, sizeof(shared), err));
    int length = snprintf(plots, sizeof(plots), "%s/plots", folder);
    if (length < 0 || (size_t)length >= sizeof(plots))
        LB_TRY(lb_fail(err, LB_IO, "%s: the path of this folder is too long", folder));
    if (mkdir(plots, 0777) != 0 && errno != EEXIST)
        LB_TRY(lb_fail(err, LB_IO, "%s: %s", plots, strerror(errno)));
    for (size_t first = 0; first < count; first += LB_HISTORY_PANELS, pages++) {
        char *name = scripts[pages] = names[pages];
        size_t left = count - first;
        if (pages == 0)
            snprintf(name, sizeof(names[0]), "history");
        else
            snprintf(name, sizeof(names[0]), "history-%zu", pages + 1);
        LB_TRY(write_page(plots, name, shared, selected + first,
                          left < LB_HISTORY_PANELS ? left : LB_HISTORY_PANELS, err));
        strcat(name, ".gp");
    }
    LB_TRY(lb_gnuplot_run(plots, scripts, pages, endings, PAGE_TIME_LIMIT_S * (double)pages, err));
    fprintf(stderr, "%s/history.svg and .png", plots);
    if (pages > 1)
        fprintf(stderr, "; on to history-%zu", pages);
    if (line_count > count)
        fprintf(stderr, "; %zu cases are not drawn", line_count - count);
    fputc('\n', stderr);
done:
    return st;
}
