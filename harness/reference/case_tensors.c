/* The input and output tensors of one problem in the memory of an implementation. */
#include "reference/case_tensors.h"

static const enum lb_tensor outputs[] = {LB_Y, LB_HN, LB_CN, LB_DX, LB_DH0, LB_DC0};
enum { OUTPUT_COUNT = sizeof(outputs) / sizeof(outputs[0]) };

static bool of_backward(enum lb_tensor t)
{
    return (t >= LB_DY && t <= LB_DCN) || t >= LB_DX;
}

static size_t element_count(const struct lb_counts *n, enum lb_tensor t)
{
    if (t == LB_X || t == LB_DX)
        return n->x;
    return t == LB_Y || t == LB_DY ? n->y : n->state;
}

enum lb_status lb_tensors_create(const struct lb_problem *problem, const struct lb_space *space,
                                 struct lb_tensors *tensors, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_counts counts;
    *tensors = (struct lb_tensors){.space = space};
    LB_TRY(lb_problem_counts(problem, &counts, err));
    for (int t = 0; t < LB_TENSOR_COUNT; t++) {
        if (of_backward((enum lb_tensor)t) && !lb_has_backward(problem))
            continue;
        tensors->bytes[t] =
            element_count(&counts, (enum lb_tensor)t) * lb_dtype_size(problem->dtype);
        LB_TRY(space->allocate(tensors->bytes[t], &tensors->at[t], err));
    }
done:
    if (st != LB_OK)
        lb_tensors_destroy(tensors);
    return st;
}

void lb_tensors_destroy(struct lb_tensors *tensors)
{
    for (int t = LB_TENSOR_COUNT - 1; t >= 0; t--)
        if (tensors->at[t])
            tensors->space->release(tensors->at[t]);
    *tensors = (struct lb_tensors){0};
}

const char *lb_tensor_name(enum lb_tensor tensor)
{
    static const char *const names[] = {
        [LB_X] = "x",     [LB_H0] = "h0",   [LB_C0] = "c0",   [LB_DY] = "dy",
        [LB_DHN] = "dhn", [LB_DCN] = "dcn", [LB_Y] = "y",     [LB_HN] = "hn",
        [LB_CN] = "cn",   [LB_DX] = "dx",   [LB_DH0] = "dh0", [LB_DC0] = "dc0"};
    return names[tensor];
}

enum lb_tensor lb_tensors_overrun(const struct lb_tensors *tensors, const char **side)
{
    int t = 0;
    *side = NULL;
    while (t < LB_TENSOR_COUNT && tensors->space->overrun &&
           !(*side = tensors->space->overrun(tensors->at[t])))
        t++;
    return *side ? (enum lb_tensor)t : LB_TENSOR_COUNT;
}

size_t lb_tensors_bytes(const struct lb_tensors *tensors)
{
    size_t sum = 0;
    for (int t = 0; t < LB_TENSOR_COUNT; t++)
        sum += tensors->bytes[t];
    return sum;
}

enum lb_status lb_tensors_upload(const struct lb_tensors *tensors, const struct lb_inputs *inputs,
                                 struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const void *const from[] = {
        [LB_X] = inputs->x,   [LB_H0] = inputs->h0,   [LB_C0] = inputs->c0,
        [LB_DY] = inputs->dy, [LB_DHN] = inputs->dhn, [LB_DCN] = inputs->dcn,
    };
    for (int t = LB_X; t <= LB_DCN; t++)
        if (tensors->at[t])
            LB_TRY(tensors->space->upload(tensors->at[t], from[t], tensors->bytes[t], err));
done:
    return st;
}

enum lb_status lb_tensors_poison(const struct lb_tensors *tensors, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    for (int i = 0; i < OUTPUT_COUNT; i++) {
        enum lb_tensor t = outputs[i];
        if (tensors->at[t])
            LB_TRY(tensors->space->poison(tensors->at[t], tensors->bytes[t], err));
    }
done:
    return st;
}

enum lb_status lb_tensors_download(const struct lb_tensors *tensors,
                                   const struct lb_results *results, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    void *const to[OUTPUT_COUNT] = {results->y,  results->hn,  results->cn,
                                    results->dx, results->dh0, results->dc0};
    for (int i = 0; i < OUTPUT_COUNT; i++) {
        enum lb_tensor t = outputs[i];
        if (tensors->at[t])
            LB_TRY(tensors->space->download(to[i], tensors->at[t], tensors->bytes[t], err));
    }
done:
    return st;
}

struct lb_forward_io lb_tensors_forward(const struct lb_tensors *tensors)
{
    void *const *at = tensors->at;
    return (struct lb_forward_io){.x = at[LB_X],
                                  .h0 = at[LB_H0],
                                  .c0 = at[LB_C0],
                                  .y = at[LB_Y],
                                  .hn = at[LB_HN],
                                  .cn = at[LB_CN]};
}

struct lb_backward_io lb_tensors_backward(const struct lb_tensors *tensors)
{
    void *const *at = tensors->at;
    return (struct lb_backward_io){.x = at[LB_X],
                                   .h0 = at[LB_H0],
                                   .c0 = at[LB_C0],
                                   .y = at[LB_Y],
                                   .dy = at[LB_DY],
                                   .dhn = at[LB_DHN],
                                   .dcn = at[LB_DCN],
                                   .dx = at[LB_DX],
                                   .dh0 = at[LB_DH0],
                                   .dc0 = at[LB_DC0]};
}
