"""Some nodes as a model of their own, to see what they compute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt
import onnx
import onnx_ir

__all__ = ["computing"]

_IR_VERSION = 10  # that ONNX Runtime reads


def computing(
    nodes: Iterable[onnx_ir.Node | onnx.NodeProto],
    fed: Mapping[str, npt.NDArray[np.generic]],
    wanted: Iterable[str],
    opsets: Mapping[str, int],
    constants: Mapping[str, npt.NDArray[np.generic]] | None = None,
) -> onnx.ModelProto:
    """A model of nodes.

    Args:
        nodes: In an order in which they can be run.
        fed: Arrays like those that it's going to read, by name.
        wanted: The tensors that it returns.
        opsets: By domain.
        constants: What it reads besides, and is to be a part of it.
    """
    elements = {name: onnx.helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in fed.items()}
    graph = onnx.helper.make_graph(
        [onnx_ir.to_proto(node) if isinstance(node, onnx_ir.Node) else node for node in nodes],
        "nodes",
        [onnx.helper.make_tensor_value_info(name, elements[name], array.shape) for name, array in fed.items()],
        [onnx.ValueInfoProto(name=name) for name in wanted],
        [onnx.numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )
    imports = [onnx.helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    return onnx.helper.make_model(graph, opset_imports=imports, ir_version=_IR_VERSION)
