"""No verb says what another denies: of outputs of mixed sizes, of exchanged axes, and of right ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import conrepair
from conrepair.verdicts.evaluate.verdict import Verdict

NETWORK = """
<ir_version: 8, opset_import: ["" : 13]>
g (float[N, 8] x) => (float[N, 3, 8] y)
<float[8, 16] first, float[16, 24] second, int64[3] sizes = {-1, 3, 8}>
{
    h = MatMul (x, first)
    a = Tanh (h)
    m = MatMul (a, second)
    y = Reshape (m, sizes)
}
"""
EXCHANGED = """    r = Reshape (m, sizes)
    y = Transpose <perm = [0, 2, 1]> (r)"""
FLAT = "    y = Identity (m)"
FLATTENED = """    r = Reshape (m, sizes)
    y = Flatten (r)"""
MOVED = {
    EXCHANGED: "Transpose `y` is in the target, and not in the source: ",
    FLAT: "Reshape `y` is in the source, and not in the target: ",
    FLATTENED: "Reshape `y` is in the target, and not in the source: ",
}
"""What localization names where an output is moved, or isn't any more."""
AS_IT_IS = "    y = Reshape (m, sizes)"


def saved(
    path: Path, *, end: str = AS_IT_IS, shape: str = "3, 8", wrong: float = 1.0, reordered: bool = False
) -> Path:
    """Columns of 1e6 beside columns of 1; hidden units in another order give other roundings."""
    generator = np.random.default_rng(0)
    first, second = generator.normal(size=(8, 16)), generator.normal(size=(16, 3, 8))
    second[..., 0] *= 1e6
    second[..., 5] *= wrong
    order = generator.permutation(16) if reordered else np.arange(16)
    model = parser.parse_model(NETWORK.replace(AS_IT_IS, end).replace("[N, 3, 8] y", f"[N, {shape}] y"))
    for name, array in (("first", first[:, order]), ("second", second[order].reshape(16, 24))):
        model.graph.initializer.append(numpy_helper.from_array(array.astype(np.float32), name))
    onnx.save(model, path)
    return path


@pytest.mark.parametrize(
    ("target", "right", "words"),
    [
        ({}, True, ""),
        ({"reordered": True}, True, ""),
        ({"wrong": 1.02}, False, "column 5 of `y` differs by 2.0e-02 of its own size"),
        ({"end": EXCHANGED, "shape": "8, 3"}, False, "its axes in another order"),
        ({"end": FLAT, "shape": "24"}, False, "output `y` has 2 axes"),
        ({"end": FLATTENED, "shape": "24"}, False, "output `y` has 2 axes"),
    ],
)
def test_three_verbs_say_one_thing(tmp_path: Path, target: dict[str, str], right: bool, words: str) -> None:
    source, other = saved(tmp_path / "source.onnx"), saved(tmp_path / "target.onnx", **target)  # type: ignore[arg-type]
    compared = conrepair.compare(source, other, in_process=True)
    assert (compared.verdict.is_right, words in compared.row.reason) == (right, True)
    localized = conrepair.localize(source, other, in_process=True)
    assert localized.verdict.is_right is right
    assert bool(localized.faults) is not right
    if moved := MOVED.get(target.get("end", "")):
        assert localized.faults[0].evidence[0].startswith(moved)
    repaired = conrepair.repair(source, other, seconds=20, in_process=True)
    assert (repaired.before.verdict.is_right, bool(repaired.before.faults)) == (right, not right)


@pytest.mark.parametrize("first", [True, False])
def test_a_softmax_that_one_side_has(tmp_path: Path, first: bool) -> None:
    """Answers are the same as probabilities, and numbers that callers get aren't."""
    paths = [tmp_path / "scores.onnx", tmp_path / "probabilities.onnx"]
    for path, end in zip(paths, ("Identity", "Softmax <axis = -1>"), strict=True):
        body = f"{{ h = MatMul (x, w) y = {end} (h) }}"
        model = parser.parse_model(
            f'<ir_version: 8, opset_import: ["" : 17]> g (float[N, 8] x) => (float[N, 50] y) {body}'
        )
        weights = np.random.default_rng(0).normal(size=(8, 50)).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
        onnx.save(model, path)
    source, target = paths if first else reversed(paths)
    compared = conrepair.compare(source, target, in_process=True)
    assert f"the conversion {'added' if first else 'removed'} a softmax (as probabilities:" in compared.reason
    localized = conrepair.localize(source, target, in_process=True)
    assert (compared.verdict, localized.verdict) == (Verdict.FAULTY, Verdict.FAULTY)


PICTURES = """
<ir_version: 8, opset_import: ["" : 13]>
g (float[N, {sizes}] x) => (float[N, 4] y)
<float[6, 3, 3, 3] kernel, float[6, 4] dense>
{{
    {first}
    c = Conv <strides = [2, 2], pads = [1, 0, 1, 0]> ({given}, kernel)
    r = Relu (c)
    p = GlobalAveragePool (r)
    f = Flatten (p)
    y = MatMul (f, dense)
}}
"""


def pictures(path: Path, perm: list[int] | None = None) -> Path:
    """A small network of pictures with the channels first, or last and transposed by the network itself."""
    first = "" if perm is None else f"t = Transpose <perm = {perm}> (x)"
    sizes, given = ("3, 12, 12", "x") if perm is None else ("12, 12, 3", "t")
    model = parser.parse_model(PICTURES.format(sizes=sizes, first=first, given=given))
    generator = np.random.default_rng(0)
    for name, shape in (("kernel", (6, 3, 3, 3)), ("dense", (6, 4))):
        model.graph.initializer.append(numpy_helper.from_array(generator.normal(size=shape).astype(np.float32), name))
    onnx.save(model, path)
    return path


def test_a_layout_that_the_network_undoes(tmp_path: Path) -> None:
    """Right, with a note; a file that undoes it by a wrong permutation is faulty, and repaired with nothing left."""
    source, right = pictures(tmp_path / "source.onnx"), pictures(tmp_path / "right.onnx", [0, 3, 1, 2])
    words = "another signature: input `x` takes [12, 12, 3] a sample, the source's `x` [3, 12, 12]"
    compared = conrepair.compare(source, right, in_process=True)
    assert compared.verdict is Verdict.EQUIVALENT
    assert words in compared.row.comparison.outputs[0].notes  # type: ignore[union-attr]
    localized = conrepair.localize(source, right, in_process=True)
    assert (localized.verdict, localized.faults) == (Verdict.EQUIVALENT, ())
    assert conrepair.localize(source, right, in_process=True, strict_signature=True).verdict is Verdict.FAULTY
    wrong = pictures(tmp_path / "wrong.onnx", [0, 3, 2, 1])
    assert conrepair.compare(source, wrong, in_process=True).verdict is Verdict.FAULTY
    repaired = conrepair.repair(source, wrong, seconds=20, in_process=True)
    assert (repaired.mended, repaired.verdict) == (True, Verdict.EQUIVALENT)
    assert repaired.result is not None
    assert repaired.result.after.faults == ()
    assert repaired.model is not None
    assert [tuple(node.attribute[0].ints) for node in onnx.load(repaired.model).graph.node[:1]] == [(0, 3, 1, 2)]
