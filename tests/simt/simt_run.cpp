/* simt_run.cpp: one kernel, by hand. For the tests see the other main files.
 *
 *   simt_run_fast KERNEL [fault N] [seed N] [seeds N] [shape T B H BLOCKS THREADS]
 *
 * Exit code: 0 clean, 1 something was found, 2 usage. simt_run_check is the same in check mode. */
#include "cases.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace simt_test;

struct request {
    const kernel_case *kernel = nullptr;
    int fault = 0;
    unsigned long seed = 0, seeds = 1;
    shape size = {};
};

static int usage()
{
    fprintf(stderr,
            "usage: simt_run_%s KERNEL [fault N] [seed N] [seeds N]"
            " [shape T B H BLOCKS THREADS]\nkernels:",
            simt::check_mode ? "check" : "fast");
    for (const kernel_case &c : kernel_cases())
        fprintf(stderr, " %s", c.name);
    fprintf(stderr, "\n");
    return 2;
}

static bool parse(int count, char **words, request &r)
{
    r.kernel = count > 1 ? find_case(words[1]) : nullptr;
    if (!r.kernel)
        return false;
    r.size = r.kernel->shapes[0];
    for (int i = 2; i + 1 < count; i += 2) {
        unsigned long value = strtoul(words[i + 1], nullptr, 10);
        if (!strcmp(words[i], "fault")) {
            r.fault = static_cast<int>(value);
        } else if (!strcmp(words[i], "seed")) {
            r.seed = value;
        } else if (!strcmp(words[i], "seeds")) {
            r.seeds = value;
        } else if (!strcmp(words[i], "shape") && i + 5 < count) {
            int *field[] = {&r.size.seq_len, &r.size.batch, &r.size.hidden, &r.size.blocks,
                            &r.size.threads};
            for (int f = 0; f < 5; f++)
                *field[f] = static_cast<int>(strtol(words[i + 1 + f], nullptr, 10));
            i += 4;
        } else {
            return false;
        }
    }
    return true;
}

int main(int count, char **words)
{
    request r;
    if (!parse(count, words, r))
        return usage();
    bool clean = true;
    for (unsigned long s = r.seed; s < r.seed + r.seeds; s++) {
        run_result got = r.kernel->run(r.fault, r.size, s);
        printf(
            "%s seed %lu: %s, error %.3g (limit %.3g), %.1f ms, %llu switches, %llu accesses\n%s",
            r.kernel->name, s, got.ok() ? "ok" : "FAULTY", got.error, got.limit, got.milliseconds,
            static_cast<unsigned long long>(got.outcome.switches),
            static_cast<unsigned long long>(got.outcome.accesses), got.outcome.text().c_str());
        clean = clean && got.ok();
    }
    return clean ? 0 : 1;
}
