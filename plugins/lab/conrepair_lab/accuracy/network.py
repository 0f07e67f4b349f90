"""ONNX networks with one output for each case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from conrepair.ground.operators.record import Array
from conrepair.verdicts.truth.bound import Analysis
from conrepair_lab.accuracy.operators.case import Case
from conrepair_lab.accuracy.samples import element, feed

_IR = 10


def _input_name(feed_name: str) -> str:
    """What a feed is called in the network."""
    return feed_name.replace(" ", "_")


def feeds_of(cases: Sequence[Case], dtype: str) -> dict[str, Array]:
    """The inputs of a network of measured cases."""
    return {_input_name(name): feed(name, dtype) for case in cases for name in case.feeds.values()}


def constants_of(case: Case, dtype: str) -> dict[str, Array]:
    """A case's constants as they stand in the network."""
    kind = element(dtype)
    return {
        name: array.astype(kind) if array.dtype == np.float64 else array for name, array in case.constants.items()
    }


def network(cases: Sequence[Case], outputs: Mapping[str, tuple[int, ...]], dtype: str) -> Any:
    """A model whose outputs are called like the cases.

    Args:
        cases: Which.
        outputs: Shape of each case's result, by the case's name; unknown where nothing is said.
        dtype: Element type of inputs and results.
    """
    import onnx
    from onnx import helper, numpy_helper, parser

    opset = max(case.opset for case in cases)
    nodes, constants = [], []
    for number, case in enumerate(cases):
        names = {name: _input_name(source) for name, source in case.feeds.items()} | {"y": output_name(case), "": ""}
        for name, array in constants_of(case, dtype).items():
            names[name] = f"c{number}_{name}"
            constants.append(numpy_helper.from_array(array, names[name]))
        head = f'<domain: "cases", opset_import: ["": {opset}]> case ({", ".join(case.feeds)}) => (y)'
        for place, node in enumerate(parser.parse_function(f"{head} {{ {case.body} }}").node):
            found = [
                [names.setdefault(name, f"c{number}_{name}") for name in side] for side in (node.input, node.output)
            ]
            copy = onnx.NodeProto()
            copy.CopyFrom(node)
            del copy.input[:], copy.output[:]
            copy.input.extend(found[0])
            copy.output.extend(found[1])
            copy.name = f"n{number}_{place}"
            nodes.append(copy)
    kind = helper.np_dtype_to_tensor_dtype(element(dtype))
    values = feeds_of(cases, dtype)
    graph = helper.make_graph(
        nodes,
        "accuracy",
        [helper.make_tensor_value_info(name, kind, array.shape) for name, array in values.items()],
        [helper.make_tensor_value_info(output_name(case), kind, outputs.get(case.name)) for case in cases],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=_IR)


def output_name(case: Case) -> str:
    """What a case's output is called in the network: letters, digits and underscores."""
    return "o_" + "".join(letter if letter.isalnum() else "_" for letter in case.name)


def exact(case: Case, inputs: Sequence[Array], dtype: str) -> Array:
    """The exact results of a case's nodes, in float64."""
    feeds = dict(zip(feeds_of([case], dtype), inputs, strict=True))
    found: Array = Analysis(network([case], {}, dtype)).truth(feeds)[output_name(case)]
    return found
