#!/usr/bin/env python3
"""Converts the LSTM of a trained model to the safetensors file that bench-lstm --weights reads.

    to_safetensors.py MODEL OUT.safetensors [--layers NAME,NAME]

MODEL: Keras .h5, .weights.h5 and .keras, with LSTM or CuDNNLSTM layers, Bidirectional or not
(h5py); PyTorch .pt and .pth, a state dict (torch); .onnx (onnx). The tensors get the names and the
layout of a PyTorch state dict: weight_ih_l0 [4H, I], gate order i f g o, and so on. Layers that are
stacked become l0, l1, ...: all of a sequential model, in its order, or those that --layers names, by
a part of their name. Layers that are no standard LSTM (relu, go_backwards, ...) are refused where the
file has the model's configuration, and a note says where it has none. A state dict is written as it
is: choose its LSTM by --prefix of bench-lstm.

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


# Layers that may stand between two LSTMs: at inference they change nothing.
PASSED_THROUGH = ("InputLayer", "Dropout", "SpatialDropout1D", "Masking")


def text_of(attribute):
    """The text of an attribute of an .h5 file, which h5py returns as bytes or as str."""
    return attribute.decode() if isinstance(attribute, bytes) else str(attribute)


def layer_of(cell):
    """The part of a cell's path that names its layer: by its own name in files of Keras 2, else by its class
    and a number, as in layers/lstm_1/cell/vars."""
    outer = ("model_weights", "layers", "_layer_checkpoint_dependencies")
    return next(part for part in cell.split("/") if part not in outer)


def by_number(name):
    """Sorts lstm_2 before lstm_10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def configured(config):
    """[(name, numbered name, class, settings)] of a model's layers in order. In .keras files the layers of each
    class are numbered: lstm, lstm_1, ..."""
    layers, counts = [], {}
    for layer in config["config"]["layers"]:
        kind, settings = layer["class_name"], layer["config"]
        snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", kind).lower()
        count = counts[snake] = counts.get(snake, -1) + 1
        layers.append((settings.get("name"), f"{snake}_{count}" if count else snake, kind, settings))
    return layers


def check_settings(name, kind, settings):
    """Refuses a layer that is no standard LSTM."""
    if kind == "Bidirectional":
        if settings.get("merge_mode") != "concat":
            raise Problem(f"layer {name}: merge_mode is {settings.get('merge_mode')}, and only concat can be kept")
        kind, settings = settings["layer"]["class_name"], settings["layer"]["config"]
    if kind not in ("LSTM", "CuDNNLSTM"):
        raise Problem(f"layer {name} is a {kind}")
    for key, standard in (("activation", "tanh"), ("recurrent_activation", "sigmoid"), ("go_backwards", False)):
        value = settings.get(key, standard)
        value = value.get("config", value) if isinstance(value, dict) else value
        if value != standard:
            raise Problem(f"layer {name}: {key} is {value}, which the names of a state dict have no place for")


def order_of(cells, config, numbered, layer_names, chosen):
    """The names of the layers (layer_of) that have cells, in the order in which the model runs them, as far as
    the file says it; checks the settings of those that `chosen` fits, or of all. numbered: the cells lie under
    numbered names, not under those of the layers."""
    present = sorted(dict.fromkeys(map(layer_of, cells)), key=by_number)
    used = [name for name in present if not chosen or any(part in cell for part in chosen.split(",")
                                                          for cell in cells if layer_of(cell) == name)]
    if config:
        layers = configured(config)
        known = {count if numbered else name: (place, kind, settings)
                 for place, (name, count, kind, settings) in enumerate(layers)}
        for name in used:
            if name not in known:
                raise Problem(f"layer {name} is part of a model within the model, which is not read")
            check_settings(name, *known[name][1:])
        used.sort(key=lambda name: known[name][0])
        between = [kind for _, _, kind, _ in layers[known[used[0]][0]:known[used[-1]][0]]
                   if kind not in (*PASSED_THROUGH, "LSTM", "CuDNNLSTM", "Bidirectional")] if used else []
        if not chosen and len(used) > 1 and (config["class_name"] != "Sequential" or between):
            raise Problem("its LSTMs need not follow each other" + (f" (there is a {between[0]})" if between else "") +
                          f": name those that do with --layers, of {used}")
        return used
    print("note: the file does not say which activations its layers have: tanh and sigmoid are assumed",
          file=sys.stderr)
    if layer_names:
        return sorted(present, key=layer_names.index)
    if not chosen and len({re.sub(r"_\d+$", "", name) for name in present}) > 1:
        raise Problem(f"the file does not say in which order its layers run: name them with --layers, of {present}")
    return present


def read_keras(path, chosen):
    """{layer: [weights of each direction]} of a Keras file, in the model's order, as from_keras returns them.
    chosen: the text of --layers, or None."""
    import h5py  # pylint: disable=import-outside-toplevel
    data, config = path, None
    if path.endswith(".keras"):
        with zipfile.ZipFile(path) as archive:
            data = io.BytesIO(archive.read("model.weights.h5"))
            config = json.loads(archive.read("config.json"))
    with h5py.File(data, "r") as file:
        cells = find_in_h5(file)
        named = file["model_weights"] if "model_weights" in file else file
        layer_names = [text_of(name) for name in named.attrs.get("layer_names", [])]
        if "model_config" in file.attrs:
            config = json.loads(text_of(file.attrs["model_config"]))
    layers = {}
    for layer in order_of(cells, config, path.endswith(".keras"), layer_names, chosen):
        for name in cells:
            if layer_of(name) == layer:
                # The two directions of one Bidirectional differ in this word only.
                both = re.sub(r"(forward|backward)(_layer)?", "*", name, count=1)
                layers.setdefault(both, {})["backward" in name] = from_keras(cells[name])
    return {name: [directions[key] for key in sorted(directions)]
            for name, directions in layers.items()}


def check_node(name, node, stored):
    """Refuses an LSTM node that is no standard LSTM, or whose weights are not among those stored."""
    bias, peepholes = (node.input[at] if len(node.input) > at else "" for at in (3, 7))
    functions = [text.decode() for setting in node.attribute for text in setting.strings]
    # The names of a state dict have no place for these; left out, they would make another network.
    for wrong, what in (
            (not {*node.input[1:3], bias or node.input[1]} <= set(stored), "its weights are computed, not stored"),
            (any(setting.s == b"reverse" for setting in node.attribute),
             "it runs in reverse alone, which a state dict cannot say"),
            (peepholes, "it has peepholes, which a state dict cannot hold"),
            (any(text.lower() != ("sigmoid", "tanh", "tanh")[at % 3] for at, text in enumerate(functions)),
             f"its activations are {', '.join(functions)}, and not Sigmoid, Tanh, Tanh"),
            (any(setting.name == "clip" or setting.name == "input_forget" and setting.i for setting in node.attribute),
             "it has clip or input_forget, which a state dict cannot say")):
        if wrong:
            raise Problem(f"node {name}: {what}")


def read_onnx(path, chosen):
    """{layer: [weights of each direction]} of an ONNX file, as from_keras returns them. chosen: the text of
    --layers, or None."""
    import onnx  # pylint: disable=import-outside-toplevel
    from onnx import numpy_helper  # pylint: disable=import-outside-toplevel
    graph = onnx.load(path).graph
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    layers, source, last = {}, {}, None # source: of a tensor the one that it is in another layout
    for node in graph.node:
        if node.op_type in ("Transpose", "Squeeze", "Reshape", "Identity"):
            source[node.output[0]] = source.get(node.input[0], node.input[0])
        if node.op_type != "LSTM":
            continue
        name = node.name or node.output[0]
        check_node(name, node, values)
        if layers and not chosen and source.get(node.input[0], node.input[0]) != last:
            raise Problem(f"node {name}: it does not take the output of {list(layers)[-1]}: name the nodes that follow "
                          "each other with --layers")
        last = node.output[0]
        w, r = values[node.input[1]], values[node.input[2]]
        b = values.get(node.input[3] if len(node.input) > 3 else "",
                       numpy.zeros((len(w), 2 * w.shape[1]), w.dtype))
        layers[name] = [
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
    inner = [key for key, value in state.items() if isinstance(value, dict)]
    if inner and not any(torch.is_tensor(value) for value in state.values()):
        raise Problem(f"its tensors are not at the top: save what is under one of {inner} as a file of its own")
    return {name: (value.float() if value.dtype == torch.bfloat16 else value).detach().numpy()
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
        return stack(read_onnx(path, chosen), chosen)
    if path.endswith((".h5", ".hdf5", ".keras")):
        return stack(read_keras(path, chosen), chosen)
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
        zero = " (zero: the layer has none)" if "bias_ih" in name and not array.any() else ""
        print(f"{name} {list(array.shape)} {array.dtype}{zero}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
