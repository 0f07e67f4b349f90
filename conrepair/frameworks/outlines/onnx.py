"""ONNX: operators of other domains, and versions that came later than the runtime."""

from __future__ import annotations

import onnx

from conrepair.frameworks.model import Model
from conrepair.frameworks.onnx_file import describe_proto, nodes_of, read_valid, specs_of_proto
from conrepair.frameworks.outlines.outline import Outline, counted
from conrepair.frameworks.proto_file import read_proto
from conrepair.frameworks.runnable import load_error
from conrepair.runtime.errors import ModelLoadError

__all__ = ["check", "outline"]

_DEFAULT = {"", "ai.onnx"}


def outline(model: Model) -> Outline:
    """See `conrepair.frameworks.outlines.outline.outline`."""
    proto = read_proto(model.path)
    if not proto.graph.output:
        raise ValueError("it has no outputs")
    description = describe_proto(proto, *specs_of_proto(proto))
    unknown = _unknown(proto)
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


def check(model: Model, found: Outline | None) -> None:
    """Refuse what ONNX's own rules forbid, and what nothing here can run; only running it shows what else there is.

    Args:
        model: The file.
        found: What could be read of it.

    Raises:
        ModelLoadError: if so.
    """
    read_valid(model)
    if found is None:
        try:
            outline(model)
        except Exception as error:
            raise load_error(model, "an ONNX model", error) from error
        return
    if found.missing:
        raise ModelLoadError(f"{model.path} can't be loaded as an ONNX model: {'; '.join(found.missing)}.")


def _unknown(proto: onnx.ModelProto) -> list[str]:
    """Nodes whose operators neither the file nor ONNX nor ONNX Runtime has."""
    own = {(function.domain, function.name) for function in proto.functions}
    nodes = [("" if node.domain in _DEFAULT else node.domain, node.op_type) for node in nodes_of(proto.graph)]
    unknown = [node for node in nodes if node not in own and not onnx.defs.has(node[1], node[0])]
    if unknown:
        known = _known_to_runtime()
        unknown = [node for node in unknown if node not in known]
    return [f"{domain}:{operator}" if domain else operator for domain, operator in unknown]


def _known_to_runtime() -> set[tuple[str, str]]:
    """Domain and name of every operator that ONNX Runtime has."""
    from onnxruntime.capi import onnxruntime_pybind11_state as runtime

    schemas = runtime.get_all_operator_schema()
    return {("" if schema.domain in _DEFAULT else schema.domain, schema.name) for schema in schemas}
