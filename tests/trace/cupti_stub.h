/* A stub of CUPTI that reports made-up launches, for tests on machines without a GPU. */
#ifndef LB_CUPTI_STUB_H
#define LB_CUPTI_STUB_H

enum cupti_stub_mode {
    STUB_SOUND,     /* three launches, and a record of another kind between them */
    STUB_TAKEN,     /* another profiler is attached */
    STUB_NO_KERNEL, /* the call launched none */
    STUB_DROPS,     /* two records were dropped */
    STUB_UNTIMED,   /* the times of one launch could not be collected */
    STUB_OLD,       /* the version of CUDA 12.5 */
    STUB_HANG,      /* switching off the recording never returns */
    STUB_CRASH      /* detaching aborts the process */
};

/* A program that does not choose takes the mode that LB_CUPTI_STUB names in its environment: "old",
 * "hang" or "crash"; else STUB_SOUND. */

void cupti_stub_use(enum cupti_stub_mode mode);

/* How many times CUPTI was attached without being detached since. */
int cupti_stub_attached(void);

#endif
