"""OpenVINO: a model of one LSTMSequence per layer on its CPU plug-in. It infers only.

Gate order of the operator: f i c o, one bias, the sum of the two. It wants [B, T, I]: the transposes are
part of the model. Models are f32; INFERENCE_PRECISION_HINT chooses what they are computed in, and by default
that is bf16 where the CPU multiplies in it.
"""

import contract
from contract import Unsupported, unpinned

TITLE = "OpenVINO"
MODULES = ["openvino", "numpy"]
CELLS = []


def supports(case):
    if case.device == "cuda":
        raise Unsupported("OpenVINO has no plug-in for this GPU")
    if case.trains:
        raise Unsupported(f"pass {case.passes}: OpenVINO infers only")
    if case.dtype in ("f64", "f16"):
        raise Unsupported(f"dtype {case.dtype}: on a CPU it computes an LSTM in f32 or bf16")


def create(case, stream):
    with unpinned():
        import openvino  # pylint: disable=import-outside-toplevel
    return Session(openvino, case, stream)


def make_model(openvino, case, weights, lengths):
    """weights: per layer (W, R, B) of the operator's layout."""
    from openvino import opset10 as op  # pylint: disable=import-outside-toplevel
    import numpy  # pylint: disable=import-outside-toplevel
    T, B, H, D = case.seq_len, case.batch, case.hidden, case.directions
    element = getattr(openvino.Type, case.dtype)
    given = [op.parameter(list(shape), element) for shape in case.call_shapes()[0]]
    x, h0, c0 = (op.convert(one, "f32") for one in given)
    x, last = op.transpose(x, [1, 0, 2]), ([], [])
    h0, c0 = ([op.transpose(part, [1, 0, 2]) for part in op.split(state, 0, case.layers).outputs()]
              for state in (h0, c0))
    steps = numpy.array(lengths or [T] * B, dtype=numpy.int32)
    cell = "tanh" if case.act == "tanh" else "relu"
    for layer, arrays in enumerate(weights):
        node = op.lstm_sequence(x, h0[layer], c0[layer], steps, *arrays, H,
                                "bidirectional" if D == 2 else "forward", ["sigmoid", cell, cell])
        x = op.reshape(op.transpose(node.output(0), [0, 2, 1, 3]), [B, T, D * H], False)
        for states, output in zip(last, node.outputs()[1:]):
            states.append(op.transpose(output, [1, 0, 2]))
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
        import numpy  # pylint: disable=import-outside-toplevel
        exact = [[tensor.numpy().astype("float32") for tensor in kind] for kind in kinds]
        parts = [[numpy.concatenate([numpy.split(array, 4)[gate] for gate in (1, 0, 2, 3)])
                  for array in (w_ih, w_hh, b_ih + b_hh)] for w_ih, w_hh, b_ih, b_hh in zip(*exact)]
        D = self.case.directions
        layers = [[numpy.stack(arrays) for arrays in zip(*parts[D * layer:D * layer + D])]
                  for layer in range(self.case.layers)]
        self.compiled = self.core.compile_model(
            make_model(self.openvino, self.case, layers, lengths), "CPU",
            {"INFERENCE_PRECISION_HINT": self.case.dtype, "INFERENCE_NUM_THREADS": self.case.threads,
             "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1, "ENABLE_CPU_PINNING": False})

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

    def backward(self, bound):
        raise Unsupported("OpenVINO infers only")

    def describe(self):
        return (f"OpenVINO {self.openvino.__version__.split('-')[0]}, operator LSTMSequence, "
                f"{self.runs_on('')}")
