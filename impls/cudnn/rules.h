/* What cuDNN's RNN can do, as far as it can be said without asking the library: by variant, problem
 * and device. The library is asked of what these rules let pass, and its status is the truth. */
#ifndef LB_CUDNN_RULES_H
#define LB_CUDNN_RULES_H

#include "api/problem.h"
#include "device/device.h"

enum lb_cudnn_variant {
    CUDNN_AUTO, /* times the algorithms that take the problem, and uses the fastest */
    CUDNN_STANDARD,
    CUDNN_PERSIST_STATIC,
    CUDNN_PERSIST_DYNAMIC,
    CUDNN_SMALL_H,
    CUDNN_VARIANT_COUNT
};

/* "auto", "standard", ...; NULL behind the last. */
#define LB_CUDNN_VARIANTS                                                        \
    {                                                                            \
        "auto", "standard", "persist_static", "persist_dynamic", "small_h", NULL \
    }
extern const char *const lb_cudnn_variant_names[CUDNN_VARIANT_COUNT + 1];

/* The variant of that name; CUDNN_AUTO for NULL and unknown names. */
enum lb_cudnn_variant lb_cudnn_variant_of(const char *name);

/* LB_UNSUPPORTED with one sentence that names the limit. device may be NULL: unknown, and then what
 * depends on it is let pass. AUTO takes what any variant takes. */
enum lb_status lb_cudnn_rules_check(enum lb_cudnn_variant variant, const struct lb_problem *problem,
                                    const struct lb_device_info *device, struct lb_error *why);

/* The variant that PyTorch would choose, in which training passes may differ between forward and
 * backward: that of backward where backward is part of the pass. why (may be NULL) gets the
 * criterion that decided, as half a sentence: "hidden 1100 is above 1024". Source: the gate in
 * PyTorch's RNN.cpp. */
enum lb_cudnn_variant lb_cudnn_rules_usual(const struct lb_problem *problem,
                                           const struct lb_device_info *device,
                                           struct lb_error *why);

#endif
