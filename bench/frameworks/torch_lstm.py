"""PyTorch's nn.LSTM. Gate order i f g o, two biases, w_hr [P, H] of proj_size: the project's own layout.
README.md says what the variants are.
"""

import contextlib
import ctypes
import math
import statistics
import time

import contract
from contract import FULL_NAMES, Absent, Unsupported, unpinned

TITLE = "PyTorch"
MODULES = ["torch"]
CELLS = ["projection"]
# Of all layers and directions, per pass; compiling takes 3 s per step in training, and a call may take 120 s.
MOST_COMPILED_STEPS = {False: 64, True: 24}


def supports(case):
    if case.act != "tanh":
        raise Unsupported(f"act-{case.act}: nn.LSTM has no choice of activations")
    if case.dtype == "int8" and case.variant != "auto":
        raise Unsupported("dtype int8: quantize_dynamic replaces nn.LSTM as it comes, which is auto")
    if case.variant == "autocast" and case.dtype not in ("f16", "bf16"):
        raise Unsupported(f"dtype {case.dtype}: autocast computes in f16 or bf16")
    if case.variant == "frozen" and case.trains:
        raise Unsupported(f"pass {case.passes}: a frozen module infers only")
    if case.variant == "frozen" and case.ragged:
        raise Unsupported("ragged: TorchScript's nn.LSTM is scripted for tensors or for packed sequences")
    if case.variant == "compile":
        if case.ragged:
            raise Unsupported("ragged: torch.compile leaves packed sequences to the eager nn.LSTM")
        steps = case.seq_len * case.layers * case.directions
        most = MOST_COMPILED_STEPS[case.trains]
        if steps > most:
            raise Unsupported(f"{steps} steps of all layers: torch.compile unrolls them, and takes "
                              f"minutes for more than {most} in pass {case.passes}")


def create(case, stream, session=None):
    """session: the class of the session, where it is not the one here."""
    with unpinned():
        import torch  # pylint: disable=import-outside-toplevel
    if case.device == "cuda" and not torch.cuda.is_available():
        raise Absent("this PyTorch sees no GPU")
    return (session or Session)(torch, case, stream)


class Session(contract.Session):
    """One case."""

    # pylint: disable=too-many-instance-attributes
    def __init__(self, torch, case, stream):
        super().__init__(case, torch.cuda.ExternalStream(stream, case.ordinal)
                         if case.device == "cuda" else None)
        self.torch = torch
        if case.device == "cpu":
            torch.set_num_threads(case.threads)
        self.dtype = getattr(torch, FULL_NAMES[case.stored])
        self.device = torch.device(case.device, case.ordinal if case.device == "cuda" else None)
        self.casts = case.variant == "autocast"
        self.plain = case.device == "cpu" and not self.casts
        self.recorded = self.make_recorded()
        if case.device == "cuda":
            torch.backends.cuda.matmul.allow_tf32 = case.math == "tf32"
            torch.backends.cudnn.allow_tf32 = case.math == "tf32"
        self.module = self.make_module()
        self.call = self.module
        self.lengths = None
        self.seen = ""
        self.inputs = self.outputs = self.weights = self.weight_gradients = None

    def make_module(self):
        case = self.case
        return self.torch.nn.LSTM(case.input, case.hidden, case.layers, bidirectional=case.directions == 2,
                                  proj_size=case.projection, device=self.device,
                                  dtype=self.torch.float32 if self.casts else self.dtype)

    def parameters(self):
        """(w_ih, w_hh, b_ih, b_hh), and w_hr of a projection, per layer and direction."""
        kinds = ["weight_ih", "weight_hh", "bias_ih", "bias_hh"]
        kinds += ["weight_hr"] if self.case.projection else []
        return [[getattr(self.module, f"{name}_l{layer}{'_reverse' if direction else ''}")
                 for name in kinds]
                for layer, direction, _ in self.case.layer_dirs()]

    def precision(self):
        """The context of mixed precision: autocast where that is the variant."""
        if not self.casts:
            return contextlib.nullcontext()
        return self.torch.autocast(self.case.device, dtype=self.dtype)

    def on_stream(self):
        """The context in which work goes to the case's stream; on a CPU it does nothing."""
        return self.torch.cuda.stream(self.stream) if self.stream else contextlib.nullcontext()

    def around(self):
        """The context of a forward call. Where it is one alone, no others that do nothing are entered."""
        if self.plain:
            return self.recorded
        stack = contextlib.ExitStack()
        for context in (self.on_stream(), self.precision(), self.recorded):
            stack.enter_context(context)
        return stack

    def make_recorded(self):
        """The context of training or of inference, as users call them. PyTorch 2.15 leaves the weights of
        nn.LSTM's own kernels uncast where autocast and inference_mode are combined."""
        if self.case.trains:
            return contextlib.nullcontext()
        return self.torch.no_grad() if self.casts else self.torch.inference_mode()

    def prepare(self, kinds, lengths):
        backends = self.torch.backends  # switches of the process, until the next case's prepare
        backends.mkldnn.set_flags(self.case.variant != "native")
        backends.cudnn.enabled = self.case.variant != "native"
        with self.torch.no_grad():
            for index, parameters in enumerate(self.parameters()):
                for kind, parameter in zip(kinds, parameters):
                    parameter.copy_(self.torch.from_dlpack(kind[index]))
        if lengths:
            self.lengths = self.torch.tensor(lengths, dtype=self.torch.int64)
        self.module.train(self.case.trains)
        self.module.flatten_parameters()
        self.weights = [parameter for entry in self.parameters() for parameter in entry]
        self.seen = self.quantise() if self.case.dtype == "int8" else self.operators()
        if self.case.variant == "frozen":
            x, *state = self.zeros(self.case.call_shapes()[0])
            traced = self.torch.jit.trace(self.module, (x, tuple(state)))
            self.call = self.torch.jit.optimize_for_inference(self.torch.jit.freeze(traced))
        if self.case.variant == "compile":
            self.compile()

    def quantise(self):
        """Replaces the module by that of quantize_dynamic in its defaults, and returns the scheme."""
        from torch.ao import quantization
        torch, whole = self.torch, self.torch.nn.ModuleDict({"lstm": self.module})
        self.call = quantization.quantize_dynamic(whole, {torch.nn.LSTM}, dtype=torch.qint8)["lstm"]
        engine = torch.backends.quantized.engine
        bits = 8 if engine == "qnnpack" else 7  # others leave room for sums of 16 bits
        return (f"quantize_dynamic with the engine {engine}, s8 weights per tensor, u8 activations dynamic "
                f"in {bits} bits")

    def zeros(self, shapes):
        return [self.torch.zeros(shape, dtype=self.dtype, device=self.device,
                                 requires_grad=self.case.trains) for shape in shapes]

    def compile(self):
        """Compiles before anything is timed, and notes what that takes."""
        torch = self.torch
        torch._dynamo.reset()  # pylint: disable=protected-access
        torch._dynamo.config.allow_rnn = True  # pylint: disable=protected-access
        torch._inductor.config.force_disable_caches = True  # pylint: disable=protected-access
        torch._inductor.config.compile_threads = self.case.threads  # pylint: disable=protected-access
        first, last = (self.zeros(shapes) for shapes in self.case.call_shapes())

        def seconds():
            start = time.perf_counter()
            with self.around():
                found = self.run(*first)
            if self.case.trains:
                torch.autograd.grad(found, (*first, *self.weights), last)
            if self.stream:
                torch.cuda.synchronize()
            return time.perf_counter() - start

        seconds()
        before = statistics.median(seconds() for _ in range(20))
        self.call = torch.compile(self.module, dynamic=False)
        took = seconds()
        saved = before - statistics.median(seconds() for _ in range(20))
        self.seen += f" in {took:.0f} s, " + (f"which pays after {math.ceil(took / saved)} calls"
                                              if saved > before / 50 else "which gains nothing")

    def operators(self):
        """The operator that PyTorch dispatches nn.LSTM to, seen on one step of the case."""
        from torch.utils._python_dispatch import TorchDispatchMode
        names = []

        class Seen(TorchDispatchMode):
            """Notes what is called."""

            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                names.append(str(function))
                return function(*args, **(kwargs or {}))

        if self.case.variant == "compile" and self.case.trains:
            return "unrolled and compiled by TorchInductor"
        x = self.torch.zeros(1, self.case.batch, self.case.input, dtype=self.dtype,
                             device=self.device)
        # Not in inference_mode, where the operator is seen before PyTorch takes it apart.
        with Seen(), self.torch.set_grad_enabled(self.case.trains), self.precision():
            self.module(x)
        fast = [name.split(".")[1] for name in names if "rnn" in name]
        if self.case.variant == "compile":
            return f"torch.compile around {fast[0]}" if fast else "compiled by TorchInductor"
        return ("frozen, " if self.case.variant == "frozen" else "") + (fast[0] if fast else "its own kernels")

    def take(self, tensor):
        return self.torch.from_dlpack(tensor)

    target = take

    def bind(self, direction, table):
        bound = super().bind(direction, table)
        for tensor in bound.given if direction == "forward" else []:
            tensor.requires_grad_(self.case.trains)
        bound.wanted = (*bound.given, *self.weights)
        return bound

    def run(self, x, *state):
        """y, hn, cn of the framework's own."""
        if self.lengths is None:
            y, last = self.call(x, state)
            return y, *last
        rnn = self.torch.nn.utils.rnn
        packed, last = self.call(rnn.pack_padded_sequence(x, self.lengths), state)
        y, _ = rnn.pad_packed_sequence(packed, total_length=self.case.seq_len)
        return y, *last

    def write(self, tensors, values):
        """On a CPU by address, because PyTorch's own copy takes longer: 2 % of a small training step."""
        if self.plain:
            for tensor, value in zip(tensors, values):
                value = value.contiguous()  # which may be a copy, to be kept for as long as it is read
                ctypes.memmove(tensor.data_ptr(), value.data_ptr(), tensor.nbytes)
        else:
            with self.torch.no_grad():
                self.torch._foreach_copy_(tensors, values)  # pylint: disable=protected-access

    def forward(self, bound):
        self.weight_gradients = None  # as an optimizer sets them, so that their memory is used again
        with self.around():
            found = self.run(*bound.given)
            self.write(bound.results, found)
        if self.case.trains:
            self.inputs, self.outputs = bound.wanted, found

    def backward(self, bound):
        outputs, self.outputs = self.outputs, None
        with self.on_stream():
            found = self.torch.autograd.grad(outputs, self.inputs, bound.given)
            self.write(bound.results, found[:3])
        self.weight_gradients = found[3:]

    def own_gradients(self):
        """The weight gradients of backward, in the order and the shapes of the harness's."""
        return self.weight_gradients

    def gradients(self, kinds):
        gradients = iter(self.own_gradients())
        for index in range(len(kinds[0])):
            for kind in kinds:
                found = next(gradients).to("cpu", self.dtype).contiguous()
                ctypes.memmove(kind[index].address, found.data_ptr(), kind[index].bytes)

    def describe(self):
        runs_on = self.runs_on(f"cuDNN {self.torch.backends.cudnn.version()}")
        return (f"PyTorch {self.torch.__version__} nn.LSTM"
                f"{', ' + self.seen if self.seen else ''}"
                f"{', autocast over f32 weights' if self.casts else ''}, {runs_on}")
