#!/usr/bin/env python3
"""Converts the LSTM of a trained model to the safetensors file that bench-lstm --weights reads.

    to_safetensors.py MODEL OUT.safetensors [--layers NAME,NAME]

MODEL: Keras .h5, .weights.h5 and .keras, with LSTM or CuDNNLSTM layers, Bidirectional or not
(h5py); PyTorch .pt and .pth, a state dict (torch); .onnx (onnx). The tensors get the names and the
layout of a PyTorch state dict: weight_ih_l0 [4H, I], gate order i f g o, and so on. Layers that are
stacked become l0, l1, ...: all that are found, in the file's order, or those that --layers names, by
a part of their name. A state dict is written as it is: choose its LSTM by --prefix of bench-lstm.

Layouts. LSTM: kernel [I, 4H] and recurrent kernel [H, 4H] in gate order i f c o, one bias, which
becomes bias_ih. CuDNNLSTM: the same shapes, but each gate's part holds the [H, I] and [H, H] matrix
of cuDNN in row-major order, and the bias has 8H elements, those of the input first. ONNX: gate order
i o f c.
"""

import argparse
import io
import json
import re
import struct
import sys
import zipfile

import numpy


class Problem(Exception):
    """What is wrong with the model, in one sentence."""


def write(path, tensors):
    """Writes a safetensors file of NumPy arrays in f64, f32 or f16."""
    header, at, names = {}, 0, {"float64": "F64", "float32": "F32", "float16": "F16"}
    for name, array in tensors.items():
        if array.dtype.name not in names:
            raise Problem(f"{name} is {array.dtype.name}, and only {', '.join(names)} can be written")
        header[name] = {"dtype": names[array.dtype.name], "shape": list(array.shape),
                        "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in tensors.values():
            file.write(array.astype(array.dtype.newbyteorder("<"), order="C").tobytes())


def from_keras(parts):
    """(w_ih, w_hh, b_ih, b_hh) of one layer and direction. parts: kernel, recurrent kernel, and the bias
    where the layer has one; that of a CuDNNLSTM has 8H elements."""
    kernel, recurrent, *rest = parts
    hidden = recurrent.shape[0]
    if kernel.shape[1] != 4 * hidden or recurrent.shape[1] != 4 * hidden:
        raise Problem(f"kernels of {kernel.shape} and {recurrent.shape} are not those of an LSTM")
    zero = numpy.zeros(4 * hidden, kernel.dtype)
    bias = rest[0] if rest else zero
    if bias.shape != (8 * hidden,):
        return kernel.T, recurrent.T, bias, zero
    w_ih = [gate.reshape(gate.shape[::-1]) for gate in numpy.split(kernel, 4, axis=1)]
    w_hh = numpy.split(recurrent, 4, axis=1)
    return numpy.concatenate(w_ih), numpy.concatenate(w_hh), *numpy.split(bias, 2)


def find_in_h5(file):
    """{path: [kernel, recurrent kernel, bias]} of all recurrent cells, in the file's order; without
    the bias where the cell has none."""
    import h5py  # pylint: disable=import-outside-toplevel
    found = {}

    def look(path, group):
        if not isinstance(group, h5py.Group):
            return
        sets = {name.split(":")[0]: numpy.array(item) for name, item in group.items()
                if isinstance(item, h5py.Dataset)}
        names = ("kernel", "recurrent_kernel", "bias")
        if "recurrent_kernel" not in sets:
            names = ("0", "1", "2") # Keras 3 numbers a cell's variables
            if not path.endswith("vars") or not {"0", "1"} <= set(sets) or sets["1"].ndim != 2 \
                    or sets["1"].shape[1] != 4 * sets["1"].shape[0]:
                return
        found[path] = [sets[name] for name in names if name in sets]

    # The groups of optimisers hold arrays of the same names, their moments.
    for name, item in file.items():
        if isinstance(item, h5py.Group) and "optimizer" not in name:
            look(name, item)
            item.visititems(lambda path, group, name=name: look(f"{name}/{path}", group))
    return found


def read_keras(path):
    """{layer: [weights of each direction]} of a Keras file, as from_lstm returns them."""
    import h5py  # pylint: disable=import-outside-toplevel
    data = path
    if path.endswith(".keras"):
        with zipfile.ZipFile(path) as archive:
            data = io.BytesIO(archive.read("model.weights.h5"))
    with h5py.File(data, "r") as file:
        cells = find_in_h5(file)
    layers = {}
    for name, parts in cells.items():
        # The two directions of one Bidirectional differ in this word only.
        layer = re.sub(r"(forward|backward)(_layer)?", "*", name, count=1)
        layers.setdefault(layer, {})["backward" in name] = from_keras(parts)
    return {name: [directions[key] for key in sorted(directions)]
            for name, directions in layers.items()}


def read_onnx(path):
    """{layer: [weights of each direction]} of an ONNX file, as from_lstm returns them."""
    import onnx  # pylint: disable=import-outside-toplevel
    from onnx import numpy_helper  # pylint: disable=import-outside-toplevel
    graph = onnx.load(path).graph
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    layers = {}
    for node in graph.node:
        if node.op_type != "LSTM":
            continue
        if not set(node.input[1:3]) <= set(values):
            raise Problem(f"node {node.name}: its weights are computed, not stored")
        # The names of a state dict have no place for either; left out, they would make another network.
        if any(attribute.s == b"reverse" for attribute in node.attribute):
            raise Problem(f"node {node.name}: it runs in reverse alone, which a state dict cannot say")
        if len(node.input) > 7 and node.input[7]:
            raise Problem(f"node {node.name}: it has peepholes, which a state dict cannot hold")
        w, r = values[node.input[1]], values[node.input[2]]
        b = values.get(node.input[3] if len(node.input) > 3 else "",
                       numpy.zeros((len(w), 2 * w.shape[1]), w.dtype))
        layers[node.name or node.output[0]] = [
            tuple(reorder(part) for part in (w[d], r[d], *numpy.split(b[d], 2)))
            for d in range(len(w))]
    return layers


def reorder(array):
    """Reorders the rows of an array [4H, ...] from gate order i o f c to i f c o."""
    i, o, f, c = numpy.split(array, 4)
    return numpy.concatenate([i, f, c, o])


def read_pytorch(path):
    """{name: array} of a state dict, with bf16 as f32, because NumPy has no bf16."""
    import torch  # pylint: disable=import-outside-toplevel
    state = torch.load(path, map_location="cpu", weights_only=True)
    state = state.get("state_dict", state)
    return {name: (value.float() if value.dtype == torch.bfloat16 else value).numpy()
            for name, value in state.items()
            if torch.is_tensor(value) and value.is_floating_point()}


def stack(layers, chosen):
    """{name: array}, as in a state dict, of layers that follow each other. layers: {name: [weights of
    each direction]}; chosen: the text of --layers, or None for all of them."""
    names = list(layers)
    if chosen:
        names = []
        for part in chosen.split(","):
            fitting = [name for name in layers if part in name]
            if len(fitting) != 1:
                raise Problem(f"--layers {part}: it fits {fitting or 'none'} of {list(layers)}")
            names += fitting
    if not names:
        raise Problem("there is no LSTM in it")
    tensors, width = {}, None
    for number, name in enumerate(names):
        directions = layers[name]
        if width not in (None, directions[0][0].shape[1]):
            raise Problem(f"layer {name} does not take the output of the one before: name those that "
                          f"follow each other with --layers, of {list(layers)}")
        width = len(directions) * directions[0][1].shape[1]
        for direction, arrays in enumerate(directions):
            for kind, array in zip(("weight_ih", "weight_hh", "bias_ih", "bias_hh"), arrays):
                tensors[f"{kind}_l{number}{'_reverse' * direction}"] = array
    return tensors


def read(path, chosen):
    """{name: array} of the model's LSTM, by the names of a state dict."""
    if path.endswith((".pt", ".pth")):
        return read_pytorch(path)
    if path.endswith(".onnx"):
        return stack(read_onnx(path), chosen)
    if path.endswith((".h5", ".hdf5", ".keras")):
        return stack(read_keras(path), chosen)
    raise Problem("allowed are .h5, .hdf5, .keras, .pt, .pth and .onnx")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("model")
    parser.add_argument("out")
    parser.add_argument("--layers", help="parts of the names of layers, in the order of use")
    arguments = parser.parse_args()
    path = arguments.model
    try:
        tensors = read(path, arguments.layers)
        path = arguments.out
        write(path, tensors)
    # What h5py, torch and onnx raise for a damaged file is of many types, some of their own.
    except Exception as error:  # pylint: disable=broad-exception-caught
        plain = isinstance(error, (Problem, OSError, ImportError, zipfile.BadZipFile))
        kind = "" if plain else type(error).__name__ + ": "
        print(f"to_safetensors.py: {path}: {kind}{error}", file=sys.stderr)
        return 1
    for name, array in tensors.items():
        print(f"{name} {list(array.shape)} {array.dtype}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
