"""Keras on TensorFlow: keras.layers.LSTM, one per layer and direction, in a tf.function.
README.md says what the variants are. In all but mixed a dtype of f16 or bf16 is the policy of that name: weights,
states and sums in it.

Gate order of Keras: i f c o, the project's own. Its kernel is the transpose of w_ih. It has one bias;
it gets the sum of the two, and its gradient is that of both. Keras wants [B, T, I]: the transposes are
part of the function, since a user with this input pays them too.
"""

import ctypes
import os

import contract
from contract import FULL_NAMES, Absent, Unsupported, choose_threads, numpy, quiet

TITLE = "Keras on TensorFlow"
MODULES = ["tensorflow", "keras", "numpy"]
CELLS = []
MOST_UNROLLED_STEPS = 256  # of all layers and directions; building the graph takes minutes from there


def supports(case):
    if case.variant == "mixed" and case.dtype not in ("f16", "bf16"):
        raise Unsupported(f"dtype {case.dtype}: a mixed policy computes in f16 or bf16")
    if case.variant == "jit" and case.passes in ("forward", "backward"):
        raise Unsupported(f"pass {case.passes}: XLA compiles forward and backward as one function, "
                          "which pass train measures")
    steps = case.seq_len * case.layers * case.directions
    if case.variant == "unrolled" and steps > MOST_UNROLLED_STEPS:
        raise Unsupported(f"{steps} steps of all layers: unrolled, Keras takes minutes to build more "
                          f"than {MOST_UNROLLED_STEPS}")
    if case.variant == "unrolled" and case.seq_len == 1:
        raise Unsupported("seq_len 1: Keras does not unroll one step")


def refuse_f64(case):
    """What Keras' other backends cannot do."""
    if case.dtype == "f64":
        raise Unsupported("dtype f64: on this backend Keras multiplies float64 in float32")


def create(case, stream):
    os.environ["KERAS_BACKEND"] = "tensorflow"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    if case.device == "cpu":
        choose_threads("TensorFlow", case.threads)
    with quiet():
        import tensorflow  # pylint: disable=import-outside-toplevel
        import keras  # pylint: disable=import-outside-toplevel
    if case.device == "cuda" and not tensorflow.config.list_physical_devices("GPU"):
        raise Absent("this TensorFlow sees no GPU")
    if case.device == "cpu" and not _started:
        tensorflow.config.threading.set_intra_op_parallelism_threads(case.threads)
        tensorflow.config.threading.set_inter_op_parallelism_threads(1)
        _started.append(True)
    return Session(tensorflow, keras, case, stream)


_started = []


def make_layers(keras, case):
    """The built layers of a case, one per layer and direction."""
    policy = f"mixed_{FULL_NAMES[case.dtype]}" if case.variant == "mixed" else FULL_NAMES[case.dtype]
    layers = []
    for layer, direction, _ in case.layer_dirs():
        layers.append(keras.layers.LSTM(
            case.hidden, activation="tanh" if case.act == "tanh" else "relu", return_sequences=True,
            return_state=True, go_backwards=bool(direction), unroll=case.variant == "unrolled",
            dtype=policy, zero_output_for_mask=case.variant != "unrolled",
            recurrent_initializer="zeros",  # set_weights sets all weights
            use_cudnn=False if case.variant == "generic" else "auto"))
        layers[-1].build((case.batch, case.seq_len, case.input_of(layer)))
    return layers


def set_weights(case, layers, kinds):
    exact = numpy.float64 if case.dtype == "f64" else numpy.float32
    for index, layer in enumerate(layers):
        w_ih, w_hh, b_ih, b_hh = (kind[index].numpy().astype(exact) for kind in kinds)
        values = [w_ih.T, w_hh.T, b_ih + b_hh]
        for variable, value in zip(layer.trainable_variables, values):
            variable.assign(value)


def mask_of(case, lengths):
    """The mask [B, T] of ragged rows as an array, or None where rows are full."""
    return numpy.arange(case.seq_len)[None, :] < numpy.array(lengths)[:, None] if lengths else None


def run_layers(ops, case, calls, mask, inputs):
    """(y, hn, cn) of x, h0, c0 with the shape [T, B, I] of x. ops: keras.ops; calls: one per layer and direction."""
    # pylint: disable=too-many-locals
    x, h0, c0 = inputs
    x, hn, cn = ops.transpose(x, [1, 0, 2]), [], []
    for layer in range(case.layers):
        outputs = []
        for direction in range(case.directions):
            index = layer * case.directions + direction
            y, h, c = calls[index](x, mask=mask, training=case.trains,
                                   initial_state=[h0[index], c0[index]])
            y = ops.flip(y, 1) if direction else y
            if mask is not None and case.variant == "unrolled":
                # Unrolled and backwards, Keras 3.15 zeroes by the mask of forwards steps.
                y = ops.where(mask[:, :, None], y, ops.zeros_like(y))
            outputs.append(y)
            hn.append(h)
            cn.append(c)
        x = ops.concatenate(outputs, 2) if len(outputs) > 1 else outputs[0]
    return ops.transpose(x, [1, 0, 2]), ops.stack(hn), ops.stack(cn)


def write_gradients(kinds, found):
    """Writes the weight gradients found, arrays of the variables of all layers, into the Tensors of kinds."""
    for index in range(len(kinds[0])):
        kernel, recurrent, bias = found[3 * index:3 * index + 3]
        for kind, value in zip(kinds, (kernel.T, recurrent.T, bias, bias)):
            numpy.copyto(kind[index].numpy(), value, casting="unsafe")


class Session(contract.Session):
    """One case."""

    # pylint: disable=too-many-instance-attributes
    def __init__(self, tensorflow, keras, case, stream):
        super().__init__(case, stream)
        self.tf, self.keras = tensorflow, keras
        self.device_name = f"/GPU:{case.ordinal}" if case.device == "cuda" else "/CPU:0"
        self.mask = None
        self.function = self.current = None
        self.tape = self.found = self.weight_gradients = None
        if case.device == "cuda":
            tensorflow.config.experimental.enable_tensor_float_32_execution(case.math == "tf32")
        with tensorflow.device(self.device_name):
            self.layers = make_layers(keras, case)

    def prepare(self, kinds, lengths):
        set_weights(self.case, self.layers, kinds)
        if lengths:
            with self.tf.device(self.device_name):
                self.mask = self.tf.constant(mask_of(self.case, lengths))
        compiled = self.case.variant == "jit"
        run = self.train_step if compiled and self.case.trains else self.run
        self.function = self.tf.function(run, jit_compile=compiled or None, autograph=False)

    def run(self, *inputs):
        """(y, hn, cn) of [T, B, I] inputs."""
        return run_layers(self.keras.ops, self.case, self.layers, self.mask, inputs)

    def train_step(self, inputs, given):
        """((y, hn, cn), gradients of the inputs and the weights)."""
        with self.tf.GradientTape() as tape:
            for tensor in inputs:
                tape.watch(tensor)
            found = self.run(*inputs)
        return found, tape.gradient(list(found), [*inputs, *self.variables()],
                                    output_gradients=given)

    def take(self, tensor):
        return self.tf.experimental.dlpack.from_dlpack(tensor.__dlpack__())

    def to_numpy(self, value):
        return value.numpy()

    def address_of(self, value):
        self.tf.test.experimental.sync_devices()
        capsule = self.tf.experimental.dlpack.to_dlpack(value)
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        return ctypes.cast(pointer(capsule, b"dltensor"), ctypes.POINTER(ctypes.c_void_p))[0]

    def variables(self):
        return [variable.value for layer in self.layers for variable in layer.trainable_variables]

    def forward(self, bound):
        self.current = bound
        with self.tf.device(self.device_name):
            if not self.case.trains:
                self.write(bound.results, self.function(*bound.given))
                return
            if self.case.variant == "jit":
                return  # backward runs both
            with self.tf.GradientTape() as tape:
                for given in bound.given:
                    tape.watch(given)
                self.found = self.function(*bound.given)
            self.tape = tape
            self.write(bound.results, self.found)

    def backward(self, bound):
        with self.tf.device(self.device_name):
            if self.case.variant == "jit":
                outputs, found = self.function(self.current.given, bound.given)
                self.write(self.current.results, outputs)
            else:
                wanted = [*self.current.given, *self.variables()]
                found = self.tape.gradient(list(self.found), wanted, output_gradients=bound.given)
        self.write(bound.results, found[:3])
        self.weight_gradients = found[3:]
        self.tape = self.found = None

    def gradients(self, kinds):
        write_gradients(kinds, [found.numpy() for found in self.weight_gradients])

    def describe(self):
        runs_on = self.runs_on("on TensorFlow's own stream, waited for")
        how = {"unrolled": "unrolled", "jit": "compiled by XLA",
               "generic": "use_cudnn=False"}.get(self.case.variant, "")
        policy = self.layers[0].dtype_policy.name
        return (f"Keras {self.keras.__version__} on TensorFlow {self.tf.__version__}, LSTM"
                f"{', ' + how if how else ''}, policy {policy}, {runs_on}")
