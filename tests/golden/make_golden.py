"""Writes lstm_*.json: inputs and results of PyTorch's nn.LSTM for small random problems; and cell_*.json: of the
cells other than the standard one. projection is nn.LSTM with proj_size. PyTorch has no layer for the other
cells, so harness/api/problem.h's equations are written here a second time, with torch's operations, and
torch's automatic differentiation gives the gradients.

    apt-get install python3-torch python3-numpy
    /usr/bin/python3 tests/golden/make_golden.py

Every tensor is a flat list in C order, in the project's shapes. As in the project, PyTorch's
gate order is i, f, g, o, and element l*D + d of states and weights is layer l, direction d. Numbers
are printed so that they read back exactly. The files are committed, so the test needs no PyTorch.
"""

import json
import os

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
SEQ_LEN, BATCH, INPUT, HIDDEN = 5, 3, 4, 3
DTYPES = {"f64": torch.float64, "f32": torch.float32}


def flat(tensor):
    return tensor.detach().to(torch.float64).flatten().tolist()


def parameters(lstm, name, layers, directions, of_gradient):
    """The parameter called name (weight_ih, ...) of every layer and direction, or its gradient."""
    lists = []
    for layer in range(layers):
        for direction in range(directions):
            suffix = f"_l{layer}" + ("_reverse" if direction else "")
            parameter = getattr(lstm, name + suffix)
            lists.append(flat(parameter.grad if of_gradient else parameter))
    return lists


def make(dtype, layers, directions):
    torch.manual_seed(100 * layers + directions)
    lstm = torch.nn.LSTM(INPUT, HIDDEN, layers, bidirectional=directions == 2).to(DTYPES[dtype])
    for parameter in lstm.parameters():
        torch.nn.init.normal_(parameter, std=0.8)  # larger than the default: gates leave their linear range

    def draw(*shape):
        return torch.randn(*shape, dtype=torch.float32).to(DTYPES[dtype])

    state = (layers * directions, BATCH, HIDDEN)
    x, h0, c0 = draw(SEQ_LEN, BATCH, INPUT), draw(*state), draw(*state)
    dy, dhn, dcn = draw(SEQ_LEN, BATCH, directions * HIDDEN), draw(*state), draw(*state)
    for tensor in (x, h0, c0):
        tensor.requires_grad_()
    y, (hn, cn) = lstm(x, (h0, c0))
    torch.autograd.backward([y, hn, cn], [dy, dhn, dcn])

    golden = {"torch": torch.__version__, "dtype": dtype, "seq_len": SEQ_LEN, "batch": BATCH,
              "input": INPUT, "hidden": HIDDEN, "layers": layers, "directions": directions}
    tensors = {"x": x, "h0": h0, "c0": c0, "y": y, "hn": hn, "cn": cn, "dy": dy, "dhn": dhn,
               "dcn": dcn, "dx": x.grad, "dh0": h0.grad, "dc0": c0.grad}
    golden.update({name: flat(tensor) for name, tensor in tensors.items()})
    names = {"w_ih": "weight_ih", "w_hh": "weight_hh", "b_ih": "bias_ih", "b_hh": "bias_hh"}
    for ours, theirs in names.items():
        golden[ours] = parameters(lstm, theirs, layers, directions, False)
        golden["d" + ours] = parameters(lstm, theirs, layers, directions, True)
    return golden


def gates_of(cell, given, x, h, c):
    """The gates i, f, g, o and the new c of one step; c is [B, H]."""
    a = x @ given["w_ih"].T + given["b_ih"] + h @ given["w_hh"].T + given["b_hh"]
    i, f, g, o = a.chunk(4, 1)
    if cell == "layernorm":
        gains, biases = given["w_cell"][:5], given["w_cell"][5:]

        def norm(v, which):
            return torch.nn.functional.layer_norm(v, v.shape[1:], gains[which], biases[which], eps=1e-5)

        i, f, g, o = (norm(v, which) for which, v in enumerate((i, f, g, o)))
        c = norm(torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g), 4)
        return torch.sigmoid(o), c
    if cell == "peephole":
        pi, pf, po = given["w_cell"]
        c_new = torch.sigmoid(f + pf * c) * c + torch.sigmoid(i + pi * c) * torch.tanh(g)
        return torch.sigmoid(o + po * c_new), c_new
    return torch.sigmoid(o), torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)


def run_direction(cell, given, x, state, reverse):
    """One layer and direction: the outputs [T, B, H], and the last h and c."""
    h, c = state
    outputs = [None] * SEQ_LEN
    for t in reversed(range(SEQ_LEN)) if reverse else range(SEQ_LEN):
        recurrent = given["mask"] * h if cell == "recurrent-dropout" else h
        o, c = gates_of(cell, given, x[t], recurrent, c)
        h = o * torch.tanh(c)
        outputs[t] = h
    return torch.stack(outputs), h, c


CELL_HIDDEN = 4
CELL_WEIGHTS = {"layernorm": (10, CELL_HIDDEN), "peephole": (3, CELL_HIDDEN)}


def make_cell(cell):
    """Two layers in both directions, f64."""
    torch.manual_seed(sum(map(ord, cell)))
    layers, directions, hidden, real = 2, 2, CELL_HIDDEN, torch.float64
    proj = 2 if cell == "projection" else 0
    width = proj or hidden

    def draw(*shape, scale=0.8):
        return (scale * torch.randn(*shape, dtype=torch.float32)).to(real)

    inputs = {"x": draw(SEQ_LEN, BATCH, INPUT), "h0": draw(layers * directions, BATCH, width),
              "c0": draw(layers * directions, BATCH, hidden)}
    outer = {"dy": draw(SEQ_LEN, BATCH, directions * width), "dhn": draw(layers * directions, BATCH, width),
             "dcn": draw(layers * directions, BATCH, hidden)}
    weights = []
    for index in range(layers * directions):
        columns = INPUT if index < directions else directions * width
        given = {"w_ih": draw(4 * hidden, columns), "w_hh": draw(4 * hidden, width),
                 "b_ih": draw(4 * hidden), "b_hh": draw(4 * hidden)}
        if proj:
            given["w_cell"] = draw(proj, hidden)
        elif cell in CELL_WEIGHTS:
            given["w_cell"] = draw(*CELL_WEIGHTS[cell], scale=0.25)
            if cell == "layernorm":
                given["w_cell"][:5] += 1
        if cell == "recurrent-dropout":
            given["mask"] = 1.25 * (torch.rand(BATCH, hidden) > 0.2).to(real)
        weights.append(given)
    for tensor in list(inputs.values()) + [t for given in weights for n, t in given.items() if n != "mask"]:
        tensor.requires_grad_()
    y, hn, cn = (run_projection if proj else run_cell)(cell, weights, inputs)
    torch.autograd.backward([y, hn, cn], list(outer.values()))

    golden = {"torch": torch.__version__, "dtype": "f64", "seq_len": SEQ_LEN, "batch": BATCH, "input": INPUT,
              "hidden": hidden, "layers": layers, "directions": directions, "cell": cell, "projection": proj}
    tensors = {**inputs, **outer, "y": y, "hn": hn, "cn": cn,
               **{"d" + name: tensor.grad for name, tensor in inputs.items()}}
    golden.update({name: flat(tensor) for name, tensor in tensors.items()})
    for name in weights[0]:
        golden[name] = [flat(given[name]) for given in weights]
        if name != "mask":
            golden["d" + name] = [flat(given[name].grad) for given in weights]
    return golden


def run_cell(cell, weights, inputs):
    """All layers and directions of a cell that is written here."""
    x, last = inputs["x"], []
    for layer in range(2):
        both = [run_direction(cell, weights[2 * layer + d], x,
                              (inputs["h0"][2 * layer + d], inputs["c0"][2 * layer + d]), d == 1) for d in range(2)]
        output = torch.cat([outputs for outputs, _, _ in both], 2)
        x = output + x if cell == "residual" and layer > 0 else output
        last += both
    return x, torch.stack([h for _, h, _ in last]), torch.stack([c for _, _, c in last])


def run_projection(_, weights, inputs):
    """nn.LSTM with proj_size, called with the given weights as its parameters."""
    lstm = torch.nn.LSTM(INPUT, CELL_HIDDEN, 2, bidirectional=True, proj_size=2).to(torch.float64)
    theirs = {"w_ih": "weight_ih", "w_hh": "weight_hh", "b_ih": "bias_ih", "b_hh": "bias_hh", "w_cell": "weight_hr"}
    parameters_of = {f"{theirs[name]}_l{index // 2}" + ("_reverse" if index % 2 else ""): tensor
                     for index, given in enumerate(weights) for name, tensor in given.items()}
    y, (hn, cn) = torch.func.functional_call(lstm, parameters_of, (inputs["x"], (inputs["h0"], inputs["c0"])))
    return y, hn, cn


def main():
    for cell in ("layernorm", "recurrent-dropout", "projection", "peephole", "residual"):
        with open(os.path.join(HERE, f"cell_{cell}.json"), "w", encoding="utf-8") as file:
            json.dump(make_cell(cell), file)
            file.write("\n")
    for dtype in DTYPES:
        for layers in (1, 2):
            for directions in (1, 2):
                path = os.path.join(HERE, f"lstm_{dtype}_L{layers}_D{directions}.json")
                with open(path, "w", encoding="utf-8") as file:
                    json.dump(make(dtype, layers, directions), file)
                    file.write("\n")


if __name__ == "__main__":
    main()
