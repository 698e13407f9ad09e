/* The run's records as one JSON object for plots/report.js, which explains each key where it reads
 * it. Texts that repeat are stored once, in "texts"; a case refers to them by index. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "html/view.h"
#include "html/writer.h"
#include "support/terminal.h"

/* Texts, each with its index in the order of first use. */
struct texts {
    json_t *index; /* object: text to index */
    const char **items;
    size_t count, room;
    bool failed;
};

/* The index of the text, which is added if it is new; -1 for "" and when memory runs out. */
static long text_index(struct texts *texts, const char *text)
{
    const json_t *known = json_object_get(texts->index, text);
    if (!text[0])
        return -1;
    if (known)
        return (long)json_integer_value(known);
    if (texts->count == texts->room) {
        size_t room = texts->room > 0 ? 2 * texts->room : 64;
        const char **grown = realloc(texts->items, room * sizeof(*grown));
        if (grown) {
            texts->items = grown;
            texts->room = room;
        }
    }
    if (texts->count == texts->room ||
        json_object_set_new(texts->index, text, json_integer((json_int_t)texts->count)) != 0) {
        texts->failed = true;
        return -1;
    }
    /* The object's key lives as long as the object. */
    texts->items[texts->count] = json_object_iter_key(json_object_iter_at(texts->index, text));
    return (long)texts->count++;
}

static void write_series(FILE *out, const struct lb_series_list *list)
{
    fputs("\"series\":[", out);
    for (size_t i = 0; i < list->count; i++) {
        const struct lb_series *series = &list->items[i];
        fputs(i ? ",[" : "[", out);
        lb_html_json_string(out, series->name);
        fprintf(out, ",%d,%d,%d]", series->color, series->mark, series->dash);
    }
    fputs("],\n", out);
}

/* Everything of a setting but dtype and pass: "tf32 L2 cold", and the device where devices are
 * apart. */
static void format_others(const struct lb_row *row, char text[256])
{
    const struct lb_case *c = &row->c;
    const char *label = row->beside ? NULL : row->label;
    const struct lb_problem *p = &c->problem;
    char layers[32] = "", cell[64] = "";
    if (p->layers > 1)
        snprintf(layers, sizeof(layers), " L%" PRId64, p->layers);
    if (p->cell == LB_CELL_PROJECTION)
        snprintf(cell, sizeof(cell), " projection to %" PRId32, p->projection);
    else if (p->cell != LB_CELL_STANDARD)
        snprintf(cell, sizeof(cell), " %s", lb_cell_name((enum lb_cell_kind)p->cell));
    snprintf(text, 256, "%s%s%s%s%s%s%s%s%s%s%s", p->math != LB_IEEE ? " " : "",
             p->math != LB_IEEE ? lb_math_name(p->math) : "", layers, cell,
             p->directions > 1 ? " bidirectional" : "", p->ragged ? " ragged" : "",
             p->act == LB_ACT_RELU ? " relu" : "", c->cache == LB_COLD ? " cold" : "",
             c->timing == LB_BATCHED ? " batched" : "", label ? " " : "", label ? label : "");
    memmove(text, text + (text[0] == ' '), strlen(text + (text[0] == ' ')) + 1);
}

/* The settings are the pages of the groups, which are sorted by page. */
static void write_settings(FILE *out, const struct lb_groups *groups)
{
    const char *last = NULL;
    fputs("\"settings\":[", out);
    for (size_t i = 0; i < groups->count; i++) {
        const struct lb_group *group = &groups->items[i];
        const struct lb_row *row = group->candidates[0].row;
        char heading[256], others[256];
        if (last && strcmp(last, group->page) == 0)
            continue;
        lb_page_heading(row, heading, sizeof(heading));
        format_others(row, others);
        fprintf(out, "%s[\"%s\",\"%s\",\"%s\",\"%s\"]", last ? "," : "", heading,
                lb_dtype_name(row->c.problem.dtype), lb_pass_name(row->c.problem.pass), others);
        last = group->page;
    }
    fputs("],\n", out);
}

static void write_verdicts(FILE *out)
{
    fputs("\"verdicts\":[", out);
    for (int v = 0; v < LB_VERDICT_COUNT; v++)
        fprintf(out, "%s[\"%s\",%d]", v ? "," : "", lb_verdict_name((enum lb_verdict)v),
                lb_verdict_is_failure((enum lb_verdict)v));
    fputs("],\n", out);
}

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

/* "ran 1 persistent kernel; 1 × name, 12 µs", or why the kernels are unknown where they were
 * traced. Kernels that do not fit are counted: a text that ended within a character could not be
 * stored. */
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
        size_t used = strlen(text);
        lb_format_ns(kernel->total_ns, ns);
        snprintf(one, sizeof(one), "; %" PRId64 " × %s, %s", kernel->count, kernel->name, ns);
        if (used + strlen(one) + COUNT_ROOM >= size) {
            snprintf(text + used, size - used, "; and %zu more", kernels->count - i);
            return;
        }
        snprintf(text + used, size - used, "%s", one);
    }
}

static void write_times(FILE *out, const struct lb_row *row, struct texts *texts)
{
    char strip[42], kernels[2048];
    double lo, hi;
    if (!lb_row_bounds(row, &lo, &hi))
        lo = hi = (double)NAN;
    format_strip(row, strip);
    format_kernels(row, kernels, sizeof(kernels));
    const double numbers[] = {row->median_ns,
                              lo,
                              hi,
                              row->min_ns,
                              row->p5_ns,
                              row->p95_ns,
                              row->err_norm,
                              row->floor_ns,
                              row->flops,
                              row->bytes,
                              row->peak_bytes,
                              row->prepare_ns};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        fputc(',', out);
        lb_html_json_number(out, numbers[i]);
    }
    fprintf(out, ",%d,%zu,%zu,%g,%ld,\"%s\",%ld,", lb_row_has_interval(row), row->samples,
            row->block_count, isfinite(row->calls_per_sample) ? row->calls_per_sample : 1,
            text_index(texts, lb_stop_reason_name(row->stop_reason)), strip,
            text_index(texts, kernels));
    lb_html_json_number(out, row->tolerance_used);
    fputc(',', out);
    lb_html_json_number(out, row->update_ns);
}

/* Writes a case as an array; one without a time ends after its texts. */
static void write_case(FILE *out, const struct lb_candidate *it, size_t setting,
                       struct texts *texts)
{
    const struct lb_row *row = it->row;
    const struct lb_problem *p = &row->c.problem;
    char id[LB_CASE_ID_SIZE], sizes[128];
    lb_case_print(&row->c, id);
    snprintf(sizes, sizeof(sizes), "/T%" PRId64 "_B%" PRId64 "_I%" PRId64 "_H%" PRId64, p->seq_len,
             p->batch, p->input, p->hidden);
    const char *tail = strstr(id, sizes); /* what follows the sizes: "/f32/infer" */
    tail = tail ? tail + strlen(sizes) : "";
    fprintf(out, "[%zu,%zu,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%d,%ld,%ld,%ld,%ld",
            it->series, setting, p->seq_len, p->batch, p->input, p->hidden, (int)row->verdict,
            text_index(texts, tail), text_index(texts, row->reason),
            text_index(texts, row->description), text_index(texts, row->warning));
    if (lb_row_is_timed(row))
        write_times(out, row, texts);
    fputc(']', out);
}

static void write_cases(FILE *out, const struct lb_groups *groups, struct texts *texts)
{
    size_t setting = 0;
    const char *separator = "\n";
    fputs("\"cases\":[", out);
    for (size_t i = 0; i < groups->count; i++) {
        const struct lb_group *group = &groups->items[i];
        setting += i > 0 && strcmp(group->page, groups->items[i - 1].page) != 0;
        for (size_t k = 0; k < group->count; k++) {
            fputs(separator, out);
            write_case(out, &group->candidates[k], setting, texts);
            separator = ",\n";
        }
    }
    fputs("],\n", out);
}

/* Appends the text to a growing command line as one word. */
static void add_word(FILE *out, const char *text)
{
    size_t size = 4 * strlen(text) + 3;
    char *word = malloc(size);
    if (!word)
        return;
    lb_shell_word(text, word, size);
    fputs(word, out);
    free(word);
}

/* A key of a run's header, the flag that sets it, and the value that needs no flag. */
static const struct setting {
    const char *key, *flag;
    double usual;
} settings[] = {
    {"seed", " --seed ", 1},           {"repetitions", " --benchmark_repetitions=", 1},
    {"processes", " --processes ", 1}, {"call_limit_s", " --call-limit ", 120},
    {"memory_bytes", " --memory ", 0}, {"device", " --device ", 0},
};

/* The flags that repeat a case as the run measured it, by the run's header. */
static void format_flags(FILE *out, const json_t *header)
{
    const json_t *plugins = json_object_get(header, "plugins");
    const json_t *sampler = json_object_get(header, "sampler");
    const char *tuned = json_string_value(json_object_get(header, "tuned"));
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
    if (tuned) {
        fputs(" --tuned ", out);
        add_word(out, tuned);
    }
    for (size_t i = 0; i < json_array_size(plugins); i++) {
        const char *path = json_string_value(json_array_get(plugins, i));
        fputs(" --plugin ", out);
        add_word(out, path ? path : "");
    }
}

/* Writes the flags as a string, or null where no sweep repeats the run: another program made it, or
 * --ab measured it beside another implementation. */
static enum lb_status write_flags(FILE *out, const json_t *header, struct lb_error *err)
{
    char *text = NULL;
    size_t size = 0;
    fputs("\"repeat\":", out);
    if (!json_object_get(header, "sampler") || json_object_get(header, "interleaved")) {
        fputs("null,\n", out);
        return LB_OK;
    }
    FILE *memory = open_memstream(&text, &size);
    if (!memory)
        return lb_fail(err, LB_OOM, "out of memory for the page");
    format_flags(memory, header);
    if (fclose(memory) == 0)
        lb_html_json_string(out, text);
    free(text);
    fputs(",\n", out);
    return LB_OK;
}

enum lb_status lb_html_data(FILE *out, const void *user, struct lb_error *err)
{
    const struct lb_html_view *view = user;
    enum lb_status st = LB_OK;
    struct texts texts = {.index = json_object()};
    bool has_baseline = view->baseline_series < view->series.count;
    fprintf(out, "{\"baseline\":%ld,\n", has_baseline ? (long)view->baseline_series : -1L);
    LB_TRY(write_flags(out, view->run->header, err));
    write_series(out, &view->series);
    write_settings(out, &view->groups);
    write_verdicts(out);
    write_cases(out, &view->groups, &texts);
    fputs("\"texts\":[", out);
    for (size_t i = 0; i < texts.count; i++) {
        fputs(i ? ",\n" : "", out);
        lb_html_json_string(out, texts.items[i]);
    }
    fputs("]}\n", out);
    if (texts.failed || !texts.index)
        st = lb_fail(err, LB_OOM, "out of memory for the page's texts");
done:
    json_decref(texts.index);
    free(texts.items);
    return st;
}
