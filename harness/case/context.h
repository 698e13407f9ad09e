/* What one case holds while it runs, and the steps that it goes through: run.c calls them in
 * the order in which they stand here. A step returns LB_OK; LB_FAILED after lb_case_wrong, when the
 * row has the verdict and its reason; or what the implementation or the memory returned. */
#ifndef LB_CASE_CONTEXT_H
#define LB_CASE_CONTEXT_H

#include "api/impl.h"
#include "case/call_checks.h"
#include "case/options.h"
#include "case/probe.h"
#include "device/host_memory.h"
#include "device/timer.h"
#include "host/process.h"
#include "measure/sampler.h"
#include "record/record.h"
#include "reference/case_tensors.h"
#include "trace/nvtx.h"

/* The implementation keeps pointers to the plan's config and to the buffers, so the context stays
 * where it is until lb_case_close, which releases all of it in reverse order. */
struct lb_case_context {
    const struct lb_impl *impl;
    const struct lb_case *c; /* of one of several instances: that of itself alone */
    const struct lb_run_options *options;
    const struct lb_run_observer *observer;
    struct lb_row *row;
    struct lb_nvtx nvtx;

    const struct lb_space *space; /* the memory of the implementation's tensors */
    bool on_device;               /* that is the device's, else the host's */
    struct lb_case_plan plan;
    void *self; /* the implementation's state, zeroed before create; NULL until then */
    struct lb_sizes sizes;
    struct lb_buffers buffers; /* of those sizes, in space */
    char cpus[64];             /* the CPUs that the case is bound to; "" on a device */
    double available_before;   /* bytes that the space had left before create */
    double own_bytes;          /* of the buffers and tensors that the harness allocated */
    /* On the host: what the implementation allocated itself is the growth of resident memory in
     * create and since, without what the harness itself uses. */
    double resident_before, resident_prepared; /* before create, and when prepare begins */
    double create_bytes;                       /* growth in create and sizes */
    double used_bytes;                         /* of the space, at most, since create */

    struct lb_reference *reference;              /* inputs and expected results */
    struct lb_inputs inputs[LB_INPUT_SETS];      /* the reference's, gradients scaled */
    void *scaled[LB_INPUT_SETS];                 /* those gradients; owned */
    void *weights_copy;                          /* what prepare read; NaN after it */
    void *first_gradients;                       /* of the first verified call, in its layout */
    double loss_scale;                           /* of them */
    struct lb_results results;                   /* of the last checked call, on the host */
    struct lb_results whole[LB_INPUT_SETS];      /* of a stream: those of all its calls */
    struct lb_tensors tensors;                   /* inputs and outputs in space */
    struct lb_forward_io forward[LB_TIMED_SETS]; /* these tensors as arguments, by buffer */
    struct lb_backward_io backward[LB_TIMED_SETS];
    struct lb_case_update update; /* all zero where update is not called */
    struct lb_timer timer;
    int calls; /* per sample: 1 when timed in isolation, more when batched */

    struct lb_instances *together; /* several instances; NULL: there is one */
    int instance;                  /* its number, from 0 */
    int all_threads;               /* of all instances */
    bool ready;                    /* it takes samples, or did */

    struct lb_call_checks checks;
    int held[LB_TIMED_SETS]; /* which input set each buffer holds */
    int chunk;               /* the latest call's number in the stream; 0 where there is none */
    struct lb_stream_clock clock;
    uint64_t order; /* its last bit is the buffer that the next call reads */
    int last_set;   /* the input set that the latest call read, in tensors.buffer */
    bool followed;  /* lb_case_call_after was called after it */
    struct lb_case_bits {
        uint64_t results;   /* hash of the verified results, in canonical form */
        uint64_t gradients; /* hash of the weight gradients alone */
        uint64_t memory;    /* hash of the results where and as the implementation wrote them */
    } * bits;               /* [LB_TIMED_SETS][plan.chunks]; owned */
    size_t calls_made, calls_before; /* in all; before the first sample */
    struct lb_holdings holdings;     /* before the first sample */
    double children_ns;              /* CPU time of child processes before the first sample */
    struct lb_case_clocks {
        double cpu_ns, own_cpu_ns, clock_ns; /* CPU time of this process and of this thread; time */
    } calls_took, first; /* sums over the timed calls; the clocks before the first sample */
    double cpus_used;    /* CPUs that the process and its children used in the timed calls */
    double sm_mhz;       /* of the multiprocessors from first to last sample, or NaN */
    double verified_ns[LB_TIMED_SETS]; /* times of the calls that were verified first */
    int until_new_inputs;              /* samples until the one on new inputs; 0: none is due */
    double new_inputs_ns;              /* the time of that sample; 0: there was none */
    bool verified;                     /* both timed sets gave right results once */
    char low_precision[160];           /* a finding of check_results; "" when there is none */
    double slow_gradients; /* the time of gradients over that of a call; 0: no finding */
};

/* ---- The steps. ---- */

/* Calls create and sizes, and checks that the memory suffices (prepare.c). */
enum lb_status lb_case_open(struct lb_case_context *context, struct lb_error *err);

/* Brings everything in place for calls: expected results, buffers, inputs, converted weights. */
enum lb_status lb_case_prepare(struct lb_case_context *context, struct lb_error *err);

/* Makes one call on each input set and compares all results with the oracle's (verify.c).
 * Before that finds the loss scale, the given one or that at the end of a schedule. */
enum lb_status lb_case_verify(struct lb_case_context *context, struct lb_error *err);

/* Takes the samples: captures a graph if asked for, warms up, times calls and checks some of them
 * (sample.c). */
enum lb_status lb_case_sample(struct lb_case_context *context, struct lb_error *err);

/* Checks the last timed call, and adds to the row what explains its times: clocks, leaks, CPUs
 * used, the time of an update and of the check for overflow (diagnose.c). */
enum lb_status lb_case_diagnose(struct lb_case_context *context, struct lb_error *err);

/* Checks and times calls on inputs that were in no call before (new_inputs.c). Where calls
 * are long, the first of them is one of the samples, which lb_case_sample_new_inputs takes; *ns is
 * the time of the call, and all other time counts as verification. */
enum lb_status lb_case_surprise(struct lb_case_context *context, struct lb_error *err);
enum lb_status lb_case_sample_new_inputs(struct lb_case_context *context, double *ns,
                                         struct lb_error *err);

/* Neither cold caches nor threads that went to sleep matter to the time of a call this long. */
enum { LB_LONG_CALL_NS = 10000000 };

/* In place of verification and samples: traces the GPU kernels of one call into the row, and warns
 * when they contradict the case's name. */
enum lb_status lb_case_trace(struct lb_case_context *context, struct lb_error *err);

/* Calls destroy and releases everything (prepare.c). Takes what stayed in use off the row's
 * peak_bytes: handles and modules that libraries keep for the process. */
void lb_case_close(struct lb_case_context *context);

/* All steps from a context that has the fields up to `on_device` and no others; fills the row
 * (run.c). lb_case_run_together does so with each instance of the case (instances.c). */
void lb_case_go_through(struct lb_case_context *context);
void lb_case_run_together(const struct lb_case_context *context);

/* ---- What several instances need; each does nothing where there is one (instances.c). ---- */

/* Waits until no other instance goes through its steps, which use what belongs to the process; and
 * lets another one do so. An instance has the turn in all its steps but the timed calls. */
void lb_case_take_turn(struct lb_case_context *context);
void lb_case_give_turn(struct lb_case_context *context);

/* lb_case_start_samples gives the turn, and returns when all instances are ready for their samples.
 * lb_case_end_samples lets the others take no more, and takes the turn. */
void lb_case_start_samples(struct lb_case_context *context);
void lb_case_end_samples(struct lb_case_context *context, enum lb_stop_reason reason);

/* lb_sampler_options.stop */
enum lb_stop_reason lb_case_stop_samples(void *context);

/* ---- What several steps need. ---- */

/* Tells the observer that a phase begins. */
void lb_case_phase(const struct lb_case_context *context, const char *name);

/* Gives the row the verdict "wrong" with that reason. Returns LB_FAILED. */
__attribute__((format(printf, 2, 3))) enum lb_status lb_case_wrong(struct lb_case_context *context,
                                                                   const char *format, ...);

/* Whether update is called: not for a tool that looks at what the calls of the pass do. */
bool lb_case_updates(const struct lb_case_context *context);

/* Whether the loss scale follows the schedule of a dynamic one: where f16 is trained. */
bool lb_case_has_dynamic_scale(const struct lb_case_context *context);

/* Notes the memory of the space that is now in use beyond what was before create, whoever
 * allocated it, because libraries may allocate more than they said. */
void lb_case_note_peak(struct lb_case_context *context);

/* Puts both input sets into the buffers that held says. lb_case_scale_inputs scales the gradients
 * that go in before. */
enum lb_status lb_case_upload_inputs(struct lb_case_context *context, struct lb_error *err);
enum lb_status lb_case_scale_inputs(struct lb_case_context *context, double scale,
                                    struct lb_error *err);

/* Makes the tensors the arguments of calls. */
void lb_case_set_arguments(struct lb_case_context *context);

/* lb_call: one call of the pass, on the buffer of inputs that is next in order. This is what is
 * timed. The second is one update, which a step of an optimizer would need. */
enum lb_status lb_case_call(void *context, struct lb_error *err);
enum lb_status lb_case_call_update(void *context, struct lb_error *err);

/* Fixes which buffers the next calls read, as lb_call_checks_order; calls: how many there will be.
 */
void lb_case_set_order(struct lb_case_context *context, uint64_t order, int calls);

/* The same for any case. In a stream, which makes one call at a time, the call after the latest one
 * is next instead. After the last verified call the stream begins again, on one of the timed input
 * sets. */
enum lb_status lb_case_next_calls(struct lb_case_context *context, uint64_t order, int calls,
                                  struct lb_error *err);

/* Lets the next call of a stream be the first one of that input set. */
void lb_case_begin_stream(struct lb_case_context *context, int set);

/* Whether the case is a stream. */
bool lb_case_streams(const struct lb_case_context *context);

/* What a buffer of inputs must hold, NULL for what may be anything: in a stream the states, which
 * each call writes for the next one, and the x of the buffer that the latest call did not read. */
struct lb_inputs lb_case_held_inputs(const struct lb_case_context *context, int buffer);

/* The fetched results as the oracle sees them: those of a stream join the results of the calls
 * before. */
const struct lb_results *lb_case_collect_results(struct lb_case_context *context);

/* What the verified call with the inputs of the latest call wrote. */
struct lb_case_bits *lb_case_verified_bits(const struct lb_case_context *context);

/* The untimed work that a call needs before it: backward alone needs a reserve that a forward has
 * just filled, from the inputs that backward will read. checked: meanwhile the gradients that
 * backward will read are NaN, so that a forward that does backward's work makes it wrong. */
enum lb_status lb_case_call_before(struct lb_case_context *context, bool checked,
                                   struct lb_error *err);

/* The untimed work after a call that is checked: forward alone is followed by a backward, which
 * shows whether forward kept what that needs. */
enum lb_status lb_case_call_after(struct lb_case_context *context, struct lb_error *err);

/* Fills everything that the pass must write with NaN, or a few places of it, so that the next check
 * finds what a call leaves unwritten. */
enum lb_status lb_case_poison(struct lb_case_context *context, struct lb_error *err);
enum lb_status lb_case_poison_some(struct lb_case_context *context, struct lb_error *err);

/* Where the weight gradients of fetched results come from. */
enum lb_gradient_source {
    LB_BY_GRADIENTS,
    LB_BY_GRADIENTS_ALONE, /* the same, with no inputs to compute them from */
    LB_BY_UPDATE
};

/* Waits for the last call and brings its results to the host, unscaled (check.c). */
enum lb_status lb_case_fetch(struct lb_case_context *context, enum lb_gradient_source source,
                             struct lb_error *err);

/* A hash of the outputs that the latest call wrote, and of the weight gradients in the
 * implementation's own layout. */
enum lb_status lb_case_written_hash(const struct lb_case_context *context, uint64_t *hash,
                                    struct lb_error *err);

/* Compares the outputs and weight gradients with the hash that they had when the latest call had
 * returned: where something has written to them since, such as check, gradients, a thread or a
 * timer, the call's time lacks a part of its work. */
enum lb_status lb_case_check_finished(struct lb_case_context *context, uint64_t returned,
                                      struct lb_error *err);

/* Right after a call on the host: looks at the last element of each output, which was NaN before
 * the call, from the last output to the first. One that is written later makes the row wrong; where
 * one stays NaN, *unwritten becomes true. */
enum lb_status lb_case_check_written(struct lb_case_context *context, bool *unwritten);

/* Compares the fetched results with those expected of the latest call and notes the errors in the
 * row. */
enum lb_status lb_case_check_results(struct lb_case_context *context);

/* The same unless they have the bits of the results that were verified first. An implementation
 * that says that it is deterministic must give those bits. phase: that of the caller. */
enum lb_status lb_case_check_repeats(struct lb_case_context *context, const char *phase);

/* Whether the implementation wrote to inputs, weights or lengths, which it may only read; and
 * whether it wrote before the start or past the end of a buffer. */
enum lb_status lb_case_check_inputs(struct lb_case_context *context, struct lb_error *err);
enum lb_status lb_case_check_guards(struct lb_case_context *context);

/* Whether the weight gradients that update wrote after the latest call are right, and the weights
 * that it read unchanged. */
enum lb_status lb_case_check_update(struct lb_case_context *context, struct lb_error *err);

#endif
