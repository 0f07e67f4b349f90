"""Settings of one operator: drawn inside of its specification, and one step away from there."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
import onnx

from conrepair_lab.generate.graph import Draft
from conrepair_lab.generate.onnx_form import RefusedError, model_of, run
from conrepair_lab.generate.settings.drawing import Drawing, Fresh
from conrepair_lab.generate.settings.ports import NotAllowedError, Operand, Support
from conrepair_lab.generate.settings.reading import Reading
from conrepair_lab.generate.settings.schemas import dtypes_of, schema_of
from conrepair_lab.generate.settings.tensors import TensorType
from conrepair_lab.generate.specifications.specification import specifications
from conrepair_lab.generate.values.drawn import drawn_values

__all__ = ["Case", "accepts", "inside", "read", "stepped"]


@dataclass(frozen=True)
class Case:
    """A node with all that it's given.

    Attributes:
        op: Its operator.
        opset: Of the standard's operators.
        inputs: In the schema's order.
        attributes: That are said.
        outputs: How many, and which of them, there are.
        predicted: Their types; None for what isn't known.
        step: What was changed, in words; "" for a case inside.
    """

    op: str
    opset: int
    inputs: tuple[Operand | None, ...]
    attributes: dict[str, Any]
    outputs: tuple[bool, ...]
    predicted: tuple[TensorType | None, ...] = ()
    step: str = ""


def inside(op: str, opset: int, random: Random, support: Support) -> Case | None:
    """A setting that the specification draws; None if none was found."""
    for _ in range(200):
        setting = Drawing(op, opset, random, support, source=Fresh(512), most=512)
        try:
            specifications()[op].body(setting)
        except NotAllowedError:
            continue
        outputs = tuple(setting.outputs)
        return Case(
            op,
            opset,
            tuple(setting.inputs),
            dict(setting.attributes),
            tuple(made is not None for made in outputs),
            outputs,
        )
    return None


def read(case: Case, support: Support) -> tuple[Case, str | None]:
    """A case with what the specification asks of its inputs, and why that forbids it; None if it doesn't."""
    setting = Reading(
        case.op, case.opset, Random(0), support, given=case.inputs, said=case.attributes, results=case.outputs
    )
    refusal = None
    try:
        specifications()[case.op].body(setting)
    except NotAllowedError as error:
        refusal = str(error)
    else:
        unread = [
            place for place, item in enumerate(case.inputs) if item is not None and place >= len(setting.inputs)
        ]
        if unread:
            refusal = f"input {unread[0]} isn't read"
        elif any(case.outputs[len(setting.outputs) :]):
            refusal = f"output {len(setting.outputs)} isn't computed"
    asked = [mine or own for mine, own in itertools.zip_longest(setting.inputs, case.inputs)]
    return replace(case, inputs=tuple(asked)), refusal


def accepts(case: Case, generator: np.random.Generator) -> str | None:
    """Why ONNX or ONNX Runtime refuses a case, or finds other types than predicted; None if all is well."""
    draft = Draft(case.opset)
    setting = Drawing(case.op, case.opset, Random(0), source=Fresh())
    setting.inputs, setting.attributes = list(case.inputs), dict(case.attributes)
    unsaid = [TensorType("float32", ()) if there else None for there in case.outputs]  # the runtime infers them
    setting.outputs = list(case.predicted or unsaid)
    draft.add(setting)
    named = draft.made()
    try:
        feeds = {name: drawn_values(tensor.type, tensor.values, generator) for name, tensor in draft.sources.items()}
        if case.predicted:
            onnx.checker.check_model(model_of(draft, {}, named), full_check=True)
        else:
            onnx.shape_inference.infer_shapes(model_of(draft, {}, [], typed=False), check_type=True, strict_mode=True)
        found = run(model_of(draft, {}, named, typed=False), feeds, named)
    except (RefusedError, onnx.checker.ValidationError, onnx.shape_inference.InferenceError, ValueError) as error:
        return str(error)
    for name, array in found.items():
        predicted = draft.tensors[name].type
        if case.predicted and not predicted.describes(array.dtype.name, array.shape):
            return f"predicted {predicted}, computed {array.dtype} {array.shape}"
    return None


def stepped(case: Case, random: Random) -> Case | None:
    """A case one step away: one size, rank, type, attribute or input changed. None if nothing was to be changed."""
    steps = [
        _other_size,
        _other_size,
        _other_rank,
        _other_dtype,
        _other_attribute,
        _other_attribute,
        _other_constant,
        _without,
    ]
    return random.choice(steps)(replace(case, predicted=()), random)


def _typed(case: Case) -> list[int]:
    return [place for place, item in enumerate(case.inputs) if item is not None and item.array is None]


def _with_type(case: Case, place: int, made: TensorType, step: str) -> Case:
    operand = case.inputs[place]
    assert operand is not None
    inputs = (*case.inputs[:place], replace(operand, type=made), *case.inputs[place + 1 :])
    return replace(case, inputs=inputs, step=step)


def _other_size(case: Case, random: Random) -> Case | None:
    places = [place for place in _typed(case) if case.inputs[place].type.shape]  # type: ignore[union-attr]
    if not places:
        return None
    place = random.choice(places)
    dtype, shape = case.inputs[place].type  # type: ignore[union-attr]
    axis = random.randrange(len(shape))
    size = random.choice([shape[axis] + 1, max(0, shape[axis] - 1), shape[axis] * 2, 1, 0])
    made = TensorType(dtype, (*shape[:axis], size, *shape[axis + 1 :]))
    return _with_type(case, place, made, f"input {place}: {shape[axis]} -> {size} on axis {axis}")


def _other_rank(case: Case, random: Random) -> Case | None:
    places = _typed(case)
    if not places:
        return None
    place = random.choice(places)
    dtype, shape = case.inputs[place].type  # type: ignore[union-attr]
    if shape and random.random() < 0.5:
        axis = random.randrange(len(shape))
        return _with_type(
            case,
            place,
            TensorType(dtype, (*shape[:axis], *shape[axis + 1 :])),
            f"input {place}: axis {axis} of {len(shape)} out",
        )
    axis = random.randint(0, len(shape))
    return _with_type(
        case,
        place,
        TensorType(dtype, (*shape[:axis], 1, *shape[axis:])),
        f"input {place}: axis {axis} of {len(shape) + 1} in",
    )


def _other_dtype(case: Case, random: Random) -> Case | None:
    places = _typed(case)
    if not places:
        return None
    place = random.choice(places)
    made = case.inputs[place].type  # type: ignore[union-attr]
    formals = schema_of(case.op, case.opset).inputs
    variable = formals[min(place, len(formals) - 1)].type_str
    dtype = random.choice([*dtypes_of(case.op, case.opset, variable), "float32", "int64", "bool"])
    changed = case
    for other in places:  # what has the same variable goes with it
        own = case.inputs[other]
        assert own is not None
        if formals[min(other, len(formals) - 1)].type_str == variable and random.random() < 0.9:
            changed = _with_type(changed, other, TensorType(dtype, own.type.shape), f"type {made.dtype} -> {dtype}")
    return changed if changed is not case else None


def _other_attribute(case: Case, random: Random) -> Case | None:
    schema = schema_of(case.op, case.opset)
    names = [name for name in schema.attributes if schema.attributes[name].type.name in _CHANGED]
    if not names:
        return None
    name = random.choice(names)
    value = case.attributes.get(name)
    if value is None:
        return None
    if random.random() < 0.2:
        left = {other: item for other, item in case.attributes.items() if other != name}
        return replace(case, attributes=left, step=f"{name} out")
    changed = _near(value, random)
    return replace(case, attributes={**case.attributes, name: changed}, step=f"{name}: {value} -> {changed}")


_CHANGED = frozenset({"INT", "INTS", "FLOAT", "FLOATS", "STRING"})
"""Kinds of attributes that are changed."""


def _near(value: Any, random: Random) -> Any:
    if isinstance(value, str):
        return random.choice([value.upper(), value.lower(), value[1:], ""])
    if isinstance(value, tuple):
        if not value or random.random() < 0.1:
            return (*value, 1)
        place = random.randrange(len(value))
        return (*value[:place], _near(value[place], random), *value[place + 1 :])
    return random.choice([value + 1, value - 1, -value, value * 0, value * 2])


def _other_constant(case: Case, random: Random) -> Case | None:
    places = [place for place, item in enumerate(case.inputs) if item is not None and item.array is not None]
    if not places:
        return None
    place = random.choice(places)
    operand = case.inputs[place]
    assert operand is not None
    assert operand.array is not None
    value = operand.array.tolist()
    changed = _near(tuple(value) if isinstance(value, list) else value, random)
    try:
        array = np.asarray(changed, dtype=operand.array.dtype)
    except (OverflowError, ValueError):
        return None
    other = replace(operand, type=TensorType(operand.type.dtype, array.shape), array=array)
    inputs = (*case.inputs[:place], other, *case.inputs[place + 1 :])
    return replace(case, inputs=inputs, step=f"input {place}: {value} -> {changed}")


def _without(case: Case, random: Random) -> Case | None:
    places = [place for place, item in enumerate(case.inputs) if item is not None]
    optional = onnx.defs.OpSchema.FormalParameterOption.Optional
    formals = schema_of(case.op, case.opset).inputs
    places = [place for place in places if place < len(formals) and formals[place].option == optional]
    if not places:
        return None
    place = random.choice(places)
    inputs = [*case.inputs[:place], None, *case.inputs[place + 1 :]]
    while inputs and inputs[-1] is None:
        inputs.pop()
    return replace(case, inputs=tuple(inputs), step=f"input {place} out")
