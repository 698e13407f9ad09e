/* --explain CASE: why a case can or can not run, its floor, and what would run. */
#include "commands/commands.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "device/device.h"
#include "device/host_memory.h"
#include "machine/ceilings.h"
#include "machine/cpu_plan.h"
#include "measure/case_lower_bound.h"
#include "plot/grouped_run.h"
#include "record/environment.h"
#include "support/texts.h"

/* Traces one call, in a worker that runs the case as briefly as possible. */
static void explain_kernels(const struct lb_session *session,
                            const struct lb_impl_entry *impl_entry, const struct lb_case *c)
{
    const struct lb_sampler_options shortest = {
        .min_samples = 1, .max_samples = 1, .precision = 1, .max_ns = 1e6};
    const struct lb_job job = {
        .c = c, .seed = session->options->seed, .sampler = shortest, .kernels = true};
    struct lb_row row;
    struct lb_error why;
    if (lb_pool_run(session->pool, impl_entry, &job, &row, &why) != LB_OK)
        printf("    kernels  unknown: %s\n", why.text);
    else if (row.verdict != LB_VERDICT_OK)
        printf("    kernels  unknown: %s: %s\n", lb_verdict_name(row.verdict), row.reason);
    else
        lb_kernels_print(stdout, &row);
    lb_row_free(&row);
}

static void explain_entry(const struct lb_session *session, const struct lb_impl_entry *impl_entry,
                          struct lb_case c, const char *variant)
{
    struct lb_error why;
    struct lb_probe probe = {0};
    const struct lb_sizes *sizes = &probe.sizes;
    char line[sizeof(why.text) + 3 * LB_NAME_SIZE];
    snprintf(c.impl, sizeof(c.impl), "%s", impl_entry->name);
    snprintf(c.variant, sizeof(c.variant), "%s", strcmp(variant, "auto") == 0 ? "" : variant);
    const char *label = LB_IMPL_LABEL(&c);
    const struct lb_device_info *device = lb_device_known(NULL);
    const struct lb_machine *cpu = lb_cpu_assumed();
    bool on_host = impl_entry->memory == LB_HOST;
    bool modelled = on_host ? cpu != NULL : device && device->modelled;
    bool plans = !modelled || (impl_entry->traits & LB_PLANS_ALONE);
    enum lb_status st =
        lb_ask(session, impl_entry, &c, lb_host_available(), plans ? &probe : NULL, &why);
    if (st != LB_OK)
        snprintf(line, sizeof(line), "%s: %s: %s", label, lb_status_name(st), why.text);
    else if (modelled)
        snprintf(line, sizeof(line), "%s: ok by its rules on %s; nothing was asked of a device",
                 label, on_host ? cpu->label : device->name);
    else
        snprintf(line, sizeof(line), "%s: ok", label);
    fputs("  ", stdout);
    lb_print_wrapped(stdout, 6, line);
    fputc('\n', stdout);
    const struct lb_impl *impl = impl_entry->impl; /* which this process can ask for its note */
    struct lb_exec_config config = {.threads = c.threads};
    if (impl)
        probe.note[0] = '\0';
    if (impl && st != LB_UNSUPPORTED && impl->note &&
        lb_resolve_variant(impl->variants, c.variant, &config.variant, NULL) == LB_OK)
        impl->note(&c.problem, &config, probe.note, sizeof(probe.note));
    if (probe.note[0])
        lb_print_labelled("    note     ", probe.note);
    if (st != LB_OK || !plans)
        return;
    if (probe.description[0])
        lb_print_labelled("    runs     ", probe.description);
    snprintf(line, sizeof(line), "weights %s, gradients %s, reserve %s, workspace %s",
             LB_BYTES_TEXT((double)sizes->weights), LB_BYTES_TEXT((double)sizes->gradients),
             LB_BYTES_TEXT((double)sizes->reserve), LB_BYTES_TEXT((double)sizes->workspace));
    lb_print_labelled("    memory   ", line);
    if (session->options->kernels && !modelled)
        explain_kernels(session, impl_entry, &c);
}

static void explain_problem(const struct lb_case *c)
{
    char intensity[32];
    const struct lb_problem *p = &c->problem;
    double traffic = lb_problem_bytes(p); /* 0: too much to be counted */
    printf("%s\n", LB_PROBLEM_TEXT(c));
    printf("  flops      %.4g in GEMMs (matrix products)\n", lb_problem_flops(p));
    printf("  traffic    %s%s\n", LB_BYTES_TEXT(traffic > 0 ? traffic : (double)INFINITY),
           traffic > 0 ? " at least: every input read once, every output written once" : "");
    printf("  memory     %s for tensors, results and the oracle\n",
           LB_BYTES_TEXT(lb_case_bytes(c)));
    snprintf(intensity, sizeof(intensity), "%.3g flops per byte", lb_problem_flops(p) / traffic);
    printf("  intensity  %s; %.0f dependent steps\n", traffic > 0 ? intensity : "unknown",
           (double)p->seq_len * (double)p->layers);
}

static void explain_lower_bound(const struct lb_case *c, enum lb_memory memory)
{
    const struct lb_device_info *device = lb_device_known(NULL);
    struct lb_machine machine;
    struct lb_lower_bound f;
    char line[400];
    const struct lb_lower_bound_run run = {.cold = c->cache == LB_COLD,
                                           .threads = memory == LB_HOST ? c->threads : 0};
    if (memory == LB_DEVICE && !device)
        return;
    lb_case_machine(memory, device, &machine);
    lb_lower_bound_of(&machine, &c->problem, &run, &f);
    if (isnan(f.total_ns))
        return;
    snprintf(line, sizeof(line),
             "%s on %d %s%s of %s: %g steps of %s, weights in %s of %d; GEMMs %s%s%s, traffic %s%s",
             LB_NS_TEXT(f.total_ns), machine.cpu ? c->threads : machine.cores,
             machine.cpu ? "thread" : "SM", machine.cpu && c->threads == 1 ? "" : "s",
             machine.label, f.steps, LB_NS_TEXT(f.step_ns), lb_level_name(&machine, f.residency),
             f.cores, LB_NS_TEXT(f.all_gemms_ns), machine.cpu ? ", cells " : "",
             machine.cpu ? LB_NS_TEXT(f.all_cells_ns) : "", LB_NS_TEXT(f.memory_ns),
             c->problem.ragged ? "; for rows as short as they can be" : "");
    lb_print_labelled(machine.cpu ? "  CPU floor  " : "  floor      ", line);
    snprintf(line, sizeof(line), "per step: wait %s, h %s, weights %s, GEMM %s, cell %s",
             LB_NS_TEXT(f.wait_ns), LB_NS_TEXT(f.exchange_ns), LB_NS_TEXT(f.weights_ns),
             LB_NS_TEXT(f.gemm_ns), LB_NS_TEXT(f.cell_ns));
    lb_print_labelled("             ", line);
}

static void print_step_cost(const char *name, const struct lb_cpu_step_cost *cost,
                            const char *residency)
{
    char line[320];
    snprintf(line, sizeof(line),
             "%s step %.3g us: GEMM %.3g, weights from %s %.3g, cell %.3g, operands %.3g, rows of "
             "other threads %.3g, barrier %.3g",
             name, cost->total_ns / 1e3, cost->gemm_ns / 1e3, residency, cost->weights_ns / 1e3,
             cost->cell_ns / 1e3, cost->operands_ns / 1e3, cost->exchange_ns / 1e3,
             cost->barrier_ns / 1e3);
    lb_print_labelled("             ", line);
}

static void print_units(const char *title, size_t hidden, size_t block, size_t threads)
{
    size_t blocks = (hidden + block - 1) / block, size = 64 + 24 * threads;
    char *line = lb_needed(calloc(1, size));
    lb_append(line, size, "%s:", title);
    for (size_t i = 0; i < threads; i++) {
        struct lb_cpu_range own = lb_cpu_share(blocks, threads, i);
        size_t from = own.from * block, to = own.to * block < hidden ? own.to * block : hidden;
        lb_append(line, size, from < to ? " %zu-%zu" : " none", from, to - 1);
    }
    lb_print_labelled("             ", line);
    free(line);
}

/* The number of a thread's domain or node, counted in the order of the threads. */
static size_t ordinal(const struct lb_cpu_topology *topology, size_t thread, bool node)
{
    size_t number = 0;
    for (size_t i = 1; i <= thread; i++)
        number += node ? topology->places[i].node != topology->places[i - 1].node
                       : topology->places[i].domain != topology->places[i - 1].domain;
    return number;
}

/* "row 3", "rows 3-7": items [from, to], at least one. */
static void print_range(const char *noun, size_t from, size_t to)
{
    if (from == to)
        printf("%s %zu", noun, from);
    else
        printf("%ss %zu-%zu", noun, from, to);
}

static void print_teams(const struct lb_cpu_plan *plan, const struct lb_cpu_topology *topology,
                        const struct lb_problem *p, size_t simd_width)
{
    size_t size = (size_t)plan->team_size, hidden = (size_t)p->hidden;
    for (size_t team = 0; team < (size_t)plan->teams; team++) {
        struct lb_cpu_range rows = lb_cpu_share((size_t)p->batch, (size_t)plan->teams, team);
        size_t first = team * size, last = first + size - 1;
        printf("             team %zu: ", team);
        print_range("thread", first, last);
        printf(" in L3 ");
        print_range("domain", ordinal(topology, first, false), ordinal(topology, last, false));
        printf(" and NUMA ");
        print_range("node", ordinal(topology, first, true), ordinal(topology, last, true));
        printf(": ");
        print_range("row", rows.from, rows.to - 1);
        printf(" of the batch\n");
    }
    print_units("hidden units of the threads of a team", hidden, simd_width, size);
    if (lb_has_backward(p))
        print_units("in backward", hidden, simd_width * (size_t)plan->group_panels, size);
}

/* Prints how cpu_simd divides a case among threads: on the CPU that --device-model names, or, for
 * several threads, on this one. */
static void explain_cpu_plan(const struct lb_case *c)
{
    struct lb_cpu_topology topology;
    struct lb_machine machine;
    struct lb_cpu_plan plan;
    const struct lb_machine *assumed = lb_cpu_assumed();
    char line[320];
    if ((c->impl[0] && strcmp(c->impl, "cpu_simd") != 0) || (!assumed && c->threads == 1))
        return;
    if (assumed) {
        machine = *assumed;
        lb_machine_topology(&machine, &topology);
    } else {
        lb_cpu_topology_here(&topology);
        lb_machine_here(&topology, true, &machine);
    }
    if ((size_t)c->threads > topology.count) {
        printf("  CPU plan   none: %s has %zu CPUs for %d threads\n",
               assumed ? machine.label : "this process", topology.count, c->threads);
        return;
    }
    const struct lb_cpu_task task = {
        .problem = &c->problem,
        .topology = &topology,
        .machine = &machine,
        .threads = c->threads,
        .simd_width = lb_cpu_simd_width(machine.units[c->problem.dtype], c->problem.dtype)};
    lb_cpu_plan_of(&task, &plan);
    const char *residency = lb_level_name(&machine, plan.residency);
    snprintf(
        line, sizeof(line),
        "cpu_simd with %d of %d threads on %s (%zu core%s, %zu L3 domain%s, %zu NUMA node%s)%s: %d "
        "team%s of %d; %.4g us per call are predicted, by %s",
        plan.threads, c->threads, machine.label, topology.cores, topology.cores == 1 ? "" : "s",
        topology.domains, topology.domains == 1 ? "" : "s", topology.nodes,
        topology.nodes == 1 ? "" : "s",
        (size_t)plan.threads > topology.cores ? ", some cores with several threads" : "",
        plan.teams, plan.teams == 1 ? "" : "s", plan.team_size, plan.total_ns / 1e3,
        assumed ? "the published figures of that CPU" : "the figures of a usual CPU");
    lb_print_labelled("  CPU plan   ", line);
    print_step_cost("forward", &plan.forward, residency);
    if (lb_has_backward(&c->problem))
        print_step_cost("backward", &plan.backward, residency);
    print_teams(&plan, &topology, &c->problem, task.simd_width);
}

static void explain_cell(const struct lb_case *c)
{
    struct lb_problem standard = c->problem;
    char line[320], projection[32] = "";
    if (c->problem.cell == LB_CELL_STANDARD || lb_problem_bytes(&standard) == 0)
        return;
    standard.cell = LB_CELL_STANDARD;
    standard.projection = 0;
    const char *name = lb_cell_name((enum lb_cell_kind)c->problem.cell);
    if (c->problem.cell == LB_CELL_PROJECTION)
        snprintf(projection, sizeof(projection), " -P %d", (int)c->problem.projection);
    snprintf(line, sizeof(line),
             "%s: %.3g times the flops in GEMMs and %.3g times the traffic of the standard cell; "
             "--sweep with --cell standard,%s%s measures its price",
             name, lb_problem_flops(&c->problem) / lb_problem_flops(&standard),
             lb_problem_bytes(&c->problem) / lb_problem_bytes(&standard), name, projection);
    lb_print_labelled("  cell       ", line);
}

/* Prints the prices of the case's cell or, when that is the standard one, of all cells and of the
 * precisions: of problems of its sizes, or else of all. */
static void explain_prices(const struct lb_case *c, const struct lb_run *run, const char *from)
{
    const struct lb_problem *p = &c->problem;
    size_t count;
    bool printed = false;
    struct lb_price *prices = lb_prices(run, p, &count);
    if (count == 0) {
        free(prices);
        prices = lb_prices(run, NULL, &count);
    }
    for (size_t i = 0; i < count; i++)
        if ((p->cell == LB_CELL_STANDARD || p->cell == prices[i].cell) &&
            (prices[i].cell != LB_CELL_STANDARD || prices[i].pass == p->pass)) {
            lb_print_labelled("  measured   ", prices[i].text);
            printed = true;
        }
    if (!printed)
        printf("  measured   %s has no problem with times of both the standard cell and %s\n", from,
               p->cell == LB_CELL_STANDARD ? "another one, or of both f32 and another precision"
                                           : lb_cell_name((enum lb_cell_kind)p->cell));
    free(prices);
}

enum lb_status lb_explain_print(struct lb_session *session, struct lb_error *err)
{
    const struct lb_registry *registry = session->registry;
    const char *text = session->options->words[0], *from = session->options->measured;
    const struct lb_impl_entry *named;
    struct lb_case c;
    struct lb_error why;
    unsigned given;
    int column;
    bool read = lb_case_parse(text, &c, &given, &column, &why) == LB_OK;
    if (!read && lb_has_criteria(text))
        return lb_fail(err, LB_INVALID,
                       "--explain %s: a layer must follow, such as 'units=512', or '' for the "
                       "framework's defaults",
                       text);
    if (!read)
        return lb_fail(err, LB_INVALID, "--explain %s: column %d: %.400s", text, column, why.text);
    if (c.impl[0] && lb_registry_require(registry, c.impl, &named, &why) != LB_OK)
        return lb_fail(err, LB_INVALID, "--explain %s: %.400s", text, why.text);
    bool gpu = lb_gpu_wanted(session, c.impl[0] ? c.impl : NULL);
    LB_CHECK(lb_machine_find(session, gpu, err));
    struct lb_run run = {0};
    if (from && lb_run_read(from, &run, &why) != LB_OK)
        return lb_fail(err, LB_INVALID, "--from: %.400s", why.text);
    explain_problem(&c);
    if (from) { /* what the run measured is true of the same CPU or GPU */
        json_t *here = lb_environment(session->libraries);
        const json_t *there = json_object_get(run.header, "environment");
        lb_ceilings_assume_all(json_object_get(there, "ceilings"));
        if (!json_equal(json_object_get(there, "cpu"), json_object_get(here, "cpu")))
            lb_ceilings_assume(false, NULL);
        json_decref(here);
    }
    explain_lower_bound(&c, LB_DEVICE);
    explain_lower_bound(&c, LB_HOST);
    explain_cpu_plan(&c);
    explain_cell(&c);
    if (from)
        explain_prices(&c, &run, from);
    lb_run_free(&run);
    for (size_t i = 0; i < registry->count; i++) {
        const struct lb_impl_entry *impl_entry = &registry->impl_entries[i];
        bool all = impl_entry->variants && !(given & LB_GIVEN_VARIANT);
        if (c.impl[0] && strcmp(c.impl, impl_entry->name) != 0)
            continue;
        if (!all)
            explain_entry(session, impl_entry, c, c.variant);
        for (size_t v = 0; all && impl_entry->variants[v]; v++)
            explain_entry(session, impl_entry, c, impl_entry->variants[v]);
    }
    return LB_OK;
}
