/* When the calls of a stream are due. */
#include "measure/stream_clock.h"

#include <math.h>
#include <time.h>

#include "base/clock.h"

double lb_stream_clock_wait(struct lb_stream_clock *clock, double rate)
{
    static const double spun_ns = 1e5; /* a sleeping thread wakes up later than it asked for */
    double now = lb_now_ns() - clock->paused_ns;
    clock->due_ns = clock->due_ns > 0 ? clock->due_ns + 1e9 / rate : now;
    const double begin = fmax(clock->due_ns, clock->end_ns);
    const double sleep_ns = begin - now - spun_ns;
    if (sleep_ns > 0) {
        const struct timespec pause = {.tv_sec = (time_t)(sleep_ns / 1e9),
                                       .tv_nsec = (long)fmod(sleep_ns, 1e9)};
        nanosleep(&pause, NULL);
    }
    while ((now = lb_now_ns() - clock->paused_ns) < begin)
        continue;
    clock->paused_ns += now - begin;
    return begin - clock->due_ns;
}

void lb_stream_clock_note(struct lb_stream_clock *clock, double late_ns, double took_ns)
{
    clock->end_ns = clock->due_ns + late_ns + took_ns;
}
