"""What an adapter adds to a framework's own call: the time of its forward and backward over that of the
call that a user of the framework would write, in one process and in turns, for a small LSTM.

    adapter_cost.py FRAMEWORK [--pass infer,train] [--variant auto]
"""

import argparse
import ctypes
import importlib
import os
import statistics
import sys
import time

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench", "frameworks"))

import contract  # pylint: disable=wrong-import-position

SIZES = {"seq_len": 20, "batch": 1, "input": 100, "hidden": 128, "layers": 1, "directions": 1}
INFER_ONLY = ("onnxruntime", "openvino")


class Harness:
    """Tensors that the harness would hand to an adapter, filled with small random numbers."""

    def __init__(self, case):
        self.case, self.numbers, self.kept = case, numpy.random.default_rng(1), []

    def tensor(self, shape):
        """An array at an address that is a multiple of 256, as all of the harness's are."""
        numbers = self.numbers.normal(0, 0.1, shape).astype("float32")
        memory = numpy.empty(numbers.nbytes + 256, "uint8")
        array = memory[-memory.ctypes.data % 256:][:numbers.nbytes].view("float32").reshape(shape)
        self.kept.append(memory)
        array[...] = numbers
        return array

    def table(self, shapes):
        """The address of a table of new tensors' addresses, and the arrays [float32]."""
        arrays = [self.tensor(shape) for shape in shapes]
        table = (ctypes.c_void_p * len(arrays))(*[array.ctypes.data for array in arrays])
        self.kept.append(table)
        return ctypes.addressof(table), arrays

    def open(self, adapter):
        """(session, forward's argument, backward's, arrays of x, h0, c0, of dy, dhn, dcn)."""
        session = adapter.create(self.case, 0)
        tables = (ctypes.c_void_p * 5)(*[self.table([shape])[0] for shape in self.case.weight_shapes(0)])
        session.load(0, 1.0, ctypes.addressof(tables))
        first, last = self.case.call_shapes()
        forward, inputs = self.table([*first, *last])
        backward, given = self.table([*last, *first])
        bound = session.bind("backward", backward) if self.case.trains else None
        return session, session.bind("forward", forward), bound, inputs[:3], given[:3]


def alone_in_pytorch(session, inputs, given):
    torch, module = session.torch, session.call
    x, h0, c0 = (torch.tensor(array, requires_grad=session.case.trains) for array in inputs)
    given, parameters = [torch.tensor(array) for array in given], session.weights

    def infer():
        with torch.inference_mode():
            module(x, (h0, c0))

    def train():
        y, (hn, cn) = module(x, (h0, c0))
        torch.autograd.grad((y, hn, cn), (x, h0, c0, *parameters), given)

    return train if session.case.trains else infer


def alone_in_keras_on_pytorch(session, inputs, given):
    session.call = lambda x, state: ((lambda y, *last: (y, last))(*session.run(x, *state)))
    return alone_in_pytorch(session, inputs, given)


def alone_in_keras(session, inputs, given):
    tf = session.tf
    inputs, given = [tf.constant(array) for array in inputs], [tf.constant(array) for array in given]

    def infer():
        session.function(*inputs)[0].numpy()

    def train():
        with tf.GradientTape() as tape:
            for tensor in inputs:
                tape.watch(tensor)
            found = session.function(*inputs)
        tape.gradient(list(found), [*inputs, *session.variables()], output_gradients=given)[0].numpy()

    return train if session.case.trains else infer


def alone_in_jax(session, inputs, given):
    jax = session.jax
    inputs, given = [jax.device_put(a) for a in inputs], tuple(jax.device_put(a) for a in given)

    def infer():
        jax.block_until_ready(session.infer(*inputs, session.weights))

    def train():
        _, pull = session.train(*inputs, session.weights)
        jax.block_until_ready(session.pull(pull, given))

    def step():
        jax.block_until_ready(session.step((*inputs, session.weights), given))

    return step if session.case.variant == "jit" else train if session.case.trains else infer


def alone_in_onnxruntime(session, inputs, _given):
    inputs = dict(zip(("x", "h0", "c0"), inputs))
    return lambda: session.session.run(None, inputs)


def alone_in_openvino(session, inputs, _given):
    request = session.compiled.create_infer_request()
    return lambda: request.infer(inputs, share_inputs=True, share_outputs=True)


FRAMEWORKS = {"pytorch": ("torch_lstm", alone_in_pytorch), "keras": ("keras_lstm", alone_in_keras),
              "keras_torch": ("keras_torch_lstm", alone_in_keras_on_pytorch),
              "keras_jax": ("keras_jax_lstm", alone_in_jax), "jax": ("jax_lstm", alone_in_jax),
              "onnxruntime": ("onnx_lstm", alone_in_onnxruntime), "openvino": ("openvino_lstm", alone_in_openvino)}


def time_of(function, calls=20):
    """Median time of a call in us."""
    took = []
    for _ in range(calls):
        start = time.perf_counter_ns()
        function()
        took.append((time.perf_counter_ns() - start) / 1e3)
    return statistics.median(took)


def cost(name, passes, variant):
    """Prints the median ratio of a pass."""
    case = contract.Case(**SIZES, dtype="f32", passes=passes, math="ieee", act="tanh", ragged=0,
                         threads=1, variant=variant, device="cpu", ordinal=0, cell="standard",
                         projection=0)
    file, alone_in = FRAMEWORKS[name]
    adapter = importlib.import_module(file)
    contract.check(adapter, case)
    harness = Harness(case)  # whose memory the session's tensors are
    session, forward, backward, inputs, given = harness.open(adapter)
    alone = alone_in(session, inputs, given)

    def adapted():
        session.forward(forward)
        if case.trains:
            session.backward(backward)

    pairs = [(time_of(adapted), time_of(alone)) for _ in range(40)][5:]
    ratios = sorted(mine / theirs for mine, theirs in pairs)
    print(f"{name}:{variant} {passes}: {statistics.median(theirs for _, theirs in pairs):.1f} us alone, "
          f"the adapter's time is {statistics.median(ratios):.3f} of it ({ratios[3]:.3f} to {ratios[-4]:.3f})")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("framework", choices=FRAMEWORKS)
    parser.add_argument("--pass", dest="passes", default="infer,train")
    parser.add_argument("--variant", default="auto")
    options = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    for passes in options.passes.split(","):
        if passes == "infer" or options.framework not in INFER_ONLY:
            cost(options.framework, passes, options.variant)


if __name__ == "__main__":
    main()
