/* The folders of the program's case files and plot scripts. */
#include "support/share_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool lb_program_folder(char *path, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", path, size - 1);
    path[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = '\0';
    return slash != NULL;
}

static bool is_readable(const char *path)
{
    return access(path, R_OK | X_OK) == 0;
}

enum lb_status lb_share_path(const char *name, char *path, size_t size, struct lb_error *err)
{
    const char *share = getenv("BENCH_LSTM_SHARE");
    if (share) {
        snprintf(path, size, "%s/%s", share, name);
        return is_readable(path) ? LB_OK
                                 : lb_fail(err, LB_IO, "BENCH_LSTM_SHARE: there is no %s", path);
    }
    char program[4096];
    bool known = lb_program_folder(program, sizeof(program));
    if (known) {
        snprintf(path, size, "%s/" LB_SHARE_FROM_BINARY "/%s", program, name);
        if (is_readable(path))
            return LB_OK;
    }
    bool in_bench = strcmp(name, "cases") == 0 || strcmp(name, "criteria") == 0;
    snprintf(path, size, "%s/%s%s", LB_SOURCE_DIR, in_bench ? "bench/" : "", name);
    return is_readable(path)
               ? LB_OK
               : lb_fail(err, LB_IO,
                         "%s: there is no such folder, and none in %s/" LB_SHARE_FROM_BINARY
                         "; set BENCH_LSTM_SHARE to the folder that holds %s",
                         path, program, name);
}
