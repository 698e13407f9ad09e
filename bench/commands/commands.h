/* The commands, each in the file of its name. Their errors are LB_INVALID for what the user gave,
 * LB_IO, LB_FAILED, and LB_INTERRUPTED; *exit_code is the program's. */
#ifndef LB_COMMANDS_H
#define LB_COMMANDS_H

#include "cli/plan.h"
#include "run/session.h"

/* --ab: measures options->subject against options->run on the selected problems; each of the two is
 * an impl[:variant] or the path of a plug-in. Stores the runs in a/ and b/ of the output folder and
 * compares them as --compare does. */
enum lb_status lb_ab(struct lb_session *session, int *exit_code, struct lb_error *err);

/* --against: measures the cases of the plan with the workers of options->against, the base, and
 * with those of this program, in pairs of fresh processes. Stores the runs in base/ and new/ of the
 * output folder and compares them likewise. */
enum lb_status lb_against(struct lb_session *session, struct lb_plan *plan, int *exit_code,
                          struct lb_error *err);

/* --compare: compares the run options->run with the base options->subject and prints the result in
 * options->format. With options->confirm, a second run of the new side, only slowdowns that this
 * run shows too are kept. *exit_code is the first of these that applies:
 * - LB_EXIT_REGRESSION: a case is slower or broken.
 * - LB_EXIT_NOTHING: no case has a time in both runs.
 * - LB_EXIT_INCONCLUSIVE: no case could be judged, since all times are suspect or too few, or, with
 *   --strict, a case is inconclusive or gone.
 * - LB_EXIT_FINE. */
enum lb_status lb_compare_command(const struct lb_options *options, int *exit_code,
                                  struct lb_error *err);

/* The same for runs that are in memory: the base, the new run, then the further runs of the base
 * and the one that confirms, where the options have them. */
enum lb_status lb_compare_print(const struct lb_run *runs, const char *base_name,
                                const char *now_name, const struct lb_options *options,
                                int *exit_code, struct lb_error *err);

/* --cross-check: runs each case of the plan once, verified but not timed, and prints for each
 * problem the largest difference between the outputs y of any two implementations and precisions,
 * with y of options->outputs among them where it is given. Inputs and weights are rounded to each
 * case's precision, as a user of that precision would round them. *exit_code: LB_EXIT_FAILED when a
 * case is wrong or failed, or when that y is further from every output than rounding to their
 * precisions explains; LB_EXIT_NOTHING when no two outputs could be compared. */
enum lb_status lb_cross_check(const struct lb_session *session, const struct lb_plan *plan,
                              int *exit_code, struct lb_error *err);

/* --explain: explains the case options->subject, on every implementation when it names none. */
enum lb_status lb_explain_print(const struct lb_session *session, struct lb_error *err);

/* --explain FRAMEWORK LAYER: checks a layer against the criteria called `name` ("keras") and prints
 * on stdout:
 * - a table with a line per criterion: the layer's value, the value needed, and whether it is met
 * - whether the fast kernel runs, and by which algorithm; else what runs instead, the settings that
 *   would make the fast kernel run, and what these change
 * - the notes that apply
 * - the command that measures the price of not running the fast kernel, and the ratio of times that
 *   the run at path `from` measured; NULL: no ratio
 * layer: the settings, "units=512, activation=relu". */
enum lb_status lb_explain_layer(const char *name, const char *layer, const char *from,
                                struct lb_error *err);

/* --history: reads every run in the folder options->subject (sub-folders with a run.jsonl, and
 * files that end in .jsonl), sorts them by start time and leaves out those of another environment
 * than the latest. Rows of one case that several nodes measured count as one. Prints one line per
 * case with its change points, then each change with its commit, and draws the same in the folder's
 * plots/. A run that can't be read is named and skipped. *exit_code is LB_EXIT_NOTHING when fewer
 * than six runs are left: the fewest that can show a change. */
enum lb_status lb_history(const struct lb_options *options, int *exit_code, struct lb_error *err);

/* --list: prints one line per case: its text, and "ok" or why it can't run. If the command line
 * gives no sizes, comment lines above list the implementations and their variants. With --format
 * json it is one document: {"implementations":[{"name","summary","absent","variants"}],
 * "cases":[{"case","status","reason"}]}. */
enum lb_status lb_list_print(const struct lb_session *session, const struct lb_plan *plan,
                             struct lb_error *err);

/* Whether a case can run. A plug-in is asked in its worker process, and so is an implementation
 * that is to use more threads than there are CPUs, which its `create` refuses. probe may be NULL.
 * The status is that of the row, and why says the reason. */
enum lb_status lb_ask(const struct lb_session *session, const struct lb_impl_entry *impl_entry,
                      const struct lb_case *c, double available, struct lb_probe *probe,
                      struct lb_error *why);

/* --plan: prints how many cases each implementation has, the memory of the largest problem, and the
 * predicted time of the whole plan. */
void lb_plan_print(const struct lb_session *session, const struct lb_plan *plan);

/* Prints on stderr why the plan has no case. */
void lb_plan_print_empty(const struct lb_plan *plan);

/* --profile: runs the case options->subject, which must name an implementation: it is checked,
 * warmed up, and then called options->profile_calls times inside the NVTX range timed@bench-lstm
 * while profilers collect (sampler.h). There is no worker process and no sampling. */
enum lb_status lb_profile_case(const struct lb_options *options, int *exit_code,
                               struct lb_error *err);

/* --report: writes one HTML file that shows what the run options->run found and lets readers
 * explore it, as options->out, which is replaced only if all went well. When options->runs names
 * further runs, the last one is reported and compared with each of the others. LB_INTERRUPTED:
 * *stop is nonzero; the file is as it was. */
enum lb_status lb_html_report(const struct lb_options *options, const volatile sig_atomic_t *stop,
                              struct lb_error *err);

/* --self-test: compares the plan's quickest cases with themselves in fresh processes, and a case
 * with the same case slowed down on purpose. Prints the rate of false alarms, the smallest
 * difference found, the machine's timer and noise, and advice. --quick does fewer comparisons.
 * *exit_code is LB_EXIT_FAILED when the full test shows that verdicts can't be trusted here. */
enum lb_status lb_self_test(const struct lb_session *session, const struct lb_plan *plan,
                            int *exit_code, struct lb_error *err);

#endif
