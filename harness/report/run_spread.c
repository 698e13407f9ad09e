/* The spread between runs of one machine, kept in a file of the cache folder. */
#include "report/run_spread.h"

#include <stdio.h>
#include <string.h>

#include "base/atomic_file.h"
#include "base/cache_path.h"
#include "base/json_out.h"

#define FILE_NAME "run-spread.json"

/* What a machine is known by. False where the environment does not tell. */
static bool machine_of(const json_t *environment, char *machine, size_t size)
{
    const char *host = json_string_value(json_object_get(environment, "host"));
    const char *cpu = json_string_value(json_object_get(environment, "cpu"));
    snprintf(machine, size, "%s: %s", host ? host : "", cpu ? cpu : "");
    return host != NULL && cpu != NULL;
}

/* All that is kept, by machine; an empty object where nothing is, or nothing that can be read. */
static json_t *read_all(void)
{
    char path[4096];
    lb_cache_path(FILE_NAME, false, path);
    json_t *all = json_load_file(path, 0, NULL);
    if (json_is_object(all))
        return all;
    json_decref(all);
    return json_object();
}

static bool is_spread(double value)
{
    return value >= 0 && value < 10;
}

void lb_run_spread_load(const json_t *environment, struct lb_run_spread *spread)
{
    char machine[512];
    struct lb_run_spread kept = {0};
    json_int_t df = 0;
    *spread = (struct lb_run_spread){0};
    if (!machine_of(environment, machine, sizeof(machine)))
        return;
    json_t *all = read_all();
    if (json_unpack(json_object_get(all, machine), "{s:F, s:F, s?F, s?F, s:I}", "raw", &kept.raw,
                    "corrected", &kept.corrected, "low_raw", &kept.low_raw, "low_corrected",
                    &kept.low_corrected, "df", &df) == 0 &&
        kept.raw > 0 && is_spread(kept.raw) && is_spread(kept.corrected) &&
        is_spread(kept.low_raw) && is_spread(kept.low_corrected) && df > 0 && df < 1000000) {
        *spread = kept;
        spread->df = (size_t)df;
    }
    json_decref(all);
}

static enum lb_status write_json(FILE *out, const void *all, struct lb_error *err)
{
    return lb_json_write(json_incref((json_t *)all), true, "spreads between runs", out, err);
}

enum lb_status lb_run_spread_save(const json_t *environment, const struct lb_run_spread *spread,
                                  struct lb_error *err)
{
    char machine[512], path[4096];
    if (!machine_of(environment, machine, sizeof(machine)))
        return lb_fail(err, LB_IO, "the environment does not name the machine");
    lb_cache_path(FILE_NAME, true, path);
    json_t *all = read_all();
    json_object_set_new(all, machine,
                        json_pack("{s:f, s:f, s:f, s:f, s:I}", "raw", spread->raw, "corrected",
                                  spread->corrected, "low_raw", spread->low_raw, "low_corrected",
                                  spread->low_corrected, "df", (json_int_t)spread->df));
    enum lb_status st = lb_write_file_atomically(path, write_json, all, err);
    json_decref(all);
    return st;
}
