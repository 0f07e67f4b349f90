"""All small changes of a network: whoever computes it without optimizations says which of them are valid."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from conrepair.formats.onnx.load.proto_file import opset_of
from conrepair.ground.metrics.ulps import is_real
from conrepair_lab.cases.case import Array
from conrepair_lab.cases.draft import Draft, keep
from conrepair_lab.cases.smaller.shapes import put_weight, weights

_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)
_WORDS: Mapping[str, tuple[str, ...]] = {
    "auto_pad": ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"),
    "mode": ("constant", "reflect", "edge", "wrap", "nearest", "linear", "cubic"),
    "coordinate_transformation_mode": ("asymmetric", "align_corners", "half_pixel", "pytorch_half_pixel"),
    "nearest_mode": ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil"),
    "approximate": ("none", "tanh"),
}
_KIN = (
    ("Add", "Sub", "Mul", "Div"),
    ("Max", "Min"),
    ("Relu", "Sigmoid", "Tanh", "Abs", "Neg"),
    ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceL2"),
    ("MaxPool", "AveragePool"),
)
_AXES = 4  # of networks
_MANY = 5  # axes: more than others have
_MOST_TOLD = 8  # numbers
_MOST_ORDERED, _MOST_ORDERS = 4, 24  # numbers of which all orders are tried; of axes


@dataclass(frozen=True)
class Change:
    """A small change of a network.

    Attributes:
        sort: What is changed, without the value: changes of a sort show the same as a rule.
        words: All of it, for people.
        at: Name of what is changed: two changes of the same don't go together.
        apply: Does it.
    """

    sort: str
    words: str
    at: str
    apply: Callable[[Draft], None]


def changes(subject: Draft) -> Iterator[Change]:
    """All small changes of a network.

    Args:
        subject: Isn't changed. Its nodes have names.
    """
    constants = weights(subject)
    for node in subject.model.graph.node:
        yield from _of_attributes(node, opset_of(subject.model) or 1)
        yield from _of_operands(subject, node, constants)
    for name, array in constants.items():
        reader = _reader(subject, name)
        for how, other in _other_arrays(array):
            yield _change(f"constant {reader} {how}", name, other, put_weight)
        yield Change(f"constant {reader} fed", f"{name} is an input", name, partial(_fed, name=name))
    for name, array in subject.inputs.items():
        reader = _reader(subject, name)
        for how, other in _shaped(array):
            if other.shape != array.shape:
                yield _change(f"input {reader} {how}", name, other, _feed)
        yield Change(f"input {reader} stored", f"{name} is a constant", name, partial(_stored, name=name))
        yield Change(f"input {reader} open", f"{name} has open sizes", name, partial(_opened, name=name))
    for kind in _FLOATS[1:]:
        if any(array.dtype == np.float32 for array in subject.inputs.values()):
            words = f"float32 becomes {TensorProto.DataType.Name(kind)}"
            yield Change(words, words, "types", partial(_retyped, kind=kind))


def _node(subject: Draft, name: str) -> onnx.NodeProto:
    return next(node for node in subject.model.graph.node if node.name == name)


def _type(subject: Draft, name: str) -> tuple[int | None, Sequence[int | str] | None]:
    """As it was before any change."""
    return subject.types.get(name), subject.shapes.get(name)


def _feed(to: Draft, name: str, array: Array) -> None:
    """Give an input other values, or another shape."""
    to.inputs[name] = array
    place = next(item for item in to.model.graph.input if item.name == name)
    place.CopyFrom(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape))


def _change(sort: str, name: str, value: Array, how: Callable[..., None]) -> Change:
    told = f"{value.dtype}{list(value.shape)}" + (f" {value.tolist()}" if value.size <= _MOST_TOLD else "")
    return Change(sort, f"{name} is {told}", name, partial(how, name=name, array=value))


def _reader(subject: Draft, name: str) -> str:
    """Who reads a tensor first, and where: "Conv.1"."""
    return next(
        (f"{node.op_type}.{list(node.input).index(name)}" for node in subject.model.graph.node if name in node.input),
        "",
    )


# Attributes.


def _of_attributes(node: onnx.NodeProto, opset: int) -> Iterator[Change]:
    said = {item.name: item for item in node.attribute}
    try:
        schema = onnx.defs.get_schema(node.op_type, opset, node.domain)
    except onnx.defs.SchemaError:  # of another domain
        return
    for name, attribute in schema.attributes.items():
        default = attribute.default_value
        item = said.get(name) or (default if default.name else None)
        value = None if item is None else helper.get_attribute_value(item)
        value = tuple(value) if isinstance(value, list) else value.decode() if isinstance(value, bytes) else value
        for other in dict.fromkeys(_other_values(name, int(attribute.type), value)):
            if other != (value if other is not None or name in said else None):
                yield Change(
                    f"{node.op_type}.{name}",
                    f"{name} of {node.name} ({node.op_type}) is {'left out' if other is None else other}",
                    f"{node.name}.{name}",
                    partial(_said, reader=node.name, name=name, value=other),
                )
    for op in sorted({other for kin in _KIN if node.op_type in kin for other in kin} - {node.op_type}):
        words, how = f"{node.op_type} becomes {op}", partial(_renamed, reader=node.name, op=op)
        yield Change(words, f"{node.name}: {words}", node.name, how)


def _renamed(to: Draft, reader: str, op: str) -> None:
    _node(to, reader).op_type = op


def _said(to: Draft, reader: str, name: str, value: Any) -> None:
    node = _node(to, reader)
    keep(node.attribute, lambda item: item.name != name)
    if value is not None:
        kind = AttributeProto.INTS if value == () else None
        node.attribute.append(helper.make_attribute(name, value, attr_type=kind))


def _other_values(name: str, kind: int, value: Any) -> Iterator[Any]:
    if name == "perm" and value:
        yield from itertools.islice(itertools.permutations(range(len(value))), _MOST_ORDERS)
    elif kind == AttributeProto.INT and name == "axis":
        yield from range(-_AXES, _AXES)
    elif kind == AttributeProto.INT:
        yield from (0, 1)  # truth values, as most are
        if value not in (0, 1, None):
            yield from (value + 1, value - 1)
    elif kind == AttributeProto.FLOAT:
        yield from (0.0, 1.0, -1.0, 0.5)
        if value is not None:
            yield 2 * value
    elif kind == AttributeProto.INTS:
        yield from _other_numbers(value or ())
        if value is None:
            yield from ((0,), (-1,), (1,), (1, 1), (2, 2), (0, 0, 1, 1), (1, 1, 1, 1))
    elif kind == AttributeProto.STRING:
        yield from _WORDS.get(name, ())
    yield None  # left out


def _other_numbers(values: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Each number another one, or left out; two exchanged; all in other orders where they're few."""
    for place, value in enumerate(values):
        before, behind = values[:place], values[place + 1 :]
        for other in (value + 1, value - 1, 0, 1, -1, 2):
            yield (*before, other, *behind)
        yield (*before, *behind)
    if len(values) <= _MOST_ORDERED:
        yield from itertools.permutations(values)
    yield tuple(value + 1 for value in values)
    yield (*values, 1)


# What nodes read.


def _of_operands(subject: Draft, node: onnx.NodeProto, constants: Mapping[str, Array]) -> Iterator[Change]:
    op = node.op_type
    for place, name in enumerate(node.input):
        if name not in subject.types:
            continue
        kind, sizes = _type(subject, name)
        between: list[tuple[str, Mapping[str, Any]]] = [("Identity", {}), ("Cast", {"to": kind})]
        if sizes and name not in constants:
            between += [("Transpose", {"perm": range(len(sizes))})]
            if len(sizes) > 1:
                between += [("Transpose", {"perm": [*range(len(sizes) - 2), len(sizes) - 1, len(sizes) - 2]})]
        for other, said in between:
            yield Change(
                f"{other} before {op}.{place}"
                + ("" if len(between) < 4 or (other, said) != between[3] else " moves"),
                f"{other} ({dict(said)}) before input {place} of {node.name} ({op})",
                f"{node.name} reads {place}",
                partial(_between, reader=node.name, place=place, op=other, said=said),
            )
    for words, how in (("exchanged", _swap), ("of one", _one)) if len(node.input) == 2 else ():
        told = f"operands {words} in {node.name} ({op})"
        yield Change(f"{op} {words}", told, node.name, partial(how, reader=node.name))
    outputs = {item.name for item in subject.model.graph.output}
    inside = bool(node.input) and node.output[0] not in outputs
    if inside and _type(subject, node.input[0]) == _type(subject, node.output[0]):
        how = partial(_left_out, reader=node.name)
        yield Change(f"{op} left out", f"{node.name} ({op}) is left out", node.name, how)
    for name in node.output:
        if name and name not in outputs:
            yield Change(f"{op} shown", f"{name} is an output", f"{name} shown", partial(_shown, name=name))
            yield Change(f"{op} read", f"{name} is read again", f"{name} shown", partial(_read, name=name))


def _between(to: Draft, reader: str, place: int, op: str, said: Mapping[str, Any]) -> None:
    """Before what reads it (Transpose), or behind what makes it: rules go through nodes in their order."""
    graph, made = to.model.graph, f"{reader}_{place}_between"
    where = next(number for number, node in enumerate(graph.node) if node.name == reader)
    name = graph.node[where].input[place]
    graph.node[where].input[place] = made
    if op != "Transpose":
        where = next((number + 1 for number, node in enumerate(graph.node) if name in node.output), 0)
    graph.node.insert(where, helper.make_node(op, [name], [made], name=made, **said))


def _swap(to: Draft, reader: str) -> None:
    there = _node(to, reader)
    there.input[0], there.input[1] = there.input[1], there.input[0]


def _one(to: Draft, reader: str) -> None:
    there = _node(to, reader)
    there.input[1] = there.input[0]


def _left_out(to: Draft, reader: str) -> None:
    """What read it reads what it read first."""
    gone = _node(to, reader)
    for node in to.model.graph.node:
        for place, name in enumerate(node.input):
            if name == gone.output[0]:
                node.input[place] = gone.input[0]


def _shown(to: Draft, name: str) -> None:
    to.model.graph.output.append(onnx.ValueInfoProto(name=name))


def _read(to: Draft, name: str) -> None:
    to.model.graph.node.append(helper.make_node("Identity", [name], [f"{name}_read"], name=f"{name}_read"))
    _shown(to, f"{name}_read")


# Constants and inputs.


def _other_arrays(array: Array) -> Iterator[tuple[str, Array]]:
    """Other numbers, and other shapes of what is real; each once."""
    seen = {(array.shape, array.tobytes())}
    for how, other in itertools.chain(_numbers(array), _shaped(array) if is_real(array) or not array.ndim else ()):
        if (told := (other.shape, other.tobytes())) not in seen:
            seen.add(told)
            yield how, other


def _numbers(array: Array) -> Iterator[tuple[str, Array]]:
    if array.dtype.kind in "iu" and array.ndim == 1 and array.size <= _MOST_TOLD:
        ends = np.iinfo(array.dtype)
        for values in _other_numbers(tuple(array.tolist())):
            if all(ends.min <= value <= ends.max for value in values):
                yield "of other numbers", np.asarray(values, array.dtype)
    elif array.dtype.kind in "iu" or is_real(array):
        for how, value in (
            ("zero", 0 * array),
            ("one", 0 * array + 1),
            ("more", array + 1),
            ("twice", array + array),
        ):
            yield how, np.asarray(value, array.dtype)
        if array.dtype.kind != "u":
            yield "negative", np.asarray(-array, array.dtype)


def _shaped(array: Array) -> Iterator[tuple[str, Array]]:
    yield "with an axis more", array[None]
    if array.ndim == 0:
        yield "with two axes", array[None, None]
        yield "with many axes", array.reshape((1,) * _MANY)
        return
    first = array.reshape(-1)[:1]
    for axis in range(array.ndim):
        if array.shape[axis] != 1:
            yield f"of size 1 at {axis - array.ndim}", array.take([0], axis)
            yield f"wider at {axis - array.ndim}", array.take([0, *range(array.shape[axis])], axis)
        else:
            yield f"of size 2 at {axis - array.ndim}", array.repeat(2, axis)
    yield "of sizes 1", first.reshape((1,) * array.ndim)
    yield "of one number", first.reshape(())
    yield "of one axis less", np.asarray(array[0]) if len(array) else array.reshape(array.shape[1:])
    yield "with an axis more behind", array[..., None]
    yield "with another sample", array[None].repeat(2, 0)
    yield "flat", array.reshape(-1)


def _fed(to: Draft, name: str) -> None:
    """A constant becomes an input that is fed the same."""
    array = weights(to)[name]
    keep(to.model.graph.initializer, lambda item: item.name != name)
    to.model.graph.input.append(onnx.ValueInfoProto(name=name))
    _feed(to, name, array)


def _stored(to: Draft, name: str) -> None:
    """An input becomes a constant."""
    keep(to.model.graph.input, lambda item: item.name != name)
    to.model.graph.initializer.append(numpy_helper.from_array(to.inputs.pop(name), name))


def _opened(to: Draft, name: str) -> None:
    (item,) = (item for item in to.model.graph.input if item.name == name)
    for place, size in enumerate(item.type.tensor_type.shape.dim):
        size.dim_param = f"{name}_{place}"


def _retyped(to: Draft, kind: int) -> None:
    """Computes with other real numbers."""
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    for name, array in weights(to).items():
        if array.dtype == np.float32:
            put_weight(to, name, array.astype(dtype))
    for name, array in to.inputs.items():
        if array.dtype == np.float32:
            _feed(to, name, array.astype(dtype))
    for node in to.model.graph.node:
        for item in node.attribute:
            if item.name in {"to", "dtype"} and item.i == TensorProto.FLOAT:
                item.i = kind


def pairs(first: Iterable[Change]) -> Iterator[tuple[Change, Change]]:
    """Two changes at a time, of different parts of a network: the nearest in order first.

    Args:
        first: Each of which is valid alone.
    """
    every = list(first)
    for apart in range(1, len(every)):
        for place in range(len(every) - apart):
            one, two = every[place], every[place + apart]
            if one.at != two.at:
                yield one, two
