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

void register_cases(const char *const *names, size_t count, std::vector<size_t> *order)
{
    for (size_t i = 0; i < count; i++)
        benchmark::RegisterBenchmark(names[i], note_call, order, i)->Iterations(1)->UseManualTime();
}

/* Has Google Benchmark run the named cases that the filter matches, or the one that it was
 * configured with (nullptr). Returns their indexes in the order of its calls. *complaint is what it
 * says of the filter; "" when that is fine. */
std::vector<size_t> run_cases(const char *const *names, size_t count, const char *filter,
                              std::string *complaint)
{
    std::vector<size_t> calls;
    std::ostringstream said;
    SilentReporter reporter;
    reporter.SetErrorStream(&said);
    register_cases(names, count, &calls);
    if (filter)
        benchmark::RunSpecifiedBenchmarks(&reporter, filter);
    else
        benchmark::RunSpecifiedBenchmarks(&reporter);
    benchmark::ClearRegisteredBenchmarks();
    /* It also complains when no name matches, but that holds for this chunk of names only. */
    std::istringstream words(said.str());
    if (!std::getline(words, *complaint) || complaint->find("Could not compile") != 0)
        complaint->clear();
    return calls;
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

enum lb_status lb_gbench_configure(size_t argc, char *const *argv, struct lb_error *err)
{
    return guarded(err, [&] {
        initialize(defaults());
        std::string rest = initialize(std::vector<std::string>(argv, argv + argc));
        return rest.empty()
                   ? LB_OK
                   : lb_fail(err, LB_INVALID,
                             "%s: Google Benchmark has no such option, or it takes another "
                             "value",
                             rest.c_str());
    });
}

enum lb_status lb_gbench_filter(const char *const *names, size_t count, bool *keep,
                                struct lb_error *err)
{
    const size_t chunk = 256; /* registration is quadratic */
    return guarded(err, [&] {
        std::fill(keep, keep + count, false);
        for (size_t i = 0; i < count; i += chunk) {
            size_t n = count - i < chunk ? count - i : chunk;
            std::string complaint;
            for (size_t called : run_cases(names + i, n, nullptr, &complaint))
                keep[i + called] = true;
            if (!complaint.empty())
                return lb_fail(err, LB_INVALID, "--benchmark_filter: %s", complaint.c_str());
        }
        return LB_OK;
    });
}

enum lb_status lb_gbench_order(const char *const *names, size_t count, size_t **order,
                               size_t *length, struct lb_error *err)
{
    return guarded(err, [&] {
        std::string complaint;
        std::vector<size_t> calls = run_cases(names, count, ".", &complaint);
        *length = calls.size();
        *order = static_cast<size_t *>(std::malloc((calls.size() + 1) * sizeof(size_t)));
        if (!*order)
            return lb_fail(err, LB_OOM, "out of memory for %zu rounds", calls.size());
        std::copy(calls.begin(), calls.end(), *order);
        return LB_OK;
    });
}
