"""Weights of trained models: converted from the files of frameworks, they are those that the framework
itself has, and every implementation runs them.

CuDNNLSTM is compared with the conversion of Keras 2 (tf_keras), which loads such files into an LSTM. Exit
code 77: neither h5py nor a framework is there.
"""

import json
import os
import struct
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cli"))
sys.path.insert(0, HERE)

from program import ProgramTest, call, run # pylint: disable=wrong-import-position
from test_criteria import environment_python, has # pylint: disable=wrong-import-position

CONVERTER = os.path.join(HERE, "..", "..", "bench", "frameworks", "to_safetensors.py")

# Each writes FOLDER/model.* and FOLDER/expected.npz: the tensors by the names of a state dict.
MAKERS = {
    "keras": ("keras, h5py", "model.keras", """
model = keras.Sequential([keras.Input((6, 5)), keras.layers.LSTM(4, return_sequences=True),
    keras.layers.Bidirectional(keras.layers.LSTM(3, return_sequences=True))])
for layer in model.layers:
    layer.set_weights([numpy.random.randn(*w.shape) for w in layer.get_weights()])
model.save(folder + "/model.keras")
w = model.layers[0].get_weights() + model.layers[1].get_weights()
for at, name in ((0, "l0"), (3, "l1"), (6, "l1_reverse")):
    expected["weight_ih_" + name] = w[at].T
    expected["weight_hh_" + name] = w[at + 1].T
    expected["bias_ih_" + name] = w[at + 2]
"""),
    "tf_keras": ("tf_keras, h5py", "model.h5", """
model = tf_keras.Sequential([tf_keras.Input((6, 5)), tf_keras.layers.LSTM(4)])
layer = model.layers[0]
layer.set_weights([numpy.random.randn(*w.shape) for w in layer.get_weights()])
model.save_weights(folder + "/model.h5")
w = layer.get_weights()
expected |= {"weight_ih_l0": w[0].T, "weight_hh_l0": w[1].T, "bias_ih_l0": w[2]}
"""),
    # By hand, in the layout of a CuDNNLSTM; expected: what Keras makes of it for its LSTM.
    "cudnn_lstm": ("tf_keras, h5py", "model.h5", """
import h5py
from tf_keras.src.saving.legacy import hdf5_format
w = [numpy.random.randn(*s).astype("f4") for s in ((5, 16), (4, 16), (32,))]
with h5py.File(folder + "/model.h5", "w") as file:
    for name, array in zip(("kernel:0", "recurrent_kernel:0", "bias:0"), w):
        file["cu_dnnlstm/cu_dnnlstm/" + name] = array
layer = tf_keras.layers.LSTM(4)
layer.build((None, 6, 5))
w = hdf5_format.preprocess_weights_for_loading(layer, w)
expected |= {"weight_ih_l0": w[0].T, "weight_hh_l0": w[1].T, "bias": w[2]}
# What that layer answers on this CPU.
layer = tf_keras.layers.LSTM(4, return_sequences=True)
layer.build((None, 6, 5))
layer.set_weights(w)
x = numpy.random.randn(3, 6, 5).astype("f4")
numpy.save(folder + "/x.npy", x)
numpy.save(folder + "/y.npy", layer(x).numpy())
"""),
    "torch": ("torch", "model.pt", """
model = torch.nn.LSTM(5, 4, 2, bidirectional=True)
torch.save({"encoder." + k: v for k, v in model.named_parameters()}, folder + "/model.pt")
expected |= {"encoder." + k: v.numpy() for k, v in model.state_dict().items()}
"""),
    "onnx": ("onnx", "model.onnx", """
import onnx
from onnx import helper, numpy_helper
i, o, f, c = (numpy.random.randn(2, 4, 5).astype("f4") for _ in range(4))
r = numpy.random.randn(2, 16, 4).astype("f4")
node = helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=4, direction="bidirectional")
values = [helper.make_tensor_value_info(n, 1, None) for n in "xy"]
onnx.save(helper.make_model(helper.make_graph([node], "g", values[:1], values[1:], [
    numpy_helper.from_array(numpy.concatenate([i, o, f, c], 1), "w"),
    numpy_helper.from_array(r, "r")])), folder + "/model.onnx")
expected["weight_ih_l0_reverse"] = numpy.concatenate([i, f, c, o], 1)[1]
r = numpy.split(r[0], 4)
expected["weight_hh_l0"] = numpy.concatenate([r[0], r[2], r[3], r[1]])
"""),
}


def read_safetensors(path):
    """{name: (shape, values as f64)}, read here once more, independently of both sides."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    tensors = {}
    for name, entry in header.items():
        part = data[slice(*entry["data_offsets"])]
        kind, size = {"F32": ("f", 4), "F64": ("d", 8)}[entry["dtype"]]
        tensors[name] = entry["shape"], struct.unpack(f"<{len(part) // size}{kind}", part)
    return tensors


class Weights(ProgramTest):
    """One model per framework: made, converted, run."""

    def convert(self, kind, *options):
        modules, model, text = MAKERS[kind]
        module = modules.split(",", maxsplit=1)[0]
        if not has(modules):
            self.skipTest(f"no {modules}")
        script = ("import json, os, sys\nos.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'\n"
                  f"import numpy, {module}\nnumpy.random.seed(1)\nfolder, expected = sys.argv[1], {{}}\n"
                  f"{text}\njson.dump({{k: numpy.asarray(v, 'f8').ravel().tolist() for k, v in "
                  "expected.items()}, open(folder + '/expected.json', 'w'))\n")
        call(environment_python(), "-c", script, self.scratch, exit_code=0)
        out = self.path("model.safetensors")
        call(environment_python(), CONVERTER, self.path(model), out, *options, exit_code=0)
        return out, json.loads(self.read("expected.json")), read_safetensors(out)

    def check(self, kind, *options):
        path, expected, tensors = self.convert(kind, *options)
        bias = expected.pop("bias", None) # of Keras: the sum of the two
        for name, values in expected.items():
            self.assertEqual(list(tensors[name][1]), values, f"{kind}: {name}")
        if bias:
            sums = [a + b for a, b in zip(tensors["bias_ih_l0"][1], tensors["bias_hh_l0"][1])]
            for a, b in zip(sums, bias):
                self.assertAlmostEqual(a, b, delta=1e-6)
        return path

    def run_on_all(self, path, *options):
        rows, _ = self.sweep("--weights", path, *options, "-T", "6", "-B", "3", "--pass", "train",
                             "--impl", "cpu_ref,cpu_simd,openblas", "--case-time", "0.01")
        self.assertEqual({row["verdict"] for row in rows.values()}, {"ok"})
        return {row["impl"]: row for row in rows.values()}

    def test_keras_3(self):
        path = self.check("keras", "--layers", "layers/lstm,bidirectional")
        # A problem has one hidden size for all layers and directions.
        run("--sweep", "--weights", path, exit_code=2, said="weight_ih_l1: its shape must be [16, 4]")

    def test_keras_2(self):
        row = self.run_on_all(self.check("tf_keras"))["cpu_ref"]
        self.assertEqual((row["input"], row["hidden"], row["layers"]), (5, 4, 1))

    def test_cudnn_lstm(self):
        path = self.check("cudnn_lstm")
        self.run_on_all(path)
        # Every implementation answers what Keras answers.
        done = run("--cross-check", "--weights", path, "--inputs", self.path("x.npy"), "--outputs",
                   self.path("y.npy"), "--batch-first", "--dtype", "f32,f64", "--impl",
                   "cpu_ref,cpu_simd,openblas,onednn", exit_code=0)
        answer = next(line for line in done.stdout.splitlines() if "] --outputs " in line)
        differences = [float(word) for word in answer.split()[answer.split().index("--outputs") + 1:]]
        self.assertGreaterEqual(len(differences), 6)
        for difference in differences:
            self.assertLess(difference, 1e-6)

    def test_pytorch(self):
        path = self.check("torch")
        row = self.run_on_all(path, "--prefix", "encoder.")["cpu_ref"]
        self.assertEqual((row["layers"], row["directions"]), (2, 2))

    def test_onnx(self):
        self.run_on_all(self.check("onnx"))


if __name__ == "__main__":
    outcome = unittest.main(exit=False).result
    if len(outcome.skipped) == outcome.testsRun:
        sys.exit(77)
    sys.exit(0 if outcome.wasSuccessful() else 1)
