/* Worker processes. Cases run in them, so that a crash, a hang or a runaway allocation costs one
 * row. The built-in implementations share a worker and each plug-in has its own, unless a job names
 * a worker that serves several. A worker lives from case to case and is replaced after a fault. */
#ifndef LB_WORKER_H
#define LB_WORKER_H

#include <signal.h>

#include "case/probe.h"
#include "cli/options.h"

/* Programs that print the same number with --version can use each other's workers. */
#define LB_WORKER_PROTOCOL 2

/* Keeps the workers that are alive. A worker ends with the thread that started it. */
struct lb_pool;

/* What commands share that run implementations or ask them what they support. All borrowed. */
struct lb_session {
    const struct lb_options *options;
    struct lb_registry *registry;
    struct lb_pool *pool;
    const volatile sig_atomic_t *stop; /* nonzero once a signal asked the program to end */
    json_t *gpu;       /* the device's record; NULL: there is none, or it was not looked for */
    json_t *libraries; /* their versions (lb_pool_libraries) */
};

/* The workers have the options' limits and device. program: another build of this program that they
 * run, borrowed; NULL: this one. stop: once it is nonzero, every wait ends with LB_INTERRUPTED. */
struct lb_pool *lb_pool_create(const struct lb_options *options, const char *program,
                               const volatile sig_atomic_t *stop);
void lb_pool_destroy(struct lb_pool *pool); /* ends all workers; accepts NULL */

/* Changes limits and device of workers that are started from now on. */
void lb_pool_limit(struct lb_pool *pool, const struct lb_options *options);

/* Ends all workers, so that the next job runs in a fresh process. */
void lb_pool_renew(struct lb_pool *pool);

/* Loads the plug-in in a worker of its own and adds it to the registry as it describes itself.
 * LB_INVALID when it can't be loaded, or crashes or hangs while it is loaded. */
enum lb_status lb_pool_add_plugin(struct lb_pool *pool, const char *path,
                                  struct lb_registry *registry, struct lb_error *err);

/* Has a worker load the library of each built-in implementation that needs one. *libraries, a new
 * object, has their versions and those of the libraries that the program itself uses. An
 * implementation whose library is missing, broken, or crashes while it is loaded becomes absent in
 * the registry, with the reason. LB_INTERRUPTED; LB_FAILED when no worker can be started. */
enum lb_status lb_pool_libraries(struct lb_pool *pool, struct lb_registry *registry,
                                 json_t **libraries, struct lb_error *err);

/* Asks a worker, which can call the implementation, whether the case can run (lb_case_plan)
 * or, when probe is not NULL, also what it would need (lb_case_probe). LB_FAILED when the worker
 * was lost while it answered, or can't load the plug-in any more. */
enum lb_status lb_pool_probe(struct lb_pool *pool, const struct lb_impl_entry *impl_entry,
                             const struct lb_case *c, struct lb_probe *probe, struct lb_error *why);

struct lb_job {
    const struct lb_case *c;
    uint64_t seed;
    struct lb_sampler_options sampler;
    const char *process;     /* name of the worker; NULL: the implementation's usual one */
    bool kernels;            /* trace the GPU kernels of one more call, in a worker of its own: what
                                happens there sets the row's kernels_reason alone */
    double loss_scale;       /* factor on incoming gradients; 0: unchanged */
    bool dynamic_loss_scale; /* f16 only: loss_scale is the first scale */
    const char *outputs;     /* instead of sampling, write y to this .npy file; NULL: sample */
};

/* Runs one block of a case in a worker and fills row, whatever happens to the worker. When the
 * worker was killed from outside, that is not the fault of the case, which is run again once. Of an
 * absent implementation the row says why. Fails only with LB_INTERRUPTED, or when no worker can be
 * started. */
enum lb_status lb_pool_run(struct lb_pool *pool, const struct lb_impl_entry *impl_entry,
                           const struct lb_job *job, struct lb_row *row, struct lb_error *err);

/* Has a worker look for the device: *device, a new reference, is what lb_device_to_json makes.
 * LB_ABSENT with the reason. */
enum lb_status lb_pool_find_device(struct lb_pool *pool, json_t **device, struct lb_error *why);

/* Has a worker measure the highest rates and lowest latencies of the device, in about that many
 * seconds. *ceilings, a new reference, is what lb_ceilings_to_json makes, on failure of what was
 * measured before, or NULL. Warns on stderr of each figure that could not be measured. */
enum lb_status lb_pool_ceilings(struct lb_pool *pool, double seconds, json_t **ceilings,
                                struct lb_error *why);

/* From now on workers compute lower bounds with these ceilings, an array of what
 * lb_ceilings_to_json makes; borrowed. */
void lb_pool_tell_ceilings(struct lb_pool *pool, const json_t *ceilings);

/* Questions about the machine. The program itself never opens the GPU: a worker looks for it. */

/* True when the implementation of that name (NULL: any) that may run here needs a GPU. */
bool lb_gpu_wanted(const struct lb_session *session, const char *name);

/* Finds the CPU and the GPU for which the program plans and runs from now on: those that it has,
 * but for the one that --device-model names. gpu: a worker looks for the GPU, which session->gpu
 * then describes. LB_OK also without a GPU. LB_INVALID, LB_IO: there is no such model, or its file
 * is wrong. */
enum lb_status lb_machine_find(struct lb_session *session, bool gpu, struct lb_error *err);

/* Adds the device to an environment record, and under "tuned" which file of tuned choices decides
 * what runs on it: file, changed_s (since 1970) and hash. Warns on stderr when a library has
 * another version than the program was built against. */
void lb_gpu_annotate(const struct lb_session *session, json_t *environment);

/* Measures what the CPUs, and the GPU where there is one, reach at best, before a sweep of these
 * cases: in at most 3 seconds each, or 1 with --quick. Keeps the figures under "ceilings" in the
 * environment record, and has workers compute the lower bounds of rows with them. Warns on stderr
 * of what cannot be measured. */
void lb_ceilings_find(const struct lb_session *session, const struct lb_case *cases, size_t count,
                      json_t *environment);

/* --ceilings: measures the same for longer, and prints it. */
enum lb_status lb_ceilings_print(struct lb_session *session, struct lb_error *err);

/* The worker's side. A worker is the same program, started to run cases for it.
 *
 * Messages travel as JSON, one per line (support/channel.h). Each request has its "op" and "given",
 * the files of base/given_files.h. A request about a case has the path of the plug-in that runs it,
 * if one does. The worker answers with events, of which the last is the reply:
 *
 *     op        what the request also has           events before the reply   "reply"
 *     plugin    path: load that plug-in             -                         the plug-in itself
 *     library   implementation: load its library    -                         version
 *     supports  case: can it run?                   phase...                  -
 *     probe     case: and what would it need?       phase...                  bytes by kind, texts
 *     run       case, and its options               phase...                  row, as in run.jsonl
 *     device    -                                   -                         the device's record
 *     ceilings  seconds that measuring may take     figure...                 the ceilings' record
 *
 *     {"phase": the one that begins}
 *     {"figure": what was measured, "failed": why not, or "", "reply": the ceilings known by now}
 *     {"status", "why", "unfit": the worker must not serve another request, "reply"} */

/* Serves requests until the program hangs up. parent: the program's process id; device: ordinal of
 * the GPU to use. Returns the exit code. */
int lb_worker_main(long parent, int device);

/* What runs cases of the implementation "planted", which is not in the table of implementations:
 * cpu_ref, which waits after each forward call for a fraction of the call's time. Its variant
 * slower_3 is slower by 3 percent, and auto by lb_planted_percent, which is 0 at first and counts
 * in cases that are created from then on. Only one state of it may exist at a time. */
#define LB_PLANTED_NAME "planted"
const struct lb_impl *lb_planted_slowdown(void);
extern double lb_planted_percent;

#endif
