/* A framework's LSTM behind the harness's contract: a plug-in that embeds Python and calls the
 * framework's adapter, a Python module of this folder. The source is compiled once per framework
 * and kind of memory; FRAMEWORK, TITLE, VARIANTS, TRAITS and MEMORY tell which.
 *
 * The adapter gets the addresses of the harness's buffers, and contract.py makes tensors of them
 * without copies. Each call holds Python's global lock, and lets go of it at the end, so that the
 * framework's own Python threads can run. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <dirent.h>
#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/impl.h"
#include "frameworks/environment.h"

#define TEXT_OF(word) #word
#define TEXT(word)    TEXT_OF(word)

const struct lb_impl *lb_plugin(uint32_t abi);

static const char *const variants[] = {VARIANTS, NULL};

enum { FORWARD, BACKWARD, CALL_KINDS, CALL_TENSORS = 6, MOST_BOUND = 8 };

/* The interpreter and the adapter: one of each per process, kept until it ends. */
static struct {
    bool tried;
    PyObject *contract;            /* module contract.py; NULL when it could not be loaded */
    PyObject *adapter;             /* module of the framework; NULL likewise */
    PyObject *methods[CALL_KINDS]; /* "forward", "backward" */
    struct lb_error why;
} python;

/* Tensors of a call that the adapter has wrapped. */
struct bound {
    const void *tensors[CALL_TENSORS]; /* the three that are read, then the three results */
    PyObject *object;                  /* what the adapter returned; NULL: none yet */
};

/* One case. The objects are NULL until their call. */
struct framework_case {
    PyObject *session; /* what the adapter's create returned */
    struct bound bound[CALL_KINDS][MOST_BOUND];
    int next[CALL_KINDS]; /* the slot that the next new set of tensors gets */
    char description[512];
};

/* The folder of the adapters: that of this shared object where it is installed, else in the source.
 */
static void adapter_folder(char *path, size_t size)
{
    Dl_info self;
    const char *slash = dladdr((const void *)&python, &self) ? strrchr(self.dli_fname, '/') : NULL;
    int length = slash ? (int)(slash - self.dli_fname) : 0;
    if (length > 0 && (size_t)length < size) {
        snprintf(path, size, "%.*s/contract.py", length, self.dli_fname);
        bool is_there = access(path, R_OK) == 0;
        path[length] = '\0';
        if (is_there)
            return;
    }
    snprintf(path, size, "%s", LB_ADAPTERS);
}

/* Extension modules of Python take its symbols from the program: makes those of the library that
 * this plug-in was linked with visible to them. */
static void publish_python(void)
{
    Dl_info library;
    void *symbol = NULL;
    void (*function)(void) = Py_Initialize;
    memcpy(&symbol, &function, sizeof(symbol)); /* ISO C has no cast between the two */
    if (dladdr(symbol, &library) && library.dli_fname)
        dlopen(library.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
}

/* Imports the module signal, which takes over SIGINT when it is imported first, and gives that
 * back: it is the worker's, which would be replaced after each case otherwise. */
static void keep_interrupt(void)
{
    struct sigaction before;
    sigaction(SIGINT, NULL, &before);
    Py_XDECREF(PyImport_ImportModule("signal"));
    PyErr_Clear(); /* the adapter will say what is wrong with this Python */
    sigaction(SIGINT, &before, NULL);
}

/* Starts Python, apart from the user's settings and packages: the environment where there is one,
 * else what the system's Python has. */
static enum lb_status start_python(struct lb_error *err)
{
    char environment[4096], executable[4200];
    PyConfig config;
    PyStatus status;
    publish_python();
    PyConfig_InitIsolatedConfig(&config);
    lb_frameworks_environment(environment, sizeof(environment));
    snprintf(executable, sizeof(executable), "%s/bin/python3", environment);
    if (access(executable, X_OK) != 0)
        snprintf(executable, sizeof(executable), "%s", LB_PYTHON);
    config.write_bytecode = 0; /* the adapters lie in a source tree, or where only root writes */
    status = PyConfig_SetBytesString(&config, &config.executable, executable);
    if (!PyStatus_Exception(status))
        status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    if (PyStatus_Exception(status))
        return lb_fail(err, LB_ABSENT, "Python did not start with %.300s: %s", executable,
                       status.err_msg ? status.err_msg : "no reason given");
    keep_interrupt();
    return LB_OK;
}

/* The pending exception, which is pending no longer. */
static PyObject *take_exception(void)
{
#if PY_VERSION_HEX >= 0x030C0000
    return PyErr_GetRaisedException();
#else
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    return value;
#endif
}

/* The pending exception as a status and a sentence. contract.py words it; what fails in there is
 * told plainly. */
static enum lb_status python_error(struct lb_error *err)
{
    PyObject *value = take_exception(), *told = NULL;
    const char *text = NULL;
    int status = LB_FAILED;
    if (python.contract && value)
        told = PyObject_CallMethod(python.contract, "explain", "O", value);
    if (!told || !PyArg_ParseTuple(told, "is", &status, &text))
        PyErr_Clear();
    if (!text && value) {
        Py_XDECREF(told);
        told = PyObject_Str(value);
        text = told ? PyUnicode_AsUTF8(told) : NULL;
    }
    lb_fail(err, (enum lb_status)status, "%s", text ? text : "Python failed without a reason");
    Py_XDECREF(told);
    Py_XDECREF(value);
    PyErr_Clear();
    return (enum lb_status)status;
}

/* Loads contract.py and the adapter from their folder. */
static enum lb_status load_adapter(struct lb_error *err)
{
    char folder[4096];
    PyObject *path = PySys_GetObject("path"), *name;
    adapter_folder(folder, sizeof(folder));
    name = PyUnicode_DecodeFSDefault(folder);
    if (path && name && PyList_Insert(path, 0, name) == 0)
        python.contract = PyImport_ImportModule("contract");
    Py_XDECREF(name);
    python.methods[FORWARD] = PyUnicode_InternFromString("forward");
    python.methods[BACKWARD] = PyUnicode_InternFromString("backward");
    if (python.contract)
        python.adapter = PyImport_ImportModule(ADAPTER);
    return python.adapter ? LB_OK : python_error(err);
}

/* Starts Python and loads the adapter once; later calls return the same status. */
static enum lb_status open_python(struct lb_error *err)
{
    if (!python.tried) {
        python.tried = true;
        if (start_python(&python.why) == LB_OK) {
            load_adapter(&python.why);
            PyEval_SaveThread();
        }
    }
    if (python.adapter)
        return LB_OK;
    return lb_fail(err, LB_ABSENT, "%s", python.why.text);
}

/* The problem and where it runs, as the adapter's keyword arguments of a contract.Case. */
static PyObject *describe_case(const struct lb_problem *p, const struct lb_exec_config *config)
{
    const enum lb_pass pass = config->forward_only ? LB_FORWARD : (enum lb_pass)p->pass;
    return PyObject_CallMethod(
        python.contract, "Case", "LLLLLLssssiissisi", (long long)p->seq_len, (long long)p->batch,
        (long long)p->input, (long long)p->hidden, (long long)p->layers, (long long)p->directions,
        lb_dtype_name(p->dtype), lb_pass_name(pass), lb_math_name(p->math), lb_act_name(p->act),
        (int)p->ragged, config->threads, config->variant ? config->variant : "auto",
        MEMORY == LB_DEVICE ? "cuda" : "cpu", MEMORY == LB_DEVICE ? config->device : 0,
        lb_cell_name((enum lb_cell_kind)p->cell), (int)p->projection);
}

/* Ends a call into Python, which returned the result (NULL: it raised an exception), and lets go of
 * Python's global lock. */
static enum lb_status finish(PyGILState_STATE lock, PyObject *result, struct lb_error *err)
{
    enum lb_status st = result ? LB_OK : python_error(err);
    Py_XDECREF(result);
    PyGILState_Release(lock);
    return st;
}

static enum lb_status framework_supports(const struct lb_problem *problem,
                                         const struct lb_exec_config *config, struct lb_error *why)
{
    LB_CHECK(open_python(why));
    PyGILState_STATE lock = PyGILState_Ensure();
    PyObject *result = PyObject_CallMethod(python.contract, "check", "ON", python.adapter,
                                           describe_case(problem, config));
    return finish(lock, result, why);
}

/* Threads that the framework has from earlier cases, or started while it was loaded, go to the CPUs
 * that this case is pinned to. */
static void confine_threads(void)
{
    cpu_set_t cpus;
    DIR *tasks = opendir("/proc/self/task");
    bool known = tasks && sched_getaffinity(0, sizeof(cpus), &cpus) == 0;
    for (struct dirent *task; known && (task = readdir(tasks));)
        if (atoi(task->d_name) > 0)
            sched_setaffinity(atoi(task->d_name), sizeof(cpus), &cpus);
    if (tasks)
        closedir(tasks);
}

/* An address as the argument of the format K. */
static unsigned long long address(const void *memory)
{
    return (unsigned long long)(uintptr_t)memory;
}

static enum lb_status framework_create(void *self, const struct lb_problem *problem,
                                       const struct lb_exec_config *config, struct lb_error *err)
{
    struct framework_case *c = self;
    LB_CHECK(open_python(err));
    PyGILState_STATE lock = PyGILState_Ensure();
    c->session = PyObject_CallMethod(python.adapter, "create", "NK", describe_case(problem, config),
                                     address(config->stream));
    if (MEMORY == LB_HOST)
        confine_threads();
    Py_XINCREF(c->session);
    return finish(lock, c->session, err);
}

/* Frameworks allocate their weights, gradients and scratch memory themselves. */
static enum lb_status framework_sizes(void *self, struct lb_sizes *sizes, struct lb_error *err)
{
    (void)self;
    (void)err;
    *sizes = (struct lb_sizes){0};
    return LB_OK;
}

static enum lb_status framework_prepare(void *self, const struct lb_buffers *buffers,
                                        const struct lb_weights *weights, struct lb_error *err)
{
    struct framework_case *c = self;
    PyGILState_STATE lock = PyGILState_Ensure();
    PyObject *result = PyObject_CallMethod(c->session, "load", "KdK", address(buffers->lengths),
                                           (double)buffers->x_max, address(weights));
    return finish(lock, result, err);
}

/* The object that the adapter made for the tensors [CALL_TENSORS]. The harness calls with a few
 * sets of tensors in turn, so most calls find theirs; for a new set it is made now. Borrowed; NULL
 * with a Python exception. */
static PyObject *find_bound(struct framework_case *c, int kind, const void *const *tensors)
{
    struct bound *all = c->bound[kind];
    for (int i = 0; i < MOST_BOUND; i++)
        if (all[i].object && memcmp(all[i].tensors, tensors, sizeof(all[i].tensors)) == 0)
            return all[i].object;
    struct bound *slot = &all[c->next[kind]];
    c->next[kind] = (c->next[kind] + 1) % MOST_BOUND;
    Py_CLEAR(slot->object);
    memcpy(slot->tensors, tensors, sizeof(slot->tensors));
    slot->object =
        PyObject_CallMethod(c->session, "bind", "OK", python.methods[kind], address(tensors));
    return slot->object;
}

static enum lb_status call(struct framework_case *c, int kind, const void *const *tensors,
                           struct lb_error *err)
{
    PyGILState_STATE lock = PyGILState_Ensure();
    PyObject *bound = find_bound(c, kind, tensors), *result = NULL;
    if (bound)
        result = PyObject_CallMethodOneArg(c->session, python.methods[kind], bound);
    return finish(lock, result, err);
}

static enum lb_status framework_forward(void *self, const struct lb_forward_io *io,
                                        struct lb_error *err)
{
    const void *const tensors[CALL_TENSORS] = {io->x, io->h0, io->c0, io->y, io->hn, io->cn};
    return call(self, FORWARD, tensors, err);
}

static enum lb_status framework_backward(void *self, const struct lb_backward_io *io,
                                         struct lb_error *err)
{
    const void *const tensors[CALL_TENSORS] = {io->dy, io->dhn, io->dcn, io->dx, io->dh0, io->dc0};
    return call(self, BACKWARD, tensors, err);
}

static enum lb_status framework_gradients(void *self, const struct lb_gradients *gradients,
                                          struct lb_error *err)
{
    struct framework_case *c = self;
    PyGILState_STATE lock = PyGILState_Ensure();
    return finish(lock, PyObject_CallMethod(c->session, "store", "K", address(gradients)), err);
}

static const char *framework_describe(const void *self)
{
    struct framework_case *c = (struct framework_case *)(uintptr_t)self;
    struct lb_error err;
    if (!c->session)
        return "";
    PyGILState_STATE lock = PyGILState_Ensure();
    PyObject *text = PyObject_CallMethod(c->session, "describe", NULL);
    const char *bytes = text ? PyUnicode_AsUTF8(text) : NULL;
    if (!bytes)
        python_error(&err);
    snprintf(c->description, sizeof(c->description), "%s", bytes ? bytes : err.text);
    Py_XDECREF(text);
    PyGILState_Release(lock);
    return c->description;
}

static void framework_destroy(void *self)
{
    struct framework_case *c = self;
    if (!c->session)
        return;
    PyGILState_STATE lock = PyGILState_Ensure();
    for (int kind = 0; kind < CALL_KINDS; kind++)
        for (int i = 0; i < MOST_BOUND; i++)
            Py_CLEAR(c->bound[kind][i].object);
    Py_XDECREF(PyObject_CallMethod(c->session, "destroy", NULL));
    PyErr_Clear();
    Py_CLEAR(c->session);
    PyGC_Collect(); /* sessions hold cycles, and their memory counts in the next case */
    PyGILState_Release(lock);
}

const struct lb_impl *lb_plugin(uint32_t abi)
{
    static const struct lb_impl impl = {
        .abi = LB_IMPL_ABI,
        .struct_bytes = sizeof(struct lb_impl),
        .name = TEXT(FRAMEWORK),
        .summary = TITLE,
        .memory = MEMORY,
        .traits = TRAITS,
        .state_size = sizeof(struct framework_case),
        .variants = variants,
        .supports = framework_supports,
        .create = framework_create,
        .sizes = framework_sizes,
        .prepare = framework_prepare,
        .forward = framework_forward,
        .backward = framework_backward,
        .gradients = framework_gradients,
        .describe = framework_describe,
        .destroy = framework_destroy,
        .cells = 1u << LB_CELL_PROJECTION | 1u << LB_CELL_PEEPHOLE, /* contract.py says whose */
    };
    return abi == LB_IMPL_ABI ? &impl : NULL;
}
