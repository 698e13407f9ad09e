/* JSON messages over a socket, one per line, between the program and its workers. */
#ifndef LB_CHANNEL_H
#define LB_CHANNEL_H

#include <jansson.h>

#include "api/status.h"

struct lb_channel {
    int fd;
    char *buffer; /* [used] bytes received that are not read as messages yet */
    size_t used, capacity;
};

/* Sends the message and releases it. Whether the other side is gone shows when it is awaited. */
void lb_channel_send(struct lb_channel *channel, json_t *message);

/* Waits at most timeout_ms (negative: without limit) for a message, a new reference. *message is
 * NULL when none came in time or a signal interrupted the wait. LB_IO when the other side is gone;
 * LB_INVALID when it sent a line that is no JSON. */
enum lb_status lb_channel_receive(struct lb_channel *channel, int timeout_ms, json_t **message,
                                  struct lb_error *err);

void lb_channel_close(struct lb_channel *channel);

#endif
