/* --plan: how many cases a sweep would run, and how much memory and time they need. */
#include "commands/plan_time.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/shard.h"
#include "plot/table.h"
#include "support/terminal.h"

void lb_print_shard(const char *start, const struct lb_plan *plan)
{
    const struct lb_shard *shard = &plan->shard;
    if (shard->count == 0)
        return;
    printf("%s%d of %d: %zu of %zu cases, %.1f %% of the predicted time; the longest shard has "
           "%.1f %%\n",
           start, shard->index, shard->count, plan->count, shard->plan_count,
           100 * shard->own_s / shard->plan_s, 100 * shard->longest_s / shard->plan_s);
}

/* The estimate for the kind of implementation. */
static double estimate_seconds(const struct lb_impl_entry *impl_entry, const struct lb_case *c,
                               const struct lb_sampler_options *sampler)
{
    double rate = impl_entry->traits & LB_REFERENCE ? 5e9
                  : impl_entry->memory == LB_DEVICE ? LB_GPU_FLOPS_S
                                                    : LB_CPU_FLOPS_S * c->threads;
    return lb_predict_seconds(c, rate, sampler);
}

/* Prints how many cases there are, and how many each implementation has. */
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

/* How many devices --devices names; 1 without it, or when it is not known how many there are. */
static size_t count_devices(const struct lb_session *session)
{
    int devices[LB_MAX_DEVICES];
    size_t count = 0;
    const char *text = session->options->devices;
    if (text && lb_devices_parse(text, devices, &count, NULL) == LB_OK && count == 0)
        count = (size_t)json_integer_value(json_object_get(session->gpu, "visible"));
    return count > 0 ? count : 1;
}

/* "31 s", "3 min 5 s" or "2 h 3 min" from seconds. */
static void format_duration(double seconds, char text[32])
{
    long whole = (long)(seconds + 0.5);
    if (whole >= 3600)
        snprintf(text, 32, "%ld h %ld min", whole / 3600, whole / 60 % 60);
    else if (whole >= 60)
        snprintf(text, 32, "%ld min %ld s", whole / 60, whole % 60);
    else
        snprintf(text, 32, "%ld s", whole);
}

void lb_plan_print(const struct lb_session *session, const struct lb_plan *plan)
{
    struct lb_sampler_options sampler = lb_options_sampler(session->options);
    const struct lb_options *options = session->options;
    double seconds = 0, most_bytes = 0;
    size_t devices = count_devices(session);
    double rounds = options->repetitions * fmax(options->processes, 1);
    char text[32], largest[LB_CASE_ID_SIZE] = "-";
    for (size_t i = 0; i < plan->count; i++) {
        const struct lb_case *c = &plan->cases[i];
        const struct lb_impl_entry *impl_entry = lb_registry_find(session->registry, c->impl);
        double bytes = lb_case_bytes(&c->problem);
        if (!impl_entry->absent)
            seconds += estimate_seconds(impl_entry, c, &sampler) * rounds /
                       (impl_entry->memory == LB_DEVICE ? (double)devices : 1);
        if (bytes > most_bytes) {
            most_bytes = bytes;
            lb_case_print_problem(c, largest);
        }
    }
    lb_print_shard("shard     ", plan);
    if (devices > 1)
        printf("devices   %zu, each of which runs a shard of the cases of GPUs\n", devices);
    print_shares(session->registry, plan);
    if (plan->left_out > 0)
        printf("left out  %zu combination%s: %s\n", plan->left_out, plan->left_out == 1 ? "" : "s",
               plan->because.text);
    lb_format_bytes(most_bytes, text);
    printf("memory    up to %s for %s, and what the implementation needs itself\n", text, largest);
    seconds = fmin(seconds, options->time_budget_s);
    format_duration(seconds, text);
    printf("time      about %s, by the cases' flops and usual rates\n", text);
}

void lb_plan_print_empty(const struct lb_plan *plan)
{
    size_t ruled_out = plan->filtered + plan->left_out;
    fprintf(stderr, "bench-lstm: no case is left: %zu combination%s ruled out%s%s\n", ruled_out,
            ruled_out == 1 ? " was" : "s were", plan->left_out > 0 ? "; " : "",
            plan->left_out > 0 ? plan->because.text : "");
}
