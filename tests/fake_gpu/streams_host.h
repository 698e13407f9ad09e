/* Streams on the host, with one wait left out: what a loop that forgot it would do. */
#ifndef LB_STREAMS_HOST_H
#define LB_STREAMS_HOST_H

enum fake_wait { FAKE_NO_WAIT, FAKE_WAIT, FAKE_FORK, FAKE_JOIN };
enum fake_call { FAKE_FORWARD, FAKE_BACKWARD, FAKE_CALL_COUNT }; /* of a training case, in turn */

/* From now on the nth of these waits in each such call, counted from its fork, does nothing; those
 * of a stream for itself do not count, and forks and joins are left out whole. */
void fake_streams_leave_out(enum fake_wait which, enum fake_call call, int nth);

#endif
