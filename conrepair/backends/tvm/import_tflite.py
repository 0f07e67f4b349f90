"""TFLite to Relax by TVM's own importer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from conrepair.backends.tvm.imported import Imported, import_error
from conrepair.data.tensor_spec import TensorSpec
from conrepair.frameworks.model import Model

__all__ = ["import_tflite"]


def import_tflite(model: Model, batch: int) -> Imported:
    """Import a file, in the shapes that it has.

    The importer takes sizes from every tensor of the file, so another batch than the file's would contradict them.

    Args:
        model: A TFLite model.
        batch: Not used.

    Raises:
        ConversionError: if the importer can't take it; names the operator.
        ModelLoadError: if the file can't be read.
    """
    import tflite
    from tvm.relax.frontend.tflite import from_tflite

    from conrepair.backends.tvm.tflite_operators import operator_converter
    from conrepair.frameworks.tflite import TfliteRunnable

    runnable = TfliteRunnable(model)
    content = tflite.Model.GetRootAsModel(Path(model.path).read_bytes(), 0)
    try:
        module = from_tflite(content, op_converter=operator_converter())
    # The importer raises AssertionError, KeyError, TVM's own and more.
    except Exception as error:
        raise import_error("TFLite", model.path, error) from error
    graph = content.Subgraphs(0)
    inputs = _in_order(graph, graph.InputsAsNumpy(), runnable.tensor_names, runnable.inputs)
    outputs = _in_order(graph, graph.OutputsAsNumpy(), runnable.tensor_names, runnable.outputs)
    return Imported(module, "relax.frontend.tflite", inputs, outputs)


def _in_order(
    graph: Any, indices: Any, names: dict[str, str], specs: tuple[TensorSpec, ...]
) -> tuple[TensorSpec, ...]:
    """The specs in the order of the graph, with the shapes of its tensors."""
    known = {spec.name: spec for spec in specs}
    tensors = [graph.Tensors(int(index)) for index in indices]
    return tuple(
        replace(known[names[tensor.Name().decode()]], shape=tuple(map(int, tensor.ShapeAsNumpy())))
        for tensor in tensors
    )
