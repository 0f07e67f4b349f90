"""Networks as converters of scikit-learn, LightGBM and XGBoost write them: labels, maps, trees, tables of texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

ML = "ai.onnx.ml"
COEFFICIENTS = (0.9, -0.4, 0.3, -0.8, 0.6, -0.1)  # of three classes and two features


def saved(
    path: Path,
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    *,
    weights: Mapping[str, Any] | None = None,
    opset: int = 17,
) -> Path:
    """Write a file that imports both domains."""
    held = [onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in (weights or {}).items()]
    graph = helper.make_graph(list(nodes), "network", list(inputs), list(outputs), held)
    imports = [helper.make_opsetid("", opset), helper.make_opsetid(ML, 3)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=9), path)
    return path


def tensor(name: str, kind: int, shape: Sequence[int | str | None]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, list(shape))


def maps(name: str, key: int) -> onnx.ValueInfoProto:
    """A map from class to probability for each sample."""
    kind = helper.make_map_type_proto(key, helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    return helper.make_value_info(name, helper.make_sequence_type_proto(kind))


def classifier(
    path: Path,
    *,
    labels: Sequence[int | str] = (0, 1, 2),
    keys: Sequence[int | str] | None = None,
    coefficients: Sequence[float] = COEFFICIENTS,
    zipmap: bool = True,
) -> Path:
    """A linear classifier of two features."""
    texts = isinstance(labels[0], str)
    said = {"classlabels_strings" if texts else "classlabels_ints": list(labels)}
    kind = TensorProto.STRING if texts else TensorProto.INT64
    nodes = [
        helper.make_node(
            "LinearClassifier",
            ["x"],
            ["label", "raw"],
            "linear",
            domain=ML,
            coefficients=list(coefficients),
            intercepts=[0.1, 0.0, -0.2],
            post_transform="LOGISTIC",
            **said,
        ),
        helper.make_node(
            "Normalizer", ["raw"], ["shares" if zipmap else "probabilities"], "norm", domain=ML, norm="L1"
        ),
    ]
    output = tensor("probabilities", TensorProto.FLOAT, [None, len(labels)])
    if zipmap:
        known = {"classlabels_strings" if texts else "classlabels_int64s": list(keys or labels)}
        nodes.append(helper.make_node("ZipMap", ["shares"], ["probabilities"], "zipmap", domain=ML, **known))
        output = maps("probabilities", kind)
    inputs = [tensor("x", TensorProto.FLOAT, [None, 2])]
    return saved(path, nodes, inputs, [tensor("label", kind, [None]), output])


def trees(path: Path, *, threshold: float = 300.0, weight: float = 1.0, mode: str = "BRANCH_LEQ") -> Path:
    """One tree over two features, whose thresholds lie far from where inputs are drawn by default."""
    node = helper.make_node(
        "TreeEnsembleRegressor",
        ["x"],
        ["y"],
        "trees",
        domain=ML,
        nodes_treeids=[0] * 5,
        nodes_nodeids=[0, 1, 2, 3, 4],
        nodes_featureids=[0, 1, 0, 0, 0],
        nodes_modes=[mode, "BRANCH_LEQ", "LEAF", "LEAF", "LEAF"],
        nodes_values=[threshold, -20.0, 0.0, 0.0, 0.0],
        nodes_truenodeids=[1, 3, 0, 0, 0],
        nodes_falsenodeids=[2, 4, 0, 0, 0],
        nodes_hitrates=[1.0] * 5,
        nodes_missing_value_tracks_true=[0] * 5,
        target_ids=[0, 0, 0],
        target_nodeids=[2, 3, 4],
        target_treeids=[0, 0, 0],
        target_weights=[weight, 2.0, 5.0],
        n_targets=1,
    )
    return saved(
        path, [node], [tensor("x", TensorProto.FLOAT, [None, 2])], [tensor("y", TensorProto.FLOAT, [None, 1])]
    )


def categories(path: Path, *, values: Sequence[float] = (1.0, 2.0, 4.0)) -> Path:
    """Two columns of texts, the first one looked up, the second one in one-hot code."""
    nodes = [
        helper.make_node("ArrayFeatureExtractor", ["cats", "first"], ["colour"], domain=ML),
        helper.make_node("ArrayFeatureExtractor", ["cats", "second"], ["size"], domain=ML),
        helper.make_node(
            "LabelEncoder",
            ["colour"],
            ["number"],
            "encoder",
            domain=ML,
            keys_strings=["red", "green", "blue"],
            values_floats=list(values),
        ),
        helper.make_node("OneHotEncoder", ["size"], ["hot"], "hot", domain=ML, cats_strings=["s", "m"], zeros=0),
        helper.make_node("Reshape", ["hot", "shape"], ["flat"]),
        helper.make_node("Concat", ["number", "flat"], ["y"], axis=1),
    ]
    weights = {"first": np.array([0]), "second": np.array([1]), "shape": np.array([-1, 2])}
    inputs = [tensor("cats", TensorProto.STRING, [None, 2])]
    return saved(path, nodes, inputs, [tensor("y", TensorProto.FLOAT, [None, 3])], weights=weights)


def sequence(path: Path, *, factor: float = 2.0, places: bool = True) -> Path:
    """A sequence of two tensors: of which the graph says both, or which a split without sizes makes."""
    nodes = [helper.make_node("Mul", ["x", "factor"], ["double"], "double")]
    if places:
        nodes.append(helper.make_node("SequenceConstruct", ["x", "double"], ["parts"]))
    else:
        nodes.append(helper.make_node("SplitToSequence", ["double"], ["parts"], axis=0))
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    inputs = [tensor("x", TensorProto.FLOAT, ["batch", 3])]
    weights = {"factor": np.float32(factor)}
    return saved(path, nodes, inputs, [helper.make_value_info("parts", kind)], weights=weights)


def counts(path: Path, *, vocabulary: Sequence[str] = ("a", "b", "c"), factor: float = 2.0) -> Path:
    """An input that's a map, as of a model that takes a dict of features."""
    nodes = [
        helper.make_node(
            "DictVectorizer", ["features"], ["row"], "rows", domain=ML, string_vocabulary=list(vocabulary)
        ),
        helper.make_node("Mul", ["row", "factor"], ["y"], "double"),
    ]
    kind = helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    inputs = [helper.make_value_info("features", kind)]
    outputs = [tensor("y", TensorProto.FLOAT, [None, len(vocabulary)])]
    return saved(path, nodes, inputs, outputs, weights={"factor": np.float32(factor)})
