"""A gate and what it gates with each other's weights: named as that, and repaired by who reads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx_networks import drawn, written

from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.repairs.options import RepairOptions
from conrepair.diagnosis.repairs.repair import repair_models
from conrepair.diagnosis.repairs.result import RepairResult
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.data.feeds import DataReference
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.runtime.files.whole import sha256_of
from conrepair.verdicts.evaluate.verdict import Verdict

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
    paths = [
        network(folder / f"{name}.onnx", exchanged=exchanged and name == "target") for name in ("source", "target")
    ]
    return of_two(paths, data, folder)


def of_two(paths: list[Path], data: DataReference, folder: Path) -> RepairResult:
    models = [Model(path.suffix[1:], str(path), sha256_of(path)) for path in paths]
    subjects = [FedModel(model, framework(model.framework).describe(model).inputs, data, None) for model in models]
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


PIECES = """[query] a = MatMul (x, query) [queries] b = Add (a, query_bias) [heads_q] q = Reshape (b, heads)
    [key] c = MatMul (x, key) [keys] d = Add (c, key_bias) [heads_k] k = Reshape (d, heads)
    [value] e = MatMul (x, value) [values] f = Add (e, value_bias) [heads_v] v = Reshape (f, heads)
    [turn_q] qt = Transpose <perm = [0, 2, 1, 3]> (q) [turn_k] kt = Transpose <perm = [0, 2, 3, 1]> (k)
    [turn_v] vt = Transpose <perm = [0, 2, 1, 3]> (v) [scale] qs = Mul (qt, half) [scores] s = MatMul (qs, kt)
    [soft] p = Softmax <axis = -1> (s) [mix] m = MatMul (p, vt) [back] n = Transpose <perm = [0, 2, 1, 3]> (m)
    [flat] o = Reshape (n, merged) [out] r = MatMul (o, attention_output) [bias] z = Add (r, attention_output_bias)
    [act] y = Tanh (z)"""


def attention(folder: Path, exchanged: dict[str, str]) -> list[Path]:
    """One layer of Keras, and the same in pieces; some of them have the numbers of others."""
    import keras

    x = keras.Input((5, 8), name="x")
    layer = keras.layers.MultiHeadAttention(2, 4, name="attention")
    keras.Model(x, keras.ops.tanh(layer(x, x))).save(folder / "source.keras")
    model = keras.saving.load_model(folder / "source.keras")
    layer, numbers = model.get_layer("attention"), {}
    for name in ("query", "key", "value", "attention_output"):
        for part, end in (("kernel", ""), ("bias", "_bias")):
            held = getattr(getattr(layer, f"_{name.removeprefix('attention_')}_dense"), part)
            held.assign(drawn(*held.shape, seed=len(numbers), scale=0.6))
            numbers[f"{name}{end}"] = held.numpy().reshape((8, 8) if part == "kernel" else (8,))
    model.save(folder / "source.keras")
    numbers |= {one: numbers[two] for one, two in exchanged.items()}
    numbers |= {"heads": np.int64([0, 0, 2, 4]), "merged": np.int64([0, 0, 8]), "half": np.float32(0.5)}
    text = f"small (float[batch, 5, 8] x) => (float[batch, 5, 8] y) {{ {PIECES} }}"
    return [folder / "source.keras", written(folder / "target.onnx", text, numbers, opset=20)]


@pytest.mark.parametrize(
    ("exchanged", "named"),
    [
        ({}, set()),
        ({"query": "key", "key": "query"}, {"query", "key"}),
        (
            {"value": "query", "query": "value", "value_bias": "query_bias", "query_bias": "value_bias"},
            {"queries", "values"},
        ),
    ],
)
def test_weights_exchanged_within_the_pieces_of_a_layer(
    exchanged: dict[str, str], named: set[str], tmp_path: Path
) -> None:
    rows = drawn(8, 5, 8, seed=7, scale=1)
    np.savez(tmp_path / "data.npz", x=rows)
    data = DataReference("tensors", len(rows), str(tmp_path / "data.npz"), sha256_of(tmp_path / "data.npz"))
    result = of_two(attention(tmp_path, exchanged), data, tmp_path)
    assert {name for fault in result.before.faults for name in fault.target_layers[:2]} == named
    assert result.after.verdict is Verdict.EQUIVALENT
    for fault in result.before.faults:
        assert "are exchanged: with their results exchanged, too" in fault.evidence[0]
