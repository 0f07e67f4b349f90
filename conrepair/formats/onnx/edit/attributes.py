"""Attributes of the vocabulary as ONNX says them: renamed, resolved, or moved to another place."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import onnx
import onnx_ir

from conrepair.formats.editing.editor import NotEditableError
from conrepair.formats.editing.lowering_windows import GLOBAL_POOLS, WINDOWS
from conrepair.formats.editing.resizing import SHAPED
from conrepair.formats.onnx.edit.file import OnnxFile
from conrepair.formats.onnx.edit.write import become, knows, set_input, write
from conrepair.formats.onnx.read.schema import first_with, meaning_kept, usual_attributes
from conrepair.ground.graph.layer_graph import Attribute, Node
from conrepair.ground.graph.operators import OPERATORS, ORDERED, QUANTIZING, RECURRENT_ACTIVATIONS, SOFTMAX
from conrepair.ground.onnx_graphs.initializers import constant_of

# Raise an ONNX file's opset in place, where all its operators mean the same in the later one.


def _raise_for(file: OnnxFile, node: onnx_ir.Node, name: str) -> bool:
    """Let a file have the first opset in which a node's operator has an attribute.

    What later opsets take for granted where this one has no word for it is written out where it's something else.

    Args:
        file: Is changed in place, its nodes stay.
        node: Of ONNX's own domain.
        name: Of the attribute.

    Returns:
        False where there's none, or an operator means something else there.
    """
    now = file.opset(node)
    wanted = None if node.domain else first_with(node, name, now)
    if wanted is None:
        return False
    mine = [item for item in file.graph.all_nodes() if not item.domain]
    if not all(meaning_kept(item, now, wanted) for item in mine):
        return False
    for item in mine:
        before, behind = (usual_attributes(item, opset) for opset in (now, wanted))
        for other, value in behind.items():
            if other not in item.attributes and before.get(other, value) != value:
                attribute = onnx.helper.make_attribute(other, before[other])
                item.attributes.add(onnx_ir.from_proto(attribute))
    file.model.opset_imports[""] = wanted
    file.graph.opset_imports[""] = wanted
    least = onnx.helper.OP_SET_ID_VERSION_MAP.get(("ai.onnx", wanted), file.model.ir_version)
    file.model.ir_version = max(file.model.ir_version, least)
    return True


_OWN_AXIS = 13  # opset in which Softmax stopped to see its input as a matrix
_REST = -1  # the size that others leave
_GLOBAL = dict(zip(("GlobalMaxPool", "GlobalAveragePool"), GLOBAL_POOLS, strict=True))
_NAMES = {
    ("GroupNormalization", "groups"): ("num_groups",),
    ("Pad", "value"): ("value", "constant_value"),
    ("Pad", "pads"): ("pads", "paddings"),
    ("Split", "sizes"): ("split",),
    **{(operator, "batch_first"): ("layout",) for operator in RECURRENT_ACTIVATIONS},
}
_INSTEAD_OF = {
    ("Pad", "pads"): ("axes",),
    ("Split", "sizes"): ("num_outputs",),
    ("Resize", "scales"): ("axes", "sizes"),
}


@dataclass(frozen=True)
class WrittenNode:
    """A node whose attributes are written.

    Attributes:
        file: It's in.
        node: As the graph describes it.
        target: As the file has it.
        said: What its attributes are by now; those of the file that became part of parameters too.
        shape: Of its first input, if it's known.
        constants: Places of its inputs that are parameters.
        whole: Whether the graph's node is all of the file's.
    """

    file: OnnxFile
    node: Node
    target: onnx_ir.Node
    said: Mapping[str, Attribute]
    shape: tuple[int, ...] | None
    constants: frozenset[int]
    whole: bool

    def refuse(self, reason: str) -> NoReturn:
        """Refuse an attribute that can't be written."""
        raise NotEditableError(f"{self.node.name} ({self.target.op_type}): {reason}")

    def write(self, name: str, value: Attribute) -> None:
        """Set what ONNX calls `name`."""
        write(self.file, self.target, name, value)


def write_attributes(place: WrittenNode, changes: Mapping[str, Attribute]) -> None:
    """Write attributes that differ from what's said, in place.

    Raises:
        NotEditableError: if the operator, or the file's opset, has no way to say one.
    """
    target = place.target
    if target.op_type in _GLOBAL and not target.domain and {"axes", "keepdims"} & set(changes):
        _unfold_global(place)
    for name, value in _with_pads(place, changes).items():
        special = _SPECIAL.get((place.node.op, name))
        if special is not None:
            special(place, name, value)
        elif target.op_type == "Gemm" and not target.domain:
            _write_product(place, name, value)
        elif not place.whole:
            place.refuse(f"{name} belongs to one of several steps that the file has as one node.")
        else:
            _write_plain(place, name, value)


def _write_plain(place: WrittenNode, name: str, value: Attribute) -> None:
    names = _NAMES.get((place.node.op, name), (name,))
    known = [item for item in names if knows(place.file, place.target, item)]
    if not known and _says_nothing(place.node.op, name, value):
        return
    if not known and _raise_for(place.file, place.target, name):
        known = [name]
    if not known:
        place.refuse(f"the operator has no {name} in opset {place.file.opset(place.target)}.")
    place.write(known[0], value)


def _says_nothing(operator: str, name: str, value: Attribute) -> bool:
    """Whether an attribute has the value that holds where it can't be said."""
    if name == "dilations" and isinstance(value, tuple):
        return set(value) <= {1}
    usual = OPERATORS[operator].attributes.get(name) if operator in OPERATORS else None
    return usual is not None and value == usual


# --- windows ------------------------------------------------------------------------------------------------------


def _with_pads(place: WrittenNode, changes: Mapping[str, Attribute]) -> Mapping[str, Attribute]:
    """Changes with what follows for pads: they and `auto_pad` exclude one another."""
    if place.node.op not in WINDOWS or not {"pads", "auto_pad"} & set(changes):
        return changes
    mode = changes.get("auto_pad", place.said.get("auto_pad"))
    pads = changes.get("pads", place.said.get("pads"))
    place.target.attributes.pop("output_shape", None)
    if changes.get("pads") is not None or mode in {"NOTSET", None}:
        return {**changes, "auto_pad": None, "pads": pads}
    return {**changes, "auto_pad": mode, "pads": None}


def _unfold_global(place: WrittenNode) -> None:
    """Write a global pooling as the reduction that it is, so that it has axes."""
    become(place.file, place.target, _GLOBAL[place.target.op_type])
    for name in ("axes", "keepdims"):
        place.write(name, place.said[name])


# --- products -----------------------------------------------------------------------------------------------------


def _write_product(place: WrittenNode, name: str, value: Attribute) -> None:
    """Attributes of Gemm; of an operand that is constant, the transposition is part of its numbers."""
    flips = {"transpose_a": 0, "transpose_b": 1}
    if name in flips and flips[name] in place.constants:
        place.refuse(f"{name} is part of the constant operand here; change trans{'AB'[flips[name]]} or the numbers.")
    names = {"transpose_a": "transA", "transpose_b": "transB"}
    if names.get(name, name) not in {"transA", "transB", "alpha", "beta"}:
        place.refuse(f"the operator has no {name}.")
    place.write(names.get(name, name), value)


def _exchange_constant(place: WrittenNode, name: str, value: Attribute) -> None:
    if (0 in place.constants) == bool(value):
        return
    one, two = place.target.inputs[:2]
    place.target.replace_input_with(0, two)
    place.target.replace_input_with(1, one)


# --- axes and sizes -----------------------------------------------------------------------------------------------


def _write_last_axes(place: WrittenNode, name: str, value: Attribute) -> None:
    """Normalized axes, which ONNX says by the first of them."""
    rank = None if place.shape is None else len(place.shape)
    axes = value if isinstance(value, tuple) else ()
    if rank is None or not axes or axes != tuple(range(int(axes[0]), rank)):
        place.refuse(f"axes {value} aren't the last ones of its input.")
    place.write("axis", axes[0])


def _write_only_axis(place: WrittenNode, name: str, value: Attribute) -> None:
    if not isinstance(value, tuple) or len(value) != 1:
        place.refuse(f"it normalizes along one axis, not along {value}.")
    place.write("axis", value[0])


def _write_softmax_axis(place: WrittenNode, name: str, value: Attribute) -> None:
    if not place.whole:
        place.refuse("it sees its input as a matrix in this opset, which has one axis only.")
    old = place.file.opset(place.target) < _OWN_AXIS
    behind = None if place.shape is None or not isinstance(value, int) else place.shape[value + 1 :]
    if old and (behind is None or any(size != 1 for size in behind)):
        place.refuse(f"before opset {_OWN_AXIS} it would normalize along all axes from {value} on.")
    place.write("axis", value)


def _write_channel(place: WrittenNode, name: str, value: Attribute) -> None:
    scale = place.target.inputs[1]
    if scale is not None and place.file.shape(scale) in ([], [1]):
        place.refuse("it has one scale for all channels, so no axis.")
    place.write("axis", value)


def _write_shape(place: WrittenNode, name: str, value: Attribute) -> None:
    """A shape; what the file says relative to the input (0, -1) stays so where the size is the same."""
    if not isinstance(value, tuple):
        place.refuse(f"{value} is no shape.")
    target, before = place.target, place.said.get("shape")
    stored = constant_of(target.inputs[1]) if target.op_type in SHAPED and len(target.inputs) > 1 else None
    said = before if isinstance(before, tuple) else ()
    if stored is not None:
        table: list[Any] = _kept(stored.tolist(), said, value)
        if len(said) == len(value) == len(stored) and 0 not in value:
            # There may be more samples than in the file, which a batch that's left open (0) and what the others leave
            # (-1) stand for.
            table = [_REST if old == _REST else size for old, size in zip(stored, table, strict=True)]
            if stored[0] == 0 and math.prod(said[1:]) == math.prod(value[1:]):
                table[0] = 0
    else:
        follows = place.node.op == "Reshape" and place.shape is not None and value[:1] == place.shape[:1]
        table = [0, *value[1:]] if follows and value else list(value)  # the batch is of any size
    if place.node.op == "Reshape" and target.op_type != "Reshape":
        for index in range(1, len(target.inputs)):
            set_input(place.file, target, index, None)
        become(place.file, target, "Reshape")
    place.write("shape", tuple(table))


def _write_slice(place: WrittenNode, name: str, value: Attribute) -> None:
    """One of Slice's tables; ends beyond the size, and from the end, stay so where they mean the same."""
    if not isinstance(value, tuple):
        place.refuse(f"{value} says not where to cut.")
    said, target = place.said.get(name), place.target
    names = [item.name for item in place.file.schema(target).inputs]
    index = names.index(name) if name in names else len(target.inputs)
    stored = constant_of(target.inputs[index]) if index < len(target.inputs) else None
    if stored is None and name in target.attributes:
        stored = np.array(target.attributes[name].as_ints())
    same = stored is not None and isinstance(said, tuple) and len(stored) == len(said) == len(value)
    place.write(name, tuple(_kept(stored.tolist(), said, value)) if same else value)  # type: ignore[union-attr,arg-type]


def _kept(stored: Sequence[int], said: Sequence[Any], wanted: Sequence[Any]) -> list[int]:
    """The wanted numbers, as they're stored where they are what was said."""
    length = min(len(stored), len(said))
    return [
        int(stored[place] if place < length and said[place] == number else number)
        for place, number in enumerate(wanted)
    ]


def _write_instead(place: WrittenNode, name: str, value: Attribute) -> None:
    """What says it of all axes, or of each piece, in place of what said it otherwise."""
    for other in _INSTEAD_OF[place.node.op, name]:
        if knows(place.file, place.target, other):
            place.write(other, None)
    _write_plain(place, name, value)


def _write_type(place: WrittenNode, name: str, value: Attribute) -> None:
    if place.target.op_type != "Cast" or not isinstance(value, str):
        place.refuse(f"its type can't be set to {value}.")
    place.write("to", int(onnx_ir.DataType.from_numpy(np.dtype(value))))


_SPECIAL: Mapping[tuple[str, str], Callable[[WrittenNode, str, Attribute], None]] = {
    **{(operator, "constant_first"): _exchange_constant for operator in ORDERED},
    **{(operator, "axes"): _write_last_axes for operator in ("LayerNormalization", "RMSNormalization")},
    ("LpNormalization", "axes"): _write_only_axis,
    **{(operator, "axis"): _write_softmax_axis for operator in SOFTMAX},
    **{(operator, "shape"): _write_shape for operator in SHAPED},
    **{("Slice", name): _write_slice for name in ("starts", "ends", "axes", "steps")},
    **{(operator, "axis"): _write_channel for operator in QUANTIZING},
    **dict.fromkeys(_INSTEAD_OF, _write_instead),
    ("Cast", "to"): _write_type,
}
