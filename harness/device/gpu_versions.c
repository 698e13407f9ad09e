/* Versions of the GPU libraries. */
#include "device/gpu_versions.h"

#include <stdio.h>

#ifdef LB_HAVE_CUDA
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#endif
#ifdef LB_HAVE_CUDNN
#include <cudnn.h>
#endif

const struct lb_device_version *lb_device_versions(void)
{
    static struct lb_device_version versions[4];
    int count = 0;
#ifdef LB_HAVE_CUDA
    struct lb_device_version *v = &versions[count++];
    int loaded = 0, major = 0, minor = 0, patch = 0;
    v->library = "CUDA runtime";
    snprintf(v->built, sizeof(v->built), "%d.%d", CUDART_VERSION / 1000,
             CUDART_VERSION % 1000 / 10);
    if (cudaRuntimeGetVersion(&loaded) == cudaSuccess)
        snprintf(v->loaded, sizeof(v->loaded), "%d.%d", loaded / 1000, loaded % 1000 / 10);

    v = &versions[count++];
    v->library = "cuBLAS";
    snprintf(v->built, sizeof(v->built), "%d.%d.%d", CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR,
             CUBLAS_VER_PATCH);
    if (cublasGetProperty(MAJOR_VERSION, &major) == CUBLAS_STATUS_SUCCESS &&
        cublasGetProperty(MINOR_VERSION, &minor) == CUBLAS_STATUS_SUCCESS &&
        cublasGetProperty(PATCH_LEVEL, &patch) == CUBLAS_STATUS_SUCCESS)
        snprintf(v->loaded, sizeof(v->loaded), "%d.%d.%d", major, minor, patch);
#endif
#ifdef LB_HAVE_CUDNN
    struct lb_device_version *dnn = &versions[count++];
    size_t version = cudnnGetVersion();
    dnn->library = "cuDNN";
    snprintf(dnn->built, sizeof(dnn->built), "%d.%d.%d", CUDNN_MAJOR, CUDNN_MINOR,
             CUDNN_PATCHLEVEL);
    snprintf(dnn->loaded, sizeof(dnn->loaded), "%zu.%zu.%zu", version / 10000, version / 100 % 100,
             version % 100);
#endif
    versions[count].library = NULL;
    return versions;
}
