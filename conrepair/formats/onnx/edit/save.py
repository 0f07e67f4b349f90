"""Write a changed ONNX model: sizes that don't hold any more are forgotten, and what is invalid is refused."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import onnx
import onnx_ir

from conrepair.formats.editing.editor import NotEditableError
from conrepair.formats.onnx.load.border import Border, written_border
from conrepair.formats.onnx.load.light import read_light
from conrepair.formats.onnx.load.proto_file import inner_graphs
from conrepair.formats.onnx.passes.files import is_large
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.onnx_graphs.infer_shapes import infer_shapes
from conrepair.ground.runtime.files.outputs import place_in
from conrepair.ground.runtime.files.whole import whole_output

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
        _write(model, temporary, before, border, outside)
        _check(temporary, path.name, before)
        data = temporary.parent / str(outside)
        if outside is not None and data.exists():  # small weights stay inside
            data.replace(path.parent / outside)


def save_beside(model: onnx_ir.Model, path: Path, before: Path, border: Border) -> None:
    """Write a model without the weights that are external: they stay where they are.

    Args:
        model: As for `save`.
        path: As for `save`.
        before: As for `save`.
        border: As for `save`.

    Raises:
        NotEditableError: if a change made the model invalid.
        StorageError: if it can't be written.
    """
    with whole_output(path) as temporary:
        _write(model, temporary, before, border, None)
        with tempfile.TemporaryDirectory(dir=temporary.parent) as room:
            names = {str(tensor.location) for tensor in _weights(model) if isinstance(tensor, onnx_ir.ExternalTensor)}
            for name in names:  # ONNX's checker wants them beside the model, and doesn't read them
                stand_in = place_in(Path(room), name)
                stand_in.parent.mkdir(parents=True, exist_ok=True)
                with stand_in.open("xb") as file:
                    file.truncate((before.parent / name).stat().st_size)
            other = max(names, key=len, default="").replace("/", "-") + path.suffix  # which none of them has
            shutil.copyfile(temporary, Path(room) / other)
            _check(Path(room) / other, path.name, before)


def _weights(model: onnx_ir.Model) -> Iterator[onnx_ir.TensorProtocol | None]:
    for graph in model.graphs():
        yield from (value.const_value for value in graph.initializers.values())


def _write(model: onnx_ir.Model, path: Path, before: Path, border: Border, outside: str | None) -> None:
    """Write a model with all that its file had; external weights go to `outside` if that's given."""
    original, _ = read_light(before)
    with _undeclared(model, {value.name for value in original.graph.value_info}):
        onnx_ir.save(model, path, external_data=outside)
    _carry_over(original, path)
    if border.values:
        proto = onnx.load(path, load_external_data=False)
        written_border(proto, border)
        onnx.save(proto, path)


def _check(path: Path, name: str, before: Path) -> None:
    """Refuse a written model that is invalid where the one before isn't.

    Raises:
        NotEditableError: with what ONNX says.
    """
    for whole in (False, True):
        complaint = _complaint(path, whole=whole)
        if complaint is not None and _complaint(before, whole=whole) is None:
            raise NotEditableError(
                f"{name} would be no valid ONNX model with these changes: {complaint}. Change what "
                "else must fit these types and sizes too, or leave this change out."
            )


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


# What an ONNX file holds and the library that it's changed with doesn't: put back where it's written.


_OF_MODEL = ("training_info", "configuration")
_OF_TENSOR = ("doc_string", "metadata_props")
_SAID = "metadata_props"
_LONG = "ai.onnx"  # the default domain, by its other name


def _carry_over(original: onnx.ModelProto, path: Path) -> None:
    """Give a written file what onnx_ir left out of it, wrote twice, or in another order, in place.

    It reads no training information, no sparse constants and no configurations of devices; of tensors whose numbers
    were changed what's said about them is gone, and of all others it's there twice; what's said by key is sorted, and
    the default domain has its short name.

    Args:
        original: The model as it was read, without its external data.
        path: Of the written file.
    """
    if not _has_more(original):
        return
    model = onnx.load(path, load_external_data=False)
    for field in _OF_MODEL:
        _put(original, model, field)
    _put(original.graph, model.graph, "sparse_initializer")
    if _opsets(original) == _opsets(model):
        _put(original, model, "opset_import")
    said = {tensor.name: tensor for tensor in _tensors(original.graph)}
    for tensor in _tensors(model.graph):
        if tensor.name in said:
            for field in _OF_TENSOR:
                _put(said[tensor.name], tensor, field)
    before = dict(_parts(original))
    for place, part in _parts(model):
        if place in before:
            _restore(before[place], part)
    onnx.save(model, path)


def _has_more(model: onnx.ModelProto) -> bool:
    return bool(
        any(getattr(model, field) for field in _OF_MODEL)
        or model.graph.sparse_initializer
        or any(getattr(tensor, field) for tensor in _tensors(model.graph) for field in _OF_TENSOR)
        or any(len(_props(part)) > 1 for _, part in _parts(model))
        or any(_domain(part) == _LONG for part in (*model.opset_import, *(node for _, node in _parts(model))))
    )


def _parts(model: onnx.ModelProto) -> Iterator[tuple[tuple[str, ...], Any]]:
    """All that something can be said about by key, each with what it's told by."""
    yield ("model",), model
    yield from _of_graph(model.graph, ())
    for function in model.functions:
        place = (function.domain, function.name, function.overload)
        yield place, function
        yield from _of_nodes(function.node, place)


def _of_graph(graph: onnx.GraphProto, place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield (*place, "graph"), graph
    for field in ("input", "output", "value_info"):
        yield from (((*place, field, value.name), value) for value in getattr(graph, field))
    yield from _of_nodes(graph.node, place)


def _of_nodes(nodes: Iterable[onnx.NodeProto], place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for node in nodes:
        own = (*place, *node.output)
        yield own, node
        for attribute in node.attribute:
            for number, graph in enumerate((attribute.g, *attribute.graphs)):
                yield from _of_graph(graph, (*own, attribute.name, str(number)))


def _props(part: Any) -> list[tuple[str, str]]:
    return [(item.key, item.value) for item in getattr(part, _SAID, ())]


def _opsets(model: onnx.ModelProto) -> list[tuple[str, int]]:
    return sorted(("" if item.domain == _LONG else item.domain, item.version) for item in model.opset_import)


def _domain(part: Any) -> str:
    return str(part.domain) if isinstance(part, onnx.NodeProto | onnx.OperatorSetIdProto) else ""


def _restore(one: Any, two: Any) -> None:
    """Let what's said about a part be in the first one's order, and the default domain have its name."""
    if _props(one) != _props(two) and sorted(_props(one)) == sorted(_props(two)):
        _put(one, two, _SAID)
    if _domain(one) == _LONG and not _domain(two):
        two.domain = _LONG


def _put(one: Any, two: Any, field: str) -> None:
    """Let a field of the second message be as the first has it."""
    two.ClearField(field)
    value = getattr(one, field)
    if isinstance(value, str):
        if one.HasField(field):
            setattr(two, field, value)
    else:
        getattr(two, field).extend(value)


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """A graph's constants, those of the graphs in its nodes too."""
    yield from graph.initializer
    for node in graph.node:
        for inner in inner_graphs(node):
            yield from _tensors(inner)
