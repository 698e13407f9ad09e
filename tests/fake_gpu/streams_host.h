/* Leaves out one wait between streams on the host, as if a loop had forgotten it. */
#ifndef LB_STREAMS_HOST_H
#define LB_STREAMS_HOST_H

enum fake_wait { FAKE_NO_WAIT, FAKE_WAIT, FAKE_FORK, FAKE_JOIN };
enum fake_call { FAKE_FORWARD, FAKE_BACKWARD, FAKE_CALL_COUNT }; /* of a training case, in turn */

/* From now on the nth of these waits in each such call, counted from its fork, does nothing. A
 * stream's waits for itself are not counted. A fork or a join is left out for all streams at
 * once. */
void fake_streams_leave_out(enum fake_wait which, enum fake_call call, int nth);

#endif
