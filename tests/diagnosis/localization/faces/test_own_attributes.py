"""Attributes of operators that the vocabulary lacks, or has in some modes only: named in ONNX's words, and set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from localizing import localize_networks
from onnx_networks import drawn
from rewritten_networks import opened

from conrepair.diagnosis.localization.localize import Found
from conrepair.diagnosis.localization.options import Options
from conrepair.formats.models.model import Model
from conrepair.formats.onnx.edit.editor import OnnxEditor
from conrepair.ground.runtime.files.whole import sha256_of
from conrepair.verdicts.evaluate.verdict import Verdict

X, GRID = drawn(1, 3, 16, 16, seed=1), drawn(1, 9, 9, 2, seed=2, scale=0.8)
ROIS = np.array([[1, 2, 12, 13], [3.3, 4.1, 9, 11]], np.float32)


def written(path: Path, node: str, opset: int, given: dict[str, np.ndarray], feeds: dict[str, np.ndarray]) -> Path:
    inputs = ", ".join(f"float{list(array.shape)} {name}" for name, array in feeds.items())
    text = f"""<ir_version: 8, opset_import: ["": {opset}, "com.microsoft": 1, "ai.onnx.ml": 3]>
        g ({inputs}) => (float y) {{ {node} }}"""
    model = onnx.parser.parse_model(text)
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    model.graph.output[0].type.tensor_type.ClearField("shape")
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in given.items())
    onnx.save(onnx.shape_inference.infer_shapes(model), path)
    return path


def localized(folder: Path, source: Path, target: Path, feeds: dict[str, np.ndarray], **options: bool) -> Found:
    sides = opened(source, feeds), opened(target, feeds)
    return localize_networks(*sides, [(feeds, feeds)], folder / "work", Options(**options))


def repaired(target: Path, name: str, changes: dict[str, Any]) -> onnx.NodeProto:
    editor = OnnxEditor(Model("onnx", str(target), sha256_of(target)))
    [node] = [node for node in editor.graph.nodes if node.name == name]
    editor.set_attributes(node, changes)
    saved = onnx.load(editor.save(target.parent, "repaired").path)
    [found] = [node for node in saved.graph.node if node.output[0] == name]
    return found


SIZED = {"scales": np.array([1, 1, 0.6, 0.6], np.float32)}
ROI = {"rois": ROIS, "of": np.zeros(2, np.int64)}
CONV = {"w": drawn(4, 3, 3, 3, seed=3)}
CASES = {
    "antialias": ("y = Resize <mode = 'linear', antialias = 1> (c, , scales)", 18, "antialias 0", "1"),
    "exclude_outside": (
        "y = Resize <mode = 'cubic', exclude_outside = 1> (c, , scales)",
        18,
        "exclude_outside 0",
        "1",
    ),
    "align_corners": ("y = GridSample <align_corners = 1> (c, grid)", 16, "align_corners 0", "1"),
    "padding_mode": ("y = GridSample <padding_mode = 'border'> (c, grid)", 16, "padding_mode zeros", "border"),
}


@pytest.mark.parametrize("name", CASES)
def test_an_attribute_is_named_and_set(name: str, tmp_path: Path) -> None:
    line, opset, theirs, ours = CASES[name]
    line, feeds = line.replace("'", '"'), {"x": X, "grid": GRID} if "grid" in line else {"x": X}
    other = (
        line.replace(f", {name} = 1", "").replace("<align_corners = 1>", "").replace('<padding_mode = "border">', "")
    )
    given = CONV | (SIZED if "scales" in line else {})
    conv = "c = Conv <pads = [1, 1, 1, 1]> (x, w)"
    source = written(tmp_path / "s.onnx", f"{conv} {line}", opset, given, feeds)
    target = written(tmp_path / "t.onnx", f"{conv} {other}", opset, given, feeds)
    found = localized(tmp_path, source, target, feeds)
    [fault] = found.result.faults
    assert fault.words == f"`y` has {theirs} in the converted model, {ours} in the original"
    wanted: str | int = ours if ours == "border" else int(ours)
    node = repaired(target, "y", {name: wanted})
    assert next(item for item in node.attribute if item.name == name) == onnx.helper.make_attribute(name, wanted)


@pytest.mark.parametrize("opset", [15, 16])
def test_what_an_older_opset_has_no_word_for(opset: int, tmp_path: Path) -> None:
    line = "y = RoiAlign <output_height = 3, output_width = 3, sampling_ratio = 2MODE> (x, rois, of)"
    mode = ', coordinate_transformation_mode = "output_half_pixel"' if opset == 16 else ""
    feeds = {"x": X}
    source = written(tmp_path / "s.onnx", line.replace("MODE", ""), 16, ROI, feeds)
    target = written(tmp_path / "t.onnx", line.replace("MODE", mode), opset, ROI, feeds)
    [fault] = localized(tmp_path, source, target, feeds).result.faults
    wanted = "coordinate_transformation_mode output_half_pixel in the converted model, half_pixel in the original"
    assert fault.words == f"`y` has {wanted}"
    repaired(target, "y", {"coordinate_transformation_mode": "half_pixel"})
    again = localized(tmp_path, source, tmp_path / "repaired.onnx", feeds)
    assert again.result.verdict is Verdict.EQUIVALENT


def test_an_opset_isnt_raised_where_another_operator_would_mean_something_else(tmp_path: Path) -> None:
    text = "<ir_version: 8, opset_import: ['': 12]> g (float[1, 3, 16, 16] x) => (float[2, 3, 3, 3] y)"
    body = "{ s = Softmax <axis = 1> (x) y = RoiAlign <output_height = 3, output_width = 3> (s, rois, of) }"
    model = onnx.parser.parse_model(text.replace("'", '"') + body)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in ROI.items())
    onnx.save(model, tmp_path / "t.onnx")
    with pytest.raises(Exception, match="no coordinate_transformation_mode in opset 12"):
        repaired(tmp_path / "t.onnx", "y", {"coordinate_transformation_mode": "half_pixel"})


def test_attributes_that_another_opset_has_as_inputs_are_the_same(tmp_path: Path) -> None:
    feeds = {"x": drawn(2, 6, 5, seed=4)}
    older = written(tmp_path / "s.onnx", "y = ReduceL1 <axes = [-2]> (x)", 13, {}, feeds)
    newer = written(tmp_path / "t.onnx", "y = ReduceL1 (x, axes)", 18, {"axes": np.array([1])}, feeds)
    [one], [two] = (opened(path, feeds).graph.nodes for path in (older, newer))
    assert (one.attributes["axes"], two.attributes["axes"]) == ((1,), (1,))
    assert localized(tmp_path, older, newer, feeds).result.verdict is Verdict.EQUIVALENT


def test_a_scale_that_only_one_side_gives(tmp_path: Path) -> None:
    feeds = {name: drawn(1, 6, 8, seed=seed) for seed, name in enumerate("qkv")}
    line = "y = Attention <q_num_heads = 2, kv_num_heads = 2> (q, k, v)"
    source = written(tmp_path / "s.onnx", line, 23, {}, feeds)
    target = written(tmp_path / "t.onnx", line.replace("= 2>", "= 2, scale = 0.1>"), 23, {}, feeds)
    [fault] = localized(tmp_path, source, target, feeds).result.faults
    assert fault.words == "`y` has scale 0.1 in the converted model, not given in the original"
    assert all(item.name != "scale" for item in repaired(target, "y", {"scale": None}).attribute)


def suppressing(path: Path, threshold: float | None) -> Path:
    given = {"most": np.array([2]), "threshold": np.array([threshold or 0.0], np.float32)}
    line = f"n = NonMaxSuppression (b, s, most{'' if threshold is None else ', threshold'}) y = Cast <to = 1> (n)"
    return written(path, line, 17, given, BOXES)


CORNERS = np.sort(np.random.default_rng(6).uniform(0, 1, (1, 2, 40, 2)), axis=1)
BOXES = {
    "b": np.concatenate([CORNERS[:, 0], CORNERS[:, 1]], axis=-1).astype(np.float32),
    "s": np.linspace(1, 0.5, 40, dtype=np.float32).reshape(1, 1, 40),
}


@pytest.mark.parametrize(
    ("ours", "theirs", "wanted"),
    [
        (0.9, 0.001, "the iou_threshold (threshold) of `n` is 0.001 in the converted model, 0.9 in the original"),
        (0.9, None, "only the original has an iou_threshold (threshold) of 0.9 at `n`"),
        (None, 0.9, "only the converted model has an iou_threshold (threshold) of 0.9 at `n`"),
    ],
)
def test_a_threshold(ours: float | None, theirs: float | None, wanted: str, tmp_path: Path) -> None:
    source, target = suppressing(tmp_path / "s.onnx", ours), suppressing(tmp_path / "t.onnx", theirs)
    [fault] = localized(tmp_path, source, target, BOXES).result.faults
    assert fault.words == wanted
    repaired(target, "n", {"iou_threshold": ours})
    again = localized(tmp_path, source, tmp_path / "repaired.onnx", BOXES)
    assert again.result.verdict is Verdict.EQUIVALENT


def trees(path: Path, values: list[float], modes: list[str]) -> Path:
    node = onnx.helper.make_node(
        "TreeEnsembleRegressor",
        ["x"],
        ["y"],
        "trees",
        domain="ai.onnx.ml",
        n_targets=1,
        nodes_treeids=[0] * 5,
        nodes_nodeids=[*range(5)],
        nodes_featureids=[0, 1, 0, 0, 0],
        nodes_values=[*values, 0.0, 0.0, 0.0],
        nodes_modes=[*modes, *["LEAF"] * 3],
        nodes_truenodeids=[1, 2, 0, 0, 0],
        nodes_falsenodeids=[4, 3, 0, 0, 0],
        target_treeids=[0] * 3,
        target_nodeids=[2, 3, 4],
        target_ids=[0] * 3,
        target_weights=[1.0, 2.0, 3.0],
    )
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph([node], "g", [info("x", 1, [64, 4])], [info("y", 1, [64, 1])])
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("ai.onnx.ml", 3)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


TREES = {
    "a threshold that inputs cross": ([0.1, 0.7], ["BRANCH_LEQ", "BRANCH_LEQ"], "nodes_values[1] 0.7", "0.2", True),
    "one beyond all of them": ([9.0, 0.2], ["BRANCH_LEQ", "BRANCH_LEQ"], "nodes_values[0] 9", "8", False),
    "a mode that inputs show": (
        [0.1, 0.2],
        ["BRANCH_LEQ", "BRANCH_GT"],
        "nodes_modes[1] BRANCH_GT",
        "BRANCH_LEQ",
        True,
    ),
    "one that none does": ([0.1, 0.2], ["BRANCH_LT", "BRANCH_LEQ"], "nodes_modes[0] BRANCH_LT", "BRANCH_LEQ", False),
}


@pytest.mark.parametrize("name", TREES)
def test_trees(name: str, tmp_path: Path) -> None:
    values, modes, theirs, ours, shown = TREES[name]
    before = [8.0 if values[0] > 1 else 0.1, 0.2]
    source = trees(tmp_path / "s.onnx", before, ["BRANCH_LEQ"] * 2)
    feeds = {"x": drawn(64, 4, seed=5)}
    found = localized(tmp_path, source, trees(tmp_path / "t.onnx", values, modes), feeds).result
    [fault] = found.faults if shown else found.latent
    assert fault.words == f"`trees` has {theirs} in the converted model, {ours} in the original"
    assert (found.verdict is Verdict.FAULTY) == shown
    counted = localized(tmp_path, source, tmp_path / "t.onnx", feeds, latent_counts=True).result
    assert counted.verdict is Verdict.FAULTY
