"""ONNX to Relax by TVM's own importer."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir

from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.formats.onnx.load.proto_file import ONNX_DOMAIN, opset_of
from conrepair.formats.onnx.load.readable import as_read
from conrepair.formats.tvm.calls import ModelOperator
from conrepair.formats.tvm.imported import Imported, definite, import_error
from conrepair.formats.tvm.naming import named
from conrepair.formats.tvm.options import TvmOptions
from conrepair.ground.data.symbolic_sizes import with_declared_sizes
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.forms.all_forms import rewritten
from conrepair.ground.onnx_graphs.building import Builder, main_nodes
from conrepair.ground.onnx_graphs.defaults import attribute
from conrepair.ground.runtime.errors import ConversionError

# What TVM's ONNX importer stops at or misreads, written as it takes it; each result is the same.


def importable(model: onnx_ir.Model) -> None:
    """Change a model in place, whose shapes are inferred."""
    for node in model.graph.all_nodes():
        axes = node.attributes.get("axes") if node.op_type.startswith("Reduce") and not node.domain else None
        if axes is not None and not axes.as_ints():  # all of them, as without the attribute
            del node.attributes["axes"]
    for node in main_nodes(model, "LayerNormalization"):
        _normalize(node, model.opset_imports.get("", 1))


def _normalize(node: onnx_ir.Node, opset: int) -> None:
    """Have the importer normalize alone where it can't do what else the node asks for.

    It takes weights in the shape of the normalized axes only, and makes nothing of the mean and of the deviation.
    """
    source, *weights = node.inputs
    if source is None or source.shape is None or source.dtype != onnx_ir.DataType.FLOAT:
        return
    axis, epsilon = attribute(node, "axis", -1) % len(source.shape), attribute(node, "epsilon", 1e-5)
    sizes = [size for size in source.shape[axis:] if isinstance(size, int)]
    others = {place: value for place, value in enumerate(node.outputs) if place and _is_read(value)}
    whole = all(value is None or value.shape is None or list(value.shape) == sizes for value in weights)
    axes = list(range(axis, len(source.shape)))
    if len(sizes) < len(axes) or (whole and not others):
        return
    build = Builder(node)
    result = build.op(node.op_type, [source, build.constant(np.ones(sizes), np.float32)], axis=axis, epsilon=epsilon)
    for operator, value in zip(("Mul", "Add"), weights, strict=False):
        result = result if value is None else build.op(operator, [result, value])
    if others:
        mean = _mean(build, source, axes, opset)
        apart = build.op("Sub", [source, mean])
        variance = _mean(build, build.op("Mul", [apart, apart]), axes, opset)
        deviation = build.op("Sqrt", [build.op("Add", [variance, build.constant(epsilon, np.float32)])])
        made = {1: mean, 2: build.op("Reciprocal", [deviation])}
        for place, value in others.items():
            made[place].name, value.name = value.name, None
            onnx_ir.convenience.replace_all_uses_with(value, made[place], replace_graph_outputs=True)
    build.finish(result)


def _mean(build: Builder, value: onnx_ir.Value, axes: list[int], opset: int) -> onnx_ir.Value:
    if opset < 18:  # as an attribute
        return build.op("ReduceMean", [value], axes=axes)
    return build.op("ReduceMean", [value, build.constant(axes)])


def _is_read(value: onnx_ir.Value) -> bool:
    return bool(value.uses()) or value.is_graph_output()


_IMPORTER = "relax.frontend.onnx"
_FILE = "imported.onnx"


def import_model(model: Model, batch: int, options: TvmOptions) -> Imported:
    """Import a file.

    Args:
        model: An ONNX model.
        batch: In place of a symbolic one.
        options: Which operators are computed in another form, and whether open sizes stay open.

    Raises:
        ConversionError: if the importer can't take it; names the operator. If operators have no such form.
        ModelLoadError: if the file can't be read.
    """
    import onnx

    runnable = framework("onnx").load(model)
    inputs = with_declared_sizes(runnable.inputs, model.inputs)
    inputs = inputs if options.symbolic else definite(inputs, batch)
    proto = definite_onnx(as_read(onnx.load(model.path)), inputs)
    other = options.stable or options.float64
    formed = rewritten(proto, options.stable, options.float64) if other else proto
    module, names = relax_of_onnx(formed, inputs, model.path)
    operators = tuple(map(_operator, formed.graph.node))
    return Imported(
        module, _IMPORTER, inputs, runnable.outputs, names, operators, functools.partial(_save, proto, model.path)
    )


def write_definite(model: Model, batch: int, path: Path) -> None:
    """Write a model as it's imported for definite sizes.

    Args:
        model: An ONNX model.
        batch: In place of a symbolic one.
        path: Of the file.

    Raises:
        ConversionError: if another size is open.
        ModelLoadError: if the file can't be read.
    """
    import onnx

    inputs = definite(with_declared_sizes(framework("onnx").load(model).inputs, model.inputs), batch)
    _write(definite_onnx(as_read(onnx.load(model.path)), inputs), model.path, path)


def _save(proto: Any, path: str, folder: Path) -> str:
    """Write what was imported, into a folder; the file's name."""
    _write(proto, path, folder / _FILE)
    return _FILE


def _write(proto: Any, path: str, file: Path) -> None:
    """Write a model; weights that `path` has in other files stay in another file."""
    import onnx
    from onnx.external_data_helper import load_external_data_for_model, uses_external_data

    outside = any(map(uses_external_data, proto.graph.initializer))
    if outside:
        load_external_data_for_model(proto, str(Path(path).parent))
    onnx.save(proto, file, save_as_external_data=outside, location=f"{file.name}.data")


def _operator(node: Any) -> ModelOperator:
    writes = tuple(filter(None, node.output))
    return ModelOperator(node.name or writes[0], node.op_type, tuple(filter(None, node.input)), writes)


def definite_onnx(proto: Any, inputs: Sequence[TensorSpec]) -> Any:
    """The model for definite inputs as the importer takes it, with sizes that it computes from theirs as constants.

    The importer stops at a Reshape whose shape is computed, as exporters write it for an open batch.

    Args:
        proto: The `onnx.ModelProto`, which isn't changed.
        inputs: With definite shapes.
    """
    import onnx_ir

    from conrepair.formats.onnx.passes.fold_shapes import fold_shapes
    from conrepair.ground.onnx_graphs.infer_shapes import infer_shapes
    from conrepair.ground.onnx_graphs.remove_unused import remove_unused

    model = onnx_ir.from_proto(proto)
    shapes = {spec.name: spec.shape for spec in inputs}
    for value in model.graph.inputs:
        if value.name in shapes:
            value.shape = onnx_ir.Shape(shapes[value.name])
    for value in model.graph.outputs:
        value.shape = None if value.shape is None else onnx_ir.Shape([None] * len(value.shape))
    infer_shapes(model)
    fold_shapes(model)
    importable(model)
    remove_unused(model)
    return onnx_ir.to_proto(model)


def relax_of_onnx(proto: Any, inputs: Sequence[TensorSpec], path: str) -> tuple[Any, dict[str, tuple[str, ...]]]:
    """A `tvm.IRModule` of an ONNX model, and the tensors that its variables stand for.

    Args:
        proto: The `onnx.ModelProto`.
        inputs: As the model has them; sizes that are open there stay so.
        path: For messages.

    Raises:
        ConversionError: if the importer can't take it; names the operator.
    """
    from tvm.relax.frontend.onnx.onnx_frontend import ONNXGraphImporter

    foreign = sorted({f"{node.domain}.{node.op_type}" for node in proto.graph.node if node.domain not in ONNX_DOMAIN})
    if foreign:  # the importer looks at the name alone, and would take another operator for it
        raise ConversionError(
            f"TVM's ONNX importer can't take {path}: it stops at operator {', '.join(foreign)}, which isn't of "
            "ONNX's default domain. Rewrite that part of the model."
        )
    importer = ONNXGraphImporter(
        {spec.name: list(spec.shape) for spec in inputs if all(isinstance(size, int) for size in spec.shape)},
        {spec.name: spec.dtype for spec in inputs},
        keep_params_in_input=False,
        sanitize=True,
    )
    opset = opset_of(proto) or 1
    try:
        module = importer.from_onnx(proto.graph, opset)
    # The importer raises AssertionError, ValueError, TVM's own and more.
    except Exception as error:
        raise import_error("ONNX", path, error) from error
    known = {value.name for value in proto.graph.input} | {value.name for value in proto.graph.initializer}
    # What `from_onnx` does without keeping the importer, which alone knows what it made of each tensor.
    return named(module, {name: made for name, made in importer._nodes.items() if name not in known})
