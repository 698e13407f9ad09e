"""What plugin.c and the adapters agree on: the case, the harness's tensors, and how errors are told.

An adapter is a module with

    TITLE      the framework's name, for messages
    MODULES    the modules that it imports, in the order in which users would install them
    CELLS      the cells, other than the standard one, that its LSTM has in some variant: projection, peephole
    supports(case)         raises Unsupported with one sentence; must not import the framework
    create(case, stream)   opens a case and returns a Session; stream is a cudaStream_t as a number

and its Session adds to what the class here gives it

    prepare(kinds, lengths)   kinds: w_ih, w_hh, b_ih, b_hh, and w_cell where the cell is not the
                              standard one, each a list of Tensor, one per layer and direction, gate
                              order i f g o; lengths: a tuple, empty when rows are full
    take(tensor)              the framework's own tensor on the memory of a Tensor that it reads
    target(tensor)            the same for one that it writes (else the Tensor itself)
    forward(bound)            timed; bound.given are x, h0, c0, bound.results y, hn, cn
    backward(bound)           timed; given are dy, dhn, dcn, results dx, dh0, dc0 of the forward before it;
    gradients(kinds)          writes the last backward's weight gradients: both of one that trains
    describe()                one sentence on what runs, with the scheme of int8: the types of weights and
                              activations, "per channel" or "per tensor", "static" or "dynamic" (per call)
"""

import contextlib
import ctypes
import functools
import importlib.util
import math
import os
import sys
import warnings
from dataclasses import dataclass
from types import SimpleNamespace

# enum lb_status of harness/api/status.h
UNSUPPORTED, ABSENT, OOM, FAILED = 1, 2, 4, 6

BYTES = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2}
FULL_NAMES = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16"}


class Later:
    """A module that is imported when it is first used, after check() has looked for it."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, key):
        value = getattr(importlib.import_module(self._name), key)
        setattr(self, key, value)  # found without this function from now on
        return value


numpy, ml_dtypes = Later("numpy"), Later("ml_dtypes")


class Unsupported(Exception):
    """The framework can't run the case: the row says so, and why."""


class Absent(Exception):
    """The framework, or what it needs, is not there."""


@dataclass(frozen=True)
class Case:
    """One case, in the words of harness/api/problem.h. device: "cpu" or "cuda"."""

    # pylint: disable=too-many-instance-attributes
    seq_len: int
    batch: int
    input: int
    hidden: int
    layers: int
    directions: int
    dtype: str
    passes: str
    math: str
    act: str
    ragged: int
    threads: int
    variant: str
    device: str
    ordinal: int
    cell: str
    projection: int  # P of the cell projection, else 0

    @property
    def trains(self):
        """Whether forward must keep what backward needs."""
        return self.passes != "infer"

    @property
    def stored(self):
        """The dtype of tensors. Those of int8 are f32: the framework quantises."""
        return "f32" if self.dtype == "int8" else self.dtype

    @property
    def h_size(self):
        """The size of h."""
        return self.projection or self.hidden

    def input_of(self, layer):
        """The input size of a layer."""
        return self.input if layer == 0 else self.directions * self.h_size

    def layer_dirs(self):
        """(layer, direction, index) of each layer and direction, in the order of the weights."""
        return [(layer, direction, layer * self.directions + direction)
                for layer in range(self.layers) for direction in range(self.directions)]

    def weight_shapes(self, layer):
        """The shapes of w_ih, w_hh, b_ih, b_hh and w_cell of a layer."""
        gates = 4 * self.hidden
        return [(gates, self.input_of(layer)), (gates, self.h_size), (gates,), (gates,),
                (self.projection or 3, self.hidden)]

    def call_shapes(self):
        """The shapes of (x, h0, c0), which are those of (dx, dh0, dc0), and of (y, hn, cn)."""
        states = [(self.layers * self.directions, self.batch, size) for size in (self.h_size, self.hidden)]
        return ([(self.seq_len, self.batch, self.input), *states],
                [(self.seq_len, self.batch, self.directions * self.h_size), *states])


def adds_in_16_bits(*units):
    """Whether the CPU is an x86 that lacks these units of /proc/cpuinfo: there libraries add pairs of products of
    int8 in 16 bits, which u8 times s8 overflows unless the weights have 7 bits."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        flags = next((line.split() for line in file if line.startswith("flags")), None)
    return flags is not None and not set(units) & set(flags)


class Managed(ctypes.Structure):
    """DLManagedTensor of the DLPack specification, version 0, with the arrays that it points to."""

    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device", ctypes.c_int32),
                ("dimensions", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                ("byte_offset", ctypes.c_uint64), ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("sizes", ctypes.c_int64 * 4), ("steps", ctypes.c_int64 * 4)]


FLOAT, BFLOAT, HOST, CUDA = 2, 4, 1, 2 # of DLPack
CAPSULE = b"dltensor"
python = ctypes.PyDLL(None)
python.PyMem_RawCalloc.restype = ctypes.c_void_p
python.PyMem_RawCalloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
python.PyCapsule_New.restype = ctypes.py_object
python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Tensor:
    """Memory of the harness, row-major. device: -1 on the host, else a GPU's ordinal. Frameworks take it
    through DLPack, NumPy through numpy()."""

    def __init__(self, address, shape, dtype, device):
        self.address, self.shape, self.dtype, self.device = address, shape, dtype, device
        self.bytes = math.prod(shape) * BYTES[dtype]
        self.view = None

    def __dlpack__(self, **_):
        """A capsule that the framework takes at once. The framework frees the description alone, by
        PyMem_RawFree: the tensor's memory belongs to the harness."""
        memory = python.PyMem_RawCalloc(1, ctypes.sizeof(Managed))
        if not memory:
            raise MemoryError
        managed, stride = Managed.from_address(memory), 1
        for i in reversed(range(len(self.shape))):
            managed.sizes[i], managed.steps[i] = self.shape[i], stride
            stride *= self.shape[i]
        managed.data, managed.dimensions = self.address, len(self.shape)
        managed.device_type, managed.device = self.__dlpack_device__()
        managed.code = BFLOAT if self.dtype == "bf16" else FLOAT
        managed.bits, managed.lanes = 8 * BYTES[self.dtype], 1
        managed.shape, managed.strides = memory + Managed.sizes.offset, memory + Managed.steps.offset
        managed.deleter = ctypes.cast(python.PyMem_RawFree, ctypes.c_void_p)
        return python.PyCapsule_New(memory, CAPSULE, None)

    def __dlpack_device__(self):
        return (HOST, 0) if self.device < 0 else (CUDA, self.device)

    def numpy(self):
        """A NumPy view of the memory."""
        if self.view is None:
            memory = (ctypes.c_char * self.bytes).from_address(self.address)
            self.view = numpy.frombuffer(memory, numpy_type(self.dtype)).reshape(self.shape)
        return self.view


@functools.cache
def driver_function(name, arguments):
    """A function of CUDA's driver with so many arguments of 64 bits. Looking it up takes 20 us, and calls are timed."""
    function = getattr(ctypes.CDLL("libcuda.so.1"), name)
    function.argtypes = [ctypes.c_uint64] * arguments
    return function


def call_driver(name, *arguments):
    status = driver_function(name, len(arguments))(*arguments)
    if status:
        raise RuntimeError(f"{name} answered {status}")


def addresses_at(table, count):
    """The addresses that a table in C's memory holds."""
    return list((ctypes.c_void_p * count).from_address(table))


class Session:
    """One case: what plugin.c calls, and what adapters share."""

    def __init__(self, case, stream):
        self.case, self.stream, self.x_max = case, stream, 0.0

    def tensors(self, tables):
        """The Tensors of weights, or of their gradients, by kind. tables: the address of a struct lb_weights or
        lb_gradients, whose fields are tables of addresses; w_cell counts where the cell has weights."""
        shapes = [self.case.weight_shapes(layer) for layer, _, _ in self.case.layer_dirs()]
        return [[Tensor(address, shape[kind], self.case.stored, -1)
                 for address, shape in zip(addresses_at(table, len(shapes)), shapes)]
                for kind, table in enumerate(addresses_at(tables, 4 + (self.case.cell != "standard")))]

    def load(self, lengths, x_max, tables):
        """prepare, of addresses. lengths: that of a row's steps each, or 0. x_max: of int8, the largest |x|."""
        self.x_max = x_max
        steps = (ctypes.c_int32 * self.case.batch).from_address(lengths) if lengths else ()
        self.prepare(self.tensors(tables), tuple(steps))

    def store(self, tables):
        """gradients, of addresses."""
        self.gradients(self.tensors(tables))

    def bind(self, direction, table):
        """The argument `bound` of forward or backward; plugin.c keeps it for later calls. table: the
        address of the six tensors' addresses."""
        first, last = self.case.call_shapes()
        if direction == "backward":
            first, last = last, first
        device = self.case.ordinal if self.case.device == "cuda" else -1
        tensors = [Tensor(address, shape, self.case.stored, device)
                   for address, shape in zip(addresses_at(table, 6), [*first, *last])]
        return self.bound(tensors[:3], tensors[3:])

    def bound(self, given, results):
        return SimpleNamespace(given=[self.take(tensor) for tensor in given],
                               results=[self.target(tensor) for tensor in results])

    def target(self, tensor):
        return tensor

    def to_numpy(self, value):
        """A framework's tensor of the host as an array."""
        return numpy.asarray(value)

    def write(self, tensors, values):
        """Copies results of a framework that allocates them itself. address_of(value), of an adapter,
        says where a value lies on the device, once it is computed. Copies on the device end before this
        returns: then the framework may give the values' memory to work on a stream of its own."""
        for tensor, value in zip(tensors, values):
            if tensor.device < 0:
                numpy.copyto(tensor.numpy(), self.to_numpy(value))
            else:
                call_driver("cuMemcpyDtoDAsync_v2", tensor.address, self.address_of(value), tensor.bytes, self.stream)
        if any(tensor.device >= 0 for tensor in tensors):
            call_driver("cuStreamSynchronize", self.stream)

    def runs_on(self, device):
        """For describe(): the threads of a CPU, or how the GPU is used."""
        threads = f"{self.case.threads} thread{'s' if self.case.threads > 1 else ''}"
        return device if self.case.device == "cuda" else threads

    def destroy(self):
        self.__dict__.clear()


def numpy_type(dtype):
    """The NumPy type of "f64", "f32", "f16" or "bf16", which is that of ml_dtypes, because NumPy has none."""
    return numpy.dtype(ml_dtypes.bfloat16 if dtype == "bf16" else FULL_NAMES[dtype])


def check(adapter, case):
    """Raises when the case can't run: the framework is not there, or does not take it."""
    for module in adapter.MODULES:
        if importlib.util.find_spec(module) is None:
            version = f"Python {sys.version_info.major}.{sys.version_info.minor}"
            raise Absent(f"{adapter.TITLE} is not there: the {version} of {sys.prefix} has no module "
                         f"'{module}'; bench/frameworks/setup.sh installs it")
    if case.math != "ieee" and case.device == "cpu":
        raise Unsupported(f"math {case.math}: on a CPU {adapter.TITLE} computes in full precision")
    if case.math == "half":
        raise Unsupported(f"math half: {adapter.TITLE} has no switch for f32 GEMMs in f16")
    if case.cell != "standard" and case.cell not in adapter.CELLS:
        raise Unsupported(f"cell {case.cell}: the LSTM of {adapter.TITLE} has no {case.cell}")
    if case.dtype == "int8" and case.device == "cuda":
        raise Unsupported(f"dtype int8: {adapter.TITLE} has an LSTM in int8 on a CPU only")
    adapter.supports(case)


def explain(error):
    """(status, sentence) of an exception."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = " ".join(lines[:2])[:400]
    name = type(error).__name__
    if isinstance(error, Unsupported):
        return UNSUPPORTED, text
    if isinstance(error, (Absent, ImportError)):
        return ABSENT, text
    if isinstance(error, MemoryError) or "OutOfMemory" in name or "ResourceExhausted" in name:
        return OOM, f"{name}: {text}"
    return FAILED, f"{name}: {text}"


def choose_threads(module, threads):
    """Notes the number of threads that a framework starts with, for those that can't change it
    later. Raises Unsupported when it has already started with another number."""
    chosen = _threads.setdefault(module, threads)
    if chosen != threads:
        raise Unsupported(f"threads {threads}: {module} keeps the {chosen} that it started with in "
                          f"this process; give --threads {threads} to a sweep of its own")


@contextlib.contextmanager
def unpinned():
    """Lets the thread use the CPUs that it had before a case was pinned. libgomp counts CPUs once,
    when it is loaded: with one, each parallel region would wake sleeping threads ever after."""
    pinned = os.sched_getaffinity(0)
    os.sched_setaffinity(0, _cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, pinned)


@contextlib.contextmanager
def quiet():
    """Silences stderr, for imports that print a greeting and have no switch for it."""
    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


_threads = {}
_cpus = os.sched_getaffinity(0) # plugin.c imports this module before the first case is pinned
sys.stdout = sys.stderr  # stdout belongs to the program; frameworks print messages for people
os.environ.setdefault("PYTHONWARNINGS", "ignore")
warnings.simplefilter("ignore")  # in this process, which has started already
