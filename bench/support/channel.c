/* JSON messages over a socket, one per line. */
#include "support/channel.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

void lb_channel_send(struct lb_channel *channel, json_t *message)
{
    char *text = json_dumps(message, JSON_COMPACT);
    json_decref(message);
    size_t length = strlen(text), sent = 0;
    text[length++] = '\n'; /* takes the place of the terminating zero */
    while (sent < length) {
        ssize_t n = send(channel->fd, text + sent, length - sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break;
        sent += (size_t)n;
    }
    free(text);
}

/* Removes the first whole line from the buffer and returns its message; NULL when there is none. */
static json_t *take_message(struct lb_channel *channel, enum lb_status *st, struct lb_error *err)
{
    char *end = channel->used ? memchr(channel->buffer, '\n', channel->used) : NULL;
    if (!end)
        return NULL;
    size_t length = (size_t)(end - channel->buffer);
    json_error_t why;
    json_t *message = json_loadb(channel->buffer, length, 0, &why);
    if (!message)
        *st = lb_fail(err, LB_INVALID, "a line is no message: %s", why.text);
    channel->used -= length + 1;
    memmove(channel->buffer, end + 1, channel->used);
    return message;
}

static enum lb_status fill_buffer(struct lb_channel *channel, struct lb_error *err)
{
    if (channel->capacity - channel->used < 4096) {
        size_t capacity = 2 * channel->capacity + 8192;
        channel->buffer = lb_needed(realloc(channel->buffer, capacity));
        channel->capacity = capacity;
    }
    ssize_t n =
        read(channel->fd, channel->buffer + channel->used, channel->capacity - channel->used);
    if (n == 0)
        return lb_fail(err, LB_IO, "the other side is gone");
    if (n < 0 && errno != EINTR)
        return lb_fail(err, LB_IO, "receiving failed: %s", strerror(errno));
    channel->used += n > 0 ? (size_t)n : 0;
    return LB_OK;
}

enum lb_status lb_channel_receive(struct lb_channel *channel, int timeout_ms, json_t **message,
                                  struct lb_error *err)
{
    enum lb_status st = LB_OK;
    double end_ns = lb_now_ns() + timeout_ms * 1e6;
    for (;;) {
        *message = take_message(channel, &st, err);
        if (*message || st != LB_OK)
            return st;
        struct pollfd wait = {.fd = channel->fd, .events = POLLIN};
        int left_ms = timeout_ms < 0 ? -1 : (int)((end_ns - lb_now_ns()) / 1e6);
        if ((timeout_ms >= 0 && left_ms < 0) || poll(&wait, 1, left_ms) <= 0)
            return LB_OK;
        st = fill_buffer(channel, err);
        if (st != LB_OK)
            return st;
    }
}

void lb_channel_close(struct lb_channel *channel)
{
    if (channel->fd >= 0)
        close(channel->fd);
    free(channel->buffer);
    *channel = (struct lb_channel){.fd = -1};
}
