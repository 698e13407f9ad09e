/* The worker's side of worker.h. A worker is the same program, started to run cases for it.
 *
 * Messages travel as JSON, one per line (support/channel.h). Each request has its "op" and "given",
 * the files of base/given_files.h. The worker answers with events, of which the last is the reply:
 *
 *     op        what the request also has           events before the reply   "reply"
 *     plugin    path: serve that plug-in            -                         the plug-in itself
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
#ifndef LB_WORKER_CHILD_H
#define LB_WORKER_CHILD_H

/* Serves requests on descriptor 3 until the program hangs up. parent: the program's process id;
 * device: ordinal of the GPU to use. Returns the exit code. */
int lb_worker_main(long parent, int device);

#endif
