/* Google Benchmark behind a C interface. The only file that includes benchmark.h. */
#include "sweep/gbench.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <sstream>
#include <string>
#include <vector>

namespace
{

/* Prints nothing: the program writes its own records, tables and files. */
class SilentReporter : public benchmark::BenchmarkReporter
{
  public:
    bool ReportContext(const Context &) override
    {
        return true;
    }
    void ReportRuns(const std::vector<Run> &) override
    {
    }
};

/* Initialize() removes the arguments that it knows from an argv. Returns the first that is left. */
std::string initialize(std::vector<std::string> arguments)
{
    arguments.insert(arguments.begin(), "bench-lstm");
    std::vector<char *> argv;
    for (std::string &argument : arguments)
        argv.push_back(&argument[0]);
    argv.push_back(nullptr);
    int argc = static_cast<int>(arguments.size());
    benchmark::Initialize(&argc, argv.data());
    return argc > 1 ? argv[1] : "";
}

/* Google Benchmark took settings from the environment before main() began. A run must not depend on
 * what a shell happens to export: arguments that give the settings there their defaults back. Some
 * versions lack some of them. */
std::vector<std::string> defaults()
{
    return {"--benchmark_filter=",       "--benchmark_list_tests=false",
            "--benchmark_repetitions=1", "--benchmark_enable_random_interleaving=false",
            "--benchmark_dry_run=false", "--benchmark_min_warmup_time=0",
            "--benchmark_out=",          "--benchmark_perf_counters="};
}

/* A benchmark that notes that it was called; what it stands for runs later. */
void note_call(benchmark::State &state, std::vector<size_t> *order, size_t index)
{
    for (auto _ : state) {
        order->push_back(index);
        state.SetIterationTime(1e-9);
    }
}

/* Turns exceptions into errors: none may pass through a C caller. */
template <typename Body> lb_status guarded(lb_error *err, Body body)
{
    try {
        return body();
    } catch (const std::exception &e) {
        return lb_fail(err, LB_FAILED, "Google Benchmark: %s", e.what());
    }
}

} // namespace

enum lb_status lb_gbench_configure(size_t argc, char *const *argv, const char *filter,
                                   int repetitions, bool shuffled, struct lb_error *err)
{
    return guarded(err, [&] {
        std::vector<std::string> arguments(argv, argv + argc);
        arguments.push_back("--benchmark_repetitions=" + std::to_string(repetitions));
        if (filter)
            arguments.push_back(std::string("--benchmark_filter=") + filter);
        if (shuffled)
            arguments.push_back("--benchmark_enable_random_interleaving=true");
        initialize(defaults());
        std::string rest = initialize(arguments);
        return rest.empty()
                   ? LB_OK
                   : lb_fail(err, LB_INVALID,
                             "%s: Google Benchmark has no such option, or it takes another value",
                             rest.c_str());
    });
}

enum lb_status lb_gbench_order(const struct lb_case *cases, size_t count, bool filter,
                               size_t **order, size_t *length, struct lb_error *err)
{
    return guarded(err, [&] {
        std::vector<size_t> calls;
        std::ostringstream said;
        SilentReporter reporter;
        reporter.SetErrorStream(&said);
        for (size_t i = 0; i < count; i++) {
            char id[LB_CASE_ID_SIZE];
            lb_case_print(&cases[i], id);
            benchmark::RegisterBenchmark(id, note_call, &calls, i)->Iterations(1)->UseManualTime();
        }
        if (filter)
            benchmark::RunSpecifiedBenchmarks(&reporter);
        else
            benchmark::RunSpecifiedBenchmarks(&reporter, ".");
        benchmark::ClearRegisteredBenchmarks();
        /* It also complains when no name matches, which is no error of the filter. */
        if (said.str().find("Could not compile") == 0)
            return lb_fail(err, LB_INVALID, "--benchmark_filter: %.300s",
                           said.str().substr(0, said.str().find('\n')).c_str());
        *length = calls.size();
        *order = static_cast<size_t *>(std::malloc((calls.size() + 1) * sizeof(size_t)));
        if (!*order)
            return lb_fail(err, LB_OOM, "out of memory for %zu rounds", calls.size());
        std::copy(calls.begin(), calls.end(), *order);
        return LB_OK;
    });
}
