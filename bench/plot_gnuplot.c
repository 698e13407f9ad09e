/* Running gnuplot: one process for all scripts, without a shell, within a time limit. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plot.h"
#include "sampler.h"

extern char **environ;

/* gnuplot -e "cd 'FOLDER'" a.gp b.gp: the arguments, whose strings but the second and third are
 * borrowed; NULL when memory runs out. */
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

static enum lb_status start(char **arguments, pid_t *child, int *output, struct lb_error *err)
{
    int ends[2], reason;
    posix_spawn_file_actions_t actions;
    if (pipe(ends) != 0)
        return lb_fail(err, LB_IO, "gnuplot: %s", strerror(errno));
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    reason = posix_spawnp(child, arguments[0], &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    *output = ends[0];
    if (reason == 0)
        return LB_OK;
    close(ends[0]);
    if (reason == ENOENT)
        return lb_fail(err, LB_ABSENT,
                       "gnuplot is not installed, so there are no pictures; the records are whole: "
                       "install gnuplot-nox, then --plot");
    return lb_fail(err, LB_FAILED, "gnuplot can't be started: %s", strerror(reason));
}

/* Keeps the last of what gnuplot says until it closes its output; false when time ran out. */
static bool listen_until(int output, double deadline_ns, char *words, size_t size)
{
    size_t used = 0;
    for (;;) {
        double left_ms = (deadline_ns - lb_now_ns()) / 1e6;
        struct pollfd ready = {.fd = output, .events = POLLIN};
        if (left_ms <= 0)
            return false;
        int n = poll(&ready, 1, left_ms < 1000 ? (int)left_ms + 1 : 1000);
        if (n <= 0)
            continue;
        if (used > size / 2) {
            memmove(words, words + used - size / 4, size / 4);
            used = size / 4;
        }
        ssize_t got = read(output, words + used, size - 1 - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        used += (size_t)got;
    }
    words[used] = '\0';
    return true;
}

/* gnuplot's words in one line: the last that says more than where a mark points. */
static void last_line(char *words, char **line)
{
    *line = words;
    for (char *part = strtok(words, "\n"); part; part = strtok(NULL, "\n"))
        if (strspn(part, " ^") < strlen(part))
            *line = part + strspn(part, " ");
}

enum lb_status lb_gnuplot_run(const char *folder, char *const *scripts, size_t count,
                              double time_limit_s, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    char words[4096], *line;
    int output = -1, status = 0;
    pid_t child = 0;
    char **arguments = make_arguments(folder, scripts, count);
    if (!arguments)
        return lb_fail(err, LB_OOM, "gnuplot: out of memory");
    LB_TRY(start(arguments, &child, &output, err));
    bool ended = listen_until(output, lb_now_ns() + time_limit_s * 1e9, words, sizeof(words));
    if (!ended && child > 0)
        kill(child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    close(output);
    if (!ended) {
        st = lb_fail(err, LB_FAILED, "gnuplot took more than %g s and was stopped", time_limit_s);
    } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        last_line(words, &line);
        st = lb_fail(err, LB_FAILED, "gnuplot failed: %.400s", line[0] ? line : "it says nothing");
    }
done:
    free(arguments[2]);
    free(arguments);
    return st;
}
