/* The pictures of a run, and the files that gnuplot draws them from. */
#ifndef LB_PICTURES_H
#define LB_PICTURES_H

#include <signal.h>
#include <stdio.h>

#include "api/status.h"
#include "plot/grouped_run.h"

/* Pictures of one folder. Each is four files: NAME.dat holds numbers from the records, NAME.gp
 * draws them (`gnuplot NAME.gp` draws them again), and NAME.svg and NAME.png are the pictures. The
 * first two are written, and then one gnuplot draws all, within a time limit. Zero it before use.
 */
struct lb_drawing {
    char folder[4200];    /* where the files are */
    char templates[4300]; /* folder of style.gp and of the scripts of each kind */
    char **arguments;     /* [count + 2] "gnuplot", "NAME.gp" of each picture, NULL; owned */
    size_t count;
    FILE *data, *script; /* of the picture that is being written, or NULL */
};

/* Chooses run_folder/plots, which is made where it is missing. LB_IO. */
enum lb_status lb_drawing_begin(const char *run_folder, struct lb_drawing *drawing,
                                struct lb_error *err);
void lb_drawing_free(struct lb_drawing *drawing); /* accepts a zeroed one */

/* Opens NAME.dat and NAME.gp for writing; the script begins with the picture's name. LB_IO. */
enum lb_status lb_picture_open(struct lb_drawing *drawing, const char *name, struct lb_error *err);

/* Ends the script with style.gp and the body of that file name, and closes both files. LB_IO. */
enum lb_status lb_picture_finish(struct lb_drawing *drawing, const char *body,
                                 struct lb_error *err);

/* Writes the setting NAME = 'text' to the script, in quotes where no character is special. */
void lb_picture_text(struct lb_drawing *drawing, const char *name, const char *text);

/* Writes a space and the number to the data, with all its digits; nan where it is not finite. */
void lb_picture_number(struct lb_drawing *drawing, double value);

/* Draws all finished pictures, whose earlier files are removed first. After a failure none is left,
 * so that every picture in the folder is complete and shows the data beside it. LB_ABSENT: gnuplot
 * is not installed. LB_FAILED: it failed, and the text quotes its last line; it exceeded the time
 * limit; or a picture is missing or empty. LB_INTERRUPTED: see lb_gnuplot_set_stop. LB_IO. */
enum lb_status lb_drawing_draw(struct lb_drawing *drawing, double time_limit_s,
                               struct lb_error *err);

/* From now on a running gnuplot is stopped, with LB_INTERRUPTED, once *stop is nonzero. NULL: it is
 * never stopped early. */
void lb_gnuplot_set_stop(const volatile sig_atomic_t *stop);

struct lb_picture_report {
    size_t pictures;  /* drawn, each as SVG and PNG */
    char notes[1536]; /* what is missing and why: lines without a final line end; or "" */
};

/* Checks a list of kinds with commas between, or "none": the argument of --plots or --plot. flag is
 * the option's name for the message. NULL is accepted. LB_INVALID lists the kinds. */
enum lb_status lb_pictures_check_kinds(const char *flag, const char *kinds, struct lb_error *err);

/* Draws every picture of these kinds (NULL: all) that has something to show into run_folder/plots:
 * an axis with at least two values. A run without such a picture, and the kinds "none", are no
 * error: report->notes says why there are none or, of all kinds, which are not drawn. LB_INVALID:
 * there is no such kind. LB_ABSENT: gnuplot is not installed; the .gp and .dat files are written.
 * LB_IO, LB_FAILED, LB_INTERRUPTED: see lb_drawing_draw. */
enum lb_status lb_pictures_draw(const struct lb_grouped_run *grouped, const char *run_folder,
                                const char *kinds, struct lb_picture_report *report,
                                struct lb_error *err);

#endif
