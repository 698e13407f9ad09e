/* What /proc says of processes and their threads: memory, CPU time, and whether they run. */
#ifndef LB_PROCESS_H
#define LB_PROCESS_H

/* Sums a figure of the entries of a folder of /proc, by their paths; NULL: counts them. */
double lb_proc_sum(const char *folder, double (*figure)(const char *path));

/* Reads the file stat in the folder that a process or a thread has in /proc. Returns what follows
 * the program's name, which may hold anything: ") S 1 ...". NULL where there is no such file. */
enum { LB_PROC_STAT_SIZE = 1024 };
const char *lb_proc_stat(const char *folder, char text[LB_PROC_STAT_SIZE]);

/* Resident bytes of a process; 0 when there is no such process. */
double lb_resident_bytes(long pid);

/* The most bytes of this process that were resident at a time since lb_restart_peak, or in all
 * where the system can't count anew; 0 when it does not say. */
double lb_peak_resident_bytes(void);
void lb_restart_peak(void);

/* CPU time in ns of the children of this process; of those that still run in steps of 10 ms. */
double lb_children_cpu_ns(void);

/* Threads of a process that run or wait for a CPU, the caller among them; 0 where the system does
 * not say. */
double lb_threads_running(long pid);

/* Waits until no more than `most` threads of this process run, the calling one among them, and
 * returns 0. After limit_s it returns the share of a CPU that the others used: about 2 when two of
 * them spin. */
double lb_await_idle_threads(int most, double limit_s);

/* What this process holds now; 0 where the system does not say. */
struct lb_holdings {
    double memory_bytes; /* resident */
    double descriptors, threads;
};

struct lb_holdings lb_holdings_read(void);

#endif
