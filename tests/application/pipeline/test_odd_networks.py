"""Networks that no exporter writes, but chance does: outputs without rows, constant ones, numbers without axes."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import conrepair
from conrepair.verdicts.evaluate.verdict import Verdict

CASES = {
    "an output without rows": "(float[5,4] x) => (float[1,1] y, float[5,4] z) { y = ReduceSum (x) z = Relu (x) }",
    "rows of other outputs": "(float[6,4] x) => (float[3,8] y) <int64[2] s = {3, 8}> { y = Reshape (x, s) }",
    "a constant output": """(float[2,3] x) => (float[2,3] z, float[2] y) <float[2] k = {1, -2}> {
        z = Relu (x) y = Abs (k) }""",
    "a stored output": "(float[2,3] x) => (float[2,3] z, float[2] k) <float[2] k = {1, -2}> { z = Relu (x) }",
    "numbers without axes": """(float t, float[3] x) => (float y, float[3] z) {
        m = ReduceMax <keepdims = 0> (x) y = Mul (m, t) z = Relu (x) }""",
    "a divisor with axes": "(int64[7,4] x) => (int64[7,4] y) <int64[1] k = {-7}> { y = Div (x, k) }",
    "rounding that decides a size": """(float[40] x) => (float[40] z, float[?] y) {
        d = Add (x, x) t = Add (d, x) q = Sin (x) u = Asin (q) c = Greater (u, x)
        y = Compress (t, c) z = Relu (t) }""",
}


def written(text: str, path: Path) -> Path:
    graph = onnx.parser.parse_graph(f"net {text}")
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9), path)
    return path


@pytest.mark.parametrize("verb", ["compare", "localize"])
@pytest.mark.parametrize("case", CASES)
def test_a_network_is_its_own_equal(case: str, verb: str, tmp_path: Path) -> None:
    one, two = (written(CASES[case], tmp_path / f"{name}.onnx") for name in ("one", "two"))
    found = getattr(conrepair, verb)(one, two, samples=2, in_process=True)
    assert found.verdict is Verdict.EQUIVALENT, found.reason


@pytest.mark.parametrize(
    ("case", "old", "new"),
    [
        ("an output without rows", "ReduceSum", "ReduceMean"),
        ("a constant output", "Abs (k)", "Neg (k)"),
        ("a stored output", "{1, -2}", "{1, -3}"),
        ("numbers without axes", "Mul", "Add"),
    ],
)
def test_and_what_was_changed_is_found(case: str, old: str, new: str, tmp_path: Path) -> None:
    one = written(CASES[case], tmp_path / "one.onnx")
    two = written(CASES[case].replace(old, new), tmp_path / "two.onnx")
    assert conrepair.compare(one, two, samples=2, in_process=True).verdict is Verdict.FAULTY
    assert conrepair.localize(one, two, samples=2, in_process=True).verdict is Verdict.FAULTY
