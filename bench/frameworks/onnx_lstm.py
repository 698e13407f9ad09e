"""ONNX Runtime: a model of one LSTM operator per layer, made here with the onnx package. It infers
only. Gate order of the operator: i o f c, and i o f of its peepholes. Its outputs go straight into the
harness's buffers, where one direction leaves y in the right layout; two need the model's own Transpose.
int8: the model after onnxruntime.quantization.quantize_dynamic, of operators DynamicQuantizeLSTM, with weights of
7 bits where products of 8 overflow.
"""

import os
import tempfile

import contract
from contract import Absent, Unsupported, adds_in_16_bits, numpy, numpy_type, quiet

TITLE = "ONNX Runtime"
MODULES = ["onnxruntime", "onnx", "numpy"]
CELLS = ["peephole"]
OPSET, IR_VERSION = 17, 8


def supports(case):
    if case.trains:
        raise Unsupported(f"pass {case.passes}: ONNX Runtime infers only")
    if case.cell == "peephole" and case.device == "cuda":
        raise Unsupported("cell peephole: on a GPU its LSTM is cuDNN's, which has no peepholes")
    if case.dtype == "bf16" or case.device == "cpu" and case.dtype not in ("f32", "int8"):
        raise Unsupported(f"dtype {case.dtype}: its LSTM has no kernel of that type on a "
                          f"{'CPU, f32 and int8 only' if case.device == 'cpu' else 'GPU'}")


def create(case, stream):
    # Else version 1.31 keeps a database open and a thread that sends it over the network.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime  # pylint: disable=import-outside-toplevel
    if case.device == "cuda" and "CUDAExecutionProvider" not in \
            onnxruntime.get_available_providers():
        raise Absent("this ONNX Runtime was built without CUDA; install onnxruntime-gpu")
    return Session(onnxruntime, case, stream)


def regroup_gates(array, order):
    """Reorders the rows of array [4H, ...] from gate order i f g o to another, such as "iofg"."""
    gates = dict(zip("ifgo", numpy.split(array, 4)))
    return numpy.concatenate([gates[gate] for gate in order])


def make_model(case, weights, ragged):
    """The serialized model. weights: per layer (W, R, B) of the operator's layout, and P of peepholes."""
    from onnx import TensorProto, helper, numpy_helper  # pylint: disable=import-outside-toplevel
    element = {"f64": TensorProto.DOUBLE, "f32": TensorProto.FLOAT,
               "f16": TensorProto.FLOAT16}[case.stored]
    T, B, H, D = case.seq_len, case.batch, case.hidden, case.directions
    cell = "Tanh" if case.act == "tanh" else "Relu"
    nodes, constants, last, x = [], [], ([], []), "x"
    constants.append(helper.make_tensor("flat", TensorProto.INT64, [3], [T, B, D * H]))
    for layer, arrays in enumerate(weights):
        for name, array in zip("wrbp", arrays):
            constants.append(numpy_helper.from_array(array, f"{name}{layer}"))
        outputs = [f"{name}{layer}" for name in ("raw", "hn", "cn")]
        nodes.append(helper.make_node(
            "LSTM", [x, f"w{layer}", f"r{layer}", f"b{layer}", "lengths" if ragged else "",
                     f"h0_{layer}", f"c0_{layer}",
                     f"p{layer}" if case.cell == "peephole" else ""], outputs, hidden_size=H,
            direction="bidirectional" if D == 2 else "forward",
            activations=["Sigmoid", cell, cell] * D))
        nodes.append(helper.make_node("Transpose", [outputs[0]], [f"rows{layer}"],
                                      perm=[0, 2, 1, 3]))
        x = "y" if layer == case.layers - 1 else f"y{layer}"
        nodes.append(helper.make_node("Reshape", [f"rows{layer}", "flat"], [x]))
        for names, name in zip(last, outputs[1:]):
            names.append(name)
    for names, name in zip(last, ("hn", "cn")):
        nodes.append(helper.make_node("Concat", names, [name], axis=0))
    for name in ("h0", "c0"):
        nodes.append(helper.make_node("Split", [name], [f"{name}_{layer}" for layer in
                                                        range(case.layers)], axis=0))
    nodes = nodes[-2:] + nodes[:-2]  # in the order of use
    states = [case.layers * D, B, H]
    inputs = [helper.make_tensor_value_info("x", element, [T, B, case.input])]
    inputs += [helper.make_tensor_value_info(name, element, states) for name in ("h0", "c0")]
    if ragged:
        inputs.append(helper.make_tensor_value_info("lengths", TensorProto.INT32, [B]))
    results = [helper.make_tensor_value_info("y", element, [T, B, D * H])]
    results += [helper.make_tensor_value_info(name, element, states) for name in ("hn", "cn")]
    graph = helper.make_graph(nodes, "lstm", inputs, results, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)],
                              ir_version=IR_VERSION)
    return quantised(model) if case.dtype == "int8" else model.SerializeToString()


def seven_bits():
    return adds_in_16_bits("avx512_vnni", "avx_vnni")


def quantised(model):
    """The model with its LSTM operators quantised, serialized."""
    from onnxruntime import quantization  # pylint: disable=import-outside-toplevel
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file, quiet():  # it advises to optimise models
        quantization.quantize_dynamic(model, file.name, op_types_to_quantize=["LSTM"], reduce_range=seven_bits())
        return file.read()


class Session(contract.Session):
    """One case."""

    def __init__(self, onnxruntime, case, stream):
        super().__init__(case, stream)
        self.onnxruntime = onnxruntime
        self.session = self.lengths = None

    def prepare(self, kinds, lengths):
        case, directions = self.case, self.case.directions
        w_ih, w_hh, b_ih, b_hh = ([regroup_gates(tensor.numpy(), "iofg") for tensor in kind]
                                  for kind in kinds[:4])
        layers = []
        for layer in range(case.layers):
            mine = range(layer * directions, (layer + 1) * directions)
            layers.append([numpy.stack([w_ih[index] for index in mine]),
                           numpy.stack([w_hh[index] for index in mine]),
                           numpy.stack([numpy.concatenate([b_ih[index], b_hh[index]])
                                        for index in mine])])
            if case.cell == "peephole":
                layers[-1].append(numpy.stack([kinds[4][index].numpy()[[0, 2, 1]].ravel()
                                               for index in mine]))
        options = self.onnxruntime.SessionOptions()
        options.intra_op_num_threads = case.threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        providers = ["CPUExecutionProvider"]
        if case.device == "cuda":
            providers = [("CUDAExecutionProvider",
                          {"device_id": case.ordinal, "user_compute_stream": str(self.stream),
                           "use_tf32": str(int(case.math == "tf32"))})]
        self.session = self.onnxruntime.InferenceSession(
            make_model(case, layers, bool(lengths)), options, providers=providers)
        if lengths:
            self.lengths = numpy.array(lengths, dtype=numpy.int32)

    def bound(self, given, results):
        device = self.case.device
        element = numpy_type(self.case.stored).type
        binding = self.session.io_binding()
        for name, tensor in zip(("x", "h0", "c0"), given):
            binding.bind_input(name, device, self.case.ordinal, element, tensor.shape,
                               tensor.address)
        if self.lengths is not None:
            binding.bind_input("lengths", "cpu", 0, numpy.int32, self.lengths.shape,
                               self.lengths.ctypes.data)
        for name, tensor in zip(("y", "hn", "cn"), results):
            binding.bind_output(name, device, self.case.ordinal, element, tensor.shape,
                                tensor.address)
        return binding

    def forward(self, bound):
        self.session.run_with_iobinding(bound)

    def describe(self):
        operator = "operator LSTM"
        if self.case.dtype == "int8":
            operator = ("operator DynamicQuantizeLSTM, s8 weights per tensor"
                        f"{' in 7 bits' if seven_bits() else ''}, u8 activations dynamic")
        return (f"ONNX Runtime {self.onnxruntime.__version__}, {operator}, "
                f"{self.runs_on('CUDAExecutionProvider')}")
