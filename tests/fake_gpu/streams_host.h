/* Leaves out one wait between streams on the host, as if a loop had forgotten it. */
#ifndef LB_STREAMS_HOST_H
#define LB_STREAMS_HOST_H

enum fake_wait {
    FAKE_NO_WAIT, /* nothing is left out */
    FAKE_WAIT,    /* one lb_stream_wait */
    FAKE_FORK,    /* lb_streams_fork: the waits of all streams for the first */
    FAKE_JOIN     /* lb_streams_join: the waits of the first stream for all others */
};
enum fake_call { FAKE_FORWARD, FAKE_BACKWARD, FAKE_CALL_COUNT }; /* of a training case, in turn */

/* From now on the wait `which` does nothing in each call of the kind `call`. nth, from 0, says
 * which lb_stream_wait it is, counted from the call's fork; a stream's waits for itself are not
 * counted. */
void fake_streams_leave_out(enum fake_wait which, enum fake_call call, int nth);

#endif
