/* Ranges on a profiler's timeline, by NVTX 3, which consists of headers only. Without
 * LB_NVTX_PAYLOADS they are too old for payloads, and ranges carry none. */
#include "trace/nvtx.h"

#include <nvtx3/nvToolsExt.h>
#ifdef LB_NVTX_PAYLOADS
#include <nvtx3/nvToolsExtPayload.h>
#endif
#include <stddef.h>

#include "base/palette.h"

/* A category is named after one of its phases. */
static const struct {
    const char *name;
    enum lb_nvtx_phase category;
} phases[LB_NVTX_NONE] = {
    [LB_NVTX_PLAN] = {"plan", LB_NVTX_PLAN},
    [LB_NVTX_ORACLE] = {"oracle", LB_NVTX_VERIFY},
    [LB_NVTX_PREPARE] = {"prepare", LB_NVTX_PREPARE},
    [LB_NVTX_VERIFY] = {"verify", LB_NVTX_VERIFY},
    [LB_NVTX_WARM_UP] = {"warm-up", LB_NVTX_WARM_UP},
    [LB_NVTX_TIMED] = {"timed", LB_NVTX_TIMED},
    [LB_NVTX_RECHECK] = {"recheck", LB_NVTX_VERIFY},
    [LB_NVTX_TEARDOWN] = {"teardown", LB_NVTX_TEARDOWN},
};

#ifdef LB_NVTX_PAYLOADS
/* The payload of a range, as the schema below describes it. */
struct problem_payload {
    int64_t seq_len, batch, input, hidden, layers, directions;
    nvtxStringHandle_t dtype, pass;
};

#define FIELD(field, kind, letter, text)                                                 \
    {                                                                                    \
        .type = NVTX_PAYLOAD_ENTRY_TYPE_##kind, .name = (letter), .description = (text), \
        .offset = offsetof(struct problem_payload, field)                                \
    }

static const nvtxPayloadSchemaEntry_t fields[] = {
    FIELD(seq_len, INT64, "T", "steps"),
    FIELD(batch, INT64, "B", "batch"),
    FIELD(input, INT64, "I", "input size"),
    FIELD(hidden, INT64, "H", "hidden size"),
    FIELD(layers, INT64, "L", "layers"),
    FIELD(directions, INT64, "D", "directions"),
    FIELD(dtype, NVTX_REGISTERED_STRING_HANDLE, "dtype", "storage of x, y, h and weights"),
    FIELD(pass, NVTX_REGISTERED_STRING_HANDLE, "pass", "infer, forward, backward or train"),
};
#endif

/* What is registered with the tool, once per process. */
static struct {
    bool tried;
    nvtxDomainHandle_t domain; /* NULL: no tool listens */
    uint64_t schema;           /* 0: the tool takes no payloads */
    nvtxStringHandle_t phases[LB_NVTX_NONE];
    nvtxStringHandle_t dtypes[LB_DTYPE_COUNT];
    nvtxStringHandle_t passes[LB_PASS_COUNT];
} tool;

static nvtxStringHandle_t register_string(const char *text)
{
    return nvtxDomainRegisterStringA(tool.domain, text);
}

void lb_nvtx_attach(void)
{
    if (tool.tried)
        return;
    tool.tried = true;
    tool.domain = nvtxDomainCreateA("bench-lstm");
    if (!tool.domain)
        return;
    for (uint32_t i = 0; i < LB_NVTX_NONE; i++) {
        tool.phases[i] = register_string(phases[i].name);
        if (phases[i].category == i)
            nvtxDomainNameCategoryA(tool.domain, i + 1, phases[i].name);
    }
    for (size_t i = 0; i < LB_DTYPE_COUNT; i++)
        tool.dtypes[i] = register_string(lb_dtype_name((enum lb_dtype)i));
    for (size_t i = 0; i < LB_PASS_COUNT; i++)
        tool.passes[i] = register_string(lb_pass_name((enum lb_pass)i));
#ifdef LB_NVTX_PAYLOADS
    const nvtxPayloadSchemaAttr_t schema = {
        .fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE,
        .name = "problem",
        .type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC,
        .entries = fields,
        .numEntries = sizeof(fields) / sizeof(fields[0]),
        .payloadStaticSize = sizeof(struct problem_payload),
    };
    tool.schema = nvtxPayloadSchemaRegister(tool.domain, &schema);
#endif
}

static void push(const struct lb_case *c, nvtxStringHandle_t name, uint32_t category)
{
    nvtxEventAttributes_t range = {
        .version = NVTX_VERSION,
        .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
        .category = category,
        .colorType = NVTX_COLOR_ARGB,
        .color = 0xff000000u | lb_palette_color(c->impl),
        .messageType = NVTX_MESSAGE_TYPE_REGISTERED,
        .message.registered = name,
    };
#ifdef LB_NVTX_PAYLOADS
    const struct lb_problem *p = &c->problem;
    const struct problem_payload problem = {p->seq_len,
                                            p->batch,
                                            p->input,
                                            p->hidden,
                                            p->layers,
                                            p->directions,
                                            tool.dtypes[p->dtype],
                                            tool.passes[p->pass]};
    const nvtxPayloadData_t data = {tool.schema, sizeof(problem), &problem};
    if (tool.schema) {
        range.payloadType = NVTX_PAYLOAD_TYPE_EXT;
        range.payload.ullValue = (uint64_t)(uintptr_t)&data;
        range.reserved0 = 1; /* the number of payloads */
    }
#endif
    nvtxDomainRangePushEx(tool.domain, &range);
}

void lb_nvtx_begin(struct lb_nvtx *nvtx, const struct lb_case *c)
{
    char id[LB_CASE_ID_SIZE];
    lb_nvtx_attach();
    *nvtx = (struct lb_nvtx){0};
    if (!tool.domain)
        return;
    nvtx->c = c;
    lb_case_print(c, id); /* sizes and all: tools sum up what has one name */
    push(c, register_string(id), 0);
}

void lb_nvtx_phase(struct lb_nvtx *nvtx, enum lb_nvtx_phase phase)
{
    if (!nvtx->c)
        return;
    if (nvtx->in_phase)
        nvtxDomainRangePop(tool.domain);
    nvtx->in_phase = phase != LB_NVTX_NONE;
    if (nvtx->in_phase)
        push(nvtx->c, tool.phases[phase], (uint32_t)phases[phase].category + 1);
}

void lb_nvtx_end(struct lb_nvtx *nvtx)
{
    if (!nvtx->c)
        return;
    lb_nvtx_phase(nvtx, LB_NVTX_NONE);
    nvtxDomainRangePop(tool.domain);
    nvtx->c = NULL;
}
