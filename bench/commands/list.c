/* --list and --plan: what a sweep would run, which of it can run here, and what it would need. */
#include "commands/commands.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "base/thread_pool.h"
#include "device/device.h"
#include "device/host_memory.h"
#include "machine/ceilings.h"
#include "machine/cpu_plan.h"
#include "report/compare.h"
#include "support/texts.h"

enum lb_status lb_ask(const struct lb_session *session, const struct lb_impl_entry *impl_entry,
                      const struct lb_case *c, double available, struct lb_probe *probe,
                      struct lb_error *why)
{
    if (impl_entry->absent)
        return lb_fail(why, LB_ABSENT, "%s", impl_entry->absent);
    const struct lb_device_info *device = lb_device_known(NULL);
    struct lb_case_plan plan;
    struct lb_probe unused;
    bool crowded = impl_entry->memory == LB_HOST && (size_t)c->threads > lb_thread_pool_size();
    /* `create` refuses more threads than there are CPUs, and only a worker calls it, for a probe.
     * To a CPU that is assumed, those of this machine do not matter. */
    bool by_worker = crowded && !lb_cpu_assumed();
    if (impl_entry->impl && !probe && !by_worker)
        return lb_case_plan(impl_entry->impl, c, available, &plan, why);
    if (impl_entry->impl && impl_entry->memory == LB_DEVICE && device && device->modelled)
        return lb_case_probe(impl_entry->impl, c, available, NULL, probe, why);
    return lb_pool_probe(session->pool, impl_entry, c, !probe && by_worker ? &unused : probe, why);
}

/* Prints implementations and variants as comments above the cases. */
static void print_implementations(const struct lb_registry *registry)
{
    for (size_t i = 0; i < registry->count; i++) {
        const struct lb_impl_entry *impl_entry = &registry->impl_entries[i];
        printf("# %-16s %s%s\n", impl_entry->name, impl_entry->absent ? "absent: " : "",
               impl_entry->summary);
        for (size_t v = 0; impl_entry->variants && impl_entry->variants[v]; v++)
            printf("#   %s:%s\n", impl_entry->name, impl_entry->variants[v]);
    }
}

/* The implementations: name, summary, why it is absent (null: it is not), variants. */
static json_t *implementations_json(const struct lb_registry *registry)
{
    json_t *list = json_array();
    for (size_t i = 0; i < registry->count; i++) {
        const struct lb_impl_entry *impl_entry = &registry->impl_entries[i];
        json_t *variants = json_array();
        for (size_t v = 0; impl_entry->variants && impl_entry->variants[v]; v++)
            json_array_append_new(variants, json_string(impl_entry->variants[v]));
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:s?, s:o}", "name", impl_entry->name,
                                        "summary", impl_entry->absent ? "" : impl_entry->summary,
                                        "absent", impl_entry->absent, "variants", variants));
    }
    return list;
}

/* Prints which part of the plan this is. */
static void print_shard(const char *start, const struct lb_plan *plan)
{
    const struct lb_shard *shard = &plan->shard;
    if (shard->count == 0)
        return;
    printf("%s%d of %d: %zu of %zu cases, %.1f %% of the predicted time; the longest shard has "
           "%.1f %%\n",
           start, shard->index, shard->count, plan->count, shard->plan_count,
           100 * shard->own_s / shard->plan_s, 100 * shard->longest_s / shard->plan_s);
}

enum lb_status lb_list_print(const struct lb_session *session, const struct lb_plan *plan,
                             struct lb_error *err)
{
    double available = lb_host_available();
    bool json = strcmp(session->options->format, "json") == 0;
    if (!json && strcmp(session->options->format, "table") != 0)
        return lb_fail(err, LB_INVALID, "--format %s: with --list, allowed are table and json",
                       session->options->format);
    if (!json && !session->options->sized)
        print_implementations(session->registry);
    if (!json)
        print_shard("# shard ", plan);
    json_t *cases = json_array();
    enum lb_status stopped = LB_OK;
    for (size_t i = 0; i < plan->count && stopped == LB_OK; i++) {
        const struct lb_case *c = &plan->cases[i];
        const char *id = LB_CASE_TEXT(c);
        struct lb_error why = {""};
        enum lb_status st =
            lb_ask(session, lb_registry_find(session->registry, c->impl), c, available, NULL, &why);
        const char *status = st == LB_OK ? "ok" : lb_status_name(st);
        const char *reason = st == LB_OK ? "" : why.text;
        if (json)
            json_array_append_new(cases, json_pack("{s:s, s:s, s:s}", "case", id, "status", status,
                                                   "reason", reason));
        else
            printf("%-48s %s%s%s\n", id, status, reason[0] ? ": " : "", reason);
        if (*session->stop)
            stopped = LB_INTERRUPTED;
    }
    if (json && stopped == LB_OK)
        lb_json_write(json_pack("{s:o, s:O}", "implementations",
                                implementations_json(session->registry), "cases", cases),
                      stdout);
    json_decref(cases);
    return stopped;
}

/* ---- --plan ---- */

static void print_shares(const struct lb_registry *registry, const struct lb_plan *plan)
{
    size_t absent = 0;
    for (size_t i = 0; i < plan->count; i++)
        absent += lb_registry_find(registry, plan->cases[i].impl)->absent != NULL;
    printf("cases     %zu", plan->count);
    if (absent > 0)
        printf(", of which %zu are of absent implementations", absent);
    printf("\n");
    for (size_t k = 0; k < registry->count; k++) {
        const struct lb_impl_entry *impl_entry = &registry->impl_entries[k];
        size_t count = 0;
        for (size_t i = 0; i < plan->count; i++)
            count += strcmp(plan->cases[i].impl, impl_entry->name) == 0;
        if (count > 0 && impl_entry->absent)
            printf("%16zu  %-16s absent: %s\n", count, impl_entry->name, impl_entry->absent);
        else if (count > 0)
            printf("%16zu  %s\n", count, impl_entry->name);
    }
}

enum lb_status lb_plan_print(const struct lb_session *session, const struct lb_plan *plan)
{
    struct lb_sampler_options sampler = lb_options_sampler(session->options);
    const struct lb_options *options = session->options;
    double seconds = 0, most_bytes = 0;
    int numbers[LB_MAX_DEVICES];
    size_t devices = 0; /* that --devices names, where it is known how many there are */
    if (options->devices)
        lb_devices_parse(options->devices, numbers, &devices, NULL);
    if (options->devices && devices == 0)
        devices = (size_t)json_integer_value(json_object_get(session->gpu, "visible"));
    double rounds = options->against ? 2.0 * lb_against_pairs(options)
                                     : (double)options->repetitions * options->processes;
    char largest[LB_CASE_ID_SIZE] = "-";
    for (size_t i = 0; i < plan->count; i++) {
        const struct lb_case *c = &plan->cases[i];
        const struct lb_impl_entry *impl_entry = lb_registry_find(session->registry, c->impl);
        bool on_device = impl_entry->memory == LB_DEVICE;
        double bytes = lb_case_bytes(c);
        double rate = impl_entry->traits & LB_REFERENCE ? 5e9
                      : on_device                       ? LB_GPU_FLOPS_S
                                                        : LB_CPU_FLOPS_S * c->threads;
        if (!impl_entry->absent)
            seconds += lb_predict_seconds(c, rate, &sampler) * rounds /
                       (on_device && devices > 1 ? (double)devices : 1);
        if (bytes > most_bytes) {
            most_bytes = bytes;
            lb_case_print_problem(c, largest);
        }
    }
    print_shard("shard     ", plan);
    if (devices > 1)
        printf("devices   %zu, each of which runs a shard of the cases of GPUs\n", devices);
    print_shares(session->registry, plan);
    if (plan->left_out > 0)
        printf("left out  %zu combination%s: %s\n", plan->left_out, plan->left_out == 1 ? "" : "s",
               plan->because.text);
    printf("memory    %s%s for %s, and what the implementation needs itself\n",
           isfinite(most_bytes) ? "up to " : "", LB_BYTES_TEXT(most_bytes), largest);
    long whole = (long)(fmin(seconds, options->time_budget_s) + 0.5);
    printf("time      about ");
    if (whole >= 3600)
        printf("%ld h %ld min", whole / 3600, whole / 60 % 60);
    else if (whole >= 60)
        printf("%ld min %ld s", whole / 60, whole % 60);
    else
        printf("%ld s", whole);
    printf(", by the cases' flops and usual rates\n");
    return LB_OK;
}

enum lb_status lb_plan_print_empty(const struct lb_plan *plan, int *exit_code)
{
    size_t ruled_out = plan->filtered + plan->left_out;
    fprintf(stderr, "bench-lstm: no case is left: %zu combination%s ruled out%s%s\n", ruled_out,
            ruled_out == 1 ? " was" : "s were", plan->left_out > 0 ? "; " : "",
            plan->left_out > 0 ? plan->because.text : "");
    *exit_code = LB_EXIT_NOTHING;
    return LB_OK;
}
