"""Lower the opset of an ONNX graph where its operators allow it.

The ONNX package's version converter has no way down for many operators, though most differ only in types or
in attributes left at their default. This one compares the two versions of each operator's schema: what the
older one lacks must be at its default (and is dropped), and axes given as a constant input become the
attribute that they were. What remains is rewritten where an equivalent of older operators is known
(`opset_rewrites`), or replaced by the operator's own definition in ONNX's schema; else it's refused by name.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import onnx
import onnx_ir
from onnx_ir.passes.common import InlinePass

from conrepair.formats.onnx.passes.expand_operator import function_body
from conrepair.formats.onnx.passes.inline_functions import inline_functions
from conrepair.formats.onnx.passes.opset_rewrites import REWRITES
from conrepair.ground.onnx_graphs.defaults import schema_of
from conrepair.ground.onnx_graphs.infer_shapes import infer_shapes, type_name
from conrepair.ground.onnx_graphs.initializers import constant_of
from conrepair.ground.runtime.errors import ConversionError

_DOMAINS = {"", "ai.onnx"}
_FLATTENING = {"Hardmax", "LogSoftmax", "Softmax"}

# Values of attributes that are older than they are, which schemas don't list, and the opset they came with.
_NEW_VALUES = {
    ("GridSample", "mode"): {"linear": 20, "cubic": 20},
    ("Pad", "mode"): {"wrap": 19},
    ("Resize", "coordinate_transformation_mode"): {"half_pixel_symmetric": 19},
}


def lower_opset(model: onnx_ir.Model, opset: int, expand: Collection[str] = ()) -> None:
    """Rewrite `model` in place to an opset not above the given one.

    Args:
        model: Whose default domain's opset is lowered; left alone when it is low enough.
        opset: The highest that the consumer understands.
        expand: Operators, of any domain of ONNX's, that the consumer lacks in any opset; they are replaced by their
            definition if they have one, and left alone if not.

    Raises:
        ConversionError: naming the node that the older opset can't express.
    """
    inline_functions(model)
    current = model.opset_imports.get("", opset)
    names = {node.op_type for node in model.graph.all_nodes()}
    if current <= opset and not names & set(expand):
        return
    infer_shapes(model)
    target = min(opset, current)
    lowering = _Lowering(model, target, expand)
    lowering.lower(model.graph, current)
    model.opset_imports[""] = target
    model.graph.opset_imports[""] = target
    InlinePass()(model)


class _Lowering:
    """What is needed on the way; bodies of replaced operators become functions of the model."""

    def __init__(self, model: onnx_ir.Model, opset: int, expand: Collection[str]) -> None:
        self._model = model
        self._opset = opset
        self._expand = expand

    def lower(self, graph: onnx_ir.Graph | onnx_ir.Function, current: int) -> None:
        """Lower all nodes of a graph that is written in opset `current`."""
        for node in list(graph.all_nodes()):
            if node.domain in _DOMAINS:
                self._lower_node(node, current)
            elif node.op_type in self._expand:
                self._replace_by_body(node, self._model.opset_imports.get(node.domain, 1))

    def _lower_node(self, node: onnx_ir.Node, current: int) -> None:
        if node.op_type in self._expand and self._replace_by_body(node, current):
            return
        rewrite = REWRITES.get(node.op_type)
        if rewrite is not None and current > self._opset:
            rewrite(node, self._opset)
        if node.graph is None:
            return  # the rewrite took it out
        try:
            _lower(node, current, self._opset)
        except ConversionError:
            if not self._replace_by_body(node, current):
                raise

    def _replace_by_body(self, node: onnx_ir.Node, current: int) -> bool:
        found = function_body(node, current, self._opset)
        if found is None:
            return False
        body, written_in = found
        self.lower(body, written_in)
        body.opset_imports[""] = self._opset
        node.attributes.clear()  # the body has them
        node.overload = body.overload = f"body {len(self._model.functions)}"
        self._model.functions[body.identifier()] = body
        return True


def _lower(node: onnx_ir.Node, current: int, opset: int) -> None:
    """Say in place what `node` means in another opset.

    Raises:
        ConversionError: if it can't be said; the node is as it was.
    """
    if current == opset:
        return
    new, old = (schema_of(node, version) for version in (current, opset))
    if new is None:
        raise _refusal(node, opset, "ONNX doesn't have it")
    if old is None:
        raise _refusal(node, opset, f"the operator came with opset {new.since_version}")
    if old.since_version == new.since_version:
        return
    if current < opset:
        if _means_the_same(new, old):
            return
        raise _refusal(node, opset, f"its definition in opset {current} was replaced")
    if node.op_type in _FLATTENING and old.since_version < 13 <= new.since_version:
        raise _refusal(node, opset, "before opset 13 the operator joined all dimensions behind its axis")
    _check_types(node, old, opset)
    for name, attribute in old.attributes.items():
        changed = name in new.attributes and attribute.default_value != new.attributes[name].default_value
        if changed and name not in node.attributes:
            raise _refusal(node, opset, f"attribute {name} had another default")
        if name in node.attributes and opset < _NEW_VALUES.get((node.op_type, name), {}).get(_text(node, name), 0):
            raise _refusal(node, opset, f"attribute {name}={_text(node, name)}")
        if name not in new.attributes and attribute.required and not _is_input(name, new):
            raise _refusal(node, opset, f"attribute {name} was required")
    dropped = [name for name in node.attributes if name not in old.attributes]
    for name in dropped:
        attribute = node.attributes[name]
        if not (_is_default(attribute, new.attributes[name]) or _has_no_effect(node, name)):
            raise _refusal(node, opset, f"attribute {name}={attribute.value}")
    if sum(bool(value.name) for value in node.outputs) > old.max_output:
        raise _refusal(node, opset, f"it has {len(node.outputs)} outputs")
    lists = {
        new.inputs[index].name: _list_of(node, index, new.inputs[index].name, old, opset)
        for index in range(old.max_input, len(node.inputs))
    }
    for name in dropped:
        del node.attributes[name]
    for name, numbers in lists.items():
        if numbers or (numbers is not None and not node.op_type.startswith("Reduce")):
            node.attributes[name] = onnx_ir.AttrInt64s(name, numbers)
    node.resize_inputs(min(len(node.inputs), old.max_input))


def _means_the_same(earlier: Any, later: Any) -> bool:
    """Whether a newer version of an operator only took more types: parts of definitions are older than the model."""
    if earlier.name in _FLATTENING and earlier.since_version < 13 <= later.since_version:
        return False
    signatures = [
        (
            {name: item.default_value.SerializeToString() for name, item in schema.attributes.items()},
            [(item.name, item.option) for item in schema.inputs],
            [(item.name, item.option) for item in schema.outputs],
        )
        for schema in (earlier, later)
    ]
    return signatures[0] == signatures[1]


def _text(node: onnx_ir.Node, name: str) -> str:
    return str(node.attributes[name].value)


def _is_input(name: str, schema: Any) -> bool:
    return any(parameter.name == name for parameter in schema.inputs)


def _list_of(node: onnx_ir.Node, index: int, name: str, old: Any, opset: int) -> list[int] | None:
    """The numbers of an input that was an attribute; None for an input that is left out."""
    value = node.inputs[index]
    if value is None:
        return None
    constant = constant_of(value)
    is_list = name in old.attributes and old.attributes[name].type == onnx.defs.OpSchema.AttrType.INTS
    if not is_list or constant is None:
        raise _refusal(node, opset, f"input {name}")
    return [int(number) for number in constant.reshape(-1)]


def _check_types(node: onnx_ir.Node, old: Any, opset: int) -> None:
    """Older versions take fewer types; values whose type isn't known pass."""
    allowed = {item.type_param_str: set(item.allowed_type_strs) for item in old.type_constraints}
    for values, parameters in ((node.inputs, old.inputs), (node.outputs, old.outputs)):
        if not parameters:
            continue
        for index, value in enumerate(values):
            parameter = parameters[min(index, len(parameters) - 1)]
            types = allowed.get(parameter.type_str, {parameter.type_str})
            name = type_name(value)
            if name is not None and index < old.max_input + old.max_output and name not in types:
                raise _refusal(node, opset, f"{parameter.name} of type {name}")


def _is_default(attribute: onnx_ir.Attr, schema: Any) -> bool:
    default = schema.default_value
    if default.type == onnx.AttributeProto.UNDEFINED:
        return False
    return bool(attribute.value == onnx_ir.from_proto(default).value)


def _has_no_effect(node: onnx_ir.Node, name: str) -> bool:
    """Reshape's allowzero says what a 0 in the shape means, which a constant shape without 0 doesn't need."""
    shape = constant_of(node.inputs[1]) if (node.op_type, name) == ("Reshape", "allowzero") else None
    return shape is not None and bool((shape != 0).all())


def _refusal(node: onnx_ir.Node, opset: int, reason: str) -> ConversionError:
    return ConversionError(
        f"{node.op_type} '{node.name}' can't be expressed in opset {opset} ({reason}). "
        "Export the original model with a lower opset, or choose another route (`via`)."
    )
