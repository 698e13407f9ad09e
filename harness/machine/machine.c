/* The machines that are known by name, and the reader of files that describe others. */
#include "machine/machine.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "base/text.h"

enum { KNOWN_MAX = 32, NUMBER_MAX = 1 << 20 };

/* The lines of machines.txt. */
static const char *const known_lines[] = {
#include "machines.inc"
};

/* Types of values. The first two are read as double, the next two as int, and NAME as char[64]. The
 * figures of the machine that LIKE names hold for all keys that are not given. */
enum type { REAL, REAL_OR_ZERO, WHOLE, WHOLE_OR_ZERO, NAME, LIKE, KIND, CAPABILITY, UNIT };

static const char *const wanted[] = {
    [REAL] = "a number above 0",
    [REAL_OR_ZERO] = "a number, 0 or above",
    [WHOLE] = "a whole number above 0",
    [WHOLE_OR_ZERO] = "a whole number, 0 or above",
    [NAME] = "a name of 1 to 63 bytes",
    [LIKE] = "the name of a known machine",
    [KIND] = "cpu or gpu",
    [CAPABILITY] = "a compute capability, such as 8.9",
    [UNIT] = "plain, avx2, avx512, avx512bf16 or amx",
};

/* Machines that have a key. The last two kinds of keys may be left out. */
enum { OF_GPU = 1, OF_CPU = 2, OF_BOTH = 3, OF_ANY = 4, OF_KNOWN = 8 };

#define AT(field) offsetof(struct lb_machine, field)

static const struct key {
    const char *name;
    enum type type;
    int kinds;
    size_t offset;
} keys[] = {
    {"like", LIKE, OF_ANY, 0},
    {"known_as", NAME, OF_KNOWN, AT(label)},
    {"matches", NAME, OF_KNOWN, AT(matches)},
    {"kind", KIND, OF_BOTH, AT(cpu)},
    {"name", NAME, OF_BOTH, AT(name)},
    {"compute_capability", CAPABILITY, OF_GPU, 0},
    {"cores", WHOLE, OF_BOTH, AT(cores)},
    {"cluster", WHOLE_OR_ZERO, OF_GPU, AT(cluster)},
    {"threads_per_core", WHOLE, OF_CPU, AT(threads_per_core)},
    {"domains", WHOLE, OF_CPU, AT(domains)},
    {"nodes", WHOLE, OF_CPU, AT(nodes)},
    {"f64_unit", UNIT, OF_CPU, AT(units[LB_F64])},
    {"f32_unit", UNIT, OF_CPU, AT(units[LB_F32])},
    {"f16_unit", UNIT, OF_CPU, AT(units[LB_F16])},
    {"bf16_unit", UNIT, OF_CPU, AT(units[LB_BF16])},
    {"clock_hz", REAL, OF_BOTH, AT(clock_hz)},
    {"clock_max_hz", REAL, OF_GPU, AT(clock_max_hz)},
    {"f64_flops_clock", REAL, OF_BOTH, AT(flops_clock[LB_F64])},
    {"f32_flops_clock", REAL, OF_BOTH, AT(flops_clock[LB_F32])},
    {"f16_flops_clock", REAL, OF_BOTH, AT(flops_clock[LB_F16])},
    {"bf16_flops_clock", REAL, OF_BOTH, AT(flops_clock[LB_BF16])},
    {"tf32_flops_clock", REAL, OF_GPU, AT(tf32_flops_clock)},
    {"inner_bytes", REAL, OF_BOTH, AT(bytes[LB_INNER])},
    {"own_bytes", REAL, OF_BOTH, AT(bytes[LB_OWN])},
    {"cache_bytes", REAL, OF_BOTH, AT(bytes[LB_CACHE])},
    {"memory_bytes", REAL, OF_GPU, AT(bytes[LB_MEMORY])},
    {"inner_bytes_clock", REAL, OF_CPU, AT(bytes_clock[LB_INNER])},
    {"own_bytes_clock", REAL, OF_BOTH, AT(bytes_clock[LB_OWN])},
    {"cache_bytes_clock", REAL, OF_BOTH, AT(bytes_clock[LB_CACHE])},
    {"memory_bytes_clock", REAL, OF_BOTH, AT(bytes_clock[LB_MEMORY])},
    {"cache_bytes_s", REAL_OR_ZERO, OF_BOTH, AT(bytes_s[LB_CACHE])},
    {"memory_bytes_s", REAL, OF_BOTH, AT(bytes_s[LB_MEMORY])},
    {"peer_bytes_clock", REAL_OR_ZERO, OF_BOTH, AT(peer_bytes_clock)},
    {"peer_clocks", REAL_OR_ZERO, OF_BOTH, AT(peer_clocks)},
    {"far_clocks", REAL, OF_BOTH, AT(far_clocks)},
    {"remote_clocks", REAL, OF_CPU, AT(remote_clocks)},
    {"cell_clocks", REAL_OR_ZERO, OF_BOTH, AT(cell_clocks)},
    {"tile_rows", WHOLE, OF_BOTH, AT(tile_rows)},
};

enum { LIKE_KEY, KNOWN_AS_KEY, KEY_COUNT = sizeof(keys) / sizeof(keys[0]) };

static bool read_number(const char *value, enum type type, void *to)
{
    char *end;
    double number = strtod(value, &end);
    bool zero = type == REAL_OR_ZERO || type == WHOLE_OR_ZERO;
    bool whole = type == WHOLE || type == WHOLE_OR_ZERO;
    if (end == value || *end || !isfinite(number) || number < 0 || (number == 0 && !zero) ||
        (whole && (number != floor(number) || number > NUMBER_MAX)))
        return false;
    if (whole)
        *(int *)to = (int)number;
    else
        *(double *)to = number;
    return true;
}

/* Reads a unit for types of floating point. */
static bool read_unit(const char *value, enum lb_cpu_unit *to)
{
    for (*to = LB_CPU_PLAIN; *to < LB_CPU_UNIT_COUNT; ++*to)
        if (*to != LB_CPU_AVXVNNI && strcmp(value, lb_cpu_unit_name(*to)) == 0)
            return true;
    return false;
}

/* Reads the key's value into its field; false: it is wrong. */
static bool read_value(const struct key *key, const char *value, struct lb_machine *m)
{
    void *to = (char *)m + key->offset;
    char behind;
    switch (key->type) {
    case NAME:
        snprintf(to, sizeof(m->name), "%s", value);
        return value[0] && strlen(value) < sizeof(m->name);
    case KIND: m->cpu = strcmp(value, "cpu") == 0; return m->cpu || strcmp(value, "gpu") == 0;
    case CAPABILITY:
        return sscanf(value, "%2d.%1d%c", &m->major, &m->minor, &behind) == 2 && m->major > 0;
    case UNIT: return read_unit(value, to);
    default: return read_number(value, key->type, to);
    }
}

static struct lb_machine known[KNOWN_MAX];
static int known_count;

/* The machine of the file that was read last; without a label: no file was read. */
static struct lb_machine described;

/* A description while it is read. */
struct reading {
    const char *path;
    bool is_known; /* it is part of machines.txt */
    int given;     /* OF_GPU or OF_CPU: what the machine that LIKE names has; 0: no LIKE */
    struct lb_machine m;
    int line, lines[KEY_COUNT]; /* the line of each key; 0: not given yet */
};

/* Lists the labels of known machines, or the words of known GPUs. */
static void list_known(bool words, char *list, size_t size)
{
    list[0] = '\0';
    for (int i = 0; i < known_count; i++)
        if (!words || known[i].matches[0])
            lb_append(list, size, "%s%s", list[0] ? ", " : "",
                      words ? known[i].matches : known[i].label);
}

static const struct lb_machine *find_known(const char *label)
{
    for (int i = 0; i < known_count; i++)
        if (strcmp(known[i].label, label) == 0)
            return &known[i];
    return NULL;
}

/* Removes blanks from both ends of the text, in place. */
static char *trim(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    for (size_t n = strlen(text); n > 0 && isspace((unsigned char)text[n - 1]); n--)
        text[n - 1] = '\0';
    return text;
}

static enum lb_status unknown_key(const struct reading *r, const char *name, struct lb_error *err)
{
    struct lb_hint hint = {0};
    for (int i = 0; i < KEY_COUNT; i++)
        if (keys[i].kinds != OF_KNOWN)
            lb_hint_add(&hint, name, keys[i].name);
    return lb_fail(err, LB_INVALID, "%.300s:%d: '%.60s' is not a key of a machine%s%s", r->path,
                   r->line, name, hint.distance ? "; " : "", hint.distance ? hint.text : "");
}

static enum lb_status take_like(struct reading *r, const char *value, struct lb_error *err)
{
    char names[256];
    const struct lb_machine *like = find_known(value);
    for (int i = 0; i < KEY_COUNT; i++)
        if (r->lines[i] && keys[i].kinds & OF_BOTH)
            return lb_fail(err, LB_INVALID, "%.300s:%d: like must come before %s, in line %d",
                           r->path, r->line, keys[i].name, r->lines[i]);
    list_known(false, names, sizeof(names));
    if (!like)
        return lb_fail(err, LB_INVALID,
                       "%.300s:%d: like = %.60s: no such machine is known; there are %s", r->path,
                       r->line, value, names);
    struct lb_machine m = *like;
    memcpy(m.label, r->m.label, sizeof(m.label));
    r->m = m;
    r->given = m.cpu ? OF_CPU : OF_GPU;
    return LB_OK;
}

/* Reads one line: "key = value", a comment that begins with '#', or an empty line. */
static enum lb_status take_line(struct reading *r, char *line, struct lb_error *err)
{
    char *name = trim(line), *equals = strchr(name, '=');
    int k = 0;
    if (!*name || *name == '#')
        return LB_OK;
    if (!equals)
        return lb_fail(err, LB_INVALID, "%.300s:%d: '%.60s': a line must be a key, = and a value",
                       r->path, r->line, name);
    *equals = '\0';
    name = trim(name);
    char *value = trim(equals + 1);
    while (k < KEY_COUNT &&
           (strcmp(keys[k].name, name) != 0 || (keys[k].kinds == OF_KNOWN && !r->is_known)))
        k++;
    if (k == KEY_COUNT)
        return unknown_key(r, name, err);
    if (r->lines[k])
        return lb_fail(err, LB_INVALID, "%.300s:%d: %s was given in line %d already", r->path,
                       r->line, name, r->lines[k]);
    r->lines[k] = r->line;
    if (keys[k].type == LIKE)
        return take_like(r, value, err);
    if (!read_value(&keys[k], value, &r->m))
        return lb_fail(err, LB_INVALID, "%.300s:%d: %s = %.60s: it must be %s", r->path, r->line,
                       name, value, wanted[keys[k].type]);
    return LB_OK;
}

/* The rate of int8 on a CPU: twice that of bf16 in tiles, and in vectors of AVX-512, whose CPUs
 * mostly have VNNI, four times that of f32. */
static void derive_int8(struct lb_machine *m)
{
    bool tiles = m->units[LB_BF16] == LB_CPU_AMX;
    bool vectors = !tiles && m->units[LB_F32] >= LB_CPU_AVX512;
    m->units[LB_INT8] = tiles ? LB_CPU_AMX : m->units[LB_F32];
    m->flops_clock[LB_INT8] =
        tiles ? 2 * m->flops_clock[LB_BF16] : (vectors ? 4 : 1) * m->flops_clock[LB_F32];
}

/* Checks what a single line cannot show, and fills in what follows from the other figures. */
static enum lb_status finish(struct reading *r, struct lb_error *err)
{
    struct lb_machine *m = &r->m;
    const int own = m->cpu ? OF_CPU : OF_GPU;
    for (int i = 0; i < KEY_COUNT; i++) {
        bool like = keys[i].kinds & r->given && keys[i].type != NAME; /* which gives no name */
        if (!r->lines[i] && keys[i].kinds & own && !like)
            return lb_fail(
                err, LB_INVALID, "%.300s: %s is missing%s", r->path, keys[i].name,
                r->lines[LIKE_KEY] ? "" : "; a first line such as 'like = h100' fills in the rest");
        if (r->lines[i] && keys[i].kinds & OF_BOTH && !(keys[i].kinds & own))
            return lb_fail(err, LB_INVALID, "%.300s:%d: a %s has no %s", r->path, r->lines[i],
                           m->cpu ? "CPU" : "GPU", keys[i].name);
    }
    if (m->cpu) {
        m->clock_max_hz = m->clock_hz;
        derive_int8(m);
    } else {
        m->threads_per_core = m->domains = m->nodes = 1;
    }
    const char *wrong = NULL;
    if (m->clock_hz > m->clock_max_hz)
        wrong = "clock_hz is above clock_max_hz";
    else if (m->cluster > 0 && !(m->peer_bytes_clock > 0 && m->peer_clocks > 0))
        wrong = "a cluster needs peer_bytes_clock and peer_clocks above 0";
    else if (m->cores % m->domains != 0 || m->domains % m->nodes != 0)
        wrong = "cores must be a multiple of domains, and domains of nodes";
    else if (m->cpu && (double)m->cores * m->threads_per_core > LB_CPU_MAX)
        wrong = "cores times threads_per_core is above 1024";
    if (m->cpu)
        m->cluster = m->cores / m->domains;
    return wrong ? lb_fail(err, LB_INVALID, "%.300s: %s", r->path, wrong) : LB_OK;
}

static enum lb_status read_file(const char *path, struct lb_machine *machine, struct lb_error *err)
{
    char line[512];
    enum lb_status st = LB_OK;
    struct reading r = {.path = path};
    FILE *file = fopen(path, "r");
    if (!file)
        return lb_fail(err, LB_IO, "%.300s: %s", path, strerror(errno));
    while (st == LB_OK && fgets(line, sizeof(line), file)) {
        r.line++;
        if (!strchr(line, '\n') && !feof(file))
            st = lb_fail(err, LB_INVALID,
                         "%.300s:%d: the line has more than %zu bytes or a zero byte", path, r.line,
                         sizeof(line) - 2);
        else
            st = take_line(&r, line, err);
    }
    if (st == LB_OK && ferror(file))
        st = lb_fail(err, LB_IO, "%.300s: %s", path, strerror(errno));
    fclose(file);
    if (st == LB_OK)
        st = finish(&r, err);
    memcpy(r.m.label, r.m.name, sizeof(r.m.label));
    r.m.matches[0] = '\0';
    *machine = r.m;
    return st;
}

/* Reads machines.txt, which is part of the program, at the first call. A machine that is described
 * wrongly is left out. */
static void read_known(void)
{
    enum { LINES = sizeof(known_lines) / sizeof(known_lines[0]) };
    const char *const first = keys[KNOWN_AS_KEY].name;
    struct reading r = {.path = NULL};
    enum lb_status st = LB_INVALID; /* of the machine that is being read */
    char line[256];
    if (known_count > 0)
        return;
    for (int i = 0; i <= LINES; i++) {
        if (i == LINES || strncmp(known_lines[i], first, strlen(first)) == 0) {
            if (st == LB_OK && finish(&r, NULL) == LB_OK && known_count < KNOWN_MAX)
                known[known_count++] = r.m;
            r = (struct reading){.path = "machines.txt", .is_known = true};
            st = LB_OK;
        }
        r.line = i + 1;
        snprintf(line, sizeof(line), "%s", i < LINES ? known_lines[i] : "");
        if (st == LB_OK)
            st = take_line(&r, line, NULL);
    }
}

enum lb_status lb_machine_read(const char *name, struct lb_machine *machine, struct lb_error *err)
{
    char names[256];
    read_known();
    const struct lb_machine *found = find_known(name);
    if (found) {
        *machine = *found;
        return LB_OK;
    }
    if (strpbrk(name, "./"))
        return read_file(name, machine, err);
    list_known(false, names, sizeof(names));
    return lb_fail(err, LB_INVALID,
                   "'%.200s': no machine of that name is known; there are %s, and the path of a "
                   "file, with a / or a ., describes another one",
                   name, names);
}

/* Whether the device's name contains the machine's word as a whole word. For a GeForce, further
 * words behind it ("Ti", "D", "Laptop GPU") mean another device. */
static bool matches(const struct lb_machine *m, const char *device)
{
    size_t length = strlen(m->matches);
    bool whole_rest = strncmp(m->matches, "RTX", 3) == 0;
    for (const char *at = length > 0 ? strstr(device, m->matches) : NULL; at;
         at = strstr(at + 1, m->matches)) {
        char before = at == device ? ' ' : at[-1], after = at[length];
        if (!isalnum((unsigned char)before) &&
            (whole_rest ? after == '\0' : !isalnum((unsigned char)after)))
            return true;
    }
    return false;
}

/* The known or described machine of the device; NULL: there is none. Of several known
 * ones, the one whose `matches` is longest: an H100 NVL is not an H100. */
static const struct lb_machine *machine_of(const struct lb_device_info *device)
{
    const struct lb_machine *found = NULL;
    read_known();
    if (described.label[0] && strcmp(described.name, device->name) == 0)
        return &described;
    for (int i = 0; i < known_count; i++)
        if (matches(&known[i], device->name) &&
            (!found || strlen(known[i].matches) > strlen(found->matches)))
            found = &known[i];
    return found;
}

enum lb_status lb_machine_of(const struct lb_device_info *device, struct lb_machine *machine,
                             struct lb_error *err)
{
    char words[256];
    const struct lb_machine *found = machine_of(device);
    *machine = found ? *found
                     : (struct lb_machine){.threads_per_core = 1,
                                           .domains = 1,
                                           .nodes = 1,
                                           .clock_hz = 1e9,
                                           .clock_max_hz = 1e9};
    machine->cores = device->sm_count;
    machine->bytes[LB_OWN] = device->shared_bytes;
    machine->bytes[LB_CACHE] = device->l2_bytes;
    machine->bytes[LB_MEMORY] = device->memory_bytes;
    if (found)
        return LB_OK;
    list_known(true, words, sizeof(words));
    snprintf(machine->label, sizeof(machine->label), "%s", device->name);
    return lb_fail(err, LB_UNSUPPORTED, "%s: the model of the lower bound has figures for %s only",
                   device->name, words);
}

enum lb_status lb_device_model(const char *name, struct lb_device_info *info, struct lb_error *err)
{
    struct lb_machine machine;
    LB_CHECK(lb_machine_read(name, &machine, err));
    if (machine.cpu)
        return lb_fail(err, LB_INVALID, "'%.200s' is a CPU", name);
    if (!machine.matches[0])
        described = machine;
    *info = (struct lb_device_info){.major = machine.major,
                                    .minor = machine.minor,
                                    .sm_count = machine.cores,
                                    .memory_bytes = machine.bytes[LB_MEMORY],
                                    .l2_bytes = machine.bytes[LB_CACHE],
                                    .shared_bytes = machine.bytes[LB_OWN],
                                    .modelled = true};
    snprintf(info->name, sizeof(info->name), "%s", machine.name);
    return LB_OK;
}

void lb_machine_here(const struct lb_cpu_topology *topology, bool usual, struct lb_machine *machine)
{
    static const double f32_flops[LB_CPU_UNIT_COUNT] = {8, 32, 32, 64, 64, 64};
    const double sizes[] = {(double)lb_cpu_cache_bytes(1), (double)lb_cpu_cache_bytes(2),
                            topology->domain_bytes > 0 ? topology->domain_bytes
                                                       : (double)lb_cpu_cache_bytes(3)};
    struct lb_machine m = {.cpu = true, .clock_hz = 1e9, .clock_max_hz = 1e9};
    if (usual && lb_machine_read("epyc9654", &m, NULL) == LB_OK) {
        double slower = 3e9 / m.clock_hz; /* with the same latencies in ns, and the same memory */
        m.clock_hz = m.clock_max_hz = 3e9;
        m.peer_clocks *= slower;
        m.far_clocks *= slower;
        m.remote_clocks *= slower;
        m.bytes_clock[LB_MEMORY] /= slower;
    }
    snprintf(m.label, sizeof(m.label), "this machine");
    m.cores = (int)topology->cores;
    m.threads_per_core = topology->cores > 0 ? (int)(topology->count / topology->cores) : 1;
    m.domains = (int)topology->domains;
    m.nodes = (int)topology->nodes;
    m.cluster = m.domains > 0 ? (m.cores + m.domains - 1) / m.domains : m.cores;
    for (int level = LB_INNER; level <= LB_CACHE; level++)
        if (sizes[level] > 0) /* the system says it */
            m.bytes[level] = sizes[level];
    for (int d = 0; d < LB_DTYPE_COUNT; d++) {
        m.units[d] = lb_cpu_best_unit((enum lb_dtype)d);
        double flops = f32_flops[m.units[d]] / (d == LB_F64 ? 2 : 1);
        if (m.units[d] == LB_CPU_AVX512BF16)
            flops *= 2;
        if (d == LB_INT8 && (m.units[d] == LB_CPU_AVXVNNI || m.units[d] == LB_CPU_AVX512))
            flops *= 4;
        double tiles = d == LB_INT8 ? 2048 : 1024;
        m.flops_clock[d] = !usual ? 0 : m.units[d] == LB_CPU_AMX ? tiles : flops;
    }
    *machine = m;
}

void lb_machine_topology(const struct lb_machine *machine, struct lb_cpu_topology *topology)
{
    lb_cpu_topology_make((size_t)machine->cores * (size_t)machine->threads_per_core,
                         (size_t)machine->cores, (size_t)machine->domains, (size_t)machine->nodes,
                         machine->bytes[LB_CACHE], topology);
}

static struct lb_machine assumed; /* without cores: none */

void lb_cpu_assume(const struct lb_machine *machine)
{
    assumed = *machine;
}

const struct lb_machine *lb_cpu_assumed(void)
{
    return assumed.cores > 0 ? &assumed : NULL;
}

double lb_machine_flops_s(const struct lb_machine *machine, const struct lb_problem *problem,
                          double cores)
{
    enum lb_dtype dtype = problem->dtype;
    double clock = machine->flops_clock[dtype], limit = machine->flops_s[dtype];
    if (dtype == LB_F32 && !machine->cpu && problem->math != LB_IEEE)
        clock = problem->math == LB_TF32 ? machine->tf32_flops_clock : machine->flops_clock[LB_F16];
    double rate = cores * clock * machine->clock_max_hz;
    return limit > 0 ? fmin(rate, limit) : rate;
}

double lb_machine_read_s(const struct lb_machine *machine, enum lb_level level, double cores,
                         double clock_hz)
{
    double port = cores * machine->bytes_clock[level] * clock_hz, all = machine->bytes_s[level];
    return fmin(port > 0 ? port : INFINITY, all > 0 ? all : INFINITY);
}

const char *lb_level_name(const struct lb_machine *machine, enum lb_level level)
{
    static const char *const names[2][LB_LEVEL_COUNT] = {
        {"registers", "shared memory", "the cache", "device memory"}, {"L1", "L2", "L3", "memory"}};
    return names[machine->cpu][level];
}
