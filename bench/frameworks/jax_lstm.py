"""JAX: the cell written with jax.numpy, over the steps by lax.scan, compiled by XLA as one function.

Variants: auto and scan, the same: on a GPU cuDNN's RNN of jax.experimental would be another. Ragged
rows are masked: a row's state stays as it is past its end. The weights' layout is the project's.
"""

import os

from contract import Absent, Bound, Unsupported, choose_threads, numpy_type

TITLE = "JAX"
MODULES = ["jax", "numpy"]


def supports(case):
    if case.math == "half":
        raise Unsupported("math half: XLA has no switch for f32 GEMMs in f16")


def create(case, stream):
    if case.device == "cpu":
        choose_threads("JAX", case.threads)
        os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["JAX_ENABLE_X64"] = "1"
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax  # pylint: disable=import-outside-toplevel
    if case.device == "cuda" and not any(device.platform == "gpu" for device in jax.devices()):
        raise Absent("this JAX sees no GPU")
    return Session(jax, case, stream)


def network(jax, case, lengths):
    """The function (x, h0, c0, weights) -> (y, hn, cn) of the case."""
    # pylint: disable=too-many-locals
    lax, numpy = jax.lax, jax.numpy
    activation = numpy.tanh if case.act == "tanh" else jax.nn.relu
    precision = lax.Precision.DEFAULT if case.math == "tf32" else lax.Precision.HIGHEST
    # Half precision sums in f32, as tensor cores do, and keeps c in f32.
    wide = numpy.float64 if case.dtype == "f64" else numpy.float32

    def product(a, b):
        return numpy.matmul(a, b.T, precision=precision, preferred_element_type=wide)

    def direction(x, h, c, weights, backwards):
        w_ih, w_hh, b_ih, b_hh = weights
        inputs = product(x, w_ih) + (b_ih.astype(wide) + b_hh.astype(wide))

        def step(state, now):
            h, c = state
            gates_in, t = now
            i, f, g, o = numpy.split(gates_in + product(h, w_hh), 4, axis=1)
            c_next = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * activation(g)
            h_next = (jax.nn.sigmoid(o) * activation(c_next)).astype(h.dtype)
            if lengths is None:
                return (h_next, c_next), h_next
            alive = (t < lengths)[:, None]
            h_next, c_next = numpy.where(alive, h_next, h), numpy.where(alive, c_next, c)
            return (h_next, c_next), numpy.where(alive, h_next, 0)

        (h, c), y = lax.scan(step, (h, c.astype(wide)), (inputs, numpy.arange(case.seq_len)),
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


class Session:
    """One case."""

    # pylint: disable=too-many-instance-attributes
    def __init__(self, jax, case, stream):
        self.jax, self.case, self.stream = jax, case, stream
        self.device = jax.devices()[case.ordinal if case.device == "cuda" else 0]
        self.type = numpy_type(case.dtype)
        self.weights = self.infer = self.train = self.pull = None
        self.kept = self.weight_gradients = None

    def prepare(self, *weights_and_lengths):
        *kinds, lengths = weights_and_lengths
        jax = self.jax
        self.weights = [tuple(jax.device_put(kind[index].numpy().copy(), self.device)
                              for kind in kinds) for index in range(len(kinds[0]))]
        run = network(jax, self.case, jax.numpy.asarray(lengths) if lengths else None)
        self.infer = jax.jit(run)
        self.train = jax.jit(lambda *inputs: jax.vjp(run, *inputs))
        self.pull = jax.jit(lambda pull, given: pull(given))

    def take(self, tensor):
        """A JAX array on the harness's memory."""
        array = self.jax.dlpack.from_dlpack(tensor)
        if array.unsafe_buffer_pointer() != tensor.address:
            raise RuntimeError("JAX copied a tensor that it was to share")
        return array

    def bind_forward(self, x, h0, c0, y, hn, cn):
        return Bound(inputs=[self.take(tensor) for tensor in (x, h0, c0)],
                     outputs=[Writer(self.jax, tensor, self.stream) for tensor in (y, hn, cn)])

    def bind_backward(self, dy, dhn, dcn, dx, dh0, dc0):
        return Bound(given=tuple(self.take(tensor) for tensor in (dy, dhn, dcn)),
                     wanted=[Writer(self.jax, tensor, self.stream) for tensor in (dx, dh0, dc0)])

    def forward(self, bound):
        if self.case.trains:
            outputs, self.kept = self.train(*bound.inputs, self.weights)
        else:
            outputs = self.infer(*bound.inputs, self.weights)
        for writer, output in zip(bound.outputs, outputs):
            writer.write(output)

    def backward(self, bound):
        *found, self.weight_gradients = self.pull(self.kept, bound.given)
        for writer, output in zip(bound.wanted, found):
            writer.write(output)
        self.jax.block_until_ready(self.weight_gradients)

    def gradients(self, *kinds):
        import numpy  # pylint: disable=import-outside-toplevel
        for index, found in enumerate(self.weight_gradients):
            for kind, array in zip(kinds, found):
                numpy.copyto(kind[index].numpy(), numpy.asarray(array))

    def describe(self):
        runs_on = f"{self.case.threads} thread{'s' if self.case.threads > 1 else ''}"
        if self.case.device == "cuda":
            runs_on = "on XLA's own stream, waited for"
        return f"JAX {self.jax.__version__} lax.scan, compiled by XLA, {runs_on}"

    def destroy(self):
        self.__dict__.clear()


class Writer:
    """Brings results of a framework with streams of its own into a tensor of the harness."""

    def __init__(self, jax, tensor, stream):
        self.jax, self.tensor, self.stream = jax, tensor, stream
        self.view = tensor.numpy() if tensor.memory is not None else None

    def write(self, output):
        import numpy  # pylint: disable=import-outside-toplevel
        if self.view is not None:
            numpy.copyto(self.view, numpy.asarray(output))
        else:
            self.jax.block_until_ready(output)
            self.tensor.copy_from_device(output.unsafe_buffer_pointer(), self.stream)
