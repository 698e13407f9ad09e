/* What an implementation may leave behind in its worker process that would slow or change the next
 * one: threads, child processes, memory, open files, and the settings of the process. */
#ifndef LB_LEFTOVERS_H
#define LB_LEFTOVERS_H

#include <stdbool.h>
#include <stddef.h>

enum { LB_PROCESS_FILES = 1024 };

/* A reading of this process, which is too large for the stack. Zero it before use. */
struct lb_process_reading {
    size_t threads;
    double bytes;                      /* of memory that is in use */
    char files[LB_PROCESS_FILES][128]; /* what each descriptor is open for; "": closed */
    struct lb_process_setting {
        char name[40], value[512]; /* "another ..." says a difference without the value */
    } settings[192];               /* [setting_count] in the same order in each reading */
    size_t setting_count;
};

/* Reads threads, memory and open files. */
void lb_process_read_resources(struct lb_process_reading *reading);

/* Reads what belongs to the calling thread and to the process as such: CPU affinity, priority,
 * floating-point modes, signal handlers, working directory, locale, umask, limits. */
void lb_process_read_settings(struct lb_process_reading *reading);

/* What may be left without a word. */
struct lb_leftovers_allowed {
    double bytes;         /* of memory */
    bool descriptors;     /* of the kinds that libraries keep: pipes, sockets, /dev, anonymous */
    bool all_descriptors; /* of any kind, as the driver of a device keeps them */
    size_t threads;       /* that are idle */
};

/* Appends what differs to text [size], as a list: "flush-to-zero on, the working directory /". */
void lb_leftovers_append(const struct lb_process_reading *before,
                         const struct lb_process_reading *after,
                         const struct lb_leftovers_allowed *allowed, char *text, size_t size);

#endif
