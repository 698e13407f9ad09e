/* --export and --plot: what is made of the records of a run. */
#include "commands/commands.h"

#include <string.h>

#include "base/atomic_file.h"
#include "base/text.h"
#include "plot/pictures.h"
#include "report/export.h"
#include "support/texts.h"

/* A format and the run to write in it. */
struct export
{
    const struct lb_export_format *format;
    const struct lb_run *run;
};

/* lb_file_writer */
static enum lb_status write_export(FILE *out, const void *user, struct lb_error *err)
{
    const struct export *export = user;
    (void)err;
    export->format->write(export->run, out);
    return LB_OK;
}

/* Finds the format of that name. LB_INVALID lists the formats. */
static enum lb_status find_format(const char *name, const struct lb_export_format **found,
                                  struct lb_error *err)
{
    char names[256] = "";
    for (*found = lb_export_formats; (*found)->name; ++*found) {
        if (strcmp((*found)->name, name) == 0)
            return LB_OK;
        lb_append(names, sizeof(names), " %s", (*found)->name);
    }
    return lb_fail(err, LB_INVALID, "--export %s: there is no such format; allowed are%s", name,
                   names);
}

enum lb_status lb_export_command(const struct lb_options *options, struct lb_error *err)
{
    const char *names = options->words[0];
    struct lb_run run = {0};
    struct export export = {.run = &run};
    enum lb_status st = LB_OK;
    char folder[4096], name[64], path[4400];
    for (const char *list = names; lb_next_item(&list, name, sizeof(name));)
        LB_TRY(find_format(name, &export.format, err));
    LB_TRY(lb_run_read_by(options->words[1], options->by, &run, err));
    lb_warn(run.doubt);
    lb_run_folder(options->words[1], folder, sizeof(folder));
    if (!strchr(names, ','))
        export.format->write(&run, stdout);
    /* Into the folder, all that can be written: the first failure is returned, later ones are
     * warnings. */
    for (const char *list = strchr(names, ',') ? names : NULL;
         lb_next_item(&list, name, sizeof(name));) {
        struct lb_error why;
        find_format(name, &export.format, NULL);
        snprintf(path, sizeof(path), "%s/%s", folder, export.format->file_name);
        enum lb_status one = lb_write_file_atomically(path, write_export, &export, &why);
        if (one == LB_OK)
            fprintf(stderr, "%s\n", path);
        else if (st == LB_OK)
            st = lb_fail(err, one, "%s", why.text);
        else
            lb_warn(why.text);
    }
done:
    lb_run_free(&run);
    return st;
}

enum lb_status lb_plot_one(const struct lb_options *options, int *exit_code, struct lb_error *err)
{
    const char *kind = options->words[0], *path = options->words[1];
    struct lb_run run = {0};
    enum lb_status st = LB_OK;
    struct lb_grouped_run grouped = {0};
    char folder[4096];
    struct lb_picture_report report = {0};
    LB_TRY(lb_run_read_by(path, options->by, &run, err));
    lb_warn(run.doubt);
    lb_group_run(&run, options->baseline, &grouped);
    lb_run_folder(path, folder, sizeof(folder));
    LB_TRY(lb_pictures_draw(&grouped, folder, kind, &report, err));
    if (report.pictures > 0)
        fprintf(stderr, "%s/plots: %zu picture%s, each as .svg and .png\n", folder, report.pictures,
                report.pictures == 1 ? "" : "s");
    else
        *exit_code = LB_EXIT_NOTHING;
    if (report.notes[0])
        fprintf(stderr, "%s\n", report.notes);
done:
    lb_grouped_run_free(&grouped);
    lb_run_free(&run);
    return st;
}
