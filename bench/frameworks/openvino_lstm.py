"""OpenVINO: a model of one LSTMSequence per layer on its CPU plug-in. It infers only.

Gate order of the operator: f i c o, one bias, the sum of the two. It wants [B, T, I]: the transposes are
part of the model. Models are f32; INFERENCE_PRECISION_HINT chooses what they are computed in, and by default
that is bf16 where the CPU multiplies in it. int8: FakeQuantize, with the scales of int8.h, around x, the
initial h and the weights of an f32 model, which the plug-in turns into oneDNN's LSTM in int8.
"""

import contract
from contract import Unsupported, adds_in_16_bits, numpy, unpinned

TITLE = "OpenVINO"
MODULES = ["openvino", "numpy"]
CELLS = []


def supports(case):
    if case.trains:
        raise Unsupported(f"pass {case.passes}: OpenVINO infers only")
    if case.dtype in ("f64", "f16"):
        raise Unsupported(f"dtype {case.dtype}: on a CPU it computes an LSTM in f32, bf16 or int8")


def create(case, stream):
    with unpinned():
        import openvino  # pylint: disable=import-outside-toplevel
    return Session(openvino, case, stream)


def seven_bits():
    return adds_in_16_bits("avx512_vnni")  # with AVX-VNNI alone oneDNN 3.7 adds in 16 bits too


def quantise(op, x, h, w, r, x_max):
    """The four with FakeQuantize. x and h share a scale, and w and r of a channel, because oneDNN has one for
    both. Gates f and i share theirs: OpenVINO 2026.4 gives each the scales of the other."""
    f32, low = numpy.float32, numpy.float32(-128 / 127)
    w, H = w * f32(x_max), r.shape[2]
    most = numpy.maximum(abs(w).max(2, keepdims=True), abs(r).max(2, keepdims=True))
    most[:, :H] = most[:, H:2 * H] = numpy.maximum(most[:, :H], most[:, H:2 * H])
    most[most == 0] = 1
    most *= f32(127 / 64 if seven_bits() else 1)
    return (op.fake_quantize(x, low * f32(x_max), f32(x_max), low, f32(1), 256),
            op.fake_quantize(h, low, f32(1), low, f32(1), 256),
            *(op.fake_quantize(op.constant(array), -most, most, -most, most, 255) for array in (w, r)))


def make_model(openvino, case, weights, lengths, x_max):
    """weights: per layer and direction (W, R, B) of the operator's layout. x_max: of int8, the largest |x|.
    Directions are operators of their own, which the plug-in makes of a bidirectional one, in f32 alone."""
    from openvino import opset10 as op  # pylint: disable=import-outside-toplevel
    T, B, H, D = case.seq_len, case.batch, case.hidden, case.directions
    element = getattr(openvino.Type, case.stored)
    given = [op.parameter(list(shape), element) for shape in case.call_shapes()[0]]
    x, h0, c0 = (op.convert(one, "f32") for one in given)
    x, last, outputs = op.transpose(x, [1, 0, 2]), ([], []), []
    h0, c0 = ([op.transpose(part, [1, 0, 2]) for part in op.split(state, 0, case.layers * D).outputs()]
              for state in (h0, c0))
    steps = numpy.array(lengths or [T] * B, dtype=numpy.int32)
    cell = "tanh" if case.act == "tanh" else "relu"
    for layer, _, index in case.layer_dirs():
        (w, r, b), h, given_x = weights[index], h0[index], x
        if case.dtype == "int8":
            given_x, h, w, r = quantise(op, x, h, w, r, x_max if layer == 0 else 1)
        node = op.lstm_sequence(given_x, h, c0[index], steps, w, r, b, H,
                                "reverse" if index % D else "forward", ["sigmoid", cell, cell])
        outputs.append(op.squeeze(node.output(0), [1]))
        for states, output in zip(last, node.outputs()[1:]):
            states.append(op.transpose(output, [1, 0, 2]))
        if len(outputs) == D:
            x, outputs = op.concat(outputs, 2) if D > 1 else outputs[0], []
    results = [op.transpose(x, [1, 0, 2]), *(op.concat(states, 0) for states in last)]
    return openvino.Model([op.convert(result, element.get_type_name()) for result in results], given)


class Session(contract.Session):
    """One case."""

    def __init__(self, openvino, case, stream):
        super().__init__(case, stream)
        self.openvino, self.core = openvino, openvino.Core()
        self.compiled = None
        if case.dtype == "bf16" and \
                "BF16" not in self.core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
            raise Unsupported("dtype bf16: OpenVINO has no kernels of that type for this CPU")

    def prepare(self, kinds, lengths):
        exact = [[tensor.numpy().astype("float32") for tensor in kind] for kind in kinds]
        weights = [[numpy.concatenate([numpy.split(array, 4)[gate] for gate in (1, 0, 2, 3)])[None]
                    for array in (w_ih, w_hh, b_ih + b_hh)] for w_ih, w_hh, b_ih, b_hh in zip(*exact)]
        settings = {"INFERENCE_PRECISION_HINT": self.case.stored, "NUM_STREAMS": 1,
                    "INFERENCE_NUM_THREADS": self.case.threads, "PERFORMANCE_HINT": "LATENCY",
                    "ENABLE_CPU_PINNING": False}
        if self.case.dtype == "int8":  # else layers of equal shapes run with the scales of the first one
            settings["CPU_RUNTIME_CACHE_CAPACITY"] = 0
        self.compiled = self.core.compile_model(
            make_model(self.openvino, self.case, weights, lengths, self.x_max or 1), "CPU", settings)
        if self.case.dtype == "int8":
            self.refuse_other_precisions()

    def refuse_other_precisions(self):
        """Raises Unsupported where the plug-in runs an LSTM of int8 in another precision, or in parts."""
        told = [node.get_rt_info() for node in self.compiled.get_runtime_model().get_ops()]
        found = {info["runtimePrecision"].value for info in told if info["layerType"].value == "RNNSeq"}
        if found != {"u8"}:
            raise Unsupported("dtype int8: OpenVINO runs this quantised LSTM in "
                              f"{' and '.join(sorted(found)) or 'a loop of operators in f32'}")

    def take(self, tensor):
        array = tensor.numpy()
        array = array.view("uint16") if tensor.dtype == "bf16" else array  # a type that NumPy has
        return self.openvino.Tensor(array, tensor.shape, getattr(self.openvino.Type, tensor.dtype))

    target = take

    def bound(self, given, results):
        bound, request = super().bound(given, results), self.compiled.create_infer_request()
        for index, tensor in enumerate(bound.given):
            request.set_input_tensor(index, tensor)
        for index, tensor in enumerate(bound.results):
            request.set_output_tensor(index, tensor)
        return request

    def forward(self, bound):
        bound.infer()

    def describe(self):
        scheme = f"s8 weights per channel{' in 7 bits' if seven_bits() else ''}, u8 activations static, "
        return (f"OpenVINO {self.openvino.__version__.split('-')[0]}, operator LSTMSequence, "
                f"{scheme if self.case.dtype == 'int8' else ''}{self.runs_on('')}")
