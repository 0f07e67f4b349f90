"""What operators' schemas say: ONNX's own, and those that ONNX Runtime adds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import onnx
import onnx_ir

from conrepair.ground.onnx_graphs.defaults import schema_of

_BEFORE: Mapping[tuple[str, str], Any] = {
    ("RoiAlign", "coordinate_transformation_mode"): "output_half_pixel",
    ("Resize", "coordinate_transformation_mode"): "asymmetric",
    ("Resize", "nearest_mode"): "floor",
}
"""What operators do in opsets that have no word for it, where a later one's default isn't that: its notes say so."""

_OTHERWISE = {"GroupNormalization"}  # in a later opset other numbers are wanted, under the same names


def usual_attributes(node: onnx_ir.Node, opset: int) -> Mapping[str, Any]:
    """What a node's attributes are when it doesn't say, as ONNX has them (texts are bytes).

    An attribute that only a later opset has is what that takes for it: a later version of an operator does by default
    what the one before did, but for those in `_BEFORE`.
    """
    return _usual(node.domain, node.op_type, opset)


def names_of_attributes(node: onnx_ir.Node) -> frozenset[str]:
    """What any version of a node's operator has as an attribute: some are inputs in others."""
    return _all_names().get((node.domain, node.op_type), frozenset())


def first_with(node: onnx_ir.Node, name: str, opset: int) -> int | None:
    """The first opset above one in which a node's operator has an attribute; None where there's none."""
    versions = _versions().get((node.domain, node.op_type), ())
    later = (schema for schema in versions if schema.since_version > opset and name in schema.attributes)
    return next((schema.since_version for schema in later), None)


def meaning_kept(node: onnx_ir.Node, opset: int, later: int) -> bool:
    """Whether a node means the same in a later opset, but for attributes that it then has to say."""
    before, behind = schema_of(node, opset), schema_of(node, later)
    if before is None or behind is None or behind.deprecated:
        return False
    if before.since_version == behind.since_version:
        return True
    names = [[item.name for item in schema.inputs] for schema in (before, behind)]
    defaults = _defaults_of(before), _defaults_of(behind)
    same = all(
        name in behind.attributes and defaults[0].get(name) == defaults[1].get(name) for name in before.attributes
    )
    return same and names[0] == names[1][: len(names[0])] and node.op_type not in _OTHERWISE


@cache
def _usual(domain: str, operator: str, opset: int) -> Mapping[str, Any]:
    versions = _versions().get((domain, operator), ())
    mine = next((schema for schema in reversed(versions) if schema.since_version <= opset), None)
    if mine is None:
        added = _runtime_schemas().get((domain, operator))
        known = {} if added is None else {name: item._default_value for name, item in added.attributes.items()}
        protos = {name: onnx.AttributeProto.FromString(value) for name, value in known.items() if value}
        return {name: onnx.helper.get_attribute_value(proto) for name, proto in protos.items()}
    said = {*mine.attributes, *(item.name for item in mine.inputs)}
    found = _defaults_of(mine)
    for schema in versions:
        for name, value in _defaults_of(schema).items() if schema.since_version > opset else ():
            if name not in said:
                said.add(name)
                found[name] = _BEFORE.get((operator, name), value)
    return found


def _defaults_of(schema: Any) -> dict[str, Any]:
    given = {name: item.default_value for name, item in schema.attributes.items() if item.default_value.type}
    return {name: onnx.helper.get_attribute_value(item) for name, item in given.items()}


@cache
def _versions() -> Mapping[tuple[str, str], Sequence[Any]]:
    """All versions of ONNX's operators, the oldest first."""
    found = defaultdict(list)
    for schema in sorted(onnx.defs.get_all_schemas_with_history(), key=lambda schema: schema.since_version):
        found[schema.domain, schema.name].append(schema)
    return found


@cache
def _all_names() -> Mapping[tuple[str, str], frozenset[str]]:
    return {key: frozenset(name for schema in one for name in schema.attributes) for key, one in _versions().items()}


def formal_name(node: onnx_ir.Node, opset: int, index: int) -> str:
    """What a node's operator calls an input; with its place among others of a list behind it."""
    schema = schema_of(node, opset) or _runtime_schemas().get((node.domain, node.op_type))
    names = [item.name for item in schema.inputs] if schema else []
    if not names:
        return f"input_{index}"
    behind = index - len(names) + 1
    return str(names[min(index, len(names) - 1)]) + (f"_{behind}" if behind > 0 else "")


@cache
def _runtime_schemas() -> dict[tuple[str, str], Any]:
    """Of ONNX Runtime's operators."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    return {
        (schema.domain, schema.name): schema
        for schema in state.get_all_operator_schema()
        if schema.domain not in {"", "ai.onnx"}
    }
