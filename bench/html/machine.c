/* The machine, the versions and the settings of the run. */
#include <string.h>

#include "device/memory.h"
#include "html/view.h"
#include "html/writer.h"
#include "record/environment.h"

enum { MACHINES_MAX = 20 /* tables of machines; a sentence counts the others */ };

/* Words for keys of the record; other keys are shown as they are. */
static const struct {
    const char *key, *words;
} names[] = {
    {"host", "host"},
    {"cpu", "CPU"},
    {"cores", "CPUs"},
    {"threads", "CPUs online"},
    {"physical_cores", "cores that the run may use"},
    {"threads_per_core", "hardware threads per core"},
    {"l3_domains", "third-level caches"},
    {"l3_bytes", "size of each"},
    {"numa_nodes", "NUMA nodes"},
    {"from_system", "known from the system"},
    {"simd", "vector units"},
    {"governor", "frequency governor"},
    {"cache_bytes", "largest cache"},
    {"memory_bytes", "memory"},
    {"system", "system"},
    {"version", "bench-lstm"},
    {"commit", "commit"},
    {"dirty", "uncommitted changes"},
    {"compiler", "compiler"},
    {"flags", "compiler flags"},
    {"build_type", "build"},
    {"seed", "seed"},
    {"max_ns", "sampling time per case, at most"},
    {"min_samples", "samples per case, at least"},
    {"max_samples", "samples per case, at most"},
    {"precision", "target width of the interval"},
};

static const char *words_of(const char *key)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i].key, key) == 0)
            return names[i].words;
    return key;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

static void write_value(FILE *out, const char *key, const json_t *value)
{
    char text[32];
    if (json_is_null(value))
        fputs("<em>unknown</em>", out);
    else if (json_is_string(value))
        lb_html_text(out, json_string_value(value));
    else if (json_is_boolean(value))
        fputs(json_is_true(value) ? "yes" : "no", out);
    else if (ends_with(key, "_bytes")) {
        lb_format_bytes(json_number_value(value), text);
        fputs(text, out);
    } else if (ends_with(key, "_ns"))
        fprintf(out, "%g s", json_number_value(value) / 1e9);
    else if (strcmp(key, "precision") == 0)
        fprintf(out, "%g %% of the median", 100 * json_number_value(value));
    else
        fprintf(out, "%.12g", json_number_value(value));
}

static void write_line(FILE *out, const char *name, const char *key, const json_t *value)
{
    fputs("<tr><th scope=\"row\">", out);
    lb_html_text(out, name);
    fputs("</th><td>", out);
    write_value(out, key, value);
    fputs("</td></tr>\n", out);
}

/* Writes an object's keys as lines of a table, and those of objects inside it. Arrays are left
 * out. */
static void write_object(FILE *out, const json_t *object)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        if (json_is_object(value))
            write_object(out, value);
        else if (!json_is_array(value))
            write_line(out, words_of(key), key, value);
    }
}

static void write_command(FILE *out, const json_t *header)
{
    const json_t *command = json_object_get(header, "command");
    fputs("<tr><th scope=\"row\">command</th><td><code>", out);
    for (size_t i = 0; i < json_array_size(command); i++)
        lb_html_format(out, "%s%s", i ? " " : "", json_string_value(json_array_get(command, i)));
    fputs(json_array_size(command) > 0 ? "</code></td></tr>\n"
                                       : "</code><em>not recorded</em></td></tr>\n",
          out);
}

/* Writes whether the run is complete. */
static void write_state(FILE *out, const struct lb_run *run)
{
    size_t planned = json_array_size(json_object_get(run->header, "cases"));
    fputs("<tr><th scope=\"row\">state</th><td>", out);
    if (run->interrupted || !run->finished)
        fprintf(out, "<strong>incomplete</strong>: %s after %zu row%s",
                run->interrupted ? "stopped" : "cut off", run->count, run->count == 1 ? "" : "s");
    else
        fprintf(out, "complete, %zu row%s", run->count, run->count == 1 ? "" : "s");
    if (planned > run->count)
        fprintf(out, " of %zu planned; <code>--resume</code> continues it", planned);
    if (json_array_size(run->resumes) > 0)
        fprintf(out, "; in %zu sessions", json_array_size(run->resumes) + 1);
    fputs("</td></tr>\n", out);
}

/* Writes a table for each environment of the run, for the first MACHINES_MAX of them. */
static void write_machines(FILE *out, const struct lb_run *run)
{
    size_t count = json_array_size(run->environments);
    if (count < 2) {
        fputs("<table class=\"facts\"><caption>Machine</caption>\n", out);
        write_object(out, json_object_get(run->header, "environment"));
        fputs("</table>\n", out);
    }
    for (size_t i = 0; count > 1 && i < count && i < MACHINES_MAX; i++) {
        char node[256];
        const json_t *environment = json_array_get(run->environments, i);
        lb_environment_node(environment, node, sizeof(node));
        fputs("<table class=\"facts\"><caption>", out);
        lb_html_format(out, "Machine %zu of %zu: %s", i + 1, count, node);
        fputs("</caption>\n", out);
        write_object(out, environment);
        fputs("</table>\n", out);
    }
    if (count > MACHINES_MAX)
        fprintf(out, "<p>The other %zu machines are in the header of the record.</p>\n",
                count - MACHINES_MAX);
}

enum lb_status lb_html_machine(FILE *out, const void *user, struct lb_error *err)
{
    const struct lb_html_view *view = user;
    const json_t *header = view->run->header;
    (void)err;
    fputs("<div class=\"tables\">\n", out);
    write_machines(out, view->run);
    fputs("<table class=\"facts\"><caption>The run</caption>\n", out);
    fputs("<tr><th scope=\"row\">records</th><td>", out);
    lb_html_text(out, view->path);
    fputs("</td></tr>\n", out);
    write_line(out, "started", "", json_object_get(header, "started"));
    write_state(out, view->run);
    write_command(out, header);
    write_line(out, "seed", "seed", json_object_get(header, "seed"));
    write_object(out, json_object_get(header, "sampler"));
    fputs("<tr><th scope=\"row\">baseline of speed-ups</th><td>", out);
    lb_html_text(out, view->baseline[0] ? view->baseline : "none");
    if (view->baseline[0] && view->baseline_series == view->series.count)
        fputs(", which is not in this run", out);
    fputs("</td></tr>\n</table>\n</div>\n", out);
    return LB_OK;
}
