/* The data of the page as one JSON object. plots/report.js explains each key where it reads it. */
#include "html/page_data.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "plot/cell_price.h"
#include "plot/fastest_regions.h"
#include "record/environment.h"
#include "record/run_devices.h"
#include "report/compare_report.h"
#include "support/number_text.h"
#include "support/terminal.h"

/* Texts, each with its index in the order of first use. */
struct texts {
    json_t *index; /* object: text to index */
    json_t *items; /* array */
};

/* The index of the text, which is added if it is new; -1 for "". */
static json_t *text_index(struct texts *texts, const char *text)
{
    const json_t *known = json_object_get(texts->index, text);
    size_t next = json_array_size(texts->items);
    if (!text[0])
        return json_integer(-1);
    if (known)
        return json_integer(json_integer_value(known));
    json_object_set_new(texts->index, text, json_integer((json_int_t)next));
    json_array_append_new(texts->items, json_string(text));
    return json_integer((json_int_t)next);
}

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* A text that may come from outside the records, and need not be UTF-8. */
static json_t *clean_string(const char *text)
{
    char clean[4096];
    snprintf(clean, sizeof(clean), "%s", text);
    lb_clean_text(clean);
    return json_string(clean);
}

/* Series and settings */

static json_t *series_json(const struct lb_grouped_run *grouped)
{
    json_t *list = json_array();
    for (size_t i = 0; i < grouped->series_count; i++) {
        const struct lb_series *series = &grouped->series[i];
        json_array_append_new(list, json_pack("[s, i, i, i]", series->name, series->color,
                                              series->mark, series->dash));
    }
    return list;
}

/* The number of the setting with this page name: pages are counted in the order of the groups. -1:
 * there is none. */
static int setting_of(const struct lb_grouped_run *grouped, const char *page)
{
    int setting = -1;
    for (size_t i = 0; i < grouped->count; i++) {
        setting += i == 0 || strcmp(grouped->groups[i].page, grouped->groups[i - 1].page) != 0;
        if (strcmp(grouped->groups[i].page, page) == 0)
            return setting;
    }
    return -1;
}

/* The settings of the groups, which are sorted by them. Each names the setting that differs from it
 * in the pass alone, which is inference, and the one that differs in the precision alone, f32. */
static json_t *settings_json(const struct lb_grouped_run *grouped)
{
    json_t *list = json_array();
    for (size_t i = 0; i < grouped->count; i++) {
        char heading[256], others[256], infer[LB_PAGE_NAME_SIZE], plain[LB_PAGE_NAME_SIZE];
        struct lb_row row = *grouped->groups[i].candidates[0].row;
        const struct lb_problem problem = row.c.problem;
        if (i > 0 && strcmp(grouped->groups[i].page, grouped->groups[i - 1].page) == 0)
            continue;
        lb_page_heading(&row, heading, others, sizeof(others));
        row.c.problem.pass = LB_INFER;
        lb_page_name(&row, infer);
        row.c.problem.pass = problem.pass;
        row.c.problem.dtype = LB_F32;
        row.c.problem.math = LB_IEEE;
        lb_page_name(&row, plain);
        json_array_append_new(
            list, json_pack("[s, s, s, s, s, i, i]", heading, lb_dtype_name(problem.dtype),
                            problem.math == LB_IEEE ? "" : lb_math_name(problem.math),
                            lb_pass_name(problem.pass), others + strspn(others, ", "),
                            setting_of(grouped, infer), setting_of(grouped, plain)));
    }
    return list;
}

/* Cases */

/* How many samples lie at which distance from the median: 41 digits, one per percent from -20 to
 * 20, from 0 (none) to 9 (most); the first and the last also count what lies farther away. */
static void format_strip(const struct lb_row *row, char strip[42])
{
    enum { BINS = 41, MIDDLE = BINS / 2 };
    size_t counts[BINS] = {0}, most = 1;
    for (size_t i = 0; i < row->samples; i++) {
        double percent = 100 * (row->samples_ns[i] / row->median_ns - 1);
        counts[MIDDLE + (int)round(fmax(-MIDDLE, fmin(MIDDLE, percent)))]++;
    }
    for (int b = 0; b < BINS; b++)
        most = counts[b] > most ? counts[b] : most;
    for (int b = 0; b < BINS; b++)
        strip[b] = (char)('0' + (9 * counts[b] + most - 1) / most);
    strip[BINS] = '\0';
}

/* "ran 1 persistent kernel; 1 × name, 12 us", or why the kernels are unknown where they were
 * traced. Kernels that do not fit are counted. */
static void format_kernels(const struct lb_row *row, char *text, size_t size)
{
    enum { COUNT_ROOM = 40 /* bytes for the number of kernels that are left out */ };
    const struct lb_kernels *kernels = &row->kernels;
    char sentence[160], ns[32];
    lb_kernels_sentence(kernels, sentence, sizeof(sentence));
    snprintf(text, size, "%s", sentence[0] ? sentence : row->kernels_reason);
    for (size_t i = 0; i < kernels->count; i++) {
        const struct lb_kernel *kernel = &kernels->items[i];
        char one[LB_KERNEL_NAME_SIZE + 64];
        lb_format_ns(kernel->total_ns, ns);
        snprintf(one, sizeof(one), "; %" PRId64 " × %s, %s", kernel->count, kernel->name, ns);
        if (strlen(text) + strlen(one) + COUNT_ROOM >= size) {
            lb_append(text, size, "; and %zu more", kernels->count - i);
            return;
        }
        lb_append(text, size, "%s", one);
    }
}

/* Appends what a case with a time has. */
static void add_times(json_t *list, const struct lb_row *row, struct texts *texts)
{
    char strip[42], kernels[2048];
    double lo, hi;
    lb_row_bounds(row, &lo, &hi);
    format_strip(row, strip);
    format_kernels(row, kernels, sizeof(kernels));
    const double numbers[] = {row->median_ns,
                              lo,
                              hi,
                              row->min_ns,
                              row->p5_ns,
                              row->p95_ns,
                              row->err_norm,
                              row->gradient_err_norm,
                              row->floor_ns,
                              row->flops,
                              row->bytes,
                              row->peak_bytes,
                              row->prepare_ns};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        json_array_append_new(list, number(numbers[i]));
    json_array_append_new(list, json_integer(lb_row_has_interval(row)));
    json_array_append_new(list, json_integer((json_int_t)row->samples));
    json_array_append_new(list, json_integer((json_int_t)row->block_count));
    json_array_append_new(list, number(row->calls_per_sample));
    json_array_append_new(list, text_index(texts, lb_stop_reason_name(row->stop_reason)));
    json_array_append_new(list, json_string(strip));
    json_array_append_new(list, text_index(texts, kernels));
    json_array_append_new(list, number(row->tolerance_used));
    json_array_append_new(list, number(row->update_ns));
}

/* A case as an array; one without a time ends after its texts. */
static json_t *case_json(const struct lb_candidate *it, struct texts *texts)
{
    const struct lb_row *row = it->row;
    const struct lb_problem *p = &row->c.problem;
    char id[LB_CASE_ID_SIZE], sizes[128];
    lb_case_print(&row->c, id);
    snprintf(sizes, sizeof(sizes), "/T%" PRId64 "_B%" PRId64 "_I%" PRId64 "_H%" PRId64, p->seq_len,
             p->batch, p->input, p->hidden);
    const char *tail = strstr(id, sizes); /* what follows the sizes: "/f32/infer" */
    json_t *list = json_pack("[i, i, i, o, o, o, o]", (int)it->series, (int)row->verdict,
                             (int)it->rank, text_index(texts, tail ? tail + strlen(sizes) : ""),
                             text_index(texts, row->reason), text_index(texts, row->description),
                             text_index(texts, row->warning));
    if (lb_row_is_timed(row))
        add_times(list, row, texts);
    return list;
}

/* The problems in the order of the groups: setting, sizes, and cases with the fastest first. */
static json_t *problems_json(const struct lb_grouped_run *grouped, struct texts *texts)
{
    json_t *list = json_array();
    int setting = -1;
    for (size_t i = 0; i < grouped->count; i++) {
        const struct lb_group *group = &grouped->groups[i];
        json_t *cases = json_array();
        setting += i == 0 || strcmp(group->page, group[-1].page) != 0;
        for (size_t k = 0; k < group->count; k++)
            json_array_append_new(cases, case_json(&group->candidates[k], texts));
        json_array_append_new(list, json_pack("[i, I, I, I, I, o]", setting,
                                              (json_int_t)group->sizes[LB_SIZE_T],
                                              (json_int_t)group->sizes[LB_SIZE_B],
                                              (json_int_t)group->sizes[LB_SIZE_I],
                                              (json_int_t)group->sizes[LB_SIZE_H], cases));
    }
    return list;
}

/* Findings */

/* Adds the regions of the groups [first, end), which are of one setting: the chosen series, the
 * problems by number, and which sizes were cut from below and from above. */
static enum lb_status add_regions(json_t *list, const struct lb_grouped_run *grouped, size_t first,
                                  size_t end, struct lb_error *err)
{
    struct lb_regions regions;
    enum lb_status st =
        lb_regions_find(grouped->groups + first, end - first, grouped->series_count, &regions, err);
    if (st != LB_OK)
        return st;
    for (size_t i = 0; i < regions.count; i++) {
        const struct lb_region *region = &regions.items[i];
        json_t *problems = json_array(), *cuts = json_array();
        for (size_t k = 0; k < region->count; k++)
            json_array_append_new(problems, json_integer((json_int_t)(first + region->groups[k])));
        for (size_t k = 0; k < LB_SIZE_COUNT; k++)
            json_array_append_new(
                cuts, json_pack("[b, b]", region->low[k] > 0, region->high[k] < INT64_MAX));
        json_array_append_new(list, json_pack("[i, o, o]", (int)region->series, problems, cuts));
    }
    lb_regions_free(&regions);
    return LB_OK;
}

static enum lb_status regions_json(const struct lb_grouped_run *grouped, json_t *list,
                                   struct lb_error *err)
{
    enum lb_status st = LB_OK;
    for (size_t i = 0, end; i < grouped->count; i = end) {
        for (end = i; end < grouped->count &&
                      strcmp(grouped->groups[end].page, grouped->groups[i].page) == 0;)
            end++;
        LB_TRY(add_regions(list, grouped, i, end, err));
    }
done:
    return st;
}

static enum lb_status prices_json(const struct lb_run *run, json_t *list, struct lb_error *err)
{
    struct lb_cell_price *prices;
    size_t count;
    enum lb_status st = lb_cell_prices(run, &prices, &count, err);
    for (size_t i = 0; st == LB_OK && i < count; i++) {
        char text[256];
        lb_cell_price_text(&prices[i], text, sizeof(text));
        json_array_append_new(list, json_string(text));
    }
    free(prices);
    return st;
}

/* Adds the comparison with an earlier run, as --compare --format json writes it. */
static enum lb_status add_comparison(const struct lb_page_source *source, size_t base, json_t *list,
                                     struct lb_error *err)
{
    struct lb_run_comparison comparison = {0};
    struct lb_compare_options how = lb_compare_defaults();
    char *text = NULL, base_path[4096], path[4096];
    size_t size = 0;
    how.judgement.margin = source->margin;
    enum lb_status st =
        lb_compare_runs(source->bases[base], source->grouped->run, &how, &comparison, err);
    FILE *out = st == LB_OK ? open_memstream(&text, &size) : NULL;
    if (st == LB_OK && !out)
        st = lb_fail(err, LB_OOM, "out of memory for the comparison");
    snprintf(base_path, sizeof(base_path), "%s", source->base_paths[base]);
    snprintf(path, sizeof(path), "%s", source->path);
    lb_clean_text(base_path);
    lb_clean_text(path);
    const struct lb_report_names names = {base_path, path};
    if (st == LB_OK)
        st = lb_report_json(&comparison, &names, out, err);
    if (out)
        fclose(out);
    if (st == LB_OK && json_array_append_new(list, json_loads(text, 0, NULL)) != 0)
        st = lb_fail(err, LB_OOM, "out of memory for the comparison");
    free(text);
    lb_run_comparison_free(&comparison);
    return st;
}

/* The run */

/* A key of a run's header, the flag that sets it, and the value that needs no flag. */
static const struct setting {
    const char *key, *flag;
    double usual;
} settings[] = {
    {"seed", " --seed ", 1},           {"repetitions", " --benchmark_repetitions=", 1},
    {"processes", " --processes ", 1}, {"call_limit_s", " --call-limit ", 120},
    {"memory_bytes", " --memory ", 0}, {"device", " --device ", 0},
};

/* Appends a flag and its text as one word of a shell. */
static void add_word(FILE *out, const char *flag, const char *text)
{
    char *word = text ? malloc(4 * strlen(text) + 4) : NULL;
    if (!word)
        return;
    lb_shell_word(text, word, 4 * strlen(text) + 4);
    fprintf(out, " %s %s", flag, word);
    free(word);
}

/* The flags that repeat a case as the run measured it, by the run's header. */
static void format_flags(FILE *out, const json_t *header)
{
    const json_t *plugins = json_object_get(header, "plugins");
    const json_t *sampler = json_object_get(header, "sampler");
    fprintf(out, " --case-time %g", json_number_value(json_object_get(sampler, "max_ns")) / 1e9);
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        const json_t *value = json_object_get(header, settings[i].key);
        if (value && json_number_value(value) != settings[i].usual)
            fprintf(out, "%s%.17g", settings[i].flag, json_number_value(value));
    }
    double loss_scale = json_number_value(json_object_get(header, "loss_scale"));
    bool dynamic = json_is_true(json_object_get(header, "loss_scale_dynamic"));
    if (dynamic || (loss_scale > 0 && loss_scale != 1))
        fprintf(out, " --loss-scale %s%.17g", dynamic ? "dynamic:" : "", loss_scale);
    if (json_is_true(json_object_get(header, "kernels")))
        fputs(" --kernels", out);
    if (json_is_true(json_object_get(header, "tune")))
        fputs(" --tune", out);
    add_word(out, "--tuned", json_string_value(json_object_get(header, "tuned")));
    for (size_t i = 0; i < json_array_size(plugins); i++)
        add_word(out, "--plugin", json_string_value(json_array_get(plugins, i)));
}

/* The flags as a string, or null where no sweep repeats the run: another program made it, or --ab
 * measured it beside another implementation. */
static json_t *repeat_json(const json_t *header)
{
    char *text = NULL;
    size_t size = 0;
    bool repeats = json_object_get(header, "sampler") && !json_object_get(header, "interleaved");
    FILE *memory = repeats ? open_memstream(&text, &size) : NULL;
    if (!memory)
        return json_null();
    format_flags(memory, header);
    json_t *flags = fclose(memory) == 0 ? json_string(text) : json_null();
    free(text);
    return flags;
}

/* The environments of the run, each with the name of its node where there are several. */
static json_t *machines_json(const struct lb_run *run)
{
    json_t *list = json_array(), *environment;
    size_t i, count = json_array_size(run->environments);
    if (count < 2)
        json_array_append_new(
            list, json_pack("[s, O?]", "", json_object_get(run->header, "environment")));
    json_array_foreach(run->environments, i, environment)
    {
        char node[256];
        if (count < 2)
            break;
        lb_environment_node(environment, node, sizeof(node));
        json_array_append_new(list, json_pack("[s, O]", node, environment));
    }
    return list;
}

static json_t *run_json(const struct lb_page_source *source)
{
    const struct lb_run *run = source->grouped->run;
    const json_t *header = run->header;
    char machine[1024];
    const char *started = json_string_value(json_object_get(header, "started"));
    lb_run_machine_line(run, machine, sizeof(machine));
    return json_pack(
        "{s:o, s:s, s:s, s:b, s:b, s:s, s:I, s:i, s:O?, s:O?, s:O?, s:o, s:o}", "path",
        clean_string(source->path), "machine", machine, "started", started ? started : "",
        "finished", run->finished, "interrupted", run->interrupted, "doubt", run->doubt, "planned",
        (json_int_t)json_array_size(json_object_get(header, "cases")), "sessions",
        (int)json_array_size(run->resumes) + 1, "command", json_object_get(header, "command"),
        "seed", json_object_get(header, "seed"), "sampler", json_object_get(header, "sampler"),
        "machines", machines_json(run), "repeat", repeat_json(header));
}

json_t *lb_page_data(const struct lb_page_source *source, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const struct lb_grouped_run *grouped = source->grouped;
    struct texts texts = {json_object(), json_array()};
    json_t *regions = json_array(), *prices = json_array(), *comparisons = json_array();
    json_t *verdicts = json_array(), *data = NULL;
    for (int v = 0; v < LB_VERDICT_COUNT; v++)
        json_array_append_new(verdicts, json_pack("[s, b]", lb_verdict_name((enum lb_verdict)v),
                                                  lb_verdict_is_failure((enum lb_verdict)v)));
    LB_TRY(regions_json(grouped, regions, err));
    LB_TRY(prices_json(grouped->run, prices, err));
    for (size_t i = 0; i < source->base_count; i++)
        LB_TRY(add_comparison(source, i, comparisons, err));
    bool has_baseline = grouped->baseline_series < grouped->series_count;
    data = json_pack("{s:o, s:s, s:i, s:o, s:o, s:O, s:o, s:O, s:O, s:O, s:O}", "run",
                     run_json(source), "baseline_name", grouped->baseline, "baseline",
                     has_baseline ? (int)grouped->baseline_series : -1, "series",
                     series_json(grouped), "settings", settings_json(grouped), "verdicts", verdicts,
                     "problems", problems_json(grouped, &texts), "texts", texts.items, "regions",
                     regions, "prices", prices, "comparisons", comparisons);
    if (!data)
        st = lb_fail(err, LB_OOM, "out of memory for the page");
done:
    json_decref(texts.index);
    json_decref(texts.items);
    json_decref(regions);
    json_decref(prices);
    json_decref(comparisons);
    json_decref(verdicts);
    return data;
}
