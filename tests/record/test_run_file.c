/* The file of a run: what survives a kill, a full disk or a second writer, and which files are
 * refused. */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/run_file.h"
#include "tests/helpers/scratch_folder.h"
#include "tests/helpers/synthetic_run.h"
#include "tests/helpers/test.h"

static char folder[512], path[528];
static json_t *details;

static int begin(void **state)
{
    if (scratch_setup(state) != 0)
        return -1;
    snprintf(folder, sizeof(folder), "%s", scratch_path("run"));
    snprintf(path, sizeof(path), "%s/run.jsonl", folder);
    details = json_pack("{s:{s:s}, s:[s], s:i}", "environment", "host", "made-up", "command",
                        "bench-lstm", "seed", 1);
    return 0;
}

static int end(void **state)
{
    json_decref(details);
    return scratch_teardown(state);
}

static void append(struct lb_run_file *file, const char *text, double median_ns)
{
    struct lb_row row = synthetic_row(text, LB_VERDICT_OK, median_ns, 1, 6);
    struct lb_error err = {""};
    if (lb_run_append(file, &row, &err) != LB_OK)
        fail_msg("%s", err.text);
    lb_row_free(&row);
}

/* A run of two rows and, if asked for, a footer. */
static void write_run(bool footer)
{
    struct lb_run_file file = {0};
    assert_int_equal(lb_run_create(folder, details, &file, NULL), LB_OK);
    append(&file, "cpu_ref/T2_B1_H3/f32/infer", 1000);
    append(&file, "cpu_ref/T4_B1_H3/f32/infer", 2000);
    if (footer)
        assert_int_equal(lb_run_finish(&file, true, NULL), LB_OK);
    lb_run_close(&file);
}

/* The run, which must have so many rows; the caller frees it. */
static struct lb_run read_rows(size_t count)
{
    struct lb_run run;
    assert_int_equal(lb_run_read(path, &run, NULL), LB_OK);
    assert_int_equal(run.count, count);
    return run;
}

TEST_WITH(run_reads_back_from_file_and_folder, begin, end)
{
    write_run(true);
    const char *const paths[] = {path, folder};
    for (int i = 0; i < 2; i++) {
        struct lb_run run;
        assert_int_equal(lb_run_read(paths[i], &run, NULL), LB_OK);
        assert_int_equal(run.count, 2);
        assert_int_equal(run.rows[1].c.problem.seq_len, 4);
        assert_true(run.finished && run.interrupted && !run.torn);
        assert_int_equal(json_integer_value(json_object_get(run.header, "seed")), 1);
        assert_string_equal(json_string_value(json_object_get(run.header, "kind")), "header");
        lb_run_free(&run);
    }
}

TEST_WITH(folder_of_a_run_is_named_by_itself_or_by_its_file, begin, end)
{
    char found[512];
    write_run(true);
    lb_run_folder(path, found, sizeof(found));
    assert_string_equal(found, folder);
    snprintf(folder, sizeof(folder), "%s", scratch_path("named.jsonl"));
    write_run(true);
    lb_run_folder(folder, found, sizeof(found));
    assert_string_equal(found, folder);
}

TEST_WITH(second_run_never_overwrites_the_first, begin, end)
{
    struct lb_run_file file = {0};
    struct lb_error err = {""};
    size_t before, after;
    write_run(true);
    char *was = scratch_read(path, &before);
    assert_int_equal(lb_run_create(folder, details, &file, &err), LB_INVALID);
    assert_non_null(strstr(err.text, "--resume"));
    char *is = scratch_read(path, &after);
    assert_int_equal(before, after);
    assert_memory_equal(was, is, before);
    free(was);
    free(is);
}

/* Killed at any byte of its last line, a run keeps the lines before, and goes on as if the line had
 * never been begun. */
TEST_WITH(torn_tail_is_cut_at_every_offset, begin, end)
{
    size_t size;
    write_run(false);
    char *text = scratch_read(path, &size);
    size_t last = (size_t)(strrchr(text, '{') - text);
    while (text[last - 1] != '\n')
        last--;
    for (size_t kept = last; kept < size; kept++) {
        struct lb_run_file file = {0};
        struct lb_run run;
        scratch_write_bytes("run/run.jsonl", text, kept);
        run = read_rows(1);
        assert_int_equal(run.torn, kept > last);
        assert_false(run.finished);
        lb_run_free(&run);

        assert_int_equal(lb_run_open(folder, &file, &run, NULL), LB_OK);
        assert_int_equal(run.count, 1);
        assert_int_equal(lb_run_resume(&file, details, NULL), LB_OK);
        lb_run_free(&run);
        append(&file, "cpu_ref/T4_B1_H3/f32/infer", 2000);
        assert_int_equal(lb_run_finish(&file, false, NULL), LB_OK);
        lb_run_close(&file);
        run = read_rows(2);
        assert_int_equal(json_array_size(run.resumes), 1);
        assert_true(run.finished && !run.interrupted && !run.torn);
        lb_run_free(&run);
    }
    free(text);
}

/* A run that was killed while it wrote its header is empty, and can be created again. */
TEST_WITH(torn_header_is_no_run, begin, end)
{
    size_t size;
    write_run(false);
    char *text = scratch_read(path, &size), long_header[100000];
    size_t header = strcspn(text, "\n");
    snprintf(long_header, sizeof(long_header), "{\"kind\":\"header\",\"seed\":\"%090000d", 0);
    for (size_t kept = 0; kept <= header + 1; kept++) {
        struct lb_run_file file = {0};
        struct lb_run run;
        scratch_write_bytes("run/run.jsonl", kept <= header ? text : long_header,
                            kept <= header ? kept : strlen(long_header));
        assert_int_equal(lb_run_read(path, &run, NULL), LB_INVALID);
        assert_int_equal(lb_run_create(folder, details, &file, NULL), LB_OK);
        lb_run_close(&file);
        assert_int_equal(lb_run_read(path, &run, NULL), LB_OK);
        lb_run_free(&run);
    }
    free(text);
}

TEST_WITH(footer_in_the_middle_ends_a_session_only, begin, end)
{
    struct lb_run_file file = {0};
    struct lb_run run;
    write_run(true);
    assert_int_equal(lb_run_open(folder, &file, &run, NULL), LB_OK);
    assert_int_equal(lb_run_resume(&file, details, NULL), LB_OK);
    assert_true(run.finished && run.interrupted);
    assert_int_equal(file.rows, 2);
    lb_run_free(&run);
    append(&file, "cpu_ref/T8_B1_H3/f32/infer", 3000);
    lb_run_close(&file);
    run = read_rows(3);
    assert_false(run.finished || run.interrupted);
    lb_run_free(&run);
}

/* Opening a run does not change it, since the caller may still decide not to resume. */
TEST_WITH(a_run_that_is_only_opened_stays_as_it_is, begin, end)
{
    static const char *const tails[] = {"", "{\"kind\":\"ro"};
    for (int i = 0; i < 2; i++) {
        struct lb_run_file file = {0};
        struct lb_run run;
        size_t before, after;
        char joined[1 << 16];
        write_run(true);
        char *text = scratch_read(path, NULL);
        before = (size_t)snprintf(joined, sizeof(joined), "%s%s", text, tails[i]);
        scratch_write("run/run.jsonl", joined);
        assert_int_equal(lb_run_open(folder, &file, &run, NULL), LB_OK);
        lb_run_free(&run);
        lb_run_close(&file);
        char *is = scratch_read(path, &after);
        assert_int_equal(before, after);
        assert_memory_equal(joined, is, before);
        free(text);
        free(is);
        unlink(path);
    }
}

TEST_WITH(later_row_of_a_case_holds, begin, end)
{
    struct lb_run_file file = {0};
    struct lb_run run;
    assert_int_equal(lb_run_create(folder, details, &file, NULL), LB_OK);
    append(&file, "cpu_ref/T2_B1_H3/f32/infer", 1000);
    append(&file, "cpu_ref/T4_B1_H3/f32/infer", 2000);
    append(&file, "cpu_ref/T2_B1_I3_H3/f32/infer", 9000); /* the first case in a longer form */
    lb_run_close(&file);
    run = read_rows(2);
    assert_int_equal(run.rows[0].c.problem.seq_len, 2);
    assert_true(run.rows[0].median_ns > 8000);
    lb_run_free(&run);
}

TEST_WITH(two_writers_cannot_share_a_folder, begin, end)
{
    struct lb_run_file first = {0}, second = {0};
    struct lb_run run;
    struct lb_error err = {""};
    assert_int_equal(lb_run_create(folder, details, &first, NULL), LB_OK);
    assert_int_equal(lb_run_open(folder, &second, &run, &err), LB_INVALID);
    assert_non_null(strstr(err.text, "another process"));
    assert_int_equal(lb_run_create(folder, details, &second, &err), LB_INVALID);
    lb_run_close(&first);
    assert_int_equal(lb_run_open(folder, &second, &run, &err), LB_OK);
    lb_run_free(&run);
    lb_run_close(&second);
}

/* A file size limit acts like a full disk: a short write, then a failure. */
TEST_WITH(full_disk_leaves_whole_lines, begin, end)
{
    struct lb_run_file file = {0};
    struct lb_run run;
    struct lb_error err = {""};
    struct rlimit usual, limit;
    struct lb_row row = synthetic_row("cpu_ref/T4_B1_H3/f32/infer", LB_VERDICT_OK, 2000, 1, 6);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &usual), 0);
    assert_int_equal(lb_run_create(folder, details, &file, NULL), LB_OK);
    append(&file, "cpu_ref/T2_B1_H3/f32/infer", 1000);
    for (rlim_t room = 0; room < 900; room += 100) {
        limit = (struct rlimit){(rlim_t)file.size + room, usual.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        enum lb_status st = lb_run_append(&file, &row, &err);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &usual), 0);
        assert_int_equal(st, LB_IO);
        assert_non_null(strstr(err.text, "run.jsonl: "));
        run = read_rows(1);
        assert_false(run.torn);
        lb_run_free(&run);
    }
    assert_int_equal(lb_run_append(&file, &row, &err), LB_OK); /* room again: the run goes on */
    lb_run_close(&file);
    run = read_rows(2);
    lb_run_free(&run);
    lb_row_free(&row);
}

TEST_WITH(missing_parents_of_a_folder_are_made, begin, end)
{
    struct lb_run_file file = {0};
    struct stat there;
    assert_int_equal(lb_run_create(scratch_path("a/b//c"), details, &file, NULL), LB_OK);
    assert_int_equal(stat(file.path, &there), 0);
    lb_run_close(&file);
}

/* Half of a run's data is missing, doubled or of another run: the run is read, and says so. */
TEST_WITH(doubtful_files_are_named, begin, end)
{
#define ROW(T, rest) \
    "{\"kind\":\"row\",\"case\":\"a/T" #T "_B1_I1_H1/f32/infer\",\"verdict\":\"ok\"" rest "}\n"
#define SAMPLES       ",\"samples_ns\":[1,2,3]"
#define FOOTER(count) "{\"kind\":\"footer\",\"rows\":" #count ",\"interrupted\":false}\n"
#define RESUME        "{\"kind\":\"resume\"}\n"
#define HEADER        "{\"kind\":\"header\",\"schema\":2}\n"
#define CASE          "\"a/T1_B1_I1_H1/f32/infer\""
    static const struct {
        const char *text, *words; /* that the doubt must have; "": the run is sound */
    } files[] = {
        {HEADER ROW(1, SAMPLES) FOOTER(1), ""},
        {HEADER ROW(1, SAMPLES), ""}, /* killed */
        {HEADER ROW(1, SAMPLES) FOOTER(3), "its footer counts and that are missing: 2"},
        {HEADER ROW(1, SAMPLES) FOOTER(2) RESUME ROW(2, SAMPLES) FOOTER(2), ""},
        {HEADER ROW(1, SAMPLES) ROW(2, SAMPLES) ROW(1, SAMPLES) FOOTER(2),
         "repeat a case of the same session: 1"},
        {HEADER ROW(1, SAMPLES) FOOTER(1) RESUME ROW(1, SAMPLES) FOOTER(1), ""}, /* --retry */
        {HEADER ROW(1, SAMPLES) RESUME ROW(1, SAMPLES) ROW(1, SAMPLES), "same session: 1"},
        {HEADER ROW(1, SAMPLES) FOOTER(1) HEADER ROW(1, SAMPLES) FOOTER(1), "runs in one file: 2"},
        {HEADER ROW(1, "") ROW(2, SAMPLES) FOOTER(2), "ok without a sample: 1"},
        {"{\"kind\":\"header\",\"schema\":2,\"cases\":[" CASE "," CASE "]}\n" ROW(1, SAMPLES)
             FOOTER(1),
         "run.jsonl: cases of its plan that have no row: 1"},
        {HEADER ROW(1, "") FOOTER(2), "missing: 1; rows that are ok without a sample: 1"},
    };
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        struct lb_run run;
        scratch_write("run/run.jsonl", files[i].text);
        assert_int_equal(lb_run_read(path, &run, NULL), LB_OK);
        if (!strstr(run.doubt, files[i].words) || !files[i].words[0] != !run.doubt[0] ||
            (run.doubt[0] && strncmp(run.doubt, path, strlen(path)) != 0))
            fail_msg("'%s' should say '%s'", run.doubt, files[i].words);
        lb_run_free(&run);
    }
}

/* Rows that nobody would find are not written: the file was deleted, moved away or replaced. */
TEST_WITH(a_file_that_vanishes_is_noticed, begin, end)
{
    struct lb_row row = synthetic_row("cpu_ref/T4_B1_H3/f32/infer", LB_VERDICT_OK, 2000, 1, 6);
    for (int i = 0; i < 3; i++) {
        struct lb_run_file file = {0};
        struct lb_error err = {""};
        assert_int_equal(lb_run_create(folder, details, &file, NULL), LB_OK);
        assert_int_equal(lb_run_append(&file, &row, &err), LB_OK);
        if (i == 0)
            assert_int_equal(unlink(path), 0);
        else
            assert_int_equal(rename(folder, scratch_path(i == 1 ? "moved" : "again")), 0);
        if (i == 2)
            scratch_write("run/run.jsonl", "");
        assert_int_equal(lb_run_append(&file, &row, &err), LB_IO);
        assert_non_null(strstr(err.text, i < 2 ? "deleted or moved" : "replaced"));
        lb_run_close(&file);
    }
    lb_row_free(&row);
}

TEST_WITH(foreign_files_are_refused_with_line_and_reason, begin, end)
{
    static const struct {
        const char *text, *words; /* that the message must have */
    } files[] = {
        {"", "no complete line"},
        {"hello\n", ":1: not JSON"},
        {"{\"a\":1}\n", ":1: not a line of a run: the first must be the header"},
        {"[1,2]\n", ":1: not a line of a run"},
        {"{\"kind\":\"row\"}\n", ":1: not a line of a run: the first must be the header"},
        {"{\"kind\":\"header\"}\n", ":1: the header has no schema version"},
        {HEADER "{\"kind\":\"row\"}\n", ":2: case"},
        {HEADER "{}\n", ":2: not a line of a run: it has no kind"},
        {HEADER "{\"kind\":\"picture\"}\n", ":2: kind 'picture'"},
        {HEADER "\n", ":2: not JSON"},
        {HEADER "{\"kind\":\"row\",\"case\":\"a/T1_B1_H1/f32/infer\",\"verdict\":\"ok\","
                "\"err_norm\":NaN}\n",
         ":2: not JSON"},
        {HEADER "{\"kind\":\"row\",\"case\":\"a/T1_B1_H1/f32/infer\",\"verdict\":\"good\"}\n",
         ":2: verdict"},
    };
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        struct lb_run run;
        struct lb_run_file file = {0};
        struct lb_error err = {""};
        scratch_write("run/run.jsonl", files[i].text);
        assert_int_equal(lb_run_read(path, &run, &err), LB_INVALID);
        if (!strstr(err.text, files[i].words) || !strstr(err.text, path) || strchr(err.text, '\n'))
            fail_msg("'%s' should say '%s'", err.text, files[i].words);
        assert_int_equal(lb_run_open(folder, &file, &run, &err), LB_INVALID);
    }
    struct lb_run run;
    assert_int_equal(lb_run_read("/nonexistent/run.jsonl", &run, NULL), LB_IO);

    static const char older[] = "{\"kind\":\"header\",\"schema\":1}\n";
    struct lb_error err = {""};
    scratch_write("run/run.jsonl", older);
    assert_int_equal(lb_run_read(path, &run, &err), LB_INVALID);
    assert_true(run.other_schema);
    assert_non_null(strstr(err.text, "this run has schema version 1, and this program reads only"));
}
