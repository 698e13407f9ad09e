/* A stand-in for CUPTI that reports made-up launches, for tests on machines without a GPU. */
#ifndef LB_CUPTI_STUB_H
#define LB_CUPTI_STUB_H

enum cupti_stub_mode {
    STUB_SOUND,    /* three launches, with a record of another kind among them */
    STUB_TAKEN,    /* another profiler is attached */
    STUB_NO_KERNEL /* the call launched none */
};

void cupti_stub_use(enum cupti_stub_mode mode);

/* How many times CUPTI was attached and not taken off the process since. */
int cupti_stub_attached(void);

#endif
