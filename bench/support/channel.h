/* JSON messages over a socket, one a line: how the program and its workers talk. */
#ifndef LB_CHANNEL_H
#define LB_CHANNEL_H

#include <jansson.h>

#include "api/status.h"

struct lb_channel {
    int fd;
    char *buffer; /* received, not yet read as messages */
    size_t used, capacity;
};

/* Sends the message and releases it. LB_IO when the other side is gone. */
enum lb_status lb_channel_send(struct lb_channel *channel, json_t *message, struct lb_error *err);

/* Waits at most timeout_ms (negative: for ever) for a message. *message is NULL when none came in
 * time or a signal interrupted the wait. LB_IO when the other side is gone or sent no JSON. */
enum lb_status lb_channel_receive(struct lb_channel *channel, int timeout_ms, json_t **message,
                                  struct lb_error *err);

void lb_channel_close(struct lb_channel *channel);

#endif
