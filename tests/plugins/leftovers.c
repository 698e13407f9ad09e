/* A plug-in that computes what cpu_ref does and leaves something behind in its process when it
 * is destroyed; the compile-time name FAULT says what. Tests check that each leftover is named
 * in the row of its case, and that the following cases are neither slower nor different. */
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "faulty.h"

enum fault {
    nothing,
    spins_at_load, /* two threads that spin as soon as the plug-in is loaded */
    idle_pool,     /* two waiting threads, started once, like a library's pool: no fault */
    spinning_pool, /* two threads that spin */
    brief_spin,    /* two threads that spin for 50 ms and then wait: no fault */
    idle_threads,  /* one more waiting thread in each case */
    child,         /* a child process that spins */
    daemon_child,  /* a spinning process of its own session, whose parent has ended */
    memory,        /* 64 MiB in each case */
    file,          /* an open file */
    closed_stdout, /* standard output closed */
    affinity,      /* a binding to one CPU */
    priority,      /* a lower priority */
    policy,        /* another scheduling policy */
    rounding,      /* rounding upward */
    flush,         /* flush-to-zero and denormals-are-zero */
    handler,       /* SIGUSR1 ignored */
    blocked,       /* SIGTERM blocked */
    folder,        /* another working directory */
    locale,        /* another locale */
    limit          /* a lower limit on open files */
};

static const enum fault fault = FAULT;

static struct lb_impl impl;

static void *wait_for_ever(void *unused)
{
    for (;;)
        pause();
    return unused;
}

static void *spin_for_ever(void *unused)
{
    compute_until(INFINITY);
    return unused;
}

static void *spin_briefly(void *unused)
{
    compute_until(now() + 5e7);
    return wait_for_ever(unused);
}

/* Starts a thread with the affinity that the process had before a case pinned its own thread. */
static void start(void *(*work)(void *))
{
    pthread_t thread;
    cpu_set_t all;
    memset(&all, 0xff, sizeof(all));
    if (pthread_create(&thread, NULL, work, NULL) == 0)
        pthread_setaffinity_np(thread, sizeof(all), &all);
}

static void start_child(int in_own_session)
{
    pid_t pid = fork();
    if (pid == 0) {
        if (in_own_session) {
            setsid();
            execl("/bin/sh", "sh", "-c", "while :; do :; done & exit 0", (char *)NULL);
            _exit(1);
        }
        compute_until(INFINITY);
    }
    if (in_own_session)
        waitpid(pid, NULL, 0);
}

static void leave_settings(void)
{
    struct rlimit files;
    cpu_set_t one;
    switch (fault) {
    case affinity:
        CPU_ZERO(&one);
        CPU_SET(0, &one);
        sched_setaffinity(0, sizeof(one), &one);
        break;
    case priority: setpriority(PRIO_PROCESS, 0, 5); break;
    case policy: sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0}); break;
    case rounding: fesetround(FE_UPWARD); break;
    case flush:
#if defined(__x86_64__)
        _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
        break;
    case handler: signal(SIGUSR1, SIG_IGN); break;
    case folder: (void)!chdir("/"); break;
    case locale: setlocale(LC_ALL, "C.UTF-8"); break;
    case limit:
        getrlimit(RLIMIT_NOFILE, &files);
        files.rlim_cur = 100;
        setrlimit(RLIMIT_NOFILE, &files);
        break;
    default: break;
    }
}

static void leave(void *self)
{
    static int started;
    sigset_t set;
    lb_impl_cpu_ref.destroy(self);
    for (int i = 0; started == 0 && i < 2; i++) {
        if (fault == idle_pool)
            start(wait_for_ever);
        if (fault == spinning_pool)
            start(spin_for_ever);
        if (fault == brief_spin)
            start(spin_briefly);
    }
    started = 1;
    if (fault == idle_threads)
        start(wait_for_ever);
    if (fault == child || fault == daemon_child)
        start_child(fault == daemon_child);
    if (fault == memory) {
        char *bytes = malloc(64 << 20);
        for (size_t i = 0; bytes && i < 64 << 20; i += 4096)
            ((volatile char *)bytes)[i] = 1;
    }
    if (fault == file)
        (void)!open("/etc/passwd", O_RDONLY);
    if (fault == closed_stdout)
        close(STDOUT_FILENO);
    if (fault == blocked) {
        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        pthread_sigmask(SIG_BLOCK, &set, NULL);
    }
    leave_settings();
}

const struct lb_impl *lb_plugin(uint32_t abi)
{
    (void)abi;
    impl = cpu_ref_as("leftovers_" TEXT(FAULT), "cpu_ref that leaves something behind");
    impl.destroy = leave;
    for (int i = 0; fault == spins_at_load && i < 2; i++)
        start(spin_for_ever);
    return &impl;
}
