"""A gate and what it gates with each other's weights: named as that, and repaired by who reads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx_networks import drawn, written

from conrepair.data.feeds import DataReference
from conrepair.evaluate.verdict import Verdict
from conrepair.frameworks.model import Model
from conrepair.frameworks.registry import framework
from conrepair.graph.kinds import Kind
from conrepair.localization.fed_model import FedModel
from conrepair.localization.options import Options
from conrepair.repairs.options import RepairOptions
from conrepair.repairs.repair import repair_models
from conrepair.repairs.result import RepairResult
from conrepair.runtime.files import sha256_of

WIDTH = 12
OPTIONS = RepairOptions(Options(samples=4, batch_size=2), seconds=60, unseen=4)
BLOCK = """[norm{n}] n{n} = LayerNormalization (t{n}, scale{n}, shift{n})
    [gate{n}] g{n} = MatMul (n{n}, gate{n}) [up{n}] u{n} = MatMul (n{n}, up{n})
    [sigmoid{n}] s{n} = Sigmoid (g{n}) [silu{n}] a{n} = Mul (g{n}, s{n}) [gated{n}] m{n} = Mul (a{n}, u{n})
    [down{n}] d{n} = MatMul (m{n}, down{n}) [add{n}] t{m} = Add (t{n}, d{n})"""


def network(path: Path, *, exchanged: bool) -> Path:
    """Two blocks, as Llama's perceptrons; in the second one weights may be exchanged."""
    weights = {}
    for place in range(2):
        shapes = {"gate": (WIDTH, 24), "up": (WIDTH, 24), "down": (24, WIDTH), "scale": (WIDTH,), "shift": (WIDTH,)}
        for seed, (name, shape) in enumerate(shapes.items()):
            weights[f"{name}{place}"] = drawn(*shape, seed=10 * place + seed, scale=0.5)
    if exchanged:
        weights["gate1"], weights["up1"] = weights["up1"], weights["gate1"]
    blocks = " ".join(BLOCK.format(n=place, m=place + 1) for place in range(2))
    sizes = f"float[batch, 5, {WIDTH}]"
    text = f"small ({sizes} x) => ({sizes} y) {{ [in] t0 = Tanh (x) {blocks} [out] y = Tanh (t2) }}"
    return written(path, text, weights, opset=20)


def repaired(folder: Path, *, exchanged: bool) -> RepairResult:
    rows = drawn(8, 5, WIDTH, seed=7, scale=1)
    np.savez(folder / "data.npz", x=rows)
    data = DataReference("tensors", len(rows), str(folder / "data.npz"), sha256_of(folder / "data.npz"))
    subjects = []
    for name, wrong in (("source", False), ("target", exchanged)):
        path = network(folder / f"{name}.onnx", exchanged=wrong)
        model = Model("onnx", str(path), sha256_of(path))
        subjects.append(FedModel(model, framework("onnx").describe(model).inputs, data, None))
    return repair_models(subjects[0], subjects[1], folder / "out", OPTIONS)


def test_exchanged_weights_are_one_fault_and_one_edit(tmp_path: Path) -> None:
    result = repaired(tmp_path, exchanged=True)
    (fault,) = result.before.faults
    assert fault.kind is Kind.PARAMETERS
    assert {*fault.target_layers[:2]} == {"gate1", "up1"}
    assert fault.evidence[0].startswith("the weights of `gate1` and `up1` are exchanged")
    assert result.after.verdict is Verdict.EQUIVALENT
    (edit,) = result.edits
    assert edit.endswith("exchanged")


def test_right_gates_are_right(tmp_path: Path) -> None:
    assert repaired(tmp_path, exchanged=False).before.verdict is Verdict.EQUIVALENT
