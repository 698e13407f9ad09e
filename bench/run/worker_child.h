/* The worker's side of worker.h. A worker is the same program, started to run cases for it. */
#ifndef LB_WORKER_CHILD_H
#define LB_WORKER_CHILD_H

/* Serves requests on descriptor 3 until the program hangs up. parent: the program's process id;
 * device: ordinal of the GPU to use. Returns the exit code. */
int lb_worker_main(long parent, int device);

#endif
