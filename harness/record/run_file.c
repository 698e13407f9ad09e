/* The file of a run. It is written in whole lines only, even when writing fails, and read back. */
#include "record/run_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "record/environment.h"

static json_t *now_json(void)
{
    char text[32];
    struct tm utc;
    time_t now = time(NULL);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    return json_string(text);
}

char *lb_run_path(const char *folder)
{
    size_t size = strlen(folder) + sizeof("/" LB_RUN_FILE_NAME);
    char *path = lb_needed(malloc(size));
    snprintf(path, size, "%s/%s", folder, LB_RUN_FILE_NAME);
    return path;
}

void lb_run_folder(const char *name, char *folder, size_t size)
{
    struct stat status;
    const char *slash = strrchr(name, '/'), *end = strrchr(name, '.');
    bool is_folder = stat(name, &status) == 0 && S_ISDIR(status.st_mode);
    if (is_folder || !end || end == name || strcmp(end, ".jsonl") != 0)
        snprintf(folder, size, "%s", name);
    else
        snprintf(folder, size, "%.*s", slash ? (int)(slash - name) : 1, slash ? name : ".");
}

/* Checks that the path still leads to this file. */
static enum lb_status check_present(const struct lb_run_file *file, struct lb_error *err)
{
    struct stat open_file, there;
    if (stat(file->path, &there) != 0)
        return lb_fail(err, LB_IO, "%s: it was deleted or moved while the run was written: %s",
                       file->path, strerror(errno));
    if (fstat(file->fd, &open_file) == 0 &&
        (open_file.st_ino != there.st_ino || open_file.st_dev != there.st_dev))
        return lb_fail(err, LB_IO, "%s: it was replaced by another file while the run was written",
                       file->path);
    return LB_OK;
}

/* Writes all of text or nothing: after a failure the file is cut back to its last whole line. */
static enum lb_status append_text(struct lb_run_file *file, const char *text, size_t length,
                                  struct lb_error *err)
{
    size_t written = 0;
    while (written < length) {
        /* A short write is followed by another one, which succeeds or gives the reason. */
        ssize_t n = write(file->fd, text + written, length - written);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            int reason = errno;
            if (written > 0 && ftruncate(file->fd, file->size) != 0)
                return lb_fail(err, LB_IO, "%s: %s; and cutting off the torn line failed: %s",
                               file->path, strerror(reason), strerror(errno));
            return lb_fail(err, LB_IO, "%s: %s", file->path, strerror(reason));
        }
        written += (size_t)n;
    }
    file->size += (off_t)length;
    return LB_OK;
}

/* Appends the object (NULL: it had text that is not UTF-8) as a line and drops its reference. */
static enum lb_status append_line(struct lb_run_file *file, json_t *object, struct lb_error *err)
{
    char *text = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    if (!text)
        return lb_fail(err, LB_FAILED, "%s: a line has text that is not UTF-8", file->path);
    size_t length = strlen(text);
    text[length] = '\n'; /* in the place of the terminator */
    enum lb_status st = append_text(file, text, length + 1, err);
    free(text);
    return st;
}

enum lb_status lb_run_append(struct lb_run_file *file, const struct lb_row *row,
                             struct lb_error *err)
{
    const char *key;
    void *next;
    LB_CHECK(check_present(file, err));
    json_t *line = lb_row_to_json(row), *value;
    /* The line of a skipped case has only the keys that identify it, because a time budget may skip
     * a hundred thousand cases. */
    if (row->verdict == LB_VERDICT_SKIPPED)
        json_object_foreach_safe(line, next, key, value)
        {
            const char *text = json_string_value(value);
            if (json_is_null(value) || (text && !text[0] && strcmp(key, "variant") != 0) ||
                (json_is_array(value) && json_array_size(value) == 0))
                json_object_del(line, key);
        }
    LB_CHECK(append_line(file, line, err));
    file->rows++;
    return LB_OK;
}

enum lb_status lb_run_append_canary(struct lb_run_file *file, const struct lb_row *row,
                                    const char *when, struct lb_error *err)
{
    json_t *object = lb_row_to_json(row);
    json_object_set_new(object, "kind", json_string("canary"));
    json_object_set_new(object, "when", json_string(when));
    return append_line(file, object, err);
}

enum lb_status lb_run_finish(struct lb_run_file *file, bool interrupted, struct lb_error *err)
{
    json_t *footer = json_pack("{s:s, s:o, s:I, s:b}", "kind", "footer", "finished", now_json(),
                               "rows", (json_int_t)file->rows, "interrupted", interrupted);
    return append_line(file, footer, err);
}

/* For the reason in errno. */
static enum lb_status cannot_open(const char *path, struct lb_error *err)
{
    bool missing = errno == ENOENT || errno == ENOTDIR;
    return lb_fail(err, LB_IO, "%s: %s%s", path, strerror(errno),
                   missing ? "; a run is a folder that --sweep has written" : "");
}

static enum lb_status open_locked(const char *folder, int flags, struct lb_run_file *file,
                                  struct lb_error *err)
{
    *file = (struct lb_run_file){.path = lb_run_path(folder), .fd = -1};
    file->fd = open(file->path, O_RDWR | O_APPEND | O_CLOEXEC | flags, 0666);
    if (file->fd < 0)
        return cannot_open(file->path, err);
    /* On a file system without locks the run is written without one. */
    if (flock(file->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return lb_fail(err, LB_INVALID, "%s: another process is writing this run", file->path);
    return LB_OK;
}

/* LB_OK when the file is empty or has only the torn header of a run that was killed at its start.
 */
static enum lb_status check_unused(const struct lb_run_file *file, struct lb_error *err)
{
    static const char start[] = "{\"kind\":\"header\"";
    char *line = NULL;
    size_t size = 0;
    FILE *stream = fopen(file->path, "r");
    if (!stream)
        return lb_fail(err, LB_IO, "%s: %s", file->path, strerror(errno));
    ssize_t length = getline(&line, &size, stream);
    bool unused = length < 0 && feof(stream);
    if (length > 0 && line[length - 1] != '\n') {
        size_t common = (size_t)length < sizeof(start) ? (size_t)length : sizeof(start) - 1;
        unused = strncmp(line, start, common) == 0;
    }
    free(line);
    fclose(stream);
    if (!unused)
        return lb_fail(err, LB_INVALID,
                       "%s: this run exists already: resume it with --resume %.*s, or choose "
                       "another folder with --out",
                       file->path, (int)(strlen(file->path) - sizeof(LB_RUN_FILE_NAME)),
                       file->path);
    return LB_OK;
}

/* Failures are not reported here, because creating the last folder then fails with the reason. */
static void make_parents(const char *path)
{
    char *copy = lb_needed(strdup(path));
    for (char *at = strchr(copy + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        mkdir(copy, 0777);
        *at = '/';
    }
    free(copy);
}

enum lb_status lb_run_create(const char *folder, const json_t *details, struct lb_run_file *file,
                             struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct stat status;
    *file = (struct lb_run_file){0};
    make_parents(folder);
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        LB_TRY(lb_fail(err, LB_IO, "%s: the folder can't be created: %s", folder, strerror(errno)));
    if (stat(folder, &status) == 0 && !S_ISDIR(status.st_mode))
        LB_TRY(lb_fail(err, LB_IO, "%s: it is a file, not a folder; choose a folder with --out",
                       folder));
    LB_TRY(open_locked(folder, O_CREAT, file, err));
    LB_TRY(check_unused(file, err));
    if (ftruncate(file->fd, 0) != 0)
        LB_TRY(lb_fail(err, LB_IO, "%s: %s", file->path, strerror(errno)));
    json_t *header = json_pack("{s:s, s:i, s:o}", "kind", "header", "schema", LB_SCHEMA_VERSION,
                               "started", now_json());
    json_object_update_missing(header, (json_t *)details);
    LB_TRY(append_line(file, header, err));
done:
    if (st != LB_OK)
        lb_run_close(file);
    return st;
}

enum lb_status lb_run_open(const char *folder, struct lb_run_file *file, struct lb_run *run,
                           struct lb_error *err)
{
    enum lb_status st = LB_OK;
    *run = (struct lb_run){0};
    LB_TRY(open_locked(folder, 0, file, err));
    LB_TRY(lb_run_read(file->path, run, err));
    file->size = run->whole_bytes;
    file->rows = run->count;
done:
    if (st != LB_OK) {
        lb_run_close(file);
        lb_run_free(run);
    }
    return st;
}

enum lb_status lb_run_resume(struct lb_run_file *file, const json_t *details, struct lb_error *err)
{
    if (ftruncate(file->fd, file->size) != 0) /* cuts off a torn line */
        return lb_fail(err, LB_IO, "%s: %s", file->path, strerror(errno));
    json_t *resume = json_pack("{s:s, s:o}", "kind", "resume", "started", now_json());
    json_object_update_missing(resume, (json_t *)details);
    return append_line(file, resume, err);
}

void lb_run_close(struct lb_run_file *file)
{
    if (file->path && file->fd >= 0)
        close(file->fd);
    free(file->path);
    *file = (struct lb_run_file){0};
}

/* The file that is being read, and the position in it. */
struct reader {
    FILE *stream;
    const char *path;
    size_t line;
    lb_run_visitor *visit; /* takes the rows; NULL: they are kept */
    void *user;
    json_t *started;        /* of the session; borrowed */
    json_t *index;          /* object that maps a case text to the number of its row */
    json_t *seen;           /* object whose keys are the case texts of this session */
    json_int_t footer_rows; /* the number of rows according to the last footer */
    size_t headers;         /* more than one means several runs in one file */
    size_t repeated;        /* rows that repeat a case of their session */
    size_t empty;           /* rows that are ok without a sample */
    size_t environment;     /* number of that of the current session */
};

size_t lb_run_find_environment(json_t *environments, json_t *environment)
{
    json_t *wanted = lb_environment_identity(environment), *other;
    size_t number;
    json_array_foreach(environments, number, other)
    {
        json_t *identity = lb_environment_identity(other);
        bool found = json_equal(wanted, identity);
        json_decref(identity);
        if (found)
            break;
    }
    if (number == json_array_size(environments))
        json_array_append(environments, environment);
    json_decref(wanted);
    return number;
}

/* Adds a fault and how often it occurs to run->doubt. */
static void add_doubt(struct lb_run *run, const char *path, const char *fault, size_t count)
{
    bool first = !run->doubt[0];
    if (count > 0)
        lb_append(run->doubt, sizeof(run->doubt), "%.300s%s%s: %zu", first ? path : "; ",
                  first ? ": " : "", fault, count);
    lb_clean_text(run->doubt);
}

static void judge_file(const struct reader *reader, struct lb_run *run)
{
    const json_t *cases = json_object_get(run->header, "cases"), *text;
    size_t missing = 0, planned = 0, i;
    if (run->finished && reader->footer_rows > (json_int_t)run->count)
        missing = (size_t)reader->footer_rows - run->count;
    json_array_foreach(cases, i, text)
    {
        planned += json_object_del(reader->index, json_string_value(text)) == 0; /* once each */
    }
    add_doubt(run, reader->path, "rows that its footer counts and that are missing", missing);
    if (cases && run->finished && !run->interrupted && missing == 0)
        add_doubt(run, reader->path, "cases of its plan that have no row",
                  json_array_size(cases) - planned);
    if (cases)
        add_doubt(run, reader->path, "rows of cases that its plan lacks", run->count - planned);
    add_doubt(run, reader->path, "runs in one file", reader->headers > 1 ? reader->headers : 0);
    add_doubt(run, reader->path, "rows that repeat a case of the same session", reader->repeated);
    add_doubt(run, reader->path, "rows that are ok without a sample", reader->empty);
}

static enum lb_status read_header(struct reader *reader, json_t *object, struct lb_run *run,
                                  struct lb_error *err)
{
    const json_t *schema = json_object_get(object, "schema");
    if (!json_is_integer(schema))
        return lb_fail(err, LB_INVALID, "%s:%zu: the header has no schema version", reader->path,
                       reader->line);
    run->other_schema = json_integer_value(schema) != LB_SCHEMA_VERSION;
    if (run->other_schema)
        return lb_fail(err, LB_INVALID,
                       "%s: this run has schema version %lld, and this program reads only version "
                       "%d: measure it again",
                       reader->path, (long long)json_integer_value(schema), LB_SCHEMA_VERSION);
    reader->headers++;
    json_object_clear(reader->seen);
    if (run->header)
        return LB_OK;
    reader->started = json_object_get(object, "started");
    run->header = json_incref(object);
    json_t *environments = json_object_get(object, "environments"),
           *environment = json_object_get(object, "environment");
    if (json_is_array(environments))
        json_array_extend(run->environments, environments);
    else if (environment)
        json_array_append(run->environments, environment);
    return LB_OK;
}

/* Sets the number of the row's environment, which is that of its session or the one that the row
 * names. In a merged run, where a case has one row per environment, it is also appended to id
 * [LB_CASE_ID_SIZE + 32]. */
static enum lb_status read_environment(const struct reader *reader, const json_t *object,
                                       const struct lb_run *run, struct lb_row *row, char *id,
                                       struct lb_error *err)
{
    const json_t *number = json_object_get(object, "environment");
    size_t length = strlen(id);
    row->environment = reader->environment;
    if (!number)
        return LB_OK;
    if (!json_is_integer(number) || json_integer_value(number) < 0 ||
        (size_t)json_integer_value(number) >= json_array_size(run->environments))
        return lb_fail(err, LB_INVALID,
                       "%s:%zu: environment: it must number one of the header's %zu environments",
                       reader->path, reader->line, json_array_size(run->environments));
    row->environment = (size_t)json_integer_value(number);
    if (json_is_true(json_object_get(run->header, "merged")))
        snprintf(id + length, 32, " %zu", row->environment);
    return LB_OK;
}

/* Returns the number of an earlier row of the same case, or else the next one. */
static size_t number_row(struct reader *reader, struct lb_run *run, const char *id)
{
    size_t number = lb_json_number(reader->index, id, run->count);
    reader->repeated += json_object_get(reader->seen, id) != NULL;
    json_object_set_new(reader->seen, id, json_true());
    if (number == run->count && !reader->visit) {
        run->rows = lb_room(run->rows, run->count, sizeof(*run->rows));
        run->rows[run->count] = (struct lb_row){0};
    }
    run->count += number == run->count;
    return number;
}

/* Takes a row, which replaces an earlier one of the same case, or a canary. */
static enum lb_status read_row(struct reader *reader, json_t *object, bool canary,
                               struct lb_run *run, struct lb_error *err)
{
    struct lb_row row;
    struct lb_error why;
    char id[LB_CASE_ID_SIZE + 32];
    enum lb_status st = lb_row_from_json(object, &row, &why);
    if (st != LB_OK)
        return lb_fail(err, st, "%s:%zu: %.400s", reader->path, reader->line, why.text);
    lb_case_print(&row.c, id);
    LB_TRY(read_environment(reader, object, run, &row, id, err));
    size_t number = canary ? 0 : number_row(reader, run, id);
    reader->empty += !canary && row.verdict == LB_VERDICT_OK && row.samples == 0;
    if (reader->visit) {
        if (reader->started && !json_object_get(object, "started"))
            json_object_set(object, "started", reader->started);
        reader->visit(reader->user, &row, object, canary);
    } else {
        const struct lb_row earlier = run->rows[number];
        run->rows[number] = row;
        row = earlier;
    }
done:
    lb_row_free(&row);
    return st;
}

static void read_resume(struct reader *reader, json_t *object, struct lb_run *run)
{
    json_t *environment = json_object_get(object, "environment");
    json_object_clear(reader->seen);
    reader->started = json_object_get(object, "started");
    json_array_append(run->resumes, object);
    if (environment)
        reader->environment = lb_run_find_environment(run->environments, environment);
}

static enum lb_status read_line(struct reader *reader, const char *text, size_t length,
                                struct lb_run *run, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    json_error_t why;
    json_t *object = json_loadb(text, length, JSON_REJECT_DUPLICATES, &why);
    const char *kind = json_string_value(json_object_get(object, "kind"));
    run->finished = run->interrupted = false;
    if (!object)
        st = lb_fail(err, LB_INVALID, "%s:%zu: not JSON: %.200s", reader->path, reader->line,
                     why.text);
    else if (!kind || (!run->header && strcmp(kind, "header") != 0))
        st = lb_fail(err, LB_INVALID, "%s:%zu: not a line of a run: %s", reader->path, reader->line,
                     run->header ? "it has no kind" : "the first must be the header");
    else if (strcmp(kind, "header") == 0)
        st = read_header(reader, object, run, err);
    else if (strcmp(kind, "row") == 0)
        st = read_row(reader, object, false, run, err);
    else if (strcmp(kind, "canary") == 0)
        st = reader->visit ? read_row(reader, object, true, run, err) : LB_OK;
    else if (strcmp(kind, "resume") == 0)
        read_resume(reader, object, run);
    else if (strcmp(kind, "footer") == 0) {
        json_decref(run->footer);
        run->footer = json_incref(object);
        run->finished = true;
        reader->footer_rows = json_integer_value(json_object_get(object, "rows"));
        run->interrupted = json_is_true(json_object_get(object, "interrupted"));
    } else
        st = lb_fail(err, LB_INVALID,
                     "%s:%zu: kind '%.40s' is not one of header, row, canary, resume, footer",
                     reader->path, reader->line, kind);
    json_decref(object);
    return st;
}

static enum lb_status read_lines(struct reader *reader, struct lb_run *run, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    char *text = NULL;
    size_t size = 0;
    ssize_t length;
    reader->index = json_object();
    reader->seen = json_object();
    run->resumes = json_array();
    run->environments = json_array();
    while ((length = getline(&text, &size, reader->stream)) > 0) {
        reader->line++;
        run->torn = text[length - 1] != '\n';
        if (run->torn)
            break;
        LB_TRY(read_line(reader, text, (size_t)length - 1, run, err));
        run->whole_bytes += length;
    }
    if (ferror(reader->stream))
        st = lb_fail(err, LB_IO, "%s: %s", reader->path, strerror(errno));
    else if ((run->empty = !run->header))
        st = lb_fail(err, LB_INVALID, "%s: it holds no complete line of a run", reader->path);
    judge_file(reader, run);
done:
    free(text);
    json_decref(reader->index);
    json_decref(reader->seen);
    return st;
}

enum lb_status lb_run_visit(const char *path, lb_run_visitor *visit, void *user, struct lb_run *run,
                            struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct stat status;
    char *inside = NULL;
    struct reader reader = {.path = path, .visit = visit, .user = user};
    *run = (struct lb_run){0};
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        reader.path = inside = lb_run_path(path);
    if (stat(reader.path, &status) == 0 && !S_ISREG(status.st_mode)) /* a pipe may never end */
        LB_TRY(lb_fail(err, LB_INVALID, "%s: it is not a regular file", reader.path));
    reader.stream = fopen(reader.path, "r");
    if (!reader.stream)
        LB_TRY(cannot_open(reader.path, err));
    LB_TRY(read_lines(&reader, run, err));
    if (!visit)
        lb_rows_find_slowdowns(run->rows, run->count);
done:
    if (reader.stream)
        fclose(reader.stream);
    free(inside);
    if (st != LB_OK) {
        bool other_schema = run->other_schema, empty = run->empty;
        lb_run_free(run);
        run->other_schema = other_schema;
        run->empty = empty;
    }
    return st;
}

enum lb_status lb_run_read(const char *path, struct lb_run *run, struct lb_error *err)
{
    return lb_run_visit(path, NULL, NULL, run, err);
}

void lb_run_free(struct lb_run *run)
{
    for (size_t i = 0; run->rows && i < run->count; i++)
        lb_row_free(&run->rows[i]);
    free(run->rows);
    json_decref(run->header);
    json_decref(run->resumes);
    json_decref(run->footer);
    json_decref(run->environments);
    json_decref(run->labels);
    *run = (struct lb_run){0};
}
