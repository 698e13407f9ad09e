/* The report: reads the runs, and fills the template of the page with its parts. */
#include "commands/commands.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic_file.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/xml.h"
#include "plot/grouped_run.h"
#include "record/environment.h"
#include "report/compare.h"
#include "support/share_path.h"
#include "support/texts.h"

enum { PATH_SIZE = 4096 };

/* What the page is made of. */
struct page {
    const struct lb_grouped_run *grouped; /* of the last run */
    const struct lb_run
        *runs; /* those that the options name: the last is compared with the others */
    const struct lb_options *options;
    char path[PATH_SIZE]; /* of the last, in UTF-8 */
    char folder[4300];    /* of the template, the style and the script */
    const volatile sig_atomic_t *stop;
};

/* The index of the text in the object `texts`, which it joins if it is new; -1 for "". */
static json_t *text_index(json_t *texts, const char *text)
{
    size_t next = json_object_size(texts);
    return json_integer(text[0] ? (json_int_t)lb_json_number(texts, text, next) : -1);
}

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *settings_json(const struct lb_grouped_run *grouped)
{
    json_t *list = json_array();
    for (size_t i = 0; i < grouped->count; i++) {
        char heading[256], others[256];
        const struct lb_row *row = grouped->groups[i].candidates[0].row;
        const struct lb_problem *p = &row->c.problem;
        if (i > 0 && strcmp(grouped->groups[i].page, grouped->groups[i - 1].page) == 0)
            continue;
        lb_page_heading(row, heading, others, sizeof(others));
        json_array_append_new(list,
                              json_pack("[s, s, s, s, s]", heading, lb_dtype_name(p->dtype),
                                        p->math == LB_IEEE ? "" : lb_math_name(p->math),
                                        lb_pass_name(p->pass), others + strspn(others, ", ")));
    }
    return list;
}

/* How many samples lie at which distance from the median: 41 digits, one per percent from -20 to 20
 * and beyond, from 0 (none) to 9 (most). */
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

/* "ran 1 persistent kernel; 1 × name, 12 us", or why the kernels are unknown. */
static void format_kernels(const struct lb_row *row, char *text, size_t size)
{
    enum { COUNT_ROOM = 40 /* bytes for the number of kernels that are left out */ };
    const struct lb_kernels *kernels = &row->kernels;
    char sentence[160];
    lb_kernels_sentence(kernels, sentence, sizeof(sentence));
    snprintf(text, size, "%s", sentence[0] ? sentence : row->kernels_reason);
    for (size_t i = 0; i < kernels->count; i++) {
        const struct lb_kernel *kernel = &kernels->items[i];
        char one[LB_KERNEL_NAME_SIZE + 64];
        snprintf(one, sizeof(one), "; %lld × %s, %s", kernel->count, kernel->name,
                 LB_NS_TEXT(kernel->total_ns));
        if (strlen(text) + strlen(one) + COUNT_ROOM >= size) {
            lb_append(text, size, "; and %zu more", kernels->count - i);
            return;
        }
        lb_append(text, size, "%s", one);
    }
}

/* Of a stream: percentiles, longest call, share of calls that were too late, calls per second. */
static json_t *percentiles_json(const struct lb_run *run, const struct lb_row *row)
{
    double deadline = lb_row_deadline(run, row);
    if (row->c.timing != LB_STREAMING)
        return json_null();
    json_t *list = json_array();
    for (int i = 0; i < LB_PERCENTILES; i++) {
        const struct lb_percentile time = lb_row_time(row, i);
        json_array_append_new(
            list, json_pack("[o, o, o]", number(time.ns), number(time.lo_ns), number(time.hi_ns)));
    }
    return json_pack("[o, o, o, o]", list, number(lb_row_longest(row)),
                     number(isfinite(deadline) ? lb_row_share_above(row, deadline) : (double)NAN),
                     number(lb_row_calls_per_s(row)));
}

static json_t *times_json(const struct lb_run *run, const struct lb_row *row, json_t *texts)
{
    char strip[42], kernels[2048];
    double lo, hi;
    lb_row_bounds(row, &lo, &hi);
    format_strip(row, strip);
    format_kernels(row, kernels, sizeof(kernels));
    return json_pack(
        "[o, o, o, o, o, o, o, o, o, o, o, o, o, i, I, I, o, o, s, o, o, o, o]",
        number(row->median_ns), number(lo), number(hi), number(row->min_ns), number(row->p5_ns),
        number(row->p95_ns), number(row->err_norm), number(row->gradient_err_norm),
        number(row->floor_ns), number(row->flops), number(row->bytes), number(row->peak_bytes),
        number(row->prepare_ns), (int)lb_row_has_interval(row), (json_int_t)row->samples,
        (json_int_t)row->block_count, number(row->calls_per_sample),
        text_index(texts, lb_stop_reason_name(row->stop_reason)), strip, text_index(texts, kernels),
        number(row->tolerance_used), number(row->update_ns), percentiles_json(run, row));
}

/* The array of a case. That of a case without a time ends after its texts. */
static json_t *case_json(const struct lb_run *run, const struct lb_candidate *it, json_t *texts)
{
    const struct lb_row *row = it->row;
    const struct lb_problem *p = &row->c.problem;
    char sizes[128];
    snprintf(sizes, sizeof(sizes), "/T%" PRId64 "_B%" PRId64 "_I%" PRId64 "_H%" PRId64, p->seq_len,
             p->batch, p->input, p->hidden);
    const char *tail =
        strstr(LB_CASE_TEXT(&row->c), sizes); /* what follows the sizes: "/f32/infer" */
    char reason[LB_ROW_TEXT_SIZE + 64];
    snprintf(reason, sizeof(reason), "%s", row->reason);
    if (row->verdict == LB_VERDICT_SUSPECT)
        lb_append(reason, sizeof(reason), " (median %s)", LB_NS_TEXT(row->median_ns));
    json_t *list =
        json_pack("[i, i, i, o, o, o, o]", (int)it->series, (int)row->verdict, (int)it->rank,
                  text_index(texts, tail ? tail + strlen(sizes) : ""), text_index(texts, reason),
                  text_index(texts, row->description), text_index(texts, row->warning));
    json_t *times = lb_row_is_timed(row) ? times_json(run, row, texts) : json_array();
    json_array_extend(list, times);
    json_decref(times);
    return list;
}

static json_t *problems_json(const struct lb_grouped_run *grouped, json_t *texts)
{
    json_t *list = json_array();
    int setting = -1;
    for (size_t i = 0; i < grouped->count; i++) {
        const struct lb_group *group = &grouped->groups[i];
        json_t *cases = json_array();
        setting += i == 0 || strcmp(group->page, group[-1].page) != 0;
        for (size_t k = 0; k < group->count; k++)
            json_array_append_new(cases, case_json(grouped->run, &group->candidates[k], texts));
        json_array_append_new(list, json_pack("[i, I, I, I, I, o]", setting,
                                              (json_int_t)group->sizes[LB_SIZE_T],
                                              (json_int_t)group->sizes[LB_SIZE_B],
                                              (json_int_t)group->sizes[LB_SIZE_I],
                                              (json_int_t)group->sizes[LB_SIZE_H], cases));
    }
    return list;
}

/* A key of a run's header, the flag that sets it, and the number that needs no flag. */
static const struct setting {
    const char *key, *flag;
    double usual;
} settings[] = {
    {"seed", "--seed ", 1},
    {"repetitions", "--benchmark_repetitions=", 1},
    {"processes", "--processes ", 1},
    {"call_limit_s", "--call-limit ", 120},
    {"deadline_s", "--deadline ", 0},
    {"memory_bytes", "--memory ", 0},
    {"device", "--device ", 0},
    {"kernels", "--kernels", 0},
    {"tune", "--tune", 0},
    {"tuned", "--tuned ", 0},
    {"plugins", "--plugin ", 0},
};

/* value: a number, true, a text, or an array of texts. */
static void add_flag(FILE *out, const struct setting *setting, const json_t *value)
{
    bool unusual = json_is_number(value) && json_number_value(value) != setting->usual;
    if (json_is_true(value))
        fprintf(out, " %s", setting->flag);
    else if (unusual && json_is_integer(value)) /* a seed has more digits than a double keeps */
        fprintf(out, " %s%lld", setting->flag, (long long)json_integer_value(value));
    else if (unusual)
        fprintf(out, " %s%.17g", setting->flag, json_number_value(value));
    if (json_is_string(value)) {
        size_t size = 4 * json_string_length(value) + 4;
        char *word = lb_needed(malloc(size));
        lb_shell_word(json_string_value(value), word, size);
        fprintf(out, " %s%s", setting->flag, word);
        free(word);
    }
    for (size_t i = 0; i < json_array_size(value); i++)
        add_flag(out, setting, json_array_get(value, i));
}

/* The flags that repeat a case as the run measured it; null where no sweep of one case does:
 * another program made the run, --ab measured it in turn, or sizes come from a file. */
static json_t *repeat_json(const json_t *header)
{
    char *text = NULL;
    size_t size = 0;
    const json_t *sampler = json_object_get(header, "sampler");
    double loss_scale = json_number_value(json_object_get(header, "loss_scale"));
    bool dynamic = json_is_true(json_object_get(header, "loss_scale_dynamic"));
    if (!sampler || json_object_get(header, "interleaved") || json_object_get(header, "weights") ||
        json_object_get(header, "inputs"))
        return json_null();
    FILE *out = lb_needed(open_memstream(&text, &size));
    fprintf(out, " --case-time %g", json_number_value(json_object_get(sampler, "max_ns")) / 1e9);
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
        add_flag(out, &settings[i], json_object_get(header, settings[i].key));
    if (dynamic || (loss_scale > 0 && loss_scale != 1))
        fprintf(out, " --loss-scale %s%.17g", dynamic ? "dynamic:" : "", loss_scale);
    fclose(out);
    json_t *flags = json_string(text);
    free(text);
    return flags;
}

static json_t *run_json(const struct page *page)
{
    const struct lb_run *run = page->grouped->run;
    const json_t *header = run->header, *seed = json_object_get(header, "seed");
    json_t *machines = json_array(), *environment;
    char machine[1024], node[256];
    char seed_text[32]; /* a text, because JavaScript's numbers are doubles */
    size_t i, several = json_array_size(run->environments) > 1;
    if (!several)
        json_array_append_new(machines,
                              json_pack("[s, O?]", "", json_object_get(header, "environment")));
    json_array_foreach(run->environments, i, environment)
    {
        lb_environment_node(environment, node, sizeof(node));
        if (several)
            json_array_append_new(machines, json_pack("[s, O]", node, environment));
    }
    lb_run_machine_line(run, machine, sizeof(machine));
    snprintf(seed_text, sizeof(seed_text), "%lld", (long long)json_integer_value(seed));
    return json_pack(
        "{s:s, s:s, s:s, s:b, s:b, s:s, s:I, s:i, s:O?, s:s?, s:O?, s:o, s:o}", "path", page->path,
        "machine", machine, "started", lb_json_text(header, "started", ""), "finished",
        run->finished, "interrupted", run->interrupted, "doubt", run->doubt, "planned",
        (json_int_t)json_array_size(json_object_get(header, "cases")), "sessions",
        (int)json_array_size(run->resumes) + 1, "command", json_object_get(header, "command"),
        "seed", seed ? seed_text : NULL, "sampler", json_object_get(header, "sampler"), "machines",
        machines, "repeat", repeat_json(header));
}

/* Texts that repeat are stored once, in "texts"; a case refers to them by index. plots/report.js
 * explains each key. NULL with the reason in err. */
static json_t *page_data(const struct page *page, struct lb_error *err)
{
    const struct lb_grouped_run *grouped = page->grouped;
    json_t *comparisons = json_array();
    size_t count;
    struct lb_compare_options how = lb_compare_defaults();
    how.now_name = page->path;
    how.judgement.margin = page->options->margin;
    for (size_t i = 0; i + 1 < page->options->word_count; i++) { /* with earlier runs */
        struct lb_run_comparison comparison;
        how.base_name = page->options->words[i];
        if (lb_compare_runs(&page->runs[i], grouped->run, &how, &comparison, err) != LB_OK) {
            json_decref(comparisons);
            return NULL;
        }
        json_array_append_new(comparisons, lb_report_json(&comparison));
        lb_run_comparison_free(&comparison);
    }
    json_t *verdicts = json_array(), *all_series = json_array(), *price_texts = json_array();
    json_t *texts = json_object();
    for (int v = 0; v < LB_VERDICT_COUNT; v++)
        json_array_append_new(verdicts, json_pack("[s, b]", lb_verdict_name((enum lb_verdict)v),
                                                  lb_verdict_is_failure((enum lb_verdict)v)));
    for (size_t i = 0; i < grouped->series_count; i++) {
        const struct lb_series *series = &grouped->series[i];
        json_array_append_new(all_series, json_pack("[s, i, i, i]", series->name, series->color,
                                                    series->mark, series->dash));
    }
    struct lb_price *prices = lb_prices(grouped->run, NULL, &count);
    for (size_t i = 0; i < count; i++)
        json_array_append_new(price_texts, json_string(prices[i].text));
    free(prices);
    bool has_baseline = grouped->baseline_series < grouped->series_count;
    json_t *problems = problems_json(grouped, texts);
    return json_pack("{s:o, s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "run", run_json(page),
                     "baseline_name", grouped->baseline, "baseline",
                     has_baseline ? (int)grouped->baseline_series : -1, "series", all_series,
                     "settings", settings_json(grouped), "verdicts", verdicts, "problems", problems,
                     "texts", texts, "prices", price_texts, "comparisons", comparisons);
}

/* A whole file of the page's folder, which the caller frees; NULL with the reason in err. */
static char *read_file(const struct page *page, const char *name, struct lb_error *err)
{
    char path[4400], *text = NULL;
    size_t size = 0;
    snprintf(path, sizeof(path), "%s/%s", page->folder, name);
    FILE *in = fopen(path, "r");
    if (!in || getdelim(&text, &size, '\0', in) < 0) {
        lb_fail(err, LB_IO, "%s: %s", path, strerror(errno));
        free(text);
        text = NULL;
    }
    if (in)
        fclose(in);
    return text;
}

/* Writes JSON that is safe inside <script>: no character in it is markup. */
static enum lb_status write_data(FILE *out, const struct page *page, struct lb_error *err)
{
    json_t *data = page_data(page, err);
    if (!data)
        return LB_FAILED;
    char *text = json_dumps(data, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9));
    json_decref(data);
    for (const char *at = text; *at; at++) {
        if (strchr("<>&", *at)) /* in strings alone */
            fprintf(out, "\\u%04x", *at);
        else
            fputc(*at, out);
    }
    free(text);
    return LB_OK;
}

static enum lb_status write_part(FILE *out, const struct page *page, const char *name,
                                 struct lb_error *err)
{
    char *text = NULL;
    size_t size = 0;
    if (strcmp(name, "data") == 0)
        return write_data(out, page, err);
    if (strchr(name, '.')) {
        text = read_file(page, name, err);
        if (!text)
            return LB_IO;
        fputs(text, out);
    } else if (strcmp(name, "table") == 0) { /* of the terminal, for readers without JavaScript */
        FILE *memory = lb_needed(open_memstream(&text, &size));
        lb_table_print(memory, page->grouped);
        fclose(memory);
        for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
            lb_xml_text(line, out);
            fputc('\n', out);
        }
    } else if (strcmp(name, "program") == 0)
        fprintf(out, "bench-lstm %s (%s)", lb_version(), lb_commit());
    else if (strcmp(name, "path") == 0)
        lb_xml_text(page->path, out);
    else
        return lb_fail(err, LB_INVALID, "the page's template names an unknown part {{%s}}", name);
    free(text);
    return LB_OK;
}

/* lb_file_writer: fills the template, in which {{name}} stands for a part. */
static enum lb_status write_page(FILE *out, const void *user, struct lb_error *err)
{
    const struct page *page = user;
    enum lb_status st = LB_OK;
    char *template = read_file(page, "report.html", err), *at = template;
    if (!template)
        return LB_IO;
    for (char *open; (open = strstr(at, "{{"));) {
        char *name = open + 2, *close = strstr(name, "}}");
        if (!close)
            LB_TRY(lb_fail(err, LB_INVALID, "the page's template has a {{ without }}"));
        fwrite(at, 1, (size_t)(open - at), out);
        *close = '\0';
        LB_TRY(write_part(out, page, name, err));
        at = close + 2;
    }
    fputs(at, out);
    if (*page->stop)
        st = lb_fail(err, LB_INTERRUPTED, "interrupted before the page was written");
done:
    free(template);
    return st;
}

enum lb_status lb_html_report(const struct lb_options *options, const volatile sig_atomic_t *stop,
                              struct lb_error *err)
{
    enum lb_status st = LB_OK;
    size_t last = options->word_count - 1;
    struct lb_grouped_run grouped = {0};
    struct lb_run *runs = lb_needed(calloc(last + 1, sizeof(*runs)));
    for (size_t i = 0; i <= last; i++) {
        LB_TRY(lb_run_read_by(options->words[i], options->by, &runs[i], err));
        lb_warn(runs[i].doubt);
        if (*stop)
            LB_TRY(lb_fail(err, LB_INTERRUPTED, "interrupted before the page was written"));
    }
    lb_group_run(&runs[last], options->baseline, &grouped);
    struct page page = {.grouped = &grouped, .runs = runs, .options = options, .stop = stop};
    snprintf(page.path, sizeof(page.path), "%s", options->words[last]);
    lb_clean_text(page.path);
    LB_TRY(lb_share_path("plots", page.folder, sizeof(page.folder), err));
    LB_TRY(lb_write_file_atomically(options->out, write_page, &page, err));
done:
    lb_grouped_run_free(&grouped);
    for (size_t i = 0; i <= last; i++)
        lb_run_free(&runs[i]);
    free(runs);
    return st;
}
