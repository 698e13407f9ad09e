/* What is derived from the records of a run: table, pictures, other formats. */
#include "run/derived_outputs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/text.h"
#include "plot/grouped_run.h"
#include "plot/pictures.h"
#include "report/export.h"
#include "support/terminal.h"

/* A format and the run to write in it. */
struct export
{
    const struct lb_export_format *format;
    const struct lb_run *run;
};

enum lb_status lb_check_derived_outputs(const struct lb_options *options, struct lb_error *err)
{
    const char *path = options->benchmark_out, *folder = options->out ? options->out : "";
    const char *slash = path ? strrchr(path, '/') : NULL;
    size_t length = strlen(folder);
    struct stat status;
    LB_CHECK(lb_pictures_check_kinds("--plots", options->plots, err));
    if (!path)
        return LB_OK;
    while (length > 1 && folder[length - 1] == '/')
        length--;
    bool in_folder =
        slash && (size_t)(slash - path) == length && strncmp(path, folder, length) == 0;
    bool there = lstat(path, &status) == 0;
    if (there &&
        (stat(path, &status) != 0 || !(S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))))
        return LB_OK; /* to open a pipe would end its reader, and a link to nothing makes a file */
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0 && errno == ENOENT && in_folder) /* the run's own, which does not exist yet */
        return LB_OK;
    if (file < 0)
        return lb_fail(err, LB_INVALID, "--benchmark_out=%s: %s", path, strerror(errno));
    close(file);
    if (!there)
        unlink(path);
    return LB_OK;
}

/* lb_file_writer */
static enum lb_status write_export(FILE *out, const void *user, struct lb_error *err)
{
    const struct export *export = user;
    (void)err;
    export->format->write(export->run, out);
    return LB_OK;
}

enum lb_status lb_derive_outputs(const struct lb_run *run, const char *folder,
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
        LB_TRY(lb_write_file_atomically(options->benchmark_out, write_export,
                                        &(struct export){lb_export_formats, run}, err));
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
done:
    lb_grouped_run_free(&grouped);
    return st;
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
