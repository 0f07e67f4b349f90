"""Load an ONNX file without its weights: those are mapped where they are, and were never on the heap."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir
from onnx_ir.external_data import set_base_dir

from conrepair.formats.onnx.load.border import Border, plain_border
from conrepair.formats.onnx.load.light import IN_ITSELF, read_light
from conrepair.formats.onnx.load.readable import as_read

_Attributes = onnx_ir.AttributeType


def load_mapped(path: Path, folder: Path | None = None) -> tuple[onnx_ir.Model, Border]:
    """Load a file; weights that it keeps outside are mapped when they're read.

    Args:
        path: Of the file.
        folder: Where those are; None: beside it.

    Returns:
        The model, whose inputs and outputs are tensors, and what they were.

    Raises:
        Exception: of a type of onnx_ir's, protobuf's, or the file system's, if it's no model.
    """
    light, mapped = read_light(path)
    light = as_read(light)
    border = plain_border(light)
    model: onnx_ir.Model = onnx_ir.from_proto(light)
    _replace_tensors(model, lambda tensor: _in_memory(tensor, mapped))
    _set_folder(model, path.parent if folder is None else folder)
    return model, border


def load_plain(path: Path) -> tuple[onnx_ir.Model, Border]:
    """Load a file to change it; sequences and narrow types stay what they are.

    Returns:
        The model, that has no maps, and what they were. The numbers of its main graph's large weights are external
        ones, those that are in the file too: `take_in` has them as tensors of their own.

    Raises:
        Exception: as above.
    """
    light, mapped = read_light(path)
    border = plain_border(light, whole=False)
    model: onnx_ir.Model = onnx_ir.from_proto(light)
    for value in model.graph.initializers.values():
        value.const_value = _in_own_file(value.const_value, path)
    _replace_tensors(model, lambda tensor: _in_memory(tensor, mapped))
    _set_folder(model, path.parent)
    return model, border


def _set_folder(model: onnx_ir.Model, folder: Path) -> None:
    """Let data outside a file be looked for in its folder, those of its own functions' constants, too."""
    for graph in (model.graph, *(function.graph for function in model.functions.values())):
        set_base_dir(graph, folder)


def unheld(tensor: Any) -> Any:
    """A tensor whose numbers are mapped as long as somebody has them: an external one keeps them as long as it is."""
    if not isinstance(tensor, onnx_ir.ExternalTensor):
        return tensor
    return _external(tensor, tensor.location, tensor.base_dir)


def _external(tensor: onnx_ir.ExternalTensor, location: Any, folder: Any = "") -> onnx_ir.ExternalTensor:
    """The same tensor, elsewhere."""
    return onnx_ir.ExternalTensor(
        location,
        tensor.offset,
        tensor.length,
        tensor.dtype,
        shape=tensor.shape,
        name=str(tensor.name),
        doc_string=tensor.doc_string,
        metadata_props=dict(tensor.metadata_props),
        base_dir=folder,
    )


def is_outside(tensor: Any, path: Path) -> bool:
    """Whether a file's weight is in another file."""
    return isinstance(tensor, onnx_ir.ExternalTensor) and tensor.location != path.name


def take_in(model: onnx_ir.Model, path: Path) -> None:
    """Let weights that are in the file that a model was loaded from be none that are external to another, in place.

    Args:
        model: From `load_plain`.
        path: Of the file.
    """
    for value in model.graph.initializers.values():
        tensor = value.const_value
        if isinstance(tensor, onnx_ir.ExternalTensor) and not is_outside(tensor, path):
            value.const_value = onnx_ir.Tensor(
                tensor.numpy(), dtype=tensor.dtype, name=tensor.name, doc_string=tensor.doc_string
            )


def _replace_tensors(model: onnx_ir.Model, change: Callable[[Any], Any]) -> None:
    """Put other tensors into a model's initializers and attributes, in place."""
    for graph in model.graphs():
        for value in graph.initializers.values():
            value.const_value = change(value.const_value)
    functions = (function.all_nodes() for function in model.functions.values())
    for node in chain(model.graph.all_nodes(), *functions):
        for name, attribute in list(node.attributes.items()):
            if attribute.type == _Attributes.TENSOR and not attribute.is_ref():
                node.attributes[name] = onnx_ir.AttrTensor(name, change(attribute.as_tensor()))
            elif attribute.type == _Attributes.TENSORS and not attribute.is_ref():
                node.attributes[name] = onnx_ir.AttrTensors(name, [*map(change, attribute.as_tensors())])


def _in_own_file(tensor: Any, path: Path) -> Any:
    """A tensor as external to its own file, for one that has its numbers there.

    Raises:
        ValueError: if there are fewer or more than its shape says.
    """
    if not isinstance(tensor, onnx_ir.ExternalTensor) or tensor.location != IN_ITSELF:
        return tensor
    if tensor.length != tensor.nbytes:
        raise ValueError(f"{tensor.name} has {tensor.length} bytes, and its shape asks for {tensor.nbytes}")
    return _external(tensor, path.name)


def _in_memory(tensor: Any, mapped: memoryview) -> Any:
    """A tensor over the mapped numbers, for one that has its numbers there.

    Raises:
        ValueError: if there are fewer or more than its shape says.
    """
    if not isinstance(tensor, onnx_ir.ExternalTensor) or tensor.location != IN_ITSELF:
        return tensor
    start, length = tensor.offset or 0, tensor.length or 0
    numbers = np.frombuffer(mapped[start : start + length], tensor.dtype.numpy()).reshape(tensor.shape.numpy())
    return onnx_ir.Tensor(numbers, dtype=tensor.dtype, name=tensor.name, doc_string=tensor.doc_string)
