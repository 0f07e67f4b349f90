"""Write a changed ONNX model: sizes that don't hold any more are forgotten, and what is invalid is refused."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import onnx
import onnx_ir

from conrepair.data.tensor_spec import TensorSpec
from conrepair.editors.editor import NotEditableError
from conrepair.editors.onnx_kept import carry_over
from conrepair.frameworks.onnx_files.border import Border, written_border
from conrepair.onnx_passes.files import is_large
from conrepair.onnx_passes.infer_shapes import infer_shapes
from conrepair.runtime.files import whole_output

__all__ = ["renew_types", "save", "with_sizes"]

_INVALID = (onnx.checker.ValidationError, onnx.shape_inference.InferenceError)


def save(model: onnx_ir.Model, path: Path, before: Path, border: Border, *, external: bool) -> None:
    """Write a model; what it keeps outside goes into `<name>.data` beside it.

    Args:
        model: What to write.
        path: The file.
        before: The file that the model was read from: what is held against that isn't held against a change.
        border: What that has for maps.
        external: Whether weights stay outside; those of a model that is too large for one file do in any case.

    Raises:
        NotEditableError: if a change made the model invalid.
        StorageError: if it can't be written.
    """
    outside = f"{path.name}.data" if external or is_large(model) else None
    with whole_output(path) as temporary:
        original = onnx.load(before, load_external_data=False)
        with _undeclared(model, {value.name for value in original.graph.value_info}):
            onnx_ir.save(model, temporary, external_data=outside)
        carry_over(original, temporary)
        if border.values:
            proto = onnx.load(temporary, load_external_data=False)
            written_border(proto, border)
            onnx.save(proto, temporary)
        for whole in (False, True):
            complaint = _complaint(temporary, whole=whole)
            if complaint is not None and _complaint(before, whole=whole) is None:
                raise NotEditableError(
                    f"{path.name} would be no valid ONNX model with these changes: {complaint}. Change what "
                    "else must fit these types and sizes too, or leave this change out."
                )
        data = temporary.parent / str(outside)
        if outside is not None and data.exists():  # small weights stay inside
            data.replace(path.parent / outside)


@contextlib.contextmanager
def _undeclared(model: onnx_ir.Model, declared: Collection[str]) -> Iterator[None]:
    """Without the types of constants that the file didn't declare: a small one would grow by a tenth."""
    values = [
        value
        for graph in model.graphs()
        for value in graph.initializers.values()
        if value.name not in declared and not value.is_graph_input() and not value.is_graph_output()
    ]
    known = [(value, value.type, value.shape) for value in values]
    for value in values:
        value.type = value.shape = None
    try:
        yield
    finally:
        for value, type_, shape in known:
            value.type, value.shape = type_, shape


def renew_types(model: onnx_ir.Model) -> None:
    """Bring the types and sizes that a file says about its values up to date, in place.

    An output keeps what is declared as long as that isn't wrong: it may say more than inference finds.
    """
    described = model.clone()
    for node in described.graph:
        for value in node.outputs:
            value.shape = None
            value.type = None if not node.domain else value.type
    infer_shapes(described)
    found = onnx_ir.convenience.create_value_mapping(described.graph)
    for node in model.graph:
        for value in node.outputs:
            if value.is_graph_output():
                _declare(value, found[str(value.name)])
            elif value.name and (value.type is not None or value.shape is not None):
                value.type = found[value.name].type or value.type
                value.shape = found[value.name].shape


def with_sizes(model: onnx_ir.Model, inputs: Sequence[TensorSpec]) -> onnx_ir.Model:
    """A copy for inputs of some sizes, without what the file says about values behind them."""
    sized, shapes = model.clone(), {spec.name: spec.shape for spec in inputs}
    for value in sized.graph.inputs:
        if value.name in shapes:
            value.shape = onnx_ir.Shape(shapes[value.name])
    for node in sized.graph:
        for value in node.outputs:
            value.shape = None
    return sized


def _declare(value: onnx_ir.Value, found: onnx_ir.Value) -> None:
    value.type = found.type or value.type
    if found.shape is not None and (value.shape is None or not _agree(value.shape, found.shape)):
        value.shape = found.shape


def _agree(declared: onnx_ir.Shape, found: onnx_ir.Shape) -> bool:
    pairs = zip(declared, found, strict=False)
    return len(declared) == len(found) and not any(
        isinstance(one, int) and isinstance(two, int) and one != two for one, two in pairs
    )


def _complaint(path: Path, *, whole: bool) -> str | None:
    """What ONNX's checker says against a file; None for nothing."""
    try:
        onnx.checker.check_model(str(path), full_check=whole)
    except _INVALID as error:
        return str(error).strip()
    return None
