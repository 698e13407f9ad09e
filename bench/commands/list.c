/* --list: the implementations and the cases, and which of them can run here. */
#include "commands/list.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/thread_pool.h"
#include "commands/plan_time.h"
#include "device/device.h"
#include "device/host_memory.h"
#include "machine/ceilings.h"
#include "machine/cpu_plan.h"

enum lb_status lb_ask(const struct lb_session *session, const struct lb_impl_entry *impl_entry,
                      const struct lb_case *c, double available, struct lb_probe *probe,
                      struct lb_error *why)
{
    if (impl_entry->absent)
        return lb_fail(why, LB_ABSENT, "%s", impl_entry->absent);
    const struct lb_device_info *device = lb_device_known(NULL);
    struct lb_probe unused;
    bool crowded = impl_entry->memory == LB_HOST && (size_t)c->threads > lb_thread_pool_size();
    if (!probe && crowded && !lb_cpu_assumed())
        probe = &unused;
    if (impl_entry->impl && !probe)
        return lb_case_supported(impl_entry->impl, c, available, why);
    if (impl_entry->impl && impl_entry->memory == LB_DEVICE && device && device->modelled)
        return lb_case_probe(impl_entry->impl, c, available, NULL, probe, why);
    return lb_pool_probe(session->pool, impl_entry, c, probe, why);
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

/* Prints the object and drops the caller's reference; comma: what stands before it. */
static enum lb_status print_json(json_t *object, bool whole, const char *comma)
{
    fputs(comma, stdout);
    bool printed = object && whole && json_dumpf(object, stdout, JSON_COMPACT) == 0;
    json_decref(object);
    return printed ? LB_OK : LB_OOM;
}

/* An entry of "implementations": name, summary, why it is absent (null: it is not), variants.
 */
static enum lb_status print_json_implementation(const struct lb_impl_entry *impl_entry,
                                                const char *comma)
{
    json_t *variants = json_array();
    bool whole = variants != NULL;
    for (size_t v = 0; impl_entry->variants && impl_entry->variants[v]; v++)
        whole &= json_array_append_new(variants, json_string(impl_entry->variants[v])) == 0;
    json_t *object = json_pack("{s:s, s:s, s:s?, s:o}", "name", impl_entry->name, "summary",
                               impl_entry->absent ? "" : impl_entry->summary, "absent",
                               impl_entry->absent, "variants", variants);
    return print_json(object, whole, comma);
}

/* Begins the document of --format json: all implementations, and the list of cases. */
static enum lb_status print_json_begin(const struct lb_registry *registry)
{
    enum lb_status st = LB_OK;
    fputs("{\"implementations\":[", stdout);
    for (size_t i = 0; i < registry->count && st == LB_OK; i++)
        st = print_json_implementation(&registry->impl_entries[i], i > 0 ? ",\n" : "\n");
    fputs("],\n\"cases\":[", stdout);
    return st;
}

/* Prints whether a case can run: a line of the list, or an entry of "cases". */
static enum lb_status print_answer(bool json, const char *id, enum lb_status st, const char *why,
                                   const char *comma)
{
    if (json)
        return print_json(json_pack("{s:s, s:s, s:s}", "case", id, "status",
                                    st == LB_OK ? "ok" : lb_status_name(st), "reason",
                                    st == LB_OK ? "" : why),
                          true, comma);
    if (st == LB_OK)
        printf("%-48s ok\n", id);
    else
        printf("%-48s %s: %s\n", id, lb_status_name(st), why);
    return LB_OK;
}

enum lb_status lb_list_print(const struct lb_session *session, const struct lb_plan *plan,
                             struct lb_error *err)
{
    double available = lb_host_available();
    const struct lb_impl_entry *impl_entry = NULL;
    bool json = strcmp(session->options->format, "json") == 0;
    enum lb_status printed = LB_OK;
    if (!json && strcmp(session->options->format, "table") != 0)
        return lb_fail(err, LB_INVALID, "--format %s: with --list, allowed are table and json",
                       session->options->format);
    if (json)
        printed = print_json_begin(session->registry);
    else if (!session->options->sized)
        print_implementations(session->registry);
    if (!json)
        lb_print_shard("# shard ", plan);
    for (size_t i = 0; i < plan->count && printed == LB_OK; i++) {
        const struct lb_case *c = &plan->cases[i];
        char id[LB_CASE_ID_SIZE];
        struct lb_error why = {""};
        if (session->stop && *session->stop)
            return LB_INTERRUPTED;
        if (!impl_entry || strcmp(impl_entry->name, c->impl) != 0)
            impl_entry = lb_registry_find(session->registry, c->impl);
        lb_case_print(c, id);
        enum lb_status st = lb_ask(session, impl_entry, c, available, NULL, &why);
        lb_clean_text(why.text);
        printed = print_answer(json, id, st, why.text, i > 0 ? ",\n" : "\n");
    }
    if (json)
        puts("]}");
    return printed == LB_OK ? LB_OK : lb_fail(err, LB_OOM, "--list: out of memory");
}
