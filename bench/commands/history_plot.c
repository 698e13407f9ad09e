/* The picture of a history. */
#include "commands/history_plot.h"

#include <stdlib.h>

#include "plot/gnuplot.h"

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

/* A panel is a data set of lines "run median change"; change is 1 where a new level begins. */
static void write_panel(struct lb_drawing *drawing, const struct lb_history_line *line,
                        size_t panel)
{
    char setting[64];
    size_t point = 0;
    snprintf(setting, sizeof(setting), "panel_title[%zu]", panel);
    lb_picture_text(drawing, setting, line->id);
    fprintf(drawing->data, "# %s: number of the run, median in us, 1 at a change point\n",
            line->id);
    for (size_t r = 0; r < line->count; r++) {
        bool changes = point < line->point_count && line->points[point] == r;
        point += changes;
        fprintf(drawing->data, "%zu", line->run[r] + 1);
        lb_picture_number(drawing, line->median_ns[r] / 1e3);
        fprintf(drawing->data, " %d\n", changes);
    }
    fputs("\n\n", drawing->data);
}

static enum lb_status write_picture(struct lb_drawing *drawing,
                                    const struct lb_history_line *const *lines, size_t count,
                                    struct lb_error *err)
{
    char name[32] = "history";
    if (drawing->count > 0)
        snprintf(name, sizeof(name), "history-%zu", drawing->count + 1);
    enum lb_status st = lb_picture_open(drawing, name, err);
    if (st != LB_OK)
        return st;
    lb_picture_text(drawing, "heading", "LSTM times over a history of runs");
    lb_picture_text(drawing, "reading",
                    "Lower is better. Median in us over the number of the run; vertical strokes "
                    "are change points.");
    lb_picture_text(drawing, "reading_more", "");
    fprintf(drawing->script,
            "panels = %zu\ncolumns = %d\narray panel_title[%zu]\n"
            "machine = ''\nprogram = ''\nlegend = ''\n",
            count, count > 1 ? 2 : 1, count);
    for (size_t i = 0; i < count; i++)
        write_panel(drawing, lines[i], i + 1);
    return lb_picture_finish(drawing, "history.gp", err);
}

enum lb_status lb_history_draw(const char *folder, const struct lb_history_line *lines,
                               size_t line_count, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const struct lb_history_line *selected[MOST_CASES];
    struct lb_drawing drawing = {.count = 0};
    size_t count = select_cases(lines, line_count, selected);
    if (count == 0)
        return lb_fail(err, LB_INVALID, "no case has a time");
    LB_TRY(lb_drawing_begin(folder, &drawing, err));
    for (size_t first = 0; first < count; first += LB_HISTORY_PANELS) {
        size_t left = count - first;
        LB_TRY(write_picture(&drawing, selected + first,
                             left < LB_HISTORY_PANELS ? left : LB_HISTORY_PANELS, err));
    }
    LB_TRY(lb_drawing_draw(&drawing, PAGE_TIME_LIMIT_S * (double)drawing.count, err));
    fprintf(stderr, "%s/history.svg and .png", drawing.folder);
    if (drawing.count > 1)
        fprintf(stderr, "; on to history-%zu", drawing.count);
    if (line_count > count)
        fprintf(stderr, "; %zu cases are not drawn", line_count - count);
    fputc('\n', stderr);
done:
    lb_drawing_free(&drawing);
    return st;
}
