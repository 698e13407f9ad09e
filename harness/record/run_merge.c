/* Merging the runs of several machines into one run. */
#include "record/run_merge.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/hash.h"
#include "record/environment.h"

enum {
    BUFFER = 1 << 20,     /* bytes of buffer for a file that is read or written */
    TEXT_CHUNK = 1 << 20, /* bytes of a chunk of case texts */
    MOST_OPEN = 1 << 16   /* most files that are open while rows are copied */
};

/* What a file may have given instead of drawn values, by its key in the header. */
enum { GIVEN_COUNT = 2 };
static const char *const given_keys[GIVEN_COUNT] = {"weights", "inputs"};

/* What the index keeps of a row or a canary: where its line is, and what identifies it. */
struct indexed_line {
    const char *id;       /* the case's text with the present name of its implementation */
    uint64_t hash;        /* of id and environment */
    uint64_t body;        /* hash of the other keys of the line */
    int64_t started;      /* when its session began, as the number 20260131120000; 0: unknown */
    off_t offset;         /* of the line in its file */
    uint32_t length;      /* of the line, without its newline */
    uint32_t file;        /* number of its file */
    uint32_t environment; /* number of its environment */
    bool ran;             /* false: its verdict is "skipped" */
    bool dropped;
};

struct line_index {
    struct indexed_line *items; /* [count] */
    size_t count, capacity;
};

struct text_chunk {
    struct text_chunk *next;
    size_t used;
    char text[TEXT_CHUNK];
};

struct lb_merge {
    char **paths; /* [files] */
    int *fds;     /* [files] open for copying, or -1 */
    size_t files;
    struct line_index rows, canaries;
    uint32_t *slots; /* [slot_count], a power of two: number of a row plus one; 0: free */
    size_t slot_count;
    struct lb_merge_canary *medians; /* [median_count] the times of canaries that have one */
    size_t median_count;
    struct text_chunk *texts;
    json_t *environments; /* array of objects */
    json_t *identities;   /* object: from the text of an identity to the environment's number */
    json_t *warnings;     /* object: from an environment's number, as text, to its warning */
    json_t *settings;     /* object: what the headers have in common */
    json_t *shards;       /* object: from a text by which shards are sorted to a shard */
    json_t *seed;
    json_t
        *given[GIVEN_COUNT];   /* objects of the headers, in the order of given_keys; NULL: drawn */
    int64_t started, finished; /* the earliest and the latest time of all runs */
    struct lb_merge_counts counts;
};

/* The parts of a line that was read. */
struct parts {
    bool canary;
    const char *id; /* [id_length] as the line has it */
    size_t id_length;
    json_int_t environment; /* -1: the line does not say */
    int64_t started;        /* 0: the line does not say */
    const char *body;       /* [body_length] the other keys up to the closing brace */
    size_t body_length;
    bool ran;
    json_t *object; /* a line of another kind, owned; NULL: it is a row or a canary */
    char *owned;    /* holds body and id when they do not point into the line */
};

/* A file that is being indexed. */
struct source {
    struct lb_merge *merge;
    const char *path;
    size_t line;
    bool has_header, merged, finished;
    size_t *environments; /* [environment_count] numbers of the environments in its header */
    size_t environment_count;
    size_t environment; /* number of the current session's environment */
    int64_t started;    /* of the current session */
};

static enum lb_status no_memory(struct lb_error *err)
{
    return lb_fail(err, LB_OOM, "--merge: out of memory");
}

/* Returns 20260131120000 for "2026-01-31T12:00:00Z", and 0 for a text of another form. */
static int64_t parse_time(const char *text, size_t length)
{
    enum { DIGITS = 14 }; /* more would not fit into 64 bits */
    int64_t number = 0;
    size_t digits = 0;
    for (size_t i = 0; i < length && digits <= DIGITS; i++) {
        if (text[i] >= '0' && text[i] <= '9') {
            number = 10 * number + (text[i] - '0');
            digits++;
        }
    }
    return digits == DIGITS && length == 20 ? number : 0;
}

static void print_time(int64_t time, char text[32])
{
    int64_t date = time / 1000000, clock = time % 1000000;
    snprintf(text, 32, "%04d-%02d-%02dT%02d:%02d:%02dZ", (int)(date / 10000),
             (int)(date / 100 % 100), (int)(date % 100), (int)(clock / 10000),
             (int)(clock / 100 % 100), (int)(clock % 100));
}

/* Splitting lines */

static bool take(const char **at, const char *end, const char *literal)
{
    size_t length = strlen(literal);
    if ((size_t)(end - *at) < length || memcmp(*at, literal, length) != 0)
        return false;
    *at += length;
    return true;
}

/* Reads the rest of a text and its closing quote. False when it has escapes or no end. */
static bool take_text(const char **at, const char *end, const char **text, size_t *length)
{
    const char *quote = memchr(*at, '"', (size_t)(end - *at));
    if (!quote || memchr(*at, '\\', (size_t)(quote - *at)))
        return false;
    *text = *at;
    *length = (size_t)(quote - *at);
    *at = quote + 1;
    return true;
}

static bool take_environment(const char **at, const char *end, json_int_t *environment)
{
    if (!take(at, end, "\"environment\":"))
        return true; /* the key is optional */
    *environment = 0;
    for (; *at < end && **at >= '0' && **at <= '9' && *environment < 100000000; ++*at)
        *environment = 10 * *environment + (**at - '0');
    return take(at, end, ",");
}

static bool take_started(const char **at, const char *end, int64_t *started)
{
    const char *text;
    size_t length;
    if (!take(at, end, "\"started\":\""))
        return true;
    if (!take_text(at, end, &text, &length))
        return false;
    *started = parse_time(text, length);
    return take(at, end, ",");
}

/* Skips an earlier warning, whose text may have escapes. */
static bool skip_node_warning(const char **at, const char *end)
{
    if (!take(at, end, "\"node_warning\":\""))
        return true;
    for (; *at < end && **at != '"'; ++*at)
        *at += **at == '\\';
    return *at < end && take(at, end, "\",");
}

/* Finds out whether the row has run, from the first "verdict". Quotes inside a text are escaped,
 * so that this can only be the key. Returns false when there is none. */
static bool find_verdict(const char *body, size_t length, bool *ran)
{
    static const char key[] = "\"verdict\":\"", skipped[] = "skipped\"";
    for (const char *at = body, *end = body + length; at < end; at++) {
        at = memchr(at, '"', (size_t)(end - at));
        if (!at)
            return false;
        if (!take(&at, end, key))
            continue;
        *ran = !take(&at, end, skipped);
        return true;
    }
    return false;
}

/* Splits a row that is written as this program writes rows, without parsing all of it. */
static bool split_quickly(const char *line, size_t length, struct parts *parts)
{
    const char *at = line, *end = line + length;
    parts->canary = take(&at, end, "{\"kind\":\"canary\",\"case\":\"");
    if (!parts->canary && !take(&at, end, "{\"kind\":\"row\",\"case\":\""))
        return false;
    if (!take_text(&at, end, &parts->id, &parts->id_length) || !take(&at, end, ",") ||
        !take_environment(&at, end, &parts->environment) ||
        !take_started(&at, end, &parts->started) || !skip_node_warning(&at, end))
        return false;
    parts->body = at;
    parts->body_length = (size_t)(end - at);
    return end[-1] == '}' && find_verdict(at, parts->body_length, &parts->ran);
}

/* Splits any line by parsing it. */
static enum lb_status split_slowly(const char *line, size_t length, struct parts *parts,
                                   struct lb_error *err)
{
    static const char *const own[] = {"kind", "case", "environment", "started", "node_warning"};
    json_error_t why;
    json_t *object = json_loadb(line, length, JSON_REJECT_DUPLICATES, &why);
    const char *kind = json_string_value(json_object_get(object, "kind"));
    *parts = (struct parts){.environment = -1, .object = object};
    if (!kind)
        return lb_fail(err, LB_INVALID, "not a line of a run: %.200s",
                       object ? "it has no kind" : why.text);
    parts->canary = strcmp(kind, "canary") == 0;
    if (!parts->canary && strcmp(kind, "row") != 0)
        return LB_OK;
    const json_t *id = json_object_get(object, "case");
    const json_t *environment = json_object_get(object, "environment");
    const char *started = json_string_value(json_object_get(object, "started"));
    const char *verdict = json_string_value(json_object_get(object, "verdict"));
    if (!json_is_string(id) || !verdict)
        return lb_fail(err, LB_INVALID, "the row has no case or no verdict");
    parts->ran = strcmp(verdict, "skipped") != 0;
    if (environment)
        parts->environment = json_is_integer(environment) ? json_integer_value(environment) : -2;
    parts->started = started ? parse_time(started, strlen(started)) : 0;
    char *text = strdup(json_string_value(id));
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        json_object_del(object, own[i]);
    char *body = json_dumps(object, JSON_COMPACT);
    size_t id_size = text ? strlen(text) + 1 : 0, body_size = body ? strlen(body) + 1 : 0;
    parts->owned = malloc(id_size + body_size + 1);
    bool done = text && body && parts->owned;
    if (done) {
        memcpy(parts->owned, text, id_size);
        memcpy(parts->owned + id_size, body, body_size);
        parts->id = parts->owned;
        parts->id_length = id_size - 1;
        parts->body = parts->owned + id_size + 1; /* after the opening brace */
        parts->body_length = body_size - 2;
    }
    free(text);
    free(body);
    json_decref(object);
    parts->object = NULL;
    return done ? LB_OK : no_memory(err);
}

static enum lb_status split(const char *line, size_t length, struct parts *parts,
                            struct lb_error *err)
{
    *parts = (struct parts){.environment = -1};
    return length > 0 && split_quickly(line, length, parts)
               ? LB_OK
               : split_slowly(line, length, parts, err);
}

static void free_parts(struct parts *parts)
{
    json_decref(parts->object);
    free(parts->owned);
}

/* The index */

/* Returns a copy of the text that lives as long as the merge; NULL when memory runs out. */
static const char *keep_text(struct lb_merge *merge, const char *text)
{
    size_t size = strlen(text) + 1;
    if (!merge->texts || merge->texts->used + size > TEXT_CHUNK) {
        struct text_chunk *chunk = malloc(sizeof(*chunk));
        if (!chunk)
            return NULL;
        chunk->next = merge->texts;
        chunk->used = 0;
        merge->texts = chunk;
    }
    char *copy = merge->texts->text + merge->texts->used;
    memcpy(copy, text, size);
    merge->texts->used += size;
    return copy;
}

static enum lb_status append(struct line_index *index, const struct indexed_line *line,
                             struct lb_error *err)
{
    if (index->count == index->capacity) {
        size_t capacity = index->capacity ? index->capacity + index->capacity / 2 : 1024;
        struct indexed_line *grown =
            capacity < UINT32_MAX ? realloc(index->items, capacity * sizeof(*grown)) : NULL;
        if (!grown)
            return no_memory(err);
        index->items = grown;
        index->capacity = capacity;
    }
    index->items[index->count++] = *line;
    return LB_OK;
}

/* Returns the slot of the same case and environment, or the free slot where it belongs. */
static uint32_t *find_slot(const struct lb_merge *merge, const struct indexed_line *line)
{
    size_t mask = merge->slot_count - 1, at = (size_t)(line->hash ^ line->hash >> 32) & mask;
    for (; merge->slots[at]; at = (at + 1) & mask) {
        const struct indexed_line *there = &merge->rows.items[merge->slots[at] - 1];
        if (there->hash == line->hash && there->environment == line->environment &&
            strcmp(there->id, line->id) == 0)
            break;
    }
    return &merge->slots[at];
}

static enum lb_status grow_slots(struct lb_merge *merge, struct lb_error *err)
{
    size_t count = merge->slot_count ? 2 * merge->slot_count : 1024;
    uint32_t *slots = calloc(count, sizeof(*slots));
    if (!slots)
        return no_memory(err);
    free(merge->slots);
    merge->slots = slots;
    merge->slot_count = count;
    for (size_t i = 0; i < merge->rows.count; i++)
        *find_slot(merge, &merge->rows.items[i]) = (uint32_t)i + 1;
    return LB_OK;
}

/* Whether a line replaces an earlier one of the same case and environment. A row that ran
 * replaces one that was skipped; otherwise the session that started later wins. When both
 * started at the same time, the later line of a file wins. Between files, the hash of the line
 * decides, so that the order of the files does not matter. */
static bool replaces(const struct indexed_line *line, const struct indexed_line *earlier)
{
    if (line->ran != earlier->ran)
        return line->ran;
    if (line->started != earlier->started)
        return line->started > earlier->started;
    return line->file == earlier->file || line->body > earlier->body;
}

static enum lb_status add_row(struct lb_merge *merge, struct indexed_line *line,
                              struct lb_error *err)
{
    enum lb_status st = LB_OK;
    if (2 * (merge->rows.count + 1) > merge->slot_count)
        LB_TRY(grow_slots(merge, err));
    uint32_t *slot = find_slot(merge, line);
    if (*slot) {
        struct indexed_line *earlier = &merge->rows.items[*slot - 1];
        merge->counts.replaced += earlier->body != line->body;
        if (replaces(line, earlier)) {
            line->id = earlier->id;
            *earlier = *line;
        }
        return LB_OK;
    }
    line->id = keep_text(merge, line->id);
    if (!line->id)
        return no_memory(err);
    LB_TRY(append(&merge->rows, line, err));
    *slot = (uint32_t)merge->rows.count;
done:
    return st;
}

/* Adds a canary unless the index has it. A linear search is enough for so few. */
static enum lb_status add_canary(struct lb_merge *merge, struct indexed_line *line,
                                 struct lb_error *err)
{
    for (size_t i = 0; i < merge->canaries.count; i++) {
        const struct indexed_line *there = &merge->canaries.items[i];
        if (there->body == line->body && there->environment == line->environment &&
            there->started == line->started && strcmp(there->id, line->id) == 0)
            return LB_OK;
    }
    line->id = keep_text(merge, line->id);
    return line->id ? append(&merge->canaries, line, err) : no_memory(err);
}

/* Headers */

/* Returns the text by which an object is compared with others; the caller frees it. Drops the
 * reference to the object. */
static char *dump_sorted(json_t *object)
{
    char *text = object ? json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(object);
    return text;
}

/* Finds the number of an environment, which is added when it is new. Two environments of one
 * identity may differ in what is measured in each session. Then the one whose text sorts first
 * is kept, so that the order of the runs does not matter. */
static enum lb_status number_of(struct lb_merge *merge, json_t *environment, size_t *number,
                                struct lb_error *err)
{
    char *identity = dump_sorted(lb_environment_identity(environment));
    const json_t *known = identity ? json_object_get(merge->identities, identity) : NULL;
    bool done = identity != NULL;
    *number = known ? (size_t)json_integer_value(known) : json_array_size(merge->environments);
    if (known) {
        json_t *before = json_array_get(merge->environments, *number);
        char *was = dump_sorted(json_incref(before)), *is = dump_sorted(json_incref(environment));
        done = was && is &&
               (strcmp(is, was) >= 0 ||
                json_array_set(merge->environments, *number, environment) == 0);
        free(was);
        free(is);
    } else if (done) {
        done = json_object_set_new(merge->identities, identity,
                                   json_integer((json_int_t)*number)) == 0 &&
               json_array_append(merge->environments, environment) == 0;
    }
    free(identity);
    return done ? LB_OK : no_memory(err);
}

static enum lb_status take_environments(struct source *source, const json_t *header,
                                        struct lb_error *err)
{
    json_t *list = json_object_get(header, "environments"),
           *one = json_object_get(header, "environment");
    size_t count = list ? json_array_size(list) : 1;
    enum lb_status st = LB_OK;
    if (count == 0)
        return lb_fail(err, LB_INVALID, "the header has no environment");
    source->environments = calloc(count + 1, sizeof(*source->environments));
    if (!source->environments)
        return no_memory(err);
    for (size_t i = 0; i < count; i++) {
        json_t *environment = list ? json_array_get(list, i) : one;
        if (!json_is_object(environment))
            LB_TRY(lb_fail(err, LB_INVALID, "the header has no environment"));
        LB_TRY(number_of(source->merge, environment, &source->environments[i], err));
        source->environment_count++;
    }
    source->environment = source->environments[0];
done:
    return st;
}

static enum lb_status take_shard(struct lb_merge *merge, const json_t *shard, struct lb_error *err)
{
    const char *plan = json_string_value(json_object_get(shard, "plan"));
    json_int_t index = json_integer_value(json_object_get(shard, "index")),
               count = json_integer_value(json_object_get(shard, "count"));
    char key[64];
    if (!plan || index < 1 || index > count)
        return lb_fail(err, LB_INVALID, "the header's shard has no plan, index or count");
    snprintf(key, sizeof(key), "%.16s %08d %08d", plan, (int)count, (int)index);
    json_t *kept = json_pack("{s:I, s:I, s:s}", "index", index, "count", count, "plan", plan);
    return json_object_set_new(merge->shards, key, kept) == 0 ? LB_OK : no_memory(err);
}

/* Keeps the settings that all runs have in common. */
static enum lb_status take_settings(struct lb_merge *merge, const json_t *header,
                                    struct lb_error *err)
{
    static const char *const keys[] = {
        "sampler",  "repetitions", "processes", "loss_scale",   "loss_scale_dynamic",
        "baseline", "plugins",     "benchmark", "call_limit_s", "memory_bytes",
        "device",   "tune",        "tuned",     "kernels"};
    bool first = merge->settings == NULL, done = true;
    if (first)
        merge->settings = json_object();
    for (size_t i = 0; done && i < sizeof(keys) / sizeof(keys[0]); i++) {
        json_t *value = json_object_get(header, keys[i]);
        const json_t *kept = json_object_get(merge->settings, keys[i]);
        if (first && value)
            done = json_object_set(merge->settings, keys[i], value) == 0;
        else if (kept && (!value || !json_equal(kept, value)))
            json_object_del(merge->settings, keys[i]);
    }
    return done && merge->settings ? LB_OK : no_memory(err);
}

static enum lb_status take_seed(struct source *source, const json_t *header, struct lb_error *err)
{
    struct lb_merge *merge = source->merge;
    json_t *seed = json_object_get(header, "seed");
    if (!json_is_integer(seed))
        return lb_fail(err, LB_INVALID, "the header has no seed");
    if (merge->seed && !json_equal(seed, merge->seed))
        return lb_fail(
            err, LB_INVALID,
            "its seed is %lld, but that of %s is %lld: their inputs differ, so they can't "
            "be one run",
            (long long)json_integer_value(seed), merge->paths[0],
            (long long)json_integer_value(merge->seed));
    if (!merge->seed)
        merge->seed = json_incref(seed);
    return LB_OK;
}

/* The hash of the values that a file gave; "none" where they were drawn. */
static const char *hash_of_given(const json_t *object)
{
    const char *hash = json_string_value(json_object_get(object, "hash"));
    return hash ? hash : "none";
}

/* Keeps, of two objects with the same values, the one whose text sorts first, so that the order of
 * the runs does not matter. */
static enum lb_status keep_first(json_t **kept, json_t *object, struct lb_error *err)
{
    char *was = dump_sorted(json_incref(*kept)), *is = dump_sorted(json_incref(object));
    bool done = was && is;
    if (done && strcmp(is, was) < 0) {
        json_decref(*kept);
        *kept = json_incref(object);
    }
    free(was);
    free(is);
    return done ? LB_OK : no_memory(err);
}

/* Takes the files that weights and inputs came from. Runs whose values differ are not one run. */
static enum lb_status take_given(struct source *source, const json_t *header, struct lb_error *err)
{
    struct lb_merge *merge = source->merge;
    enum lb_status st = LB_OK;
    for (size_t i = 0; i < GIVEN_COUNT && st == LB_OK; i++) {
        json_t *object = json_object_get(header, given_keys[i]);
        const char *is = hash_of_given(object), *was = hash_of_given(merge->given[i]);
        if (merge->files == 1)
            merge->given[i] = json_incref(object);
        else if (strcmp(is, was) != 0)
            st = lb_fail(err, LB_INVALID,
                         "the hash of its %s from a file is %.20s, but that of %s is %.20s (none: "
                         "they were drawn): they can't be one run",
                         given_keys[i], is, merge->paths[0], was);
        else if (object)
            st = keep_first(&merge->given[i], object, err);
    }
    return st;
}

static void take_time(struct lb_merge *merge, int64_t time)
{
    if (time && (!merge->started || time < merge->started))
        merge->started = time;
    if (time > merge->finished)
        merge->finished = time;
}

static int64_t time_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? parse_time(text, strlen(text)) : 0;
}

static enum lb_status take_header(struct source *source, const json_t *header, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const json_t *schema = json_object_get(header, "schema"), *shard;
    size_t i;
    if (json_integer_value(schema) != LB_SCHEMA_VERSION)
        return lb_fail(err, LB_INVALID,
                       "its schema version is %lld, but this program merges version %d",
                       (long long)json_integer_value(schema), LB_SCHEMA_VERSION);
    if (json_object_get(header, "interleaved"))
        return lb_fail(err, LB_INVALID,
                       "it is one side of --ab, measured in turn with the other side, and can't be "
                       "merged");
    source->has_header = true;
    source->merged = json_is_true(json_object_get(header, "merged"));
    source->started = time_of(header, "started");
    take_time(source->merge, source->started);
    LB_TRY(take_seed(source, header, err));
    LB_TRY(take_given(source, header, err));
    LB_TRY(take_environments(source, header, err));
    if (json_object_get(header, "shard"))
        LB_TRY(take_shard(source->merge, json_object_get(header, "shard"), err));
    json_array_foreach(json_object_get(header, "shards"), i, shard)
    {
        LB_TRY(take_shard(source->merge, shard, err));
    }
    st = take_settings(source->merge, header, err);
done:
    return st;
}

/* Finds the number of an environment of a later session, which is added to those of its file when
 * it is new there, as lb_run_find_environment does. */
static enum lb_status take_environment_of_session(struct source *source, json_t *environment,
                                                  struct lb_error *err)
{
    size_t number, i = 0;
    enum lb_status st = number_of(source->merge, environment, &number, err);
    if (st != LB_OK)
        return st;
    source->environment = number;
    while (i < source->environment_count && source->environments[i] != number)
        i++;
    if (i < source->environment_count)
        return LB_OK;
    size_t *grown = realloc(source->environments, (i + 1) * sizeof(*grown));
    if (!grown)
        return no_memory(err);
    grown[i] = number;
    source->environments = grown;
    source->environment_count++;
    return LB_OK;
}

/* A later session of the run begins. */
static enum lb_status take_resume(struct source *source, json_t *object, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    size_t i;
    json_t *one, *environment = json_object_get(object, "environment");
    source->started = time_of(object, "started");
    take_time(source->merge, source->started);
    json_array_foreach(json_object_get(object, "environments"), i, one)
    {
        LB_TRY(take_environment_of_session(source, one, err));
    }
    if (json_is_object(environment))
        st = take_environment_of_session(source, environment, err);
done:
    return st;
}

/* Takes a line that is neither a row nor a canary. */
static enum lb_status take_other(struct source *source, json_t *object, struct lb_error *err)
{
    const char *kind = json_string_value(json_object_get(object, "kind"));
    if (!source->has_header && strcmp(kind, "header") == 0)
        return take_header(source, object, err);
    if (!source->has_header)
        return lb_fail(err, LB_INVALID, "not a run: its first line must be the header");
    if (strcmp(kind, "footer") == 0) {
        source->finished = !json_is_true(json_object_get(object, "interrupted"));
        take_time(source->merge, time_of(object, "finished"));
        return LB_OK;
    }
    if (strcmp(kind, "resume") != 0)
        return lb_fail(err, LB_INVALID, "kind '%.40s' is not one of row, canary, resume, footer",
                       kind);
    return take_resume(source, object, err);
}

/* Indexing */

/* Whether a JSON string can hold the text as it is. All case texts of this program are such. */
static bool is_plain(const char *text)
{
    for (; *text; text++)
        if (*text == '"' || *text == '\\' || (unsigned char)*text < ' ')
            return false;
    return true;
}

/* Adds a row or a canary, whose line [length] begins at the offset, to the index. */
static enum lb_status add_line(struct source *source, const struct parts *parts, off_t offset,
                               size_t length, struct lb_error *err)
{
    struct lb_merge *merge = source->merge;
    char text[LB_CASE_ID_SIZE];
    struct indexed_line line = {
        .id = text,
        .body = lb_hash_bytes(0, parts->body, parts->body_length),
        .started = parts->started ? parts->started : source->started,
        .offset = offset,
        .length = (uint32_t)length,
        .file = (uint32_t)(merge->files - 1),
        .environment = (uint32_t)source->environment,
        .ran = parts->ran,
    };
    if (!source->has_header)
        return lb_fail(err, LB_INVALID, "not a run: its first line must be the header");
    if (parts->id_length >= sizeof(text) || length >= UINT32_MAX)
        return lb_fail(err, LB_INVALID, "the text of the case, or the line, is too long");
    bool numbered = source->merged || parts->environment != -1;
    if (numbered &&
        (parts->environment < 0 || (size_t)parts->environment >= source->environment_count))
        return lb_fail(err, LB_INVALID,
                       "environment: it must number one of the header's %zu environments",
                       source->environment_count);
    if (numbered)
        line.environment = (uint32_t)source->environments[parts->environment];
    snprintf(text, sizeof(text), "%.*s", (int)parts->id_length, parts->id);
    if (!is_plain(text)) /* write_line writes it unescaped */
        return lb_fail(err, LB_INVALID,
                       "the text of the case has a quote, a backslash or a control character");
    line.hash = lb_hash_bytes(line.environment + 1, text, strlen(text));
    return parts->canary ? add_canary(merge, &line, err) : add_row(merge, &line, err);
}

static enum lb_status take_line(struct source *source, const char *line, size_t length,
                                off_t offset, struct lb_error *err)
{
    struct parts parts;
    struct lb_error why;
    enum lb_status st = split(line, length, &parts, &why);
    if (st == LB_OK && parts.object)
        st = take_other(source, parts.object, &why);
    else if (st == LB_OK)
        st = add_line(source, &parts, offset, length, &why);
    if (st == LB_OK && !parts.object)
        source->finished = false; /* a footer ends a session, and a row begins another one */
    free_parts(&parts);
    return st == LB_OK
               ? LB_OK
               : lb_fail(err, st, "--merge: %s:%zu: %.400s", source->path, source->line, why.text);
}

static enum lb_status add_path(struct lb_merge *merge, const char *path, struct lb_error *err)
{
    char **paths = realloc(merge->paths, (merge->files + 1) * sizeof(*paths));
    if (paths)
        merge->paths = paths;
    int *fds = realloc(merge->fds, (merge->files + 1) * sizeof(*fds));
    if (fds)
        merge->fds = fds;
    char *copy = strdup(path);
    if (!paths || !fds || !copy) {
        free(copy);
        return no_memory(err);
    }
    paths[merge->files] = copy;
    fds[merge->files++] = -1;
    return LB_OK;
}

enum lb_status lb_merge_add(struct lb_merge *merge, const char *path, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct source source = {.merge = merge, .path = path};
    char *line = NULL;
    size_t size = 0;
    ssize_t length;
    off_t offset = 0;
    FILE *stream = fopen(path, "r");
    if (!stream)
        return lb_fail(err, LB_IO, "--merge: %s: %s", path, strerror(errno));
    setvbuf(stream, NULL, _IOFBF, BUFFER);
    LB_TRY(add_path(merge, path, err));
    while ((length = getline(&line, &size, stream)) > 0 && line[length - 1] == '\n') {
        source.line++;
        LB_TRY(take_line(&source, line, (size_t)length - 1, offset, err));
        offset += length;
    }
    if (ferror(stream))
        st = lb_fail(err, LB_IO, "--merge: %s: %s", path, strerror(errno));
    else if (!source.has_header)
        st = lb_fail(err, LB_INVALID, "--merge: %s: it holds no complete line of a run", path);
    merge->counts.runs++;
    merge->counts.unfinished += !source.finished;
done:
    free(line);
    free(source.environments);
    fclose(stream);
    return st;
}

enum lb_status lb_merge_create(struct lb_merge **merge, struct lb_error *err)
{
    *merge = calloc(1, sizeof(**merge));
    if (!*merge)
        return no_memory(err);
    (*merge)->environments = json_array();
    (*merge)->identities = json_object();
    (*merge)->warnings = json_object();
    (*merge)->shards = json_object();
    return LB_OK;
}

void lb_merge_destroy(struct lb_merge *merge)
{
    if (!merge)
        return;
    for (size_t i = 0; i < merge->files; i++) {
        if (merge->fds[i] >= 0)
            close(merge->fds[i]);
        free(merge->paths[i]);
    }
    for (struct text_chunk *chunk = merge->texts, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    free(merge->paths);
    free(merge->fds);
    free(merge->rows.items);
    free(merge->canaries.items);
    free(merge->medians);
    free(merge->slots);
    json_decref(merge->environments);
    json_decref(merge->identities);
    json_decref(merge->warnings);
    json_decref(merge->settings);
    json_decref(merge->shards);
    json_decref(merge->seed);
    for (size_t i = 0; i < GIVEN_COUNT; i++)
        json_decref(merge->given[i]);
    free(merge);
}

/* Reading lines again */

/* Closes all files, because there are too many of them to be open at once. */
static void close_all(struct lb_merge *merge)
{
    for (size_t i = 0; i < merge->files; i++) {
        if (merge->fds[i] >= 0)
            close(merge->fds[i]);
        merge->fds[i] = -1;
    }
}

/* Reads an indexed line again, into a buffer that grows when needed, and splits it. */
static enum lb_status read_line(struct lb_merge *merge, const struct indexed_line *line,
                                char **buffer, size_t *size, struct parts *parts,
                                struct lb_error *err)
{
    int *fd = &merge->fds[line->file];
    const char *path = merge->paths[line->file];
    if (*fd < 0)
        *fd = open(path, O_RDONLY | O_CLOEXEC);
    if (*fd < 0 && errno == EMFILE) {
        close_all(merge);
        *fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    if (*fd < 0)
        return lb_fail(err, LB_IO, "--merge: %s: %s", path, strerror(errno));
    if (line->length + 1 > *size) {
        char *grown = realloc(*buffer, 2 * (size_t)line->length + 1);
        if (!grown)
            return no_memory(err);
        *buffer = grown;
        *size = 2 * (size_t)line->length + 1;
    }
    if (pread(*fd, *buffer, line->length, line->offset) != (ssize_t)line->length ||
        split(*buffer, line->length, parts, err) != LB_OK || parts->object)
        return lb_fail(err, LB_IO, "--merge: %s: the file changed while it was merged; merge again",
                       path);
    return LB_OK;
}

/* Sorting */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Compares texts so that T2 comes before T10. */
static int compare_naturally(const char *a, const char *b)
{
    while (*a && *b) {
        if (is_digit(*a) && is_digit(*b)) {
            size_t n = strspn(a, "0123456789"), m = strspn(b, "0123456789");
            int order = n != m ? (n < m ? -1 : 1) : memcmp(a, b, n);
            if (order)
                return order;
            a += n;
            b += m;
        } else if (*a == *b) {
            a++;
            b++;
        } else {
            break;
        }
    }
    return (unsigned char)*a - (unsigned char)*b;
}

/* Sorts rows by problem, then implementation, then environment. */
static int compare_rows(const void *a, const void *b)
{
    const struct indexed_line *p = a, *q = b;
    const char *x = strchr(p->id, '/'), *y = strchr(q->id, '/');
    int order = compare_naturally(x ? x : "", y ? y : "");
    if (!order)
        order = strcmp(p->id, q->id);
    return order ? order : (p->environment > q->environment) - (p->environment < q->environment);
}

static int compare_canaries(const void *a, const void *b)
{
    const struct indexed_line *p = a, *q = b;
    if (p->environment != q->environment)
        return p->environment < q->environment ? -1 : 1;
    if (p->started != q->started)
        return p->started < q->started ? -1 : 1;
    int order = strcmp(p->id, q->id);
    return order ? order : (p->body > q->body) - (p->body < q->body);
}

/* An environment with the text by which environments are sorted. */
struct ranked {
    char *text; /* device, node, and everything else */
    size_t number;
    json_t *environment;
};

static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *p = a, *q = b;
    return strcmp(p->text, q->text);
}

static char *rank_text(json_t *environment)
{
    char device[256], node[256];
    lb_environment_device(environment, device, sizeof(device));
    lb_environment_node(environment, node, sizeof(node));
    char *rest = dump_sorted(lb_environment_identity(environment));
    size_t size = sizeof(device) + sizeof(node) + (rest ? strlen(rest) : 0) + 3;
    char *text = rest ? malloc(size) : NULL;
    if (text)
        snprintf(text, size, "%s\n%s\n%s", device, node, rest);
    free(rest);
    return text;
}

/* Drops the environments that no row has, sorts the others, and gives the indexed lines their
 * new numbers. */
static enum lb_status sort_environments(struct lb_merge *merge, struct lb_error *err)
{
    size_t count = json_array_size(merge->environments), used = 0;
    struct line_index *both[] = {&merge->rows, &merge->canaries};
    struct ranked *ranked = calloc(count + 1, sizeof(*ranked));
    uint32_t *number = calloc(count + 1, sizeof(*number)); /* 1: it is used; later its new number */
    json_t *sorted = json_array();
    bool done = ranked && number && sorted;
    for (size_t k = 0; done && k < 2; k++)
        for (size_t i = 0; i < both[k]->count; i++)
            number[both[k]->items[i].environment] = 1;
    /* A merge without any row keeps all environments. */
    bool none = merge->rows.count + merge->canaries.count == 0;
    for (size_t i = 0; done && i < count; i++) {
        if (!number[i] && !none)
            continue;
        json_t *environment = json_array_get(merge->environments, i);
        ranked[used] = (struct ranked){rank_text(environment), i, environment};
        done = ranked[used++].text != NULL;
    }
    if (done && used > 1)
        qsort(ranked, used, sizeof(*ranked), compare_ranked);
    for (size_t i = 0; done && i < used; i++) {
        number[ranked[i].number] = (uint32_t)i;
        done = json_array_append(sorted, ranked[i].environment) == 0;
    }
    for (size_t k = 0; done && k < 2; k++)
        for (size_t i = 0; i < both[k]->count; i++)
            both[k]->items[i].environment = number[both[k]->items[i].environment];
    for (size_t i = 0; ranked && i < used; i++)
        free(ranked[i].text);
    free(ranked);
    free(number);
    json_decref(merge->environments);
    merge->environments = sorted;
    return done ? LB_OK : no_memory(err);
}

/* Drops rows of skipped cases. When another environment ran the case, all its skipped rows are
 * dropped; when every environment skipped it, one row is kept. The rows must be sorted. */
static void drop_skipped(struct lb_merge *merge)
{
    struct line_index *rows = &merge->rows;
    for (size_t i = 0, end; i < rows->count; i = end) {
        bool kept = false;
        for (end = i; end < rows->count && strcmp(rows->items[end].id, rows->items[i].id) == 0;
             end++)
            kept |= rows->items[end].ran;
        for (size_t k = i; k < end; k++) {
            if (rows->items[k].ran)
                continue;
            rows->items[k].dropped = kept;
            merge->counts.skipped += kept;
            kept = true;
        }
        for (size_t k = i; k < end; k++)
            merge->counts.rows += !rows->items[k].dropped;
    }
}

/* Reads the medians of the canaries. */
static enum lb_status read_medians(struct lb_merge *merge, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    char *buffer = NULL;
    size_t size = 0;
    merge->medians = calloc(merge->canaries.count + 1, sizeof(*merge->medians));
    if (!merge->medians)
        return no_memory(err);
    for (size_t i = 0; i < merge->canaries.count; i++) {
        const struct indexed_line *line = &merge->canaries.items[i];
        struct parts parts = {0};
        struct lb_row row = {0};
        LB_TRY(read_line(merge, line, &buffer, &size, &parts, err));
        free_parts(&parts);
        json_t *object = json_loadb(buffer, line->length, 0, NULL);
        st = lb_row_from_json(object, &row, err);
        json_decref(object);
        if (st == LB_OK && lb_row_is_timed(&row))
            merge->medians[merge->median_count++] =
                (struct lb_merge_canary){line->environment, line->id, row.median_ns};
        lb_row_free(&row);
        if (st != LB_OK)
            break;
    }
done:
    free(buffer);
    return st;
}

enum lb_status lb_merge_sort(struct lb_merge *merge, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max < MOST_OPEN ? limit.rlim_max : MOST_OPEN;
        setrlimit(RLIMIT_NOFILE, &limit); /* if it fails, files are only opened more often */
    }
    free(merge->slots);
    merge->slots = NULL;
    LB_TRY(sort_environments(merge, err));
    if (merge->rows.count > 1)
        qsort(merge->rows.items, merge->rows.count, sizeof(*merge->rows.items), compare_rows);
    if (merge->canaries.count > 1)
        qsort(merge->canaries.items, merge->canaries.count, sizeof(*merge->canaries.items),
              compare_canaries);
    drop_skipped(merge);
    st = read_medians(merge, err);
done:
    return st;
}

struct lb_merge_counts lb_merge_counts(const struct lb_merge *merge)
{
    return merge->counts;
}

const json_t *lb_merge_environments(const struct lb_merge *merge)
{
    return merge->environments;
}

const struct lb_merge_canary *lb_merge_canaries(const struct lb_merge *merge, size_t *count)
{
    *count = merge->median_count;
    return merge->medians;
}

enum lb_status lb_merge_warn(struct lb_merge *merge, size_t environment, const char *warning,
                             struct lb_error *err)
{
    char key[32];
    snprintf(key, sizeof(key), "%zu", environment);
    return json_object_set_new(merge->warnings, key, json_string(warning)) == 0 ? LB_OK
                                                                                : no_memory(err);
}

/* Shards */

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Returns the keys of merge->shards in order [json_object_size(merge->shards)]. The caller frees
 * the array but not the keys. */
static const char **sorted_shards(const struct lb_merge *merge)
{
    size_t count = 0;
    const char *key;
    json_t *shard;
    const char **keys = calloc(json_object_size(merge->shards) + 1, sizeof(*keys));
    json_object_foreach(merge->shards, key, shard)
    {
        if (keys)
            keys[count++] = key;
    }
    if (keys && count > 1)
        qsort(keys, count, sizeof(*keys), compare_texts);
    return keys;
}

static void add_text(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void add_text(char *text, size_t size, const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
}

/* Adds to text which shards of a plan are missing; keys[first] to keys[end - 1] are those that
 * are there, in order. */
static void say_missing(const struct lb_merge *merge, const char *const *keys, size_t first,
                        size_t end, char *text, size_t size)
{
    enum { NAMED = 20 };
    const json_t *shard = json_object_get(merge->shards, keys[first]);
    json_int_t count = json_integer_value(json_object_get(shard, "count"));
    size_t missing = (size_t)count - (end - first), named = 0;
    if (missing == 0)
        return;
    add_text(text, size, "%s%s", text[0] ? "; " : "", missing > 1 ? "shards" : "shard");
    for (json_int_t index = 1; index <= count && named < NAMED; index++) {
        shard = first < end ? json_object_get(merge->shards, keys[first]) : NULL;
        if (json_integer_value(json_object_get(shard, "index")) == index)
            first++;
        else
            add_text(text, size, "%s %d", named++ > 0 ? "," : "", (int)index);
    }
    if (missing > named)
        add_text(text, size, " and %zu more", missing - named);
    add_text(text, size, " of %d %s missing", (int)count, missing > 1 ? "are" : "is");
}

void lb_merge_missing(const struct lb_merge *merge, char *text, size_t size)
{
    size_t count = json_object_size(merge->shards), plans = 0;
    const char **keys = sorted_shards(merge);
    const size_t prefix = 16 + 1 + 8; /* length of the plan and the number of shards in a key */
    text[0] = '\0';
    for (size_t i = 0, end; keys && i < count; i = end, plans++) {
        for (end = i; end < count && strncmp(keys[i], keys[end], prefix) == 0; end++)
            ;
        say_missing(merge, keys, i, end, text, size);
    }
    if (plans > 1)
        add_text(text, size, "%sthe shards are of %zu different plans", text[0] ? "; " : "", plans);
    free(keys);
}

/* Writing */

static json_t *make_header(const struct lb_merge *merge)
{
    char started[32];
    size_t count = json_object_size(merge->shards);
    const char **keys = sorted_shards(merge);
    json_t *shards = json_array();
    for (size_t i = 0; keys && i < count; i++)
        json_array_append(shards, json_object_get(merge->shards, keys[i]));
    free(keys);
    print_time(merge->started, started);
    json_t *header = json_pack("{s:s, s:i, s:s, s:O, s:O, s:[ss], s:O, s:b, s:o}", "kind", "header",
                               "schema", LB_SCHEMA_VERSION, "started", started, "environment",
                               json_array_get(merge->environments, 0), "environments",
                               merge->environments, "command", "bench-lstm", "--merge", "seed",
                               merge->seed, "merged", 1, "shards", shards);
    bool done = header && json_object_update(header, merge->settings) == 0;
    for (size_t i = 0; done && i < GIVEN_COUNT; i++)
        done = !merge->given[i] || json_object_set(header, given_keys[i], merge->given[i]) == 0;
    if (!done) {
        json_decref(header);
        header = NULL;
    }
    return header;
}

static enum lb_status write_object(json_t *object, FILE *out, struct lb_error *err)
{
    bool done = object && json_dumpf(object, out, JSON_COMPACT) == 0 && fputc('\n', out) != EOF;
    json_decref(object);
    return done ? LB_OK : no_memory(err);
}

/* Writes an indexed line with the number of its environment, the time of its session, and the
 * warning about its node. */
static enum lb_status write_line(struct lb_merge *merge, const struct indexed_line *line,
                                 char **buffer, size_t *size, FILE *out, struct lb_error *err)
{
    char started[32], number[32];
    struct parts parts = {0};
    enum lb_status st = read_line(merge, line, buffer, size, &parts, err);
    if (st != LB_OK) {
        free_parts(&parts);
        return st;
    }
    fprintf(out, "{\"kind\":\"%s\",\"case\":\"%.*s\",\"environment\":%" PRIu32 ",",
            parts.canary ? "canary" : "row", (int)parts.id_length, parts.id, line->environment);
    if (line->started) {
        print_time(line->started, started);
        fprintf(out, "\"started\":\"%s\",", started);
    }
    snprintf(number, sizeof(number), "%" PRIu32, line->environment);
    const json_t *warning = parts.canary ? NULL : json_object_get(merge->warnings, number);
    if (warning) {
        fputs("\"node_warning\":", out);
        json_dumpf(warning, out, JSON_COMPACT | JSON_ENCODE_ANY);
        fputc(',', out);
    }
    fwrite(parts.body, 1, parts.body_length, out);
    fputc('\n', out);
    free_parts(&parts);
    return LB_OK;
}

/* lb_file_writer */
static enum lb_status write_run(FILE *out, const void *user, struct lb_error *err)
{
    struct lb_merge *merge = (struct lb_merge *)(uintptr_t)user;
    enum lb_status st = LB_OK;
    char *buffer = NULL, finished[32];
    size_t size = 0;
    setvbuf(out, NULL, _IOFBF, BUFFER);
    LB_TRY(write_object(make_header(merge), out, err));
    for (size_t i = 0; i < merge->canaries.count; i++)
        LB_TRY(write_line(merge, &merge->canaries.items[i], &buffer, &size, out, err));
    for (size_t i = 0; i < merge->rows.count; i++)
        if (!merge->rows.items[i].dropped)
            LB_TRY(write_line(merge, &merge->rows.items[i], &buffer, &size, out, err));
    print_time(merge->finished, finished);
    st = write_object(json_pack("{s:s, s:s, s:I, s:b}", "kind", "footer", "finished", finished,
                                "rows", (json_int_t)merge->counts.rows, "interrupted",
                                merge->counts.unfinished > 0),
                      out, err);
done:
    free(buffer);
    return st;
}

/* LB_INVALID when the file is a run that is not a result of merging, since it would be lost. */
static enum lb_status check_replaceable(const char *path, struct lb_error *err)
{
    char *line = NULL;
    size_t size = 0;
    FILE *stream = fopen(path, "r");
    if (!stream)
        return errno == ENOENT ? LB_OK : lb_fail(err, LB_IO, "%s: %s", path, strerror(errno));
    bool read = getline(&line, &size, stream) > 0;
    json_t *header = read ? json_loads(line, 0, NULL) : NULL;
    bool merged = json_is_true(json_object_get(header, "merged"));
    fclose(stream);
    free(line);
    json_decref(header);
    return merged ? LB_OK
                  : lb_fail(err, LB_INVALID,
                            "--merge: %s is a run of its own, which the result would replace; name "
                            "another folder for the result",
                            path);
}

enum lb_status lb_merge_write(struct lb_merge *merge, const char *folder, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    char *path = lb_run_path(folder);
    if (!path)
        return no_memory(err);
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        LB_TRY(lb_fail(err, LB_IO, "--merge: %s: %s", folder, strerror(errno)));
    LB_TRY(check_replaceable(path, err));
    st = lb_write_file_atomically(path, write_run, merge, err);
done:
    free(path);
    return st;
}
