"""TensorFlow: operators that no library here has registered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.python.framework import op_def_registry

from conrepair.formats.models.model import Description, Model
from conrepair.formats.models.outline import Outline, lacking
from conrepair.formats.tensorflow.load.framework import narrower_type, preferred_signature
from conrepair.formats.tensorflow.load.screened_calls import GraphCalls
from conrepair.formats.tensorflow.load.states import states_in
from conrepair.ground.data.tensor_spec import TensorSpec, shape_of


def outline(model: Model) -> Outline:
    """See `conrepair.formats.models.outline.outline`."""
    path = Path(model.path)
    weights: Counter[str] = Counter()
    producer = ""
    states: tuple[str, ...] = ()
    inputs: tuple[TensorSpec, ...] = ()
    outputs: tuple[TensorSpec, ...] = ()
    if path.is_dir():
        saved = saved_model_pb2.SavedModel.FromString((path / "saved_model.pb").read_bytes())
        content = saved.meta_graphs[0]
        graph = content.graph_def
        name = preferred_signature(list(content.signature_def)) or ""
        for signature in [content.signature_def[name]] if name else []:
            inputs = tuple(_spec(name, item) for name, item in sorted(signature.inputs.items()))
            outputs = tuple(_spec(name, item) for name, item in sorted(signature.outputs.items()))
        producer = f"tensorflow {content.meta_info_def.tensorflow_version}".strip()
    else:
        graph = tf.compat.v1.GraphDef.FromString(path.read_bytes())
    if inputs or outputs:
        calls = GraphCalls(graph)
        reached = calls.reached(calls.of_signatures([content.signature_def[name]]))
        nodes = list(reached.values())
        states = states_in(graph, [node for (function, _), node in reached.items() if not function])
    else:
        nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
    if path.is_dir():
        weights = _handles(nodes) or _variables(path)
    if not nodes:
        raise ValueError("it has no operators")
    own = {function.signature.name for function in graph.library.function}
    unknown = [node.op for node in nodes if node.op not in own and op_def_registry.get(node.op) is None]
    words = "the operators {} aren't TensorFlow's, and their library isn't here; save the model without them"
    description = Description.counted(
        (node.op for node in nodes),
        weights,
        format="SavedModel" if path.is_dir() else "frozen graph",
        inputs=inputs,
        outputs=outputs,
        computes=narrower_type(nodes) if set(weights) == {"float32"} else "",
        states=states,
        producer=producer,
    )
    return Outline(description, lacking(unknown, words))


def _handles(nodes: Sequence[Any]) -> Counter[str]:
    """Numbers in the variables that some nodes make handles of, by dtype."""
    found: Counter[str] = Counter()
    for node in nodes:
        if node.op == "VarHandleOp":
            sizes = [dim.size for dim in node.attr["shape"].shape.dim]
            found[tf.as_dtype(node.attr["dtype"].type).name] += int(np.prod(sizes))
    return found


def _variables(path: Path) -> Counter[str]:
    """Numbers in a SavedModel's checkpoint by dtype; none where it has no variables."""
    prefix = path / "variables" / "variables"
    if not prefix.with_suffix(".index").is_file():
        return Counter()
    reader = tf.train.load_checkpoint(str(prefix))
    types = reader.get_variable_to_dtype_map()
    found: Counter[str] = Counter()
    for name, shape in reader.get_variable_to_shape_map().items():
        if types[name] != tf.string:
            found[types[name].name] += int(np.prod(shape))
    return found


def _spec(name: str, item: Any) -> TensorSpec:
    return TensorSpec(name, shape_of(dim.size for dim in item.tensor_shape.dim), tf.as_dtype(item.dtype).name)
