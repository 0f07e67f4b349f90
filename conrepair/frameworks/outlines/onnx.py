"""ONNX: operators of other domains, and versions that came later than the runtime."""

from __future__ import annotations

import onnx

from conrepair.frameworks.model import Model
from conrepair.frameworks.outlines.outline import Outline, counted

__all__ = ["outline"]

_DEFAULT = {"", "ai.onnx"}


def outline(model: Model) -> Outline:
    """See `conrepair.frameworks.outlines.outline.outline`."""
    from conrepair.frameworks.onnx import describe_proto, nodes_of, spec_of_proto

    proto = onnx.load(model.path, load_external_data=False)
    if not proto.graph.output:
        raise ValueError("it has no outputs")
    constants = {tensor.name for tensor in proto.graph.initializer}
    inputs = tuple(spec_of_proto(value) for value in proto.graph.input if value.name not in constants)
    description = describe_proto(proto, inputs, tuple(map(spec_of_proto, proto.graph.output)))
    known = _known() | {(function.domain, function.name) for function in proto.functions}
    unknown = [
        f"{node.domain}:{node.op_type}" if node.domain else node.op_type
        for node in nodes_of(proto.graph)
        if ("" if node.domain in _DEFAULT else node.domain, node.op_type) not in known
    ]
    missing = []
    if unknown:
        missing.append(
            f"the operators {counted(unknown)} aren't ONNX's nor ONNX Runtime's: they need a library of their own; "
            "export without them, or as functions in the file"
        )
    if description.opset is not None and description.opset > onnx.defs.onnx_opset_version():
        missing.append(f"its opset {description.opset} is newer than what's known here; export it with a lower one")
    if proto.ir_version > onnx.IR_VERSION:
        missing.append(
            f"its IR version {proto.ir_version} is newer than the {onnx.IR_VERSION} that is known here; "
            "export it with a lower one"
        )
    return Outline(description, tuple(missing))


def _known() -> set[tuple[str, str]]:
    """Domain and name of every operator that ONNX or ONNX Runtime has."""
    from onnxruntime.capi import onnxruntime_pybind11_state as runtime

    schemas = [*onnx.defs.get_all_schemas(), *runtime.get_all_operator_schema()]
    return {("" if schema.domain in _DEFAULT else schema.domain, schema.name) for schema in schemas}
