"""Writes lstm_*.json: inputs and results of PyTorch's nn.LSTM for small random problems; and cell_*.json: of the
cells other than the standard one. projection is nn.LSTM with proj_size. PyTorch has no layer for the other
cells, so harness/api/problem.h's equations are written here a second time, with torch's operations, and
torch's automatic differentiation gives the gradients.

    python3 tests/golden/make_golden.py     with PyTorch 2

Every tensor is a flat list in C order, in the project's shapes. As in the project, PyTorch's
gate order is i, f, g, o, and element l*D + d of states and weights is layer l, direction d. Numbers
are printed so that they read back exactly. The files are committed, so the test needs no PyTorch.
"""

import json
import os

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
SEQ_LEN, BATCH, INPUT, HIDDEN = 5, 3, 5, 4
DTYPES = {"f64": torch.float64, "f32": torch.float32}
CELL_WEIGHTS = {"layernorm": (10, HIDDEN), "peephole": (3, HIDDEN)}


def flat(tensor):
    return tensor.detach().to(torch.float64).flatten().tolist()


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


def make(cell, dtype="f64", layers=2, directions=2):
    torch.manual_seed(sum(map(ord, cell)))
    real, proj = DTYPES[dtype], 2 if cell == "projection" else 0
    width, state = proj or HIDDEN, layers * directions

    def draw(*shape, scale=0.8): # of weights: larger than PyTorch's, so that gates leave their linear range
        return (scale * torch.randn(*shape, dtype=torch.float32)).to(real)

    inputs = {"x": draw(SEQ_LEN, BATCH, INPUT), "h0": draw(state, BATCH, width), "c0": draw(state, BATCH, HIDDEN)}
    outer = {"dy": draw(SEQ_LEN, BATCH, directions * width), "dhn": draw(state, BATCH, width),
             "dcn": draw(state, BATCH, HIDDEN)}
    weights = []
    for index in range(state):
        columns = INPUT if index < directions else directions * width
        given = {"w_ih": draw(4 * HIDDEN, columns), "w_hh": draw(4 * HIDDEN, width),
                 "b_ih": draw(4 * HIDDEN), "b_hh": draw(4 * HIDDEN)}
        if proj:
            given["w_cell"] = draw(proj, HIDDEN)
        elif cell in CELL_WEIGHTS:
            given["w_cell"] = draw(*CELL_WEIGHTS[cell], scale=0.25)
            if cell == "layernorm":
                given["w_cell"][:5] += 1
        if cell == "recurrent-dropout":
            given["mask"] = 1.25 * (torch.rand(BATCH, HIDDEN) > 0.2).to(real)
        weights.append(given)
    for tensor in list(inputs.values()) + [t for given in weights for n, t in given.items() if n != "mask"]:
        tensor.requires_grad_()
    run = run_lstm if cell in ("standard", "projection") else run_cell
    y, hn, cn = run(cell, weights, inputs, layers, directions)
    torch.autograd.backward([y, hn, cn], list(outer.values()))

    golden = {"torch": torch.__version__, "dtype": dtype, "seq_len": SEQ_LEN, "batch": BATCH, "input": INPUT,
              "hidden": HIDDEN, "layers": layers, "directions": directions, "cell": cell, "projection": proj}
    tensors = {**inputs, **outer, "y": y, "hn": hn, "cn": cn,
               **{"d" + name: tensor.grad for name, tensor in inputs.items()}}
    golden.update({name: flat(tensor) for name, tensor in tensors.items()})
    for name in weights[0]:
        golden[name] = [flat(given[name]) for given in weights]
        if name != "mask":
            golden["d" + name] = [flat(given[name].grad) for given in weights]
    return golden


def run_cell(cell, weights, inputs, layers, directions):
    """All layers and directions of a cell that is written here."""
    x, last = inputs["x"], []
    for layer in range(layers):
        both = [run_direction(cell, weights[e], x, (inputs["h0"][e], inputs["c0"][e]), e % directions == 1)
                for e in range(layer * directions, (layer + 1) * directions)]
        output = torch.cat([outputs for outputs, _, _ in both], 2)
        x = output + x if cell == "residual" and layer > 0 else output
        last += both
    return x, torch.stack([h for _, h, _ in last]), torch.stack([c for _, _, c in last])


def run_lstm(cell, weights, inputs, layers, directions):
    """nn.LSTM, called with the given weights as its parameters."""
    lstm = torch.nn.LSTM(INPUT, HIDDEN, layers, bidirectional=directions == 2,
                         proj_size=2 if cell == "projection" else 0).to(inputs["x"].dtype)
    theirs = {"w_ih": "weight_ih", "w_hh": "weight_hh", "b_ih": "bias_ih", "b_hh": "bias_hh", "w_cell": "weight_hr"}
    parameters = {f"{theirs[name]}_l{index // directions}" + ("_reverse" if index % directions else ""): tensor
                  for index, given in enumerate(weights) for name, tensor in given.items()}
    y, (hn, cn) = torch.func.functional_call(lstm, parameters, (inputs["x"], (inputs["h0"], inputs["c0"])))
    return y, hn, cn


def write(name, golden):
    with open(os.path.join(HERE, name + ".json"), "w", encoding="utf-8") as file:
        json.dump(golden, file)
        file.write("\n")


def main():
    for cell in ("layernorm", "recurrent-dropout", "projection", "peephole", "residual"):
        write("cell_" + cell, make(cell))
    for dtype in DTYPES:
        for layers in (1, 2):
            for directions in (1, 2):
                write(f"lstm_{dtype}_L{layers}_D{directions}", make("standard", dtype, layers, directions))


if __name__ == "__main__":
    main()
