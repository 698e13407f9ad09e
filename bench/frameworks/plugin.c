/* A framework's LSTM behind the harness's contract: a plug-in that embeds Python and calls the
 * framework's adapter, a Python module of this folder. The source is compiled once per framework
 * and kind of memory; FRAMEWORK, TITLE, VARIANTS, TRAITS and MEMORY tell which.
 *
 * The adapter sees the harness's buffers without copies (contract.py). Each call holds Python's
 * global lock, and lets go of it at the end, so that the framework's own Python threads can run. */
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
#include "frameworks/dlpack.h"
#include "frameworks/environment.h"

#define TEXT_OF(word) #word
#define TEXT(word)    TEXT_OF(word)

const struct lb_impl *lb_plugin(uint32_t abi);

static const char *const variants[] = {VARIANTS, NULL};

/* The interpreter and the adapter: one of each per process, kept until it ends. */
static struct {
    bool tried;
    PyObject *contract; /* module contract.py; NULL when it could not be loaded */
    PyObject *adapter;  /* module of the framework; NULL likewise */
    struct lb_error why;
} python;

enum { FORWARD, BACKWARD, CALL_KINDS, MOST_BOUND = 8 };

/* Tensors of a call that the adapter has wrapped. */
struct bound {
    union {
        struct lb_forward_io forward;
        struct lb_backward_io backward;
    } io;
    PyObject *object; /* what the adapter returned; NULL: none yet */
};

/* One case. The objects are NULL until their call. */
struct framework_case {
    struct lb_problem problem;
    struct lb_buffers buffers;
    int device;
    PyObject *session;           /* what the adapter's create returned */
    PyObject *calls[CALL_KINDS]; /* its methods forward and backward */
    struct bound bound[CALL_KINDS][MOST_BOUND];
    int next[CALL_KINDS]; /* the slot that the next new set of tensors gets */
    char description[512];
};

/* The folder of the adapters: beside this shared object where it is installed, else in the source.
 */
static void adapter_folder(char *path, size_t size)
{
    Dl_info self;
    char file[4096];
    if (dladdr((const void *)&python, &self) && self.dli_fname) {
        const char *slash = strrchr(self.dli_fname, '/');
        int length = slash ? (int)(slash - self.dli_fname) : 0;
        snprintf(path, size, "%.*s", length, self.dli_fname);
        snprintf(file, sizeof(file), "%.4000s/contract.py", path);
        if (length > 0 && access(file, R_OK) == 0)
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
    bool known = sigaction(SIGINT, NULL, &before) == 0;
    PyObject *module = PyImport_ImportModule("signal");
    if (!module)
        PyErr_Clear(); /* the adapter will say what is wrong with this Python */
    Py_XDECREF(module);
    if (known)
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

/* contract.dlpack(address, shape, code, bits, device type, device): a DLPack capsule. */
static PyObject *make_dlpack(PyObject *module, PyObject *arguments)
{
    unsigned long long address;
    PyObject *shape;
    struct lb_dlpack_type type;
    int code, bits, device_type, device;
    int64_t sizes[LB_DLPACK_MAX_DIMENSIONS];
    (void)module;
    if (!PyArg_ParseTuple(arguments, "KO!iiii", &address, &PyTuple_Type, &shape, &code, &bits,
                          &device_type, &device))
        return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(shape);
    if (count > LB_DLPACK_MAX_DIMENSIONS) {
        PyErr_SetString(PyExc_ValueError, "a tensor of more than 4 dimensions");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        sizes[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, i));
    if (PyErr_Occurred())
        return NULL;
    type = (struct lb_dlpack_type){(uint8_t)code, (uint8_t)bits, 1};
    return lb_dlpack_capsule((void *)(uintptr_t)address, sizes, (int)count, type, device_type,
                             device);
}

static PyMethodDef dlpack_method = {"dlpack", make_dlpack, METH_VARARGS, NULL};

/* Loads contract.py and the adapter from their folder. */
static enum lb_status load_adapter(struct lb_error *err)
{
    char folder[4096];
    enum lb_status st = LB_OK;
    PyObject *path = PySys_GetObject("path"), *name = NULL, *dlpack = NULL;
    adapter_folder(folder, sizeof(folder));
    name = PyUnicode_DecodeFSDefault(folder);
    if (!path || !name || PyList_Insert(path, 0, name) != 0)
        LB_TRY(python_error(err));
    python.contract = PyImport_ImportModule("contract");
    dlpack = PyCFunction_New(&dlpack_method, NULL);
    if (!python.contract || !dlpack ||
        PyObject_SetAttrString(python.contract, "dlpack", dlpack) != 0)
        LB_TRY(python_error(err));
    python.adapter = PyImport_ImportModule(ADAPTER);
    if (!python.adapter)
        LB_TRY(python_error(err));
done:
    Py_XDECREF(name);
    Py_XDECREF(dlpack);
    return st;
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
    return PyObject_CallMethod(
        python.contract, "Case", "LLLLLLssssiissisi", (long long)p->seq_len, (long long)p->batch,
        (long long)p->input, (long long)p->hidden, (long long)p->layers, (long long)p->directions,
        lb_dtype_name(p->dtype), lb_pass_name(p->pass), lb_math_name(p->math), lb_act_name(p->act),
        (int)p->ragged, config->threads, config->variant ? config->variant : "auto",
        MEMORY == LB_DEVICE ? "cuda" : "cpu", MEMORY == LB_DEVICE ? config->device : 0,
        lb_cell_name((enum lb_cell_kind)p->cell), (int)p->projection);
}

static enum lb_status framework_supports(const struct lb_problem *problem,
                                         const struct lb_exec_config *config, struct lb_error *why)
{
    enum lb_status st = open_python(why);
    if (st != LB_OK)
        return st;
    PyGILState_STATE lock = PyGILState_Ensure();
    PyObject *described = describe_case(problem, config), *result = NULL;
    if (described)
        result = PyObject_CallMethod(python.contract, "check", "OO", python.adapter, described);
    if (!result)
        st = python_error(why);
    Py_XDECREF(result);
    Py_XDECREF(described);
    PyGILState_Release(lock);
    return st;
}

/* Threads that the framework has from earlier cases, or started while it was loaded, go to the CPUs
 * that this case is pinned to. */
static void confine_threads(void)
{
    cpu_set_t cpus;
    DIR *tasks = opendir("/proc/self/task");
    if (!tasks)
        return;
    if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0)
        for (struct dirent *task; (task = readdir(tasks));)
            if (atoi(task->d_name) > 0)
                sched_setaffinity(atoi(task->d_name), sizeof(cpus), &cpus);
    closedir(tasks);
}

static enum lb_status framework_create(void *self, const struct lb_problem *problem,
                                       const struct lb_exec_config *config, struct lb_error *err)
{
    struct framework_case *c = self;
    enum lb_status st = open_python(err);
    if (st != LB_OK)
        return st;
    c->problem = *problem;
    c->device = config->device;
    PyGILState_STATE lock = PyGILState_Ensure();
    PyObject *described = describe_case(problem, config);
    PyObject *stream = PyLong_FromVoidPtr(config->stream);
    if (described && stream)
        c->session = PyObject_CallMethod(python.adapter, "create", "OO", described, stream);
    if (MEMORY == LB_HOST)
        confine_threads();
    if (c->session) {
        c->calls[FORWARD] = PyObject_GetAttrString(c->session, "forward");
        c->calls[BACKWARD] = PyObject_GetAttrString(c->session, "backward");
    }
    if (!c->session || !c->calls[FORWARD] || !c->calls[BACKWARD])
        st = python_error(err);
    Py_XDECREF(stream);
    Py_XDECREF(described);
    PyGILState_Release(lock);
    return st;
}

/* Frameworks allocate their weights, gradients and scratch memory themselves. */
static enum lb_status framework_sizes(void *self, struct lb_sizes *sizes, struct lb_error *err)
{
    (void)self;
    (void)err;
    *sizes = (struct lb_sizes){0};
    return LB_OK;
}

enum { READ_ONLY, WRITABLE };

/* A contract.Tensor on memory of the harness: shape has count dimensions. Tensors in the problem's
 * memory carry its device; weights and gradients are the host's. */
static PyObject *wrap(const struct framework_case *c, const void *memory, const int64_t *shape,
                      int count, enum lb_memory where, int writable)
{
    size_t bytes = lb_dtype_size(c->problem.dtype);
    PyObject *sizes = PyTuple_New(count), *view = NULL, *tensor = NULL;
    for (int i = 0; sizes && i < count; i++) {
        bytes *= (size_t)shape[i];
        PyTuple_SET_ITEM(sizes, i, PyLong_FromLongLong(shape[i]));
    }
    if (where == LB_HOST) {
        view = PyMemoryView_FromMemory((char *)(uintptr_t)memory, (Py_ssize_t)bytes,
                                       writable ? PyBUF_WRITE : PyBUF_READ);
    } else {
        view = Py_None;
        Py_INCREF(view);
    }
    if (sizes && view && !PyErr_Occurred())
        tensor = PyObject_CallMethod(
            python.contract, "Tensor", "KOOsi", (unsigned long long)(uintptr_t)memory, view, sizes,
            lb_dtype_name(c->problem.dtype), where == LB_DEVICE ? c->device : -1);
    Py_XDECREF(view);
    Py_XDECREF(sizes);
    return tensor;
}

/* The kinds of weights in the order of struct lb_weights. */
enum { W_IH, W_HH, B_IH, B_HH, W_CELL, WEIGHT_KINDS };

/* One kind of weight of all layers and directions: a list of Tensors. */
static PyObject *wrap_weights(const struct framework_case *c, const void *const *memory, int kind,
                              int writable)
{
    const struct lb_problem *p = &c->problem;
    size_t count = lb_layer_dir_count(p);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t e = 0; list && e < count; e++) {
        int64_t layer = (int64_t)e / p->directions;
        const int64_t shapes[WEIGHT_KINDS][2] = {
            [W_IH] = {4 * p->hidden, lb_layer_input(p, layer)},
            [W_HH] = {4 * p->hidden, lb_h_size(p)},
            [B_IH] = {4 * p->hidden},
            [B_HH] = {4 * p->hidden},
            [W_CELL] = {(int64_t)lb_cell_weight_count(p) / p->hidden, p->hidden},
        };
        int dimensions = shapes[kind][1] > 0 ? 2 : 1;
        PyObject *tensor = wrap(c, memory[e], shapes[kind], dimensions, LB_HOST, writable);
        if (!tensor) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, (Py_ssize_t)e, tensor);
    }
    return list;
}

/* Calls session.<method>(w_ih, w_hh, b_ih, b_hh[, w_cell][, lengths]): w_cell is left out for a
 * cell that has none, and lengths where it is NULL. */
static enum lb_status call_with_weights(struct framework_case *c, const char *method,
                                        const void *const *const kinds[WEIGHT_KINDS], int writable,
                                        PyObject *lengths, struct lb_error *err)
{
    int count = lb_cell_weight_count(&c->problem) > 0 ? WEIGHT_KINDS : W_CELL;
    PyObject *arguments = PyTuple_New(count + (lengths != NULL)), *function = NULL, *result = NULL;
    for (int kind = 0; arguments && kind < count; kind++) {
        PyObject *list = wrap_weights(c, kinds[kind], kind, writable);
        if (!list)
            Py_CLEAR(arguments);
        else
            PyTuple_SET_ITEM(arguments, kind, list);
    }
    if (arguments && lengths) {
        Py_INCREF(lengths);
        PyTuple_SET_ITEM(arguments, count, lengths);
    }
    function = arguments ? PyObject_GetAttrString(c->session, method) : NULL;
    result = function ? PyObject_CallObject(function, arguments) : NULL;
    enum lb_status st = result ? LB_OK : python_error(err);
    Py_XDECREF(result);
    Py_XDECREF(function);
    Py_XDECREF(arguments);
    return st;
}

static enum lb_status framework_prepare(void *self, const struct lb_buffers *buffers,
                                        const struct lb_weights *weights, struct lb_error *err)
{
    struct framework_case *c = self;
    const void *const *const kinds[WEIGHT_KINDS] = {weights->w_ih, weights->w_hh, weights->b_ih,
                                                    weights->b_hh, weights->w_cell};
    enum lb_status st = LB_OK;
    c->buffers = *buffers;
    PyGILState_STATE lock = PyGILState_Ensure();
    Py_ssize_t count = buffers->lengths ? (Py_ssize_t)c->problem.batch : 0;
    PyObject *lengths = PyTuple_New(count);
    for (Py_ssize_t b = 0; lengths && b < count; b++)
        PyTuple_SET_ITEM(lengths, b, PyLong_FromLong(buffers->lengths[b]));
    if (!lengths || PyErr_Occurred())
        st = python_error(err);
    else
        st = call_with_weights(c, "prepare", kinds, READ_ONLY, lengths, err);
    Py_XDECREF(lengths);
    PyGILState_Release(lock);
    return st;
}

/* A tensor of a call: which shape it has, and whether the implementation writes it. */
struct call_tensor {
    const void *memory;
    enum { SHAPE_X, SHAPE_Y, SHAPE_H, SHAPE_C, SHAPE_COUNT } shape;
    int writable;
};

/* Calls session.<method>(tensors...); NULL with a Python exception. */
static PyObject *bind(const struct framework_case *c, const char *method,
                      const struct call_tensor *tensors, int count)
{
    const struct lb_problem *p = &c->problem;
    const int64_t shapes[SHAPE_COUNT][3] = {
        [SHAPE_X] = {p->seq_len, p->batch, p->input},
        [SHAPE_Y] = {p->seq_len, p->batch, p->directions * lb_h_size(p)},
        [SHAPE_H] = {p->layers * p->directions, p->batch, lb_h_size(p)},
        [SHAPE_C] = {p->layers * p->directions, p->batch, p->hidden},
    };
    PyObject *arguments = PyTuple_New(count), *function = NULL, *result = NULL;
    for (int i = 0; arguments && i < count; i++) {
        PyObject *tensor =
            wrap(c, tensors[i].memory, shapes[tensors[i].shape], 3, MEMORY, tensors[i].writable);
        if (!tensor)
            Py_CLEAR(arguments);
        else
            PyTuple_SET_ITEM(arguments, i, tensor);
    }
    function = arguments ? PyObject_GetAttrString(c->session, method) : NULL;
    result = function ? PyObject_CallObject(function, arguments) : NULL;
    Py_XDECREF(function);
    Py_XDECREF(arguments);
    return result;
}

static PyObject *bind_forward(const struct framework_case *c, const void *tensors)
{
    const struct lb_forward_io *io = tensors;
    const struct call_tensor given[] = {
        {io->x, SHAPE_X, READ_ONLY}, {io->h0, SHAPE_H, READ_ONLY}, {io->c0, SHAPE_C, READ_ONLY},
        {io->y, SHAPE_Y, WRITABLE},  {io->hn, SHAPE_H, WRITABLE},  {io->cn, SHAPE_C, WRITABLE},
    };
    return bind(c, "bind_forward", given, sizeof(given) / sizeof(given[0]));
}

static PyObject *bind_backward(const struct framework_case *c, const void *tensors)
{
    const struct lb_backward_io *io = tensors;
    const struct call_tensor given[] = {
        {io->dy, SHAPE_Y, READ_ONLY}, {io->dhn, SHAPE_H, READ_ONLY}, {io->dcn, SHAPE_C, READ_ONLY},
        {io->dx, SHAPE_X, WRITABLE},  {io->dh0, SHAPE_H, WRITABLE},  {io->dc0, SHAPE_C, WRITABLE},
    };
    return bind(c, "bind_backward", given, sizeof(given) / sizeof(given[0]));
}

/* The object that the adapter made for the tensors io [bytes]. The harness calls with a few sets of
 * tensors in turn, so most calls find theirs; for a new set it is made now. Borrowed; NULL with a
 * Python exception. */
static PyObject *find_bound(struct framework_case *c, int kind, const void *io, size_t bytes)
{
    struct bound *all = c->bound[kind];
    for (int i = 0; i < MOST_BOUND; i++)
        if (all[i].object && memcmp(&all[i].io, io, bytes) == 0)
            return all[i].object;
    struct bound *slot = &all[c->next[kind]];
    c->next[kind] = (c->next[kind] + 1) % MOST_BOUND;
    Py_CLEAR(slot->object);
    memcpy(&slot->io, io, bytes);
    slot->object = kind == FORWARD ? bind_forward(c, io) : bind_backward(c, io);
    return slot->object;
}

static enum lb_status call(struct framework_case *c, int kind, const void *io, size_t bytes,
                           struct lb_error *err)
{
    PyGILState_STATE lock = PyGILState_Ensure();
    PyObject *bound = find_bound(c, kind, io, bytes);
    PyObject *result = bound ? PyObject_CallOneArg(c->calls[kind], bound) : NULL;
    enum lb_status st = result ? LB_OK : python_error(err);
    Py_XDECREF(result);
    PyGILState_Release(lock);
    return st;
}

static enum lb_status framework_forward(void *self, const struct lb_forward_io *io,
                                        struct lb_error *err)
{
    return call(self, FORWARD, io, sizeof(*io), err);
}

static enum lb_status framework_backward(void *self, const struct lb_backward_io *io,
                                         struct lb_error *err)
{
    return call(self, BACKWARD, io, sizeof(*io), err);
}

static enum lb_status framework_gradients(void *self, const struct lb_gradients *gradients,
                                          struct lb_error *err)
{
    struct framework_case *c = self;
    const void *const *const kinds[WEIGHT_KINDS] = {
        (const void *const *)gradients->dw_ih, (const void *const *)gradients->dw_hh,
        (const void *const *)gradients->db_ih, (const void *const *)gradients->db_hh,
        (const void *const *)gradients->dw_cell};
    PyGILState_STATE lock = PyGILState_Ensure();
    enum lb_status st = call_with_weights(c, "gradients", kinds, WRITABLE, NULL, err);
    PyGILState_Release(lock);
    return st;
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
    struct lb_error ignored;
    if (!c->session)
        return;
    PyGILState_STATE lock = PyGILState_Ensure();
    for (int kind = 0; kind < CALL_KINDS; kind++) {
        Py_CLEAR(c->calls[kind]);
        for (int i = 0; i < MOST_BOUND; i++)
            Py_CLEAR(c->bound[kind][i].object);
    }
    PyObject *result = PyObject_CallMethod(c->session, "destroy", NULL);
    if (!result)
        python_error(&ignored);
    Py_XDECREF(result);
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
