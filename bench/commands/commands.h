/* The commands, each in the file of its name. Their errors are LB_INVALID for what the user gave,
 * LB_IO, LB_FAILED, and LB_INTERRUPTED; *exit_code is the program's. */
#ifndef LB_COMMANDS_H
#define LB_COMMANDS_H

#include "run/worker.h"

/* --ab: measures the two words of the options against each other, each an impl[:variant] or the
 * path of a plug-in, stores the runs in a/ and b/ of the output folder, and compares them as
 * --compare does. */
enum lb_status lb_ab(struct lb_session *session, int *exit_code, struct lb_error *err);

/* --against: the same with the workers of options->against, the base, and those of this program, in
 * pairs of fresh processes and the folders base/ and new/. */
enum lb_status lb_against(struct lb_session *session, struct lb_plan *plan, int *exit_code,
                          struct lb_error *err);
int lb_against_pairs(const struct lb_options *options); /* of processes per case */

/* Pairs of sample blocks, which --ab, --against and the self-test compare. */

/* One side of a comparison. */
struct lb_side {
    char label[256];     /* impl[:variant], the path of a plug-in, or a program */
    const char *variant; /* "": the default */
    const struct lb_impl_entry *impl_entry; /* borrowed; NULL: that of the case, with its variant */
    struct lb_pool *pool; /* each block runs in a fresh worker of it; NULL: both sides share a
                             worker of the session's */
};

/* The settings of one block in a shared process: 6 to 25 samples in about 10 ms, short enough for
 * many blocks. In fresh processes a block has the settings of a sweep. */
struct lb_sampler_options lb_block_sampler(void);

/* Measures both sides of the problem in turn: `pairs` pairs of blocks, each pair in random order.
 * Each row gets one block per pair. When a side fails, the measurement ends after that pair, so
 * that the other row has its own verdict. LB_INTERRUPTED; LB_FAILED: no process can be started. */
enum lb_status lb_measure_pairs(const struct lb_session *session, const struct lb_case *problem,
                                const struct lb_side sides[2], int pairs, uint64_t *random,
                                struct lb_row rows[2], struct lb_error *err);

/* --compare: compares the last run of options->words with the others, which are its base. With
 * options->confirm, a second run of the new side, only slowdowns that this run shows too are kept.
 * *exit_code is the first that applies of LB_EXIT_REGRESSION; LB_EXIT_NOTHING: no case has a time
 * in both runs; LB_EXIT_INCONCLUSIVE: no case could be judged, since all times are suspect or too
 * few, or, with --strict, a case is inconclusive or gone. */
enum lb_status lb_compare_command(const struct lb_options *options, int *exit_code,
                                  struct lb_error *err);

/* The same for runs [count] that are in memory, the new one last; behind it the run that confirms,
 * where the options have it. */
enum lb_status lb_compare_print(const struct lb_run *runs, size_t count, const char *base_name,
                                const char *now_name, const struct lb_options *options,
                                int *exit_code, struct lb_error *err);

/* --cross-check: runs each case of the plan once, verified but not timed, and prints for each
 * problem the largest difference between the outputs y of any two, with y of options->outputs among
 * them. *exit_code: LB_EXIT_FAILED when a case failed, or when that y is further from every output
 * than rounding explains; LB_EXIT_NOTHING when no two outputs could be compared. */
enum lb_status lb_cross_check(const struct lb_session *session, const struct lb_plan *plan,
                              int *exit_code, struct lb_error *err);

/* --explain: explains the case options->words[0], on every implementation when it names none. */
enum lb_status lb_explain_print(struct lb_session *session, struct lb_error *err);

/* Whether there are criteria of that name, as of a framework. */
bool lb_has_criteria(const char *name);

/* --explain FRAMEWORK LAYER: checks a layer, "units=512, activation=relu", against the criteria
 * called `name` ("keras"). from: the path of a run that measured its price, or NULL. */
enum lb_status lb_explain_layer(const char *name, const char *layer, const char *from,
                                struct lb_error *err);

/* --export: prints the run options->words[1] in the format options->words[0] on stdout. Several
 * formats with commas between are written into the run's folder instead, each into the file that
 * results/README.md names. */
enum lb_status lb_export_command(const struct lb_options *options, struct lb_error *err);

/* --plot: draws one kind of picture, or none (LB_EXIT_NOTHING). LB_INVALID lists the kinds. */
enum lb_status lb_plot_one(const struct lb_options *options, int *exit_code, struct lb_error *err);

/* --history: finds change points over the runs in the folder options->words[0] (sub-folders with a
 * run.jsonl, and files that end in .jsonl) that have the environment of the latest, prints them,
 * and draws them in plots/. *exit_code: LB_EXIT_NOTHING with fewer than six, which show no
 * change, or without any time. */
enum lb_status lb_history(const struct lb_options *options, int *exit_code, struct lb_error *err);

/* --list: prints one line per case, below the implementations and their variants where the command
 * line gives no sizes. With --format json it is one document:
 * {"implementations":[{"name","summary","absent","variants"}],"cases":[{"case","status","reason"}]}
 */
enum lb_status lb_list_print(const struct lb_session *session, const struct lb_plan *plan,
                             struct lb_error *err);

/* Whether a case can run. A plug-in is asked in its worker process, and so is an implementation
 * that is to use more threads than there are CPUs, which its `create` refuses. probe may be NULL.
 * The status is that of the row, and why says the reason. */
enum lb_status lb_ask(const struct lb_session *session, const struct lb_impl_entry *impl_entry,
                      const struct lb_case *c, double available, struct lb_probe *probe,
                      struct lb_error *why);

/* --plan: prints how many cases each implementation has, the memory of the largest problem, and the
 * predicted time of the whole plan. LB_OK. */
enum lb_status lb_plan_print(const struct lb_session *session, const struct lb_plan *plan);

/* Prints on stderr why the plan has no case, which is LB_EXIT_NOTHING. LB_OK. */
enum lb_status lb_plan_print_empty(const struct lb_plan *plan, int *exit_code);

/* --profile: checks the case options->words[0], which must name an implementation, in this process,
 * and then calls it options->profile_calls times while profilers collect (sampler.h). */
enum lb_status lb_profile_case(const struct lb_options *options, int *exit_code,
                               struct lb_error *err);

/* --report: writes the HTML file options->out about the last run of options->words, compared with
 * each of the others. LB_INTERRUPTED: *stop is nonzero. */
enum lb_status lb_html_report(const struct lb_options *options, const volatile sig_atomic_t *stop,
                              struct lb_error *err);

/* --self-test: compares the plan's quickest cases with themselves in fresh processes, and a case
 * with the same case slowed down on purpose. *exit_code is LB_EXIT_FAILED when the full test, which
 * --quick cuts short, shows that verdicts can't be trusted here. */
enum lb_status lb_self_test(const struct lb_session *session, const struct lb_plan *plan,
                            int *exit_code, struct lb_error *err);

#endif
