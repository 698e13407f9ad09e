/* An NVTX tool for tests: writes every event as a line of JSON, with names in place of handles, to
 * $NVTX_RECORDER_OUT.<process id>.
 *
 * It is loaded by NVTX_INJECTION64_PATH. When it is preloaded as well, it also records each reading
 * of the monotonic clock, and calls that a plug-in reports by nvtx_recorder_note, so that tests see
 * in which order these and the ranges happen. Each line is written at once, so that it survives a
 * kill. */
#include <dlfcn.h>
#include <fcntl.h>
#include <jansson.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MAX_DOMAINS = 8, MAX_CATEGORIES = 32, MAX_SCHEMAS = 8, MAX_FIELDS = 16 };

struct nvtxDomainRegistration_st {
    char *name;
    char *categories[MAX_CATEGORIES];
};

struct nvtxStringRegistration_st {
    char *text;
    nvtxDomainHandle_t domain;
};

static struct nvtxDomainRegistration_st domains[MAX_DOMAINS];
static size_t domain_count;

static struct {
    char *name;
    size_t size, count;
    nvtxPayloadSchemaEntry_t fields[MAX_FIELDS]; /* names copied */
} schemas[MAX_SCHEMAS];
static size_t schema_count;

void nvtx_recorder_note(const char *event);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);
int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *module);

static void write_line(const char *text, size_t length)
{
    static int fd = -1;
    static pid_t owner;
    if (fd < 0 || owner != getpid()) {
        const char *out = getenv("NVTX_RECORDER_OUT");
        char path[4096];
        if (!out)
            return;
        owner = getpid();
        snprintf(path, sizeof(path), "%s.%ld", out, (long)owner);
        fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (fd < 0)
            abort();
    }
    if (write(fd, text, length) != (ssize_t)length)
        abort();
}

static void write_event(json_t *event)
{
    char *text = json_dumps(event, JSON_COMPACT);
    size_t length = text ? strlen(text) : 0;
    if (!text)
        abort();
    text[length++] = '\n';
    write_line(text, length);
    free(text);
    json_decref(event);
}

void nvtx_recorder_note(const char *event)
{
    char line[128];
    int length = snprintf(line, sizeof(line), "{\"event\":\"%s\"}\n", event);
    write_line(line, (size_t)length);
}

/* Replaces the C library's function when this library is preloaded. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (clock == CLOCK_MONOTONIC)
        nvtx_recorder_note("clock");
    return (int)syscall(SYS_clock_gettime, clock, now);
}

/* Payloads */

static json_t *field_json(const nvtxPayloadSchemaEntry_t *field, const char *data)
{
    int64_t number;
    const void *handle;
    const struct nvtxStringRegistration_st *string;
    switch (field->type) {
    case NVTX_PAYLOAD_ENTRY_TYPE_INT64:
        memcpy(&number, data + field->offset, sizeof(number));
        return json_integer(number);
    case NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE:
        memcpy(&handle, data + field->offset, sizeof(handle));
        string = handle;
        return json_string(string->text);
    default: return json_string("a type that the recorder does not know");
    }
}

/* A payload, decoded by its schema: {"schema": name, field: value, ...}. */
static json_t *payload_json(const nvtxEventAttributes_t *attributes)
{
    if (attributes->payloadType != NVTX_PAYLOAD_TYPE_EXT)
        return attributes->payloadType == NVTX_PAYLOAD_UNKNOWN ? json_null() : json_string("plain");
    const void *pointer;
    memcpy(&pointer, &attributes->payload.ullValue, sizeof(pointer));
    const nvtxPayloadData_t *data = pointer;
    size_t index = (size_t)(data->schemaId - NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START);
    if (attributes->reserved0 != 1 || index >= schema_count || data->size != schemas[index].size)
        return json_string("of no schema");
    json_t *object = json_pack("{s:s}", "schema", schemas[index].name);
    for (size_t i = 0; i < schemas[index].count; i++)
        json_object_set_new(object, schemas[index].fields[i].name,
                            field_json(&schemas[index].fields[i], data->payload));
    return object;
}

static uint64_t NVTX_API on_schema(nvtxDomainHandle_t domain, const nvtxPayloadSchemaAttr_t *attr)
{
    (void)domain;
    if (schema_count == MAX_SCHEMAS || attr->numEntries > MAX_FIELDS)
        abort();
    schemas[schema_count].name = strdup(attr->name);
    schemas[schema_count].size = attr->payloadStaticSize;
    schemas[schema_count].count = attr->numEntries;
    for (size_t i = 0; i < attr->numEntries; i++) {
        schemas[schema_count].fields[i] = attr->entries[i];
        schemas[schema_count].fields[i].name = strdup(attr->entries[i].name);
    }
    return NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START + schema_count++;
}

/* Events */

static const char *category_name(nvtxDomainHandle_t domain, uint32_t category)
{
    if (category == 0)
        return "";
    const char *name = domain && category < MAX_CATEGORIES ? domain->categories[category] : NULL;
    return name ? name : "a category without a name";
}

static json_t *domain_json(nvtxDomainHandle_t domain)
{
    return domain ? json_string(domain->name) : json_null();
}

static void on_attributes(const char *event, nvtxDomainHandle_t domain,
                          const nvtxEventAttributes_t *attributes)
{
    char color[16];
    bool registered = attributes->messageType == NVTX_MESSAGE_TYPE_REGISTERED;
    bool foreign = registered && attributes->message.registered->domain != domain;
    snprintf(color, sizeof(color), "%08x", attributes->color);
    write_event(json_pack("{s:s, s:o, s:s, s:b, s:s, s:s, s:o}", "event", event, "domain",
                          domain_json(domain), "name",
                          foreign      ? "a string of another domain"
                          : registered ? attributes->message.registered->text
                                       : attributes->message.ascii,
                          "registered", registered, "category",
                          category_name(domain, attributes->category), "color", color, "payload",
                          payload_json(attributes)));
}

static void on_plain(const char *event, nvtxDomainHandle_t domain, const char *name)
{
    write_event(
        json_pack("{s:s, s:o, s:s}", "event", event, "domain", domain_json(domain), "name", name));
}

static int NVTX_API on_domain_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a)
{
    on_attributes("push", domain, a);
    return 0;
}

static int NVTX_API on_domain_pop(nvtxDomainHandle_t domain)
{
    on_plain("pop", domain, "");
    return 0;
}

static void NVTX_API on_domain_mark(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a)
{
    on_attributes("mark", domain, a);
}

static nvtxRangeId_t NVTX_API on_domain_start(nvtxDomainHandle_t domain,
                                              const nvtxEventAttributes_t *a)
{
    on_attributes("start", domain, a);
    return 1;
}

static void NVTX_API on_domain_end(nvtxDomainHandle_t domain, nvtxRangeId_t id)
{
    (void)id;
    on_plain("end", domain, "");
}

static void NVTX_API on_mark(const char *message)
{
    on_plain("mark", NULL, message);
}

static int NVTX_API on_push(const char *message)
{
    on_plain("push", NULL, message);
    return 0;
}

static int NVTX_API on_pop(void)
{
    on_plain("pop", NULL, "");
    return 0;
}

/* Registrations */

static nvtxDomainHandle_t NVTX_API on_domain(const char *name)
{
    if (domain_count == MAX_DOMAINS)
        abort();
    domains[domain_count].name = strdup(name);
    return &domains[domain_count++];
}

static void NVTX_API on_category(nvtxDomainHandle_t domain, uint32_t category, const char *name)
{
    if (category >= MAX_CATEGORIES)
        abort();
    domain->categories[category] = strdup(name);
}

static nvtxStringHandle_t NVTX_API on_string(nvtxDomainHandle_t domain, const char *text)
{
    nvtxStringHandle_t string = malloc(sizeof(*string));
    if (!string)
        abort();
    *string = (struct nvtxStringRegistration_st){strdup(text), domain};
    return string;
}

typedef void (*function)(void);

static void fill(const NvtxExportTableCallbacks *callbacks, NvtxCallbackModule module,
                 const function *functions, size_t count)
{
    NvtxFunctionTable table = NULL;
    unsigned size = 0;
    if (!callbacks->GetModuleFunctionTable(module, &table, &size))
        abort();
    for (size_t i = 0; i < count && i < size; i++)
        if (functions[i])
            memcpy(table[i], &functions[i], sizeof(functions[i]));
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table)
{
    static const function core[] = {
        [NVTX_CBID_CORE_MarkA] = (function)on_mark,
        [NVTX_CBID_CORE_RangePushA] = (function)on_push,
        [NVTX_CBID_CORE_RangePop] = (function)on_pop,
    };
    static const function core2[] = {
        [NVTX_CBID_CORE2_DomainMarkEx] = (function)on_domain_mark,
        [NVTX_CBID_CORE2_DomainRangeStartEx] = (function)on_domain_start,
        [NVTX_CBID_CORE2_DomainRangeEnd] = (function)on_domain_end,
        [NVTX_CBID_CORE2_DomainRangePushEx] = (function)on_domain_push,
        [NVTX_CBID_CORE2_DomainRangePop] = (function)on_domain_pop,
        [NVTX_CBID_CORE2_DomainNameCategoryA] = (function)on_category,
        [NVTX_CBID_CORE2_DomainRegisterStringA] = (function)on_string,
        [NVTX_CBID_CORE2_DomainCreateA] = (function)on_domain,
    };
    const NvtxExportTableCallbacks *callbacks = get_table(NVTX_ETID_CALLBACKS);
    if (!callbacks)
        return 0;
    write_line("", 0); /* opens the file now, as profilers do, and not within a case */
    fill(callbacks, NVTX_CB_MODULE_CORE, core, sizeof(core) / sizeof(core[0]));
    fill(callbacks, NVTX_CB_MODULE_CORE2, core2, sizeof(core2) / sizeof(core2[0]));
    return 1;
}

int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *module)
{
    if (module->moduleId != NVTX_EXT_PAYLOAD_MODULEID)
        return 0;
    module->segments[0].functionSlots[NVTX3EXT_CBID_nvtxPayloadSchemaRegister] =
        (intptr_t)on_schema;
    return 1;
}
