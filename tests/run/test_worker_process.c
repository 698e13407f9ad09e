/* Workers that don't end, and that don't end a message. One that can't be killed is stuck in a
 * driver: here the wait for it (the linker's --wrap) says for ever that it has not ended. */
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/channel.h"
#include "support/subprocess.h"
#include "tests/helpers/test.h"

static bool stuck;

pid_t __real_waitpid(pid_t pid, int *status, int options);
pid_t __wrap_waitpid(pid_t pid, int *status, int options);

pid_t __wrap_waitpid(pid_t pid, int *status, int options)
{
    while (stuck && !(options & WNOHANG))
        pause();
    return stuck ? 0 : __real_waitpid(pid, status, options);
}

static pid_t sleeping_worker(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        for (;;)
            pause();
    }
    setpgid(pid, pid);
    lb_watch_child(pid);
    return pid;
}

TEST(the_wait_for_a_worker_that_does_not_end_is_bounded)
{
    pid_t pid = sleeping_worker();
    double start = lb_now_ns();
    stuck = true;
    lb_end_child(pid);
    stuck = false;
    assert_true(lb_now_ns() - start < 8e9);
    assert_int_equal(waitpid(pid, NULL, 0), pid); /* it was killed all the same */
}

TEST(a_worker_that_ends_is_not_waited_for_longer)
{
    pid_t pid = sleeping_worker();
    double start = lb_now_ns();
    lb_end_child(pid);
    assert_true(lb_now_ns() - start < 2e9);
    assert_int_equal(waitpid(pid, NULL, WNOHANG), -1);
}

TEST(the_wait_for_a_message_that_goes_on_without_an_end_is_bounded)
{
    int ends[2];
    json_t *message;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    pid_t pid = fork();
    for (int i = 0; pid == 0; i++) {
        if (i == 200 || write(ends[1], "x", 1) != 1)
            _exit(0);
        usleep(10000);
    }
    close(ends[1]);
    struct lb_channel channel = {.fd = ends[0]};
    double start = lb_now_ns();
    assert_int_equal(lb_channel_receive(&channel, 100, &message, NULL), LB_OK);
    assert_null(message);
    assert_true(lb_now_ns() - start < 1e9);
    lb_channel_close(&channel);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}
