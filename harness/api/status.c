/* Status codes and error messages. */
#include "status.h"

#include <stdarg.h>
#include <stdio.h>

#undef lb_fail /* the definition itself */
enum lb_status lb_fail(struct lb_error *err, enum lb_status status, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        vsnprintf(err->text, sizeof(err->text), format, args);
        va_end(args);
    }
    return status;
}

const char *lb_status_name(enum lb_status status)
{
    static const char *const names[] = {
        [LB_OK] = "ok",         [LB_UNSUPPORTED] = "unsupported",
        [LB_ABSENT] = "absent", [LB_INVALID] = "invalid",
        [LB_OOM] = "oom",       [LB_IO] = "io error",
        [LB_FAILED] = "failed", [LB_INTERRUPTED] = "interrupted",
    };
    unsigned index = (unsigned)status;
    return index < sizeof(names) / sizeof(names[0]) ? names[index] : "unknown status";
}
