/* Where the program's case files and plot scripts lie, and the plug-ins of frameworks. */
#include "support/share_path.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/suggest.h"
#include "frameworks/environment.h"

/* The folder that this program lies in. False where the system does not say. */
static bool program_folder(char *path, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", path, size - 1);
    path[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = '\0';
    return slash != NULL;
}

static bool is_readable(const char *path)
{
    return access(path, R_OK | X_OK) == 0;
}

enum lb_status lb_share_path(const char *name, char *path, size_t size, struct lb_error *err)
{
    const char *share = getenv("BENCH_LSTM_SHARE");
    if (share) {
        snprintf(path, size, "%s/%s", share, name);
        return is_readable(path) ? LB_OK
                                 : lb_fail(err, LB_IO, "BENCH_LSTM_SHARE: there is no %s", path);
    }
    char program[4096];
    bool known = program_folder(program, sizeof(program));
    if (known) {
        snprintf(path, size, "%s/" LB_SHARE_FROM_BINARY "/%s", program, name);
        if (is_readable(path))
            return LB_OK;
    }
    bool in_bench = strcmp(name, "cases") == 0 || strcmp(name, "criteria") == 0;
    snprintf(path, size, "%s/%s%s", LB_SOURCE_DIR, in_bench ? "bench/" : "", name);
    return is_readable(path)
               ? LB_OK
               : lb_fail(err, LB_IO,
                         "%s: there is no such folder, and none in %s/" LB_SHARE_FROM_BINARY
                         "; set BENCH_LSTM_SHARE to the folder that holds %s",
                         path, program, name);
}

static const char *const frameworks[] = {
    "pytorch",          "pytorch_cuda",     "keras",          "keras_cuda", "keras_torch",
    "keras_torch_cuda", "keras_jax",        "keras_jax_cuda", "jax",        "jax_cuda",
    "onnxruntime",      "onnxruntime_cuda", "openvino",       NULL};

enum lb_status lb_framework_find(const char *name, char *path, size_t size, struct lb_error *err)
{
    static const char *const folders[] = {"frameworks", LB_PLUGINS_FROM_BINARY};
    char program[4096];
    struct lb_hint hint = {0};
    size_t i = 0;
    for (; frameworks[i] && strcmp(frameworks[i], name) != 0; i++)
        lb_hint_add(&hint, name, frameworks[i]);
    if (!frameworks[i])
        return lb_fail(err, LB_INVALID, "--framework %s: there is no such framework; %s", name,
                       hint.text);
    if (program_folder(program, sizeof(program)))
        for (i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
            snprintf(path, size, "%s/%s/bench_lstm_%s.so", program, folders[i], name);
            if (access(path, R_OK) == 0)
                return LB_OK;
        }
    return LB_ABSENT;
}

/* Packages of Python, by how the names of the plug-ins begin; of those with the same library one is
 * installed. */
static const struct {
    const char *plugin, *package, *library;
} packages[] = {
    {"bench_lstm_pytorch", "torch", "PyTorch"},
    {"bench_lstm_keras", "keras", "Keras"},
    {"bench_lstm_keras.", "tensorflow", "TensorFlow"},
    {"bench_lstm_keras.", "tensorflow_cpu", "TensorFlow"},
    {"bench_lstm_keras_cuda", "tensorflow", "TensorFlow"},
    {"bench_lstm_keras_torch", "torch", "PyTorch"},
    {"bench_lstm_keras_jax", "jax", "JAX"},
    {"bench_lstm_onnxruntime", "onnxruntime", "ONNX Runtime"},
    {"bench_lstm_onnxruntime", "onnxruntime_gpu", "ONNX Runtime"},
    {"bench_lstm_openvino", "openvino", "OpenVINO"},
    {"bench_lstm_jax", "jax", "JAX"},
};

/* Adds the version of a package in a folder of packages, which may be a pattern of glob: from the
 * name of PACKAGE-VERSION.dist-info or PACKAGE-VERSION.egg-info. */
static void add_version(const char *folder, const char *package, const char *library,
                        json_t *libraries)
{
    char pattern[4400];
    glob_t matches;
    snprintf(pattern, sizeof(pattern), "%s/%s-[0-9]*-info", folder, package);
    if (json_object_get(libraries, library) || glob(pattern, 0, NULL, &matches) != 0)
        return;
    const char *name = strrchr(matches.gl_pathv[0], '/') + 1 + strlen(package) + 1;
    const char *end = strstr(name, ".dist-info");
    if (!end)
        end = strstr(name, ".egg-info");
    if (end)
        json_object_set_new(libraries, library, json_stringn(name, (size_t)(end - name)));
    globfree(&matches);
}

void lb_framework_add_versions(const char *plugin, json_t *libraries)
{
    char environment[4096], python[4200], own[4200];
    const char *slash = strrchr(plugin, '/'), *name = slash ? slash + 1 : plugin;
    lb_frameworks_environment(environment, sizeof(environment));
    snprintf(python, sizeof(python), "%s/bin/python3", environment);
    snprintf(own, sizeof(own), "%s/lib/python3*/site-packages", environment);
    for (size_t i = 0; i < sizeof(packages) / sizeof(packages[0]); i++) {
        const char *package = packages[i].package, *library = packages[i].library;
        if (strncmp(name, packages[i].plugin, strlen(packages[i].plugin)) != 0)
            continue;
        if (access(python, X_OK) == 0) {
            add_version(own, package, library, libraries);
        } else {
            add_version("/usr/local/lib/python3*/dist-packages", package, library, libraries);
            add_version("/usr/lib/python3/dist-packages", package, library, libraries);
        }
    }
}
