/* Versions of the GPU libraries: built against, and loaded. */
#ifndef LB_GPU_VERSIONS_H
#define LB_GPU_VERSIONS_H

#ifdef __cplusplus
extern "C" {
#endif

struct lb_device_version {
    const char *library; /* "cuDNN"; NULL behind the last */
    char built[24];      /* "9.19.0" */
    char loaded[24];     /* "" where the library does not say without a device */
};

/* All that this program was built with; ends with a NULL library. */
const struct lb_device_version *lb_device_versions(void);

#ifdef __cplusplus
}
#endif
#endif
