/* Writing the file of a run: whole lines only, whatever happens. */
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
    char *path = malloc(size);
    if (path)
        snprintf(path, size, "%s/%s", folder, LB_RUN_FILE_NAME);
    return path;
}

/* Writes all of text, or nothing: the file is cut back to its last whole line on failure. */
static enum lb_status append_text(struct lb_run_file *file, const char *text, size_t length,
                                  struct lb_error *err)
{
    size_t written = 0;
    while (written < length) {
        /* A short write is followed by another, which succeeds or tells the reason. */
        ssize_t n = write(file->fd, text + written, length - written);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            int reason = errno;
            if (written > 0 && ftruncate(file->fd, file->size) != 0)
                return lb_fail(err, LB_IO, "%s: %s; and it can't be cut back: %s", file->path,
                               strerror(reason), strerror(errno));
            return lb_fail(err, LB_IO, "%s: %s", file->path, strerror(reason));
        }
        written += (size_t)n;
    }
    file->size += (off_t)length;
    return LB_OK;
}

/* Appends the object as one line, and gives the object up; NULL means that memory ran out. */
static enum lb_status append_line(struct lb_run_file *file, json_t *object, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    size_t size = 0;
    char *text = NULL;
    if (object)
        size = json_dumpb(object, NULL, 0, JSON_COMPACT);
    if (size > 0)
        text = malloc(size + 1);
    if (!text || json_dumpb(object, text, size, JSON_COMPACT) != size) {
        st = lb_fail(err, LB_OOM, "%s: out of memory for a line", file->path);
        goto done;
    }
    text[size] = '\n';
    st = append_text(file, text, size + 1, err);
done:
    free(text);
    json_decref(object);
    return st;
}

/* A new object: kind, the members of first (given up), those of details (borrowed). */
static json_t *make_line(const char *kind, json_t *first, const json_t *details)
{
    json_t *line = json_pack("{s:s}", "kind", kind);
    if (!line || !first || json_object_update(line, first) != 0 ||
        (details && json_object_update_missing(line, (json_t *)details) != 0)) {
        json_decref(line);
        line = NULL;
    }
    json_decref(first);
    return line;
}

enum lb_status lb_run_append(struct lb_run_file *file, const struct lb_row *row,
                             struct lb_error *err)
{
    enum lb_status st = append_line(file, lb_row_to_json(row), err);
    if (st == LB_OK)
        file->rows++;
    return st;
}

enum lb_status lb_run_finish(struct lb_run_file *file, bool interrupted, struct lb_error *err)
{
    json_t *values = json_pack("{s:o, s:I, s:b}", "finished", now_json(), "rows",
                               (json_int_t)file->rows, "interrupted", interrupted);
    return append_line(file, make_line("footer", values, NULL), err);
}

/* Opens and locks run.jsonl in the folder. */
static enum lb_status open_locked(const char *folder, int flags, struct lb_run_file *file,
                                  struct lb_error *err)
{
    *file = (struct lb_run_file){.path = lb_run_path(folder), .fd = -1};
    if (!file->path)
        return lb_fail(err, LB_OOM, "%s: out of memory", folder);
    file->fd = open(file->path, O_RDWR | O_APPEND | O_CLOEXEC | flags, 0666);
    if (file->fd < 0)
        return lb_fail(err, LB_IO, "%s: %s", file->path, strerror(errno));
    /* File systems without locks are written without one. */
    if (flock(file->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return lb_fail(err, LB_INVALID, "%s: another process is writing this run", file->path);
    return LB_OK;
}

/* LB_OK when the file holds nothing, or only the torn header of a run killed as it began. */
static enum lb_status check_unused(const struct lb_run_file *file, struct lb_error *err)
{
    static const char start[] = "{\"kind\":\"header\"";
    char head[sizeof(start) - 1];
    struct stat status;
    if (fstat(file->fd, &status) != 0)
        return lb_fail(err, LB_IO, "%s: %s", file->path, strerror(errno));
    ssize_t n = pread(file->fd, head, sizeof(head), 0);
    bool torn_header = n >= 0 && memcmp(head, start, (size_t)n) == 0;
    for (off_t at = 0; torn_header && at < status.st_size; at += n) {
        char part[4096];
        n = pread(file->fd, part, sizeof(part), at);
        torn_header = n > 0 && !memchr(part, '\n', (size_t)n);
    }
    if (!torn_header)
        return lb_fail(err, LB_INVALID,
                       "%s: there is a run already: go on with it by --resume %.*s, or choose "
                       "another folder by --out",
                       file->path, (int)(strlen(file->path) - sizeof(LB_RUN_FILE_NAME)),
                       file->path);
    return LB_OK;
}

enum lb_status lb_run_create(const char *folder, const json_t *details, struct lb_run_file *file,
                             struct lb_error *err)
{
    enum lb_status st = LB_OK;
    bool made = false, mine = false; /* the folder; the file in it, under our lock */
    *file = (struct lb_run_file){0};
    made = mkdir(folder, 0777) == 0;
    if (!made && errno != EEXIST) {
        st = lb_fail(err, LB_IO, "%s: the folder can't be made: %s", folder, strerror(errno));
        goto done;
    }
    LB_TRY(open_locked(folder, O_CREAT, file, err));
    LB_TRY(check_unused(file, err));
    mine = true;
    if (ftruncate(file->fd, 0) != 0) {
        st = lb_fail(err, LB_IO, "%s: %s", file->path, strerror(errno));
        goto done;
    }
    json_t *first = json_pack("{s:i, s:o}", "schema", LB_SCHEMA_VERSION, "started", now_json());
    LB_TRY(append_line(file, make_line("header", first, details), err));
done:
    if (st != LB_OK) {
        if (made && mine)
            unlink(file->path);
        if (made)
            rmdir(folder);
        lb_run_close(file);
    }
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
    file->torn = run->torn;
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
    if (file->torn && ftruncate(file->fd, file->size) != 0)
        return lb_fail(err, LB_IO, "%s: %s", file->path, strerror(errno));
    file->torn = false;
    json_t *first = json_pack("{s:o}", "started", now_json());
    return append_line(file, make_line("resume", first, details), err);
}

void lb_run_close(struct lb_run_file *file)
{
    if (file->path && file->fd >= 0)
        close(file->fd);
    free(file->path);
    *file = (struct lb_run_file){0};
}
