"""What plugin.c and the adapters agree on: the case, the harness's tensors, and how errors are told.

An adapter is a module with

    TITLE      the framework's name, for messages
    MODULES    the modules that it imports, in the order in which users would install them
    CELLS      the cells beside the standard one that its LSTM has in some variant: projection, peephole
    supports(case)         raises Unsupported with one sentence; must not import the framework
    create(case, stream)   opens a case and returns a session; stream is a cudaStream_t as a number

and a session has

    prepare(w_ih, w_hh, b_ih, b_hh, [w_cell,] lengths)
                                              lists of Tensor, one per layer and direction, gate order
                                              i f g o; w_cell where the cell is not the standard one;
                                              lengths: a tuple, empty when rows are full
    bind_forward(x, h0, c0, y, hn, cn)        wraps tensors; returns the argument `bound` of forward
    forward(bound)                            timed
    bind_backward(dy, dhn, dcn, dx, dh0, dc0) wraps tensors; returns the argument `bound` of backward
    backward(bound)                           timed; the gradients of the forward call before it
    gradients(w_ih, w_hh, b_ih, b_hh[, w_cell])  writes the last backward's weight gradients
    describe()                                one sentence on what runs
    destroy()
"""

import contextlib
import importlib.util
import os
import sys
from dataclasses import dataclass

# enum lb_status of harness/api/status.h
UNSUPPORTED, ABSENT, OOM, FAILED = 1, 2, 4, 6

BYTES = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2}
DLPACK_FLOAT, DLPACK_BFLOAT = 2, 4
DLPACK_HOST, DLPACK_CUDA = 1, 2

dlpack = None  # set by plugin.c: dlpack(address, shape, code, bits, device type, device)


class Bound:
    """An adapter's own objects for the tensors of a call; plugin.c keeps them and hands them back."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


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
    def has_backward(self):
        return self.passes in ("backward", "train")

    def input_of(self, layer):
        """The input size of a layer."""
        return self.input if layer == 0 else self.directions * (self.projection or self.hidden)

    def layer_dirs(self):
        """(layer, direction, index) of each layer and direction, in the order of the weights."""
        return [(layer, direction, layer * self.directions + direction)
                for layer in range(self.layers) for direction in range(self.directions)]


class Tensor:
    """Memory of the harness, row-major. memory: a memoryview of bytes, None on a device; device: -1
    on the host, else a GPU's ordinal. Frameworks take it through DLPack, NumPy through numpy()."""

    def __init__(self, address, memory, shape, dtype, device):
        self.address, self.memory, self.shape, self.dtype = address, memory, shape, dtype
        self.device = device

    def __dlpack__(self, **_):
        code = DLPACK_BFLOAT if self.dtype == "bf16" else DLPACK_FLOAT
        kind, ordinal = self.__dlpack_device__()
        return dlpack(self.address, self.shape, code, 8 * BYTES[self.dtype], kind, ordinal)

    def __dlpack_device__(self):
        return (DLPACK_HOST, 0) if self.device < 0 else (DLPACK_CUDA, self.device)

    def numpy(self):
        """A NumPy view of the memory. bf16 has the type of ml_dtypes, because NumPy has none."""
        import numpy  # pylint: disable=import-outside-toplevel
        return numpy.frombuffer(self.memory, numpy_type(self.dtype)).reshape(self.shape)

    def copy_from_device(self, address, stream):
        """Copies another buffer of the device to this one on the harness's stream, and waits for the end:
        the buffer's owner may give its memory to work on a stream of its own as soon as this returns."""
        import ctypes  # pylint: disable=import-outside-toplevel
        import math  # pylint: disable=import-outside-toplevel
        driver = ctypes.CDLL("libcuda.so.1")
        copy, wait = driver.cuMemcpyDtoDAsync_v2, driver.cuStreamSynchronize
        copy.argtypes = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p]
        wait.argtypes = [ctypes.c_void_p]
        status = copy(self.address, address, math.prod(self.shape) * BYTES[self.dtype], stream)
        if status:
            raise RuntimeError(f"cuMemcpyDtoDAsync answered {status}")
        status = wait(stream)
        if status:
            raise RuntimeError(f"cuStreamSynchronize answered {status}")


def numpy_type(dtype):
    """The NumPy type of "f64", "f32", "f16" or "bf16"."""
    import numpy  # pylint: disable=import-outside-toplevel
    if dtype == "bf16":
        import ml_dtypes  # pylint: disable=import-outside-toplevel
        return numpy.dtype(ml_dtypes.bfloat16)
    return numpy.dtype({"f64": "float64", "f32": "float32", "f16": "float16"}[dtype])


def regroup_gates(array, order):
    """Reorders the rows of array [4H, ...] from gate order i f g o to another, such as "iofg"."""
    import numpy  # pylint: disable=import-outside-toplevel
    gates = dict(zip("ifgo", numpy.split(array, 4)))
    return numpy.concatenate([gates[gate] for gate in order])


def ungroup_gates(array, order):
    """The inverse of regroup_gates."""
    import numpy  # pylint: disable=import-outside-toplevel
    gates = dict(zip(order, numpy.split(array, 4)))
    return numpy.concatenate([gates[gate] for gate in "ifgo"])


def check(adapter, case):
    """Raises when the case can't run: the framework is not there, or does not take it."""
    for module in adapter.MODULES:
        if importlib.util.find_spec(module) is None:
            python = f"Python {sys.version_info.major}.{sys.version_info.minor}"
            raise Absent(f"{adapter.TITLE} is not there: the {python} of {sys.prefix} has no module "
                         f"'{module}'; bench/frameworks/setup.sh installs it")
    if case.math != "ieee" and case.device == "cpu":
        raise Unsupported(f"math {case.math}: on a CPU {adapter.TITLE} computes in full precision")
    if case.cell != "standard" and case.cell not in adapter.CELLS:
        raise Unsupported(f"cell {case.cell}: the LSTM of {adapter.TITLE} has no {case.cell}")
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
