/* Pictures: writing their files, and one gnuplot process that draws them. */
#include "plot/pictures.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "support/share_path.h"
#include "support/subprocess.h"

enum { WATCH_US = 5000 /* how often the time limit and the stop flag are checked */ };

static const volatile sig_atomic_t *stop_wanted; /* NULL: gnuplot is never stopped early */

void lb_gnuplot_set_stop(const volatile sig_atomic_t *stop)
{
    stop_wanted = stop;
}

/* Files */

enum lb_status lb_drawing_begin(const char *run_folder, struct lb_drawing *drawing,
                                struct lb_error *err)
{
    size_t size = sizeof(drawing->folder);
    if ((size_t)snprintf(drawing->folder, size, "%s/plots", run_folder) >= size)
        return lb_fail(err, LB_IO, "%.200s...: the path of this folder is too long", run_folder);
    if (mkdir(drawing->folder, 0777) != 0 && errno != EEXIST)
        return lb_fail(err, LB_IO, "%s: the folder can't be created: %s", drawing->folder,
                       strerror(errno));
    return lb_share_path("plots", drawing->templates, sizeof(drawing->templates), err);
}

static void close_files(struct lb_drawing *drawing)
{
    if (drawing->data)
        fclose(drawing->data);
    if (drawing->script)
        fclose(drawing->script);
    drawing->data = drawing->script = NULL;
}

void lb_drawing_free(struct lb_drawing *drawing)
{
    close_files(drawing);
    for (size_t i = 1; i <= drawing->count; i++)
        free(drawing->arguments[i]);
    free(drawing->arguments);
    *drawing = (struct lb_drawing){.count = 0};
}

static enum lb_status open_file(const char *folder, const char *name, const char *ending,
                                const char *mode, FILE **file, struct lb_error *err)
{
    char path[4600];
    snprintf(path, sizeof(path), "%s/%s%s", folder, name, ending);
    *file = fopen(path, mode);
    return *file ? LB_OK : lb_fail(err, LB_IO, "%s: %s", path, strerror(errno));
}

enum lb_status lb_picture_open(struct lb_drawing *drawing, const char *name, struct lb_error *err)
{
    size_t size = strlen(name) + sizeof(".gp");
    LB_CHECK(open_file(drawing->folder, name, ".dat", "w", &drawing->data, err));
    LB_CHECK(open_file(drawing->folder, name, ".gp", "w", &drawing->script, err));
    drawing->arguments =
        lb_needed(realloc(drawing->arguments, (drawing->count + 3) * sizeof(char *)));
    drawing->arguments[0] = (char *)"gnuplot";
    drawing->arguments[++drawing->count] = lb_needed(malloc(size));
    drawing->arguments[drawing->count + 1] = NULL;
    snprintf(drawing->arguments[drawing->count], size, "%s.gp", name);
    fprintf(drawing->script,
            "# Draws %s.svg and %s.png from %s.dat. Edit it as you like, then run in this\n"
            "# folder: gnuplot %s.gp\nreset session\n",
            name, name, name, name);
    lb_picture_text(drawing, "name", name);
    return LB_OK;
}

void lb_picture_text(struct lb_drawing *drawing, const char *name, const char *text)
{
    fprintf(drawing->script, "%s = '", name);
    for (; *text; text++) {
        if (*text == '\'')
            fputc('\'', drawing->script);
        fputc((unsigned char)*text < ' ' ? ' ' : *text, drawing->script);
    }
    fputs("'\n", drawing->script);
}

void lb_picture_number(struct lb_drawing *drawing, double value)
{
    if (isfinite(value))
        fprintf(drawing->data, " %.17g", value);
    else
        fputs(" nan", drawing->data);
}

static enum lb_status append_template(struct lb_drawing *drawing, const char *name,
                                      struct lb_error *err)
{
    char part[4096];
    FILE *in = NULL;
    enum lb_status st = open_file(drawing->templates, name, "", "r", &in, err);
    if (st != LB_OK)
        return st;
    fputc('\n', drawing->script);
    for (size_t n; (n = fread(part, 1, sizeof(part), in)) > 0;)
        fwrite(part, 1, n, drawing->script);
    if (ferror(in))
        st = lb_fail(err, LB_IO, "%s/%s: %s", drawing->templates, name, strerror(errno));
    fclose(in);
    return st;
}

enum lb_status lb_picture_finish(struct lb_drawing *drawing, const char *body, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    LB_TRY(append_template(drawing, "style.gp", err));
    LB_TRY(append_template(drawing, body, err));
    bool failed = ferror(drawing->data) || ferror(drawing->script);
    failed |= fflush(drawing->data) != 0 || fflush(drawing->script) != 0;
    if (failed)
        st = lb_fail(err, LB_IO, "%s/%s: %s", drawing->folder, drawing->arguments[drawing->count],
                     strerror(errno));
done:
    close_files(drawing);
    return st;
}

/* Drawing */

/* Starts gnuplot in the drawing's folder. Its messages go to the stream. */
static enum lb_status start(const struct lb_drawing *drawing, FILE *messages, pid_t *child,
                            struct lb_error *err)
{
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, fileno(messages), 1);
    posix_spawn_file_actions_adddup2(&actions, fileno(messages), 2);
    posix_spawn_file_actions_addchdir_np(&actions, drawing->folder);
    int reason = lb_spawn("gnuplot", &actions, drawing->arguments, child);
    posix_spawn_file_actions_destroy(&actions);
    if (reason == 0)
        return LB_OK;
    if (reason == ENOENT)
        return lb_fail(err, LB_ABSENT, "gnuplot is not installed (package gnuplot-nox)");
    return lb_fail(err, LB_FAILED, "gnuplot can't be started: %s", strerror(reason));
}

/* Waits for gnuplot to end: LB_OK with its wait status. Kills it at the time limit (LB_FAILED) or
 * when a stop is requested (LB_INTERRUPTED). */
static enum lb_status watch(pid_t child, double time_limit_s, int *status, struct lb_error *err)
{
    double deadline_ns = lb_now_ns() + time_limit_s * 1e9;
    enum lb_status st = LB_OK;
    while (st == LB_OK) {
        if (waitpid(child, status, WNOHANG) == child)
            return LB_OK;
        if (stop_wanted && *stop_wanted)
            st = lb_fail(err, LB_INTERRUPTED, "interrupted before the pictures were drawn");
        else if (lb_now_ns() > deadline_ns)
            st = lb_fail(err, LB_FAILED, "gnuplot exceeded its time limit of %g s and was stopped",
                         time_limit_s);
        else
            usleep(WATCH_US);
    }
    kill(-child, SIGKILL);
    while (waitpid(child, status, 0) < 0 && errno == EINTR)
        continue;
    return st;
}

/* Says why gnuplot failed: its last line that is more than a mark below a column. Where posix_spawn
 * can't say that it found no program, as in QEMU, the child exits with 127 without a message. */
static enum lb_status explain_failure(FILE *messages, int status, struct lb_error *err)
{
    char line[1024], last[1024] = "";
    rewind(messages);
    while (fgets(line, sizeof(line), messages))
        if (strspn(line, " ^\n") < strlen(line))
            snprintf(last, sizeof(last), "%s", line + strspn(line, " "));
    last[strcspn(last, "\n")] = '\0';
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127 && !last[0])
        return lb_fail(err, LB_ABSENT, "gnuplot is not installed (package gnuplot-nox)");
    lb_clean_text(last); /* the message quotes scripts, which contain names of users */
    return lb_fail(err, LB_FAILED, "gnuplot failed: %.400s",
                   last[0] ? last : "it printed no message");
}

/* Removes all pictures or, when remove is false, checks that they are there: gnuplot succeeds on a
 * full disk and leaves empty files. */
static enum lb_status visit_pictures(const struct lb_drawing *drawing, bool remove,
                                     struct lb_error *err)
{
    for (size_t i = 0; i < 2 * drawing->count; i++) {
        char path[4600];
        struct stat status;
        snprintf(path, sizeof(path), "%s/%s", drawing->folder, drawing->arguments[1 + i / 2]);
        memcpy(strrchr(path, '.'), i % 2 ? ".png" : ".svg", sizeof(".png"));
        if (remove)
            unlink(path);
        else if (stat(path, &status) != 0 || status.st_size == 0)
            return lb_fail(err, LB_FAILED,
                           "gnuplot left %.400s missing or empty: is the disk full?", path);
    }
    return LB_OK;
}

enum lb_status lb_drawing_draw(struct lb_drawing *drawing, double time_limit_s,
                               struct lb_error *err)
{
    enum lb_status st = LB_OK;
    int status = 0;
    pid_t child = 0;
    FILE *messages = tmpfile();
    visit_pictures(drawing, true, NULL);
    if (!messages)
        LB_TRY(lb_fail(err, LB_IO, "gnuplot: %s", strerror(errno)));
    LB_TRY(start(drawing, messages, &child, err));
    LB_TRY(watch(child, time_limit_s, &status, err));
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        LB_TRY(explain_failure(messages, status, err));
    st = visit_pictures(drawing, false, err);
done:
    if (st != LB_OK)
        visit_pictures(drawing, true, NULL);
    if (messages)
        fclose(messages);
    return st;
}
