"""One wrong rule in every layer: repaired in a round, and each piece by itself where rounds can't."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx_networks import drawn, written
from onnx_repairs import repaired
from rewritten_networks import CUBE, residual_blocks
from small_models import model_of

from conrepair.diagnosis.repairs import rounds
from conrepair.formats.models.registry import framework

BLOCKS = 4


def changed(path: Path, target: Path, change: Callable[[onnx.GraphProto], int]) -> tuple[Path, int]:
    proto = onnx.load(path)
    places = change(proto.graph)
    onnx.save(proto, target)
    return target, places


def other_epsilons(graph: onnx.GraphProto) -> int:
    nodes = [node for node in graph.node if node.op_type == "BatchNormalization"]
    for node in nodes:
        node.attribute.append(onnx.helper.make_attribute("epsilon", 1e-2))
    return len(nodes)


def without_biases(graph: onnx.GraphProto) -> int:
    nodes = [node for node in graph.node if node.op_type == "Conv"]
    for node in nodes:
        del node.input[2]
    return len(nodes)


def stored(graph: onnx.GraphProto, make: Callable[[np.ndarray], np.ndarray]) -> int:
    read = {node.input[1] for node in graph.node if node.op_type in {"Conv", "Gemm"}}
    for item in graph.initializer:
        if item.name in read:
            array = make(numpy_helper.to_array(item)).astype(np.float32)
            item.CopyFrom(numpy_helper.from_array(array, item.name))
    return len(read)


def in_bfloat16(graph: onnx.GraphProto) -> int:
    return stored(graph, lambda array: (array.view(np.uint32) & 0xFFFF0000).astype(np.uint32).view(np.float32))


def through_eight_bits(graph: onnx.GraphProto) -> int:
    def rounded(array: np.ndarray) -> np.ndarray:
        steps = np.abs(array.reshape(len(array), -1)).max(1).reshape(-1, *[1] * (array.ndim - 1)) / 127
        return np.round(array / steps) * steps

    return stored(graph, rounded)


@pytest.mark.parametrize("fault", [other_epsilons, without_biases, in_bfloat16, through_eight_bits])
def test_a_rule_that_is_wrong_everywhere(fault: Callable[[onnx.GraphProto], int], tmp_path: Path) -> None:
    source = residual_blocks(tmp_path / "source.onnx", BLOCKS)
    target, places = changed(source, tmp_path / "target.onnx", fault)
    result = repaired(source, target, tmp_path / "out")
    assert result.mended, (result.after.reason, result.edits)
    assert len(result.edits) == places
    assert result.tried <= places + 1  # one for all, then whether those in common pieces are needed
    assert result.model is not None
    ours, theirs = (framework("onnx").load(model) for model in (model_of("onnx", source), result.model))
    feeds = {"image": drawn(3, CUBE, CUBE, CUBE, seed=77, scale=1)}
    assert np.abs(ours.run(feeds)["y"] - theirs.run(feeds)["y"]).max() < 1e-5


def test_what_can_not_be_repaired_keeps_nobody_else_from_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proposal that no file can be made of is left out; the others of its round are not."""
    from conrepair.formats.onnx.edit.editor import OnnxEditor

    source = residual_blocks(tmp_path / "source.onnx", BLOCKS)
    target, places = changed(source, tmp_path / "target.onnx", other_epsilons)
    usual = OnnxEditor.set_attributes

    def refusing(editor: OnnxEditor, node: object, changes: dict[str, object]) -> None:
        if getattr(node, "name", "").startswith("n2") or "n2" in getattr(node, "outputs", ()):
            raise RuntimeError("this one is broken")
        usual(editor, node, changes)  # type: ignore[arg-type]

    monkeypatch.setattr(OnnxEditor, "set_attributes", refusing)
    result = repaired(source, target, tmp_path / "out")
    attributes = [text for text in result.edits if "epsilon" in text]
    assert len(attributes) == places - 1


GELU = {
    "Erf": "[root{0}] r{0} = Mul (u{0}, root) [act{0}] a{0} = Erf (r{0})",
    "Tanh": """
        [square{0}] s{0} = Mul (u{0}, u{0}) [cube{0}] c{0} = Mul (s{0}, u{0}) [few{0}] f{0} = Mul (c{0}, few)
        [both{0}] t{0} = Add (u{0}, f{0}) [root{0}] r{0} = Mul (t{0}, other) [act{0}] a{0} = Tanh (r{0})
    """,
}


def gelus(path: Path, function: str, *, bias: float = 0.0) -> Path:
    """Layers with GELU between them, exact or by tanh; the first one's bias may be another."""
    lines, weights, value = [], dict[str, np.ndarray](), "image"
    for place in range(BLOCKS):
        lines += [
            f"[in{place}] h{place} = MatMul ({value}, w{place}) [bias{place}] u{place} = Add (h{place}, b{place})"
        ]
        lines += [GELU[function].replace("{0}", str(place)), f"[one{place}] g{place} = Add (a{place}, one)"]
        lines += [f"[gated{place}] x{place} = Mul (g{place}, u{place})"]
        weights |= {f"w{place}": drawn(12, 12, seed=place) / 3, f"b{place}": drawn(12, seed=9 + place)}
        value = f"x{place}"
    numbers = {"root": 0.5**0.5, "one": 1, "few": 0.044715, "other": (2 / np.pi) ** 0.5}
    weights |= {name: np.array(number, np.float32) for name, number in numbers.items()}
    weights["b0"] = weights["b0"] + np.float32(bias)
    text = "\n".join([*lines, f"y = MatMul ({value}, w0)"])
    return written(path, f"small (float[batch, 12] image) => (float[batch, 12] y) {{{text}}}", weights)


def test_what_no_change_helps_is_written_anew_together(tmp_path: Path) -> None:
    result = repaired(gelus(tmp_path / "s.onnx", "Erf"), gelus(tmp_path / "t.onnx", "Tanh"), tmp_path / "out")
    assert result.mended, (result.after.reason, result.edits)
    assert len(result.edits) == BLOCKS
    assert all("computed anew, by Mul, Erf" in words for words in result.edits), result.edits
    assert result.after.output_error < 1e-6


def test_rounds_that_fix_nothing_are_followed_by_writing_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by looking at all the proposals for each of the pieces."""
    monkeypatch.setattr(rounds, "_IDLE", 0.1)  # no piece is out of proposals then
    result = repaired(gelus(tmp_path / "s.onnx", "Erf"), gelus(tmp_path / "t.onnx", "Tanh"), tmp_path / "out")
    assert result.mended, (result.after.reason, result.edits)
    assert len(result.edits) == BLOCKS
    assert result.tried <= 4 + 2 * BLOCKS


def test_what_a_change_helps_is_not_written_anew_with_the_others(tmp_path: Path) -> None:
    source, target = gelus(tmp_path / "s.onnx", "Erf"), gelus(tmp_path / "t.onnx", "Tanh", bias=0.5)
    result = repaired(source, target, tmp_path / "out")
    assert result.mended, (result.after.reason, result.edits)
    assert len(result.edits) == BLOCKS + 1
    assert any("bias" in words or "b0" in words for words in result.edits), result.edits
