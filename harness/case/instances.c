/* Several instances of a stream at once. Each goes through the steps of a case on a thread and CPUs
 * of its own. They take turns in all steps but their samples, which they take together: from when
 * all have warmed up until the first has enough. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "case/context.h"

struct lb_instances {
    pthread_mutex_t turn; /* held by the instance that goes through its steps */
    pthread_cond_t all_are_ready;
    int missing;      /* how many are not ready for their samples */
    atomic_uint stop; /* enum lb_stop_reason of the first that has enough samples */
};

/* One instance and its thread. */
struct member {
    struct lb_case_context context;
    struct lb_row row;
    pthread_t id;
};

void lb_case_take_turn(struct lb_case_context *context)
{
    if (context->together)
        pthread_mutex_lock(&context->together->turn);
}

void lb_case_give_turn(struct lb_case_context *context)
{
    if (context->together)
        pthread_mutex_unlock(&context->together->turn);
}

static void be_ready(struct lb_case_context *context)
{
    context->ready = true;
    if (--context->together->missing == 0)
        pthread_cond_broadcast(&context->together->all_are_ready);
}

void lb_case_start_samples(struct lb_case_context *context)
{
    if (!context->together)
        return;
    be_ready(context);
    while (context->together->missing > 0)
        pthread_cond_wait(&context->together->all_are_ready, &context->together->turn);
    lb_case_give_turn(context);
}

enum lb_stop_reason lb_case_stop_samples(void *user)
{
    const struct lb_case_context *context = user;
    return context->together ? (enum lb_stop_reason)atomic_load(&context->together->stop)
                             : LB_STOP_NONE;
}

void lb_case_end_samples(struct lb_case_context *context, enum lb_stop_reason reason)
{
    if (!context->together || !context->ready)
        return;
    atomic_store(&context->together->stop, reason != LB_STOP_NONE ? reason : LB_STOP_TIME);
    lb_case_take_turn(context);
}

static void *run_member(void *user)
{
    struct lb_case_context *context = user;
    lb_case_take_turn(context);
    lb_case_go_through(context);
    if (!context->ready) { /* it failed: nobody waits for it, or samples for long */
        be_ready(context);
        atomic_store(&context->together->stop, LB_STOP_TIME);
    }
    lb_case_give_turn(context);
    return NULL;
}

/* Makes the row of the case of those of its instances, whose samples are its blocks. */
static void merge_rows(const struct lb_case *c, struct member *members, struct lb_row *row)
{
    for (int i = 0; i < c->instances; i++) {
        lb_row_merge(row, &members[i].row, i == 0, false);
        lb_row_free(&members[i].row);
    }
    row->c = *c;
    row->peak_bytes *= c->instances;
    if (row->description[0])
        lb_row_append(&row->description, ", one of %d instances", c->instances);
}

void lb_case_run_together(const struct lb_case_context *context)
{
    const struct lb_case *c = context->c;
    const double start = lb_now_ns();
    struct lb_instances together = {.turn = PTHREAD_MUTEX_INITIALIZER,
                                    .all_are_ready = PTHREAD_COND_INITIALIZER,
                                    .missing = c->instances};
    struct lb_case one = *c;
    struct member *members = lb_needed(calloc((size_t)c->instances, sizeof(*members)));
    int started = 1;
    one.threads = c->threads / c->instances;
    one.instances = 1;
    pthread_mutex_lock(&together.turn);
    for (int i = 0; i < c->instances; i++) {
        members[i].context = *context;
        members[i].context.c = &one;
        members[i].context.row = &members[i].row;
        members[i].context.together = &together;
        members[i].context.instance = i;
        members[i].row = lb_row_make(&one);
    }
    while (started < c->instances &&
           pthread_create(&members[started].id, NULL, run_member, &members[started].context) == 0)
        started++;
    for (int i = started; i < c->instances; i++, together.missing--)
        lb_row_print(&members[i].row.reason, "the thread of instance %d did not start", i + 1);
    pthread_mutex_unlock(&together.turn);
    run_member(&members[0].context);
    for (int i = 1; i < started; i++)
        pthread_join(members[i].id, NULL);
    merge_rows(c, members, context->row);
    context->row->elapsed_ns = lb_now_ns() - start;
    free(members);
}
