/* Running gnuplot: one process for all scripts, without a shell, within a time limit. */
#include "plot/gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "support/subprocess.h"

enum {
    WATCH_MS = 50, /* how often the time limit and the stop flag are checked */
    NOTICE_S = 3   /* when the time limit is printed at the latest */
};

static const volatile sig_atomic_t *stop_wanted; /* NULL: gnuplot is never stopped early */

void lb_gnuplot_set_stop(const volatile sig_atomic_t *stop)
{
    stop_wanted = stop;
}

/* The arguments of gnuplot -e "cd 'FOLDER'" a.gp b.gp. The caller frees the array and its third
 * string. NULL when memory runs out. */
static char **make_arguments(const char *folder, char *const *scripts, size_t count)
{
    char **arguments = calloc(count + 4, sizeof(*arguments));
    char *command = malloc(2 * strlen(folder) + sizeof("cd ''"));
    if (!arguments || !command) {
        free(arguments);
        free(command);
        return NULL;
    }
    char *at = command;
    at += sprintf(at, "cd '");
    for (const char *c = folder; *c; c++) {
        if (*c == '\'')
            *at++ = '\''; /* a quote in gnuplot's single quotes is written twice */
        *at++ = *c;
    }
    memcpy(at, "'", 2);
    arguments[0] = (char *)"gnuplot";
    arguments[1] = (char *)"-e";
    arguments[2] = command;
    for (size_t i = 0; i < count; i++)
        arguments[3 + i] = scripts[i];
    return arguments;
}

static int spawn(char **arguments, const int ends[2], pid_t *child)
{
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    int reason = lb_spawn(arguments[0], &actions, arguments, child);
    posix_spawn_file_actions_destroy(&actions);
    return reason;
}

static enum lb_status not_installed(struct lb_error *err)
{
    return lb_fail(err, LB_ABSENT, "gnuplot is not installed (package gnuplot-nox)");
}

static enum lb_status start(char **arguments, pid_t *child, int *output, struct lb_error *err)
{
    int ends[2];
    if (pipe(ends) != 0)
        return lb_fail(err, LB_IO, "gnuplot: %s", strerror(errno));
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    int reason = spawn(arguments, ends, child);
    close(ends[1]);
    *output = ends[0];
    if (reason == 0)
        return LB_OK;
    close(ends[0]);
    if (reason == ENOENT)
        return not_installed(err);
    return lb_fail(err, LB_FAILED, "gnuplot can't be started: %s", strerror(reason));
}

/* The last part of what gnuplot has printed. */
struct words {
    char text[4096];
    size_t used;
    bool ended; /* it closed its output */
};

/* Waits a moment for output of gnuplot and reads it. */
static void listen_once(int output, struct words *words)
{
    struct pollfd ready = {.fd = output, .events = POLLIN};
    size_t size = sizeof(words->text);
    if (poll(&ready, 1, WATCH_MS) <= 0)
        return;
    if (words->used > size / 2) {
        memmove(words->text, words->text + words->used - size / 4, size / 4);
        words->used = size / 4;
    }
    ssize_t got = read(output, words->text + words->used, size - 1 - words->used);
    if (got > 0)
        words->used += (size_t)got;
    else
        words->ended = got == 0 || errno != EINTR;
    words->text[words->used] = '\0';
}

/* Waits for gnuplot to end: LB_OK with its wait status. Kills it at the time limit (LB_FAILED) or
 * when a stop is requested (LB_INTERRUPTED). */
static enum lb_status watch(pid_t child, int output, double time_limit_s, struct words *words,
                            int *status, struct lb_error *err)
{
    double start_ns = lb_now_ns(), deadline_ns = start_ns + time_limit_s * 1e9;
    double notice_ns = start_ns + 1e9 * fmin(NOTICE_S, time_limit_s / 2);
    bool noticed = false;
    enum lb_status st = LB_OK;
    while (st == LB_OK) {
        if (!noticed && lb_now_ns() > notice_ns) {
            fprintf(stderr, "gnuplot is drawing; it is stopped after %g s\n", time_limit_s);
            noticed = true;
        }
        if (!words->ended)
            listen_once(output, words);
        else if (waitpid(child, status, WNOHANG) == child)
            return LB_OK;
        else
            usleep(1000);
        if (stop_wanted && *stop_wanted)
            st = lb_fail(err, LB_INTERRUPTED, "interrupted before the pictures were drawn");
        else if (lb_now_ns() > deadline_ns)
            st = lb_fail(err, LB_FAILED, "gnuplot exceeded its time limit of %g s and was stopped",
                         time_limit_s);
    }
    kill(-child, SIGKILL);
    while (waitpid(child, status, 0) < 0 && errno == EINTR)
        continue;
    return st;
}

/* The path of the picture that a script draws. */
static void picture_path(const char *folder, const char *script, const char *ending, char *path,
                         size_t size)
{
    int length = (int)(strlen(script) - strlen(".gp"));
    snprintf(path, size, "%s/%.*s%s", folder, length, script, ending);
}

/* Removes all pictures that the scripts draw. */
static void remove_pictures(const char *folder, char *const *scripts, size_t count,
                            const char *const *endings)
{
    char path[4600];
    for (size_t i = 0; i < count; i++)
        for (const char *const *ending = endings; *ending; ending++) {
            picture_path(folder, scripts[i], *ending, path, sizeof(path));
            unlink(path);
        }
}

/* Whether the file ends as a complete SVG or PNG does. */
static bool is_complete(const char *path)
{
    static const char svg_end[] = "</svg>", png_end[] = "IEND\256B`\202";
    char tail[32] = "";
    size_t length = strlen(path);
    bool png = length > 4 && strcmp(path + length - 4, ".png") == 0;
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    fseek(file, -(long)sizeof(tail) + 1, SEEK_END); /* fails for a shorter file: read all of it */
    size_t used = fread(tail, 1, sizeof(tail) - 1, file);
    fclose(file);
    while (!png && used > 0 && strchr("\r\n\t ", tail[used - 1]))
        used--;
    const char *end = png ? png_end : svg_end;
    size_t end_length = strlen(end);
    return used >= end_length && memcmp(tail + used - end_length, end, end_length) == 0;
}

static enum lb_status check_pictures(const char *folder, char *const *scripts, size_t count,
                                     const char *const *endings, struct lb_error *err)
{
    char path[4600];
    for (size_t i = 0; i < count; i++)
        for (const char *const *ending = endings; *ending; ending++) {
            picture_path(folder, scripts[i], *ending, path, sizeof(path));
            if (is_complete(path))
                continue;
            lb_clean_text(path);
            return lb_fail(err, LB_FAILED,
                           "gnuplot left %.400s missing, empty or cut short: is the disk full?",
                           path);
        }
    return LB_OK;
}

/* Finds the last line of gnuplot's messages that is more than a mark below a column. */
static void last_line(char *words, char **line)
{
    *line = words;
    for (char *part = strtok(words, "\n"); part; part = strtok(NULL, "\n"))
        if (strspn(part, " ^") < strlen(part))
            *line = part + strspn(part, " ");
}

enum lb_status lb_gnuplot_run(const char *folder, char *const *scripts, size_t count,
                              const char *const *endings, double time_limit_s, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct words words = {.used = 0};
    char *line;
    int output = -1, status = 0;
    pid_t child = 0;
    char **arguments = make_arguments(folder, scripts, count);
    if (!arguments)
        return lb_fail(err, LB_OOM, "gnuplot: out of memory");
    remove_pictures(folder, scripts, count, endings);
    st = start(arguments, &child, &output, err);
    if (st == LB_OK) {
        st = watch(child, output, time_limit_s, &words, &status, err);
        close(output);
    }
    /* Where posix_spawn can't say that it found no program, as in QEMU, the child exits with 127.
     */
    if (st == LB_OK && WIFEXITED(status) && WEXITSTATUS(status) == 127 && !words.text[0])
        st = not_installed(err);
    if (st == LB_OK && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) {
        last_line(words.text, &line);
        lb_clean_text(line); /* the message quotes scripts, which contain names of users */
        st = lb_fail(err, LB_FAILED, "gnuplot failed: %.400s",
                     line[0] ? line : "it printed no message");
    }
    if (st == LB_OK)
        st = check_pictures(folder, scripts, count, endings, err);
    if (st != LB_OK)
        remove_pictures(folder, scripts, count, endings);
    free(arguments[2]);
    free(arguments);
    return st;
}
