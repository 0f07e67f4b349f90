"""Which cases are valid: others are no finding, whatever happens on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from conrepair.verdicts.truth.referees import Answers, CannotJudgeError, OnnxReference, OnnxRuntime, Referee
from conrepair_lab.cases.case import Array, Case
from conrepair_lab.cases.sizes import resized


class _First(Referee):
    """The first of several that can run a network on its inputs, to tensors of the shapes that ONNX infers."""

    name = "no referee"

    def __init__(self, *referees: Referee) -> None:
        self._referees = referees

    def computed(self, model: onnx.ModelProto, feeds: Mapping[str, Array], tensors: Sequence[str]) -> Answers:
        """See `Referee.computed`."""
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
        shapes = {item.name: item.type.tensor_type for item in (*inferred.value_info, *inferred.output)}
        refusals = []
        for referee in self._referees:
            try:
                found = referee.answers(model, feeds, tensors)
            except CannotJudgeError as error:
                refusals.append(str(error))
                continue
            wrong = [name for name, value in found.items() if not _fits(value, shapes.get(name))]
            if not wrong:
                return found
            refusals.append(f"{referee.name} gives {wrong[0]} another shape than ONNX's shape inference")
        raise CannotJudgeError(self.name, "; ".join(refusals))


def _fits(value: Any, known: onnx.TypeProto.Tensor | None) -> bool:
    if known is None or not known.HasField("shape") or not isinstance(value, np.ndarray | np.generic):
        return True
    sizes = [size.dim_value if size.HasField("dim_value") else None for size in known.shape.dim]
    return len(sizes) == value.ndim and all(
        size in {None, there} for size, there in zip(sizes, value.shape, strict=True)
    )


FIRST = _First(OnnxReference(), OnnxRuntime(wide=False))
"""ONNX's reference, which has no kernels for four in ten generated networks; of those, ONNX Runtime as it is."""


def checked(case: Case, referee: Referee, strange: frozenset[str] = frozenset()) -> Case | None:
    """A case whose outputs are declared as they are; None where it isn't valid.

    Valid is what ONNX's checker and strict shape inference accept and the referee computes, with further sizes, too.

    Args:
        case: From `Draft.tidied`.
        referee: Who computes it.
        strange: Tensors that may be without elements, NaN or infinite.
    """
    model, further = case.model, resized(case)
    try:
        answers = referee.answers(model, case.inputs)
        others = answers if further is None else referee.answers(model, further.inputs)
    except CannotJudgeError:
        return None
    for item in model.graph.output:
        value: Any = answers[item.name]
        kind = item.type
        if kind.HasField("tensor_type"):
            if not isinstance(value, np.ndarray | np.generic):
                return None
            shape = _both(np.shape(value), np.shape(others[item.name]))
            item.CopyFrom(helper.make_tensor_value_info(item.name, kind.tensor_type.elem_type, shape))
    seen = {**case.inputs, **{item.name: answers[item.name] for item in model.graph.output}}
    if not all(name in strange or ordinary(value) for name, value in seen.items()):
        return None
    try:
        onnx.checker.check_model(model, full_check=True)
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return None
    return Case.of(model, case.inputs, case.options)


def _both(one: Sequence[int], two: Sequence[int]) -> list[int | None] | None:
    """A shape that holds for two answers: what differs is open."""
    if len(one) != len(two):
        return None
    return [left if left == right else None for left, right in zip(one, two, strict=True)]


def ordinary(value: Any) -> bool:
    """Whether a tensor has elements, none of which is NaN or infinite."""
    if not isinstance(value, np.ndarray | np.generic) or value.dtype.kind in "SUO":
        return True
    return bool(value.size and np.isfinite(value.astype(np.float64)).all())
