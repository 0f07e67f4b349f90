"""Values that only drawn inputs of an unusual sort bring: `compare` of small networks, right ones and wrong ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import numpy_helper

import conrepair

POOLED = """<ir_version: 8, opset_import: ["" : 17]>
net (int64[n, 8] ids, int64[n, 8] mask) => (float[n, 4] y) {{
    words = Gather (table, ids)
    seen = Cast <to = 1> (mask)
    {used}
    column = Unsqueeze (used, last)
    kept = Mul (words, column)
    sum = ReduceSum <keepdims = 0> (kept, first)
    count = ReduceSum <keepdims = 1> (seen, first)
    {guard}
    y = Div (sum, guarded)
}}"""
FEATURES = """<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]>
net ({type}[n, 4] x{more}) => (float[n, 4] y) {{ {body} }}"""
NORM = "norm = ReduceL2 <axes = [1], keepdims = 1> (x) "
TREE = (
    "t = ai.onnx.ml.TreeEnsembleRegressor <n_targets = 1, nodes_treeids = [0, 0, 0], nodes_nodeids = [0, 1, 2], "
    'nodes_featureids = [1, 0, 0], nodes_values = [0.3, 0.0, 0.0], nodes_modes = ["{}", "LEAF", "LEAF"], '
    "nodes_truenodeids = [1, 0, 0], nodes_falsenodeids = [2, 0, 0], target_treeids = [0, 0], "
    "target_nodeids = [1, 2], target_ids = [0, 0], target_weights = [1.0, 2.0]> (x) y = Mul (t, ones)"
)
LOOKED_UP = (
    "u = ai.onnx.ml.LabelEncoder <keys_int64s = [3, 7, 19], values_floats = [1.0, 2.0, {}], default_float = 0.0> (x) "
    "y = Identity (u)"
)
PICTURES = """<ir_version: 8, opset_import: ["" : 17]>
net (float[n, 3, h, w] x) => (float[n, 3, oh, ow] y) {{
    y = MaxPool <kernel_shape = [2, 2], strides = [2, 2], auto_pad = "{}"> (x)
}}"""


def pooled(*, lengths: bool = False, guard: str = "Max (count, one)") -> str:
    used = "used = Identity (seen)"
    if lengths:
        used = (
            "long = ReduceSum <keepdims = 1> (seen, first) below = Less (places, long) used = Cast <to = 1> (below)"
        )
    return POOLED.format(used=used, guard=f"guarded = {guard}")


def features(body: str, kind: str = "float", more: str = "") -> str:
    return FEATURES.format(type=kind, body=body, more=more)


def file(path: Path, text: str) -> Path:
    model = onnx.parser.parse_model(text)
    arrays: dict[str, npt.NDArray[np.generic]] = {
        "table": np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32),
        "last": np.array([-1]),
        "first": np.array([1]),
        "places": np.arange(8, dtype=np.float32)[None],
        "one": np.array(1, np.float32),
        "ones": np.ones(4, np.float32),
        "zero": np.array(0, np.float32),
        "half": np.array(0.5, np.float32),
        "three": np.array(3, np.float32),
        "tiny": np.array(1e-12, np.float32),
    }
    read = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(
        numpy_helper.from_array(arrays[name], name) for name in sorted(read & arrays.keys())
    )
    onnx.save(model, path)
    return path


def verdict(folder: Path, one: str, other: str) -> str:
    found = conrepair.compare(file(folder / "a.onnx", one), file(folder / "b.onnx", other), in_process=True)
    return str(found.verdict)


GUARDED = features(NORM + "none = Equal (norm, zero) safe = Where (none, one, norm) y = Div (x, safe)")
FLAG = "a = Relu (x) y = Where (flag, a, {})"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(pooled(), pooled(lengths=True), id="a mask made into lengths"),
        pytest.param(pooled(), pooled(guard="Identity (count)"), id="nothing to be seen"),
        pytest.param(GUARDED, features(NORM + "y = Div (x, norm)"), id="a row of zeros"),
        pytest.param(
            features("g = Greater (x, half) y = Cast <to = 1> (g)"),
            features("g = GreaterOrEqual (x, half) y = Cast <to = 1> (g)"),
            id="the very number that is compared with",
        ),
        pytest.param(features(TREE.format("BRANCH_LEQ")), features(TREE.format("BRANCH_LT")), id="a threshold"),
        pytest.param(
            features(LOOKED_UP.format(3.0), "int64"), features(LOOKED_UP.format(4.0), "int64"), id="a category"
        ),
        pytest.param(
            features(FLAG.format("half"), more=", bool[1] flag"),
            features(FLAG.format("zero"), more=", bool[1] flag"),
            id="a flag's other value",
        ),
        pytest.param(PICTURES.format("SAME_UPPER"), PICTURES.format("SAME_LOWER"), id="an odd size"),
    ],
)
def test_what_only_unusual_inputs_show(one: str, other: str, tmp_path: Path) -> None:
    assert verdict(tmp_path, one, other) == "faulty"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(pooled(), pooled(guard="Clip (count, one)"), id="the same guard"),
        pytest.param(
            GUARDED,
            features(NORM + "some = Greater (norm, zero) safe = Where (some, norm, one) y = Div (x, safe)"),
            id="a condition turned",
        ),
        pytest.param(
            features(NORM + "y = Div (x, norm)"), features(NORM + "y = Div (x, norm)"), id="no guard at all"
        ),
        pytest.param(features(TREE.format("BRANCH_LEQ")), features(TREE.format("BRANCH_LEQ")), id="a tree"),
        pytest.param(PICTURES.format("VALID"), PICTURES.format("NOTSET"), id="the same pads"),
    ],
)
def test_right_conversions_are_right_on_unusual_inputs(one: str, other: str, tmp_path: Path) -> None:
    assert verdict(tmp_path, one, other) == "equivalent"
