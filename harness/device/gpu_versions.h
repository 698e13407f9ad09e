/* Versions of the GPU libraries: of those the program was built against, and of the loaded ones. */
#ifndef LB_GPU_VERSIONS_H
#define LB_GPU_VERSIONS_H

#ifdef __cplusplus
extern "C" {
#endif

struct lb_device_version {
    const char *library; /* "cuDNN"; NULL ends the list */
    char built[24];      /* "9.19.0" */
    char loaded[24];     /* "" where the library cannot tell without a device */
};

/* All GPU libraries of this build. A static array, which ends with a NULL library. */
const struct lb_device_version *lb_device_versions(void);

#ifdef __cplusplus
}
#endif
#endif
