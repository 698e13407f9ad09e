/* Status codes and error messages: how every part of the project reports failure. */
#ifndef LB_STATUS_H
#define LB_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

enum lb_status {
    LB_OK = 0,
    LB_UNSUPPORTED, /* the request is well-formed, but this implementation or build can't do it */
    LB_ABSENT,      /* this implementation was not built, or its device or library is missing */
    LB_INVALID,     /* the caller's input is wrong: a usage error */
    LB_OOM,         /* the request does not fit into the available memory */
    LB_IO,          /* a file or a pipe failed */
    LB_FAILED,      /* a library or an implementation failed at run time */
    LB_INTERRUPTED  /* a signal asked to stop */
};

/* One sentence on what went wrong. It names the thing, what is wrong with it, and what is
 * allowed. */
struct lb_error {
    char text[512];
};

/* Formats the message into err (which may be NULL) and returns status, so that a caller writes
 * `return lb_fail(err, LB_IO, "%s: %s", path, strerror(errno));`. */
enum lb_status lb_fail(struct lb_error *err, enum lb_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#ifdef __clang_analyzer__ /* tells the analyser that lb_fail returns the status it is given */
#define lb_fail(err, status, ...) (lb_fail((err), (status), __VA_ARGS__), (status))
#endif

/* "ok", "unsupported", ...: a static string, never NULL. */
const char *lb_status_name(enum lb_status status);

/* Evaluates a call that returns a status and stores it in the caller's local `st`. On failure it
 * jumps to the caller's `done:` label. */
#define LB_TRY(call)     \
    do {                 \
        st = (call);     \
        if (st != LB_OK) \
            goto done;   \
    } while (0)

/* The same for a caller that has nothing to release: on failure it returns the status. */
#define LB_CHECK(call)                       \
    do {                                     \
        enum lb_status lb_checked_ = (call); \
        if (lb_checked_ != LB_OK)            \
            return lb_checked_;              \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif
