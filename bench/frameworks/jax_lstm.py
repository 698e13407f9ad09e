"""JAX: the cell written with jax.numpy, over the steps by lax.scan, compiled by XLA as one function.
README.md says what the variants are. Ragged rows of the scan are masked: a row's state stays as it is past its
end. The scan multiplies each step's input in the step, as Flax does: one GEMM for all steps before it takes XLA's
CPU code up to three times as long, because it then slices the product for each element of the cell. It has the
transposes of the weights' matrices; cuDNN's variant has all weights as one array.
"""

import ctypes
import os

import contract
from contract import Absent, Unsupported, choose_threads, numpy

TITLE = "JAX"
MODULES = ["jax", "numpy"]
CELLS = ["projection"]


def supports(case):
    if case.variant == "jit" and case.passes != "train":
        raise Unsupported(f"pass {case.passes}: forward and backward as one function are pass train; "
                          "auto has the others")
    if case.variant == "cudnn" and case.device != "cuda":
        raise Unsupported("cuDNN needs a GPU: jax_cuda:cudnn")
    if case.variant == "cudnn" and case.dtype != "f32":
        raise Unsupported(f"dtype {case.dtype}: jax.experimental.rnn calls cuDNN in f32 only")
    if case.variant == "cudnn" and case.act != "tanh":
        raise Unsupported(f"act-{case.act}: cuDNN's LSTM has no choice of activations")
    if case.variant == "cudnn" and case.projection:
        raise Unsupported("cell projection: jax.experimental.rnn has no projection")


def create(case, stream, session=None):
    """session: the class of the session, where it is not the one here."""
    if case.device == "cpu":
        choose_threads("JAX", case.threads)
        os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["JAX_ENABLE_X64"] = "1"
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax  # pylint: disable=import-outside-toplevel
    if case.device == "cuda" and not any(device.platform == "gpu" for device in jax.devices()):
        raise Absent("this JAX sees no GPU")
    return (session or Session)(jax, case, stream)


def network(jax, case, lengths):
    """The function (x, h0, c0, weights) -> (y, hn, cn) of the case."""
    # pylint: disable=too-many-locals
    lax, numpy = jax.lax, jax.numpy
    activation = numpy.tanh if case.act == "tanh" else jax.nn.relu
    # On a CPU the default is full precision.
    exact = case.device == "cuda" and case.math != "tf32"
    precision = lax.Precision.HIGHEST if exact else lax.Precision.DEFAULT
    # Half precision sums in f32, as tensor cores do, and keeps c in f32.
    wide = numpy.float64 if case.dtype == "f64" else numpy.float32

    def product(a, b):
        return numpy.matmul(a, b, precision=precision, preferred_element_type=wide)

    def direction(x, h, c, weights, backwards):
        w_ih, w_hh, b_ih, b_hh, *projection = weights
        bias = b_ih.astype(wide) + b_hh.astype(wide)

        def step(state, now):
            h, c = state
            x, t = now
            i, f, g, o = numpy.split(product(x, w_ih) + product(h, w_hh) + bias, 4, axis=1)
            c_next = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * activation(g)
            h_next = (jax.nn.sigmoid(o) * activation(c_next)).astype(h.dtype)
            if projection:
                h_next = product(h_next, projection[0]).astype(h.dtype)
            if lengths is None:
                return (h_next, c_next), h_next
            alive = (t < lengths)[:, None]
            h_next, c_next = numpy.where(alive, h_next, h), numpy.where(alive, c_next, c)
            return (h_next, c_next), numpy.where(alive, h_next, 0)

        (h, c), y = lax.scan(step, (h, c.astype(wide)), (x, numpy.arange(case.seq_len)),
                             reverse=backwards)
        return y, h, c.astype(x.dtype)

    def run(x, h0, c0, weights):
        hn, cn = [], []
        for layer in range(case.layers):
            outputs = []
            for backwards in range(case.directions):
                index = layer * case.directions + backwards
                y, h, c = direction(x, h0[index], c0[index], weights[index], bool(backwards))
                outputs.append(y)
                hn.append(h)
                cn.append(c)
            x = numpy.concatenate(outputs, axis=2) if len(outputs) > 1 else outputs[0]
        return x, numpy.stack(hn), numpy.stack(cn)

    return run


def cudnn_network(jax, case, lengths):
    """The same function by cuDNN, which takes the weights as flatten() lays them out."""
    from jax.experimental import rnn  # pylint: disable=import-outside-toplevel
    numpy = jax.numpy
    steps = numpy.full(case.batch, case.seq_len) if lengths is None else lengths
    steps = steps.astype("int32")
    precision = jax.lax.Precision.HIGH if case.math == "tf32" else jax.lax.Precision.HIGHEST

    def run(x, h0, c0, weights):
        y, hn, cn = rnn.lstm(numpy.swapaxes(x, 0, 1), h0, c0, weights, steps, case.input,
                             case.hidden, case.layers, 0.0, case.directions == 2, precision)
        return numpy.swapaxes(y, 0, 1), hn, cn

    return run


def flatten(numpy, weights):
    """All matrices of all layers and directions, then all biases, as jax.experimental.rnn has them."""
    return numpy.concatenate([numpy.ravel(part) for kinds in (slice(0, 2), slice(2, 4))
                              for entry in weights for part in entry[kinds]])


def unflatten(numpy, flat, weights):
    """The inverse of flatten, in the shapes of weights."""
    parts = [list(entry) for entry in weights]
    at = 0
    for kinds in ((0, 1), (2, 3)):
        for entry in parts:
            for kind in kinds:
                size = entry[kind].size
                entry[kind] = numpy.reshape(flat[at:at + size], entry[kind].shape)
                at += size
    return parts


class Session(contract.Session):
    """One case."""

    # pylint: disable=too-many-instance-attributes
    def __init__(self, jax, case, stream):
        super().__init__(case, stream)
        self.jax = jax
        self.device = jax.devices()[case.ordinal if case.device == "cuda" else 0]
        self.weights = self.parts = self.infer = self.train = self.pull = self.step = None
        self.current = self.kept = self.weight_gradients = None

    def lay_out(self, kinds):
        """The weights as JAX gets them, per layer and direction."""
        plain = self.case.variant == "cudnn"
        return [tuple(self.jax.device_put((array if plain else array.T).copy(), self.device)
                      for array in (kind[index].numpy() for kind in kinds))
                for index in range(len(kinds[0]))]

    def network(self, lengths):
        """The function of the case, and its weights. lengths: an array, or None where rows are full."""
        if self.case.variant == "cudnn":
            return (cudnn_network(self.jax, self.case, lengths),
                    flatten(self.jax.numpy, self.parts))
        return network(self.jax, self.case, lengths), self.parts

    def prepare(self, kinds, lengths):
        jax = self.jax
        self.parts = self.lay_out(kinds)
        run, self.weights = self.network(jax.numpy.asarray(lengths) if lengths else None)

        def step(inputs, given):
            outputs, pull = jax.vjp(run, *inputs)
            return outputs, pull(given)

        self.infer = jax.jit(run)
        self.train = jax.jit(lambda *inputs: jax.vjp(run, *inputs))
        self.pull = jax.jit(lambda pull, given: pull(given))
        self.step = jax.jit(step)

    def take(self, tensor):
        array = self.jax.dlpack.from_dlpack(tensor)
        if array.unsafe_buffer_pointer() != tensor.address:
            raise RuntimeError("JAX copied a tensor that it was to share")
        return array

    def address_of(self, value):
        return value.block_until_ready().unsafe_buffer_pointer()

    def write(self, tensors, values):
        """On a CPU by address, since a NumPy array of a value takes JAX 6 us."""
        if self.case.device == "cuda":
            super().write(tensors, values)
            return
        for tensor, value in zip(tensors, values):
            ctypes.memmove(tensor.address, value.block_until_ready().unsafe_buffer_pointer(), tensor.bytes)

    def forward(self, bound):
        self.current, self.weight_gradients = bound, None  # so that JAX uses their memory again
        if self.case.variant == "jit":
            return  # backward runs both
        if self.case.trains:
            outputs, self.kept = self.train(*bound.given, self.weights)
        else:
            outputs = self.infer(*bound.given, self.weights)
        self.write(bound.results, outputs)

    def backward(self, bound):
        if self.case.variant == "jit":
            outputs, found = self.step((*self.current.given, self.weights), tuple(bound.given))
            self.write(self.current.results, outputs)
        else:
            kept, self.kept = self.kept, None
            found = self.pull(kept, tuple(bound.given))
        *found, self.weight_gradients = found
        self.write(bound.results, found)  # which waits for all that this function computes

    def gradients(self, kinds):
        gradients = self.weight_gradients
        if self.case.variant == "cudnn":  # parts of one array, which NumPy cuts faster than JAX
            gradients = unflatten(numpy, numpy.asarray(gradients), self.parts)
        else:
            gradients = [[numpy.asarray(part).T for part in found] for found in gradients]
        for index, found in enumerate(gradients):
            super().write([kind[index] for kind in kinds], found)

    def destroy(self):
        jax = self.jax
        super().destroy()
        jax.clear_caches()  # of what was compiled for this case, which no other one calls

    def describe(self):
        runs_on = self.runs_on("on XLA's own stream, waited for")
        how = {"cudnn": "cuDNN", "jit": "lax.scan, a training step compiled by XLA"}.get(
            self.case.variant, "lax.scan, compiled by XLA")
        return f"JAX {self.jax.__version__} {how}, {runs_on}"
