"""Give a number of the target the value that the source has in the same piece, however either side writes it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from conrepair.diagnosis.localization.faces.region import Side
from conrepair.diagnosis.repairs.edits import Edit, Graft, SetAttributes
from conrepair.diagnosis.repairs.proposals.proposal import Proposal, ProposalSetting, set_to
from conrepair.formats.editing.operation import Operation
from conrepair.ground.graph.layer_graph import Node

_SAME = 1e-4  # relative: what a number loses where it's written in another type
_MOST = 12  # proposals for a piece: more numbers than that are another network
_FORMS: dict[str, Sequence[Callable[[float], float]]] = {
    # The scale of an attention is written as one factor, as a divisor, or as its root on both operands.
    "Mul": (float, lambda value: 1 / value, math.sqrt, lambda value: 1 / math.sqrt(value)),
    "Div": (float, lambda value: 1 / value, math.sqrt, lambda value: 1 / math.sqrt(value)),
    "Sub": (float, float.__neg__),
    "Add": (float, float.__neg__),
}


@dataclass(frozen=True)
class _Number:
    """A real number that a layer computes with.

    Attributes:
        node: That has it.
        name: Of the attribute, or "operand".
        value: It.
    """

    node: Node
    name: str
    value: float

    @property
    def is_operand(self) -> bool:
        """Whether it's read beside a tensor."""
        return self.name in self.node.parameters


def constant_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """Numbers that only the target's side has, each as one that only the source's side has; the nearest first.

    Operators needn't be paired for it: a normalization's epsilon is an attribute on one side and the operand of an
    addition on the other, and which operators belong together may not be known. Numbers that both sides have stay.
    """
    ours, theirs = (_numbers(_with_those_before(side)) for side in (setting.region.source, setting.region.target))
    lost = list(dict.fromkeys(item.value for item in _without(ours, theirs)))
    alike: dict[tuple[str, float], list[_Number]] = {}
    for item in _without(theirs, ours):
        alike.setdefault((f"{item.node.op} {item.name}", item.value), []).append(item)
    found: list[tuple[float, Proposal]] = []
    for group in alike.values():
        first = group[0]
        for value in lost:
            fitting = [item for item in ours if item.value == value and _could_be(first, item)]
            for place, form in enumerate(_FORMS.get(first.node.op, (float,)) if fitting else ()):
                wanted = form(value) if value > 0 or place == 0 else math.nan
                edits = [edit for item in group if (edit := _edit(item, wanted, setting)) is not None]
                if not math.isfinite(wanted) or len(edits) < len(group):
                    continue
                found.append((place + _distance(first.value, wanted), tuple(edits)))
                if len(edits) > 1:
                    found += [(place + _distance(first.value, wanted), (edit,)) for edit in edits]
    yield from (proposal for _, proposal in sorted(found, key=lambda item: item[0])[:_MOST])


def lost_scale_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """The scale of an attention in front of its softmax, where the target multiplies by none."""
    ours, theirs = _numbers(setting.region.source.nodes), _numbers(setting.region.target.nodes)
    scales = [item for item in _without(ours, theirs) if item.name == "scale" and not item.is_operand]
    softmax = [node for node in setting.region.target.nodes if node.op == "Softmax"]
    for scale, node in zip(scales, softmax, strict=False):
        tensor = setting.in_editor.tensor(node.inputs[0])
        if tensor is not None:
            factor = np.array(scale.value, np.float32)
            yield (Graft(tensor, (Operation("Mul", (tensor,), {}, {"operand": factor}),)),)


def _with_those_before(side: Side) -> list[Node]:
    """The nodes of a side, and those that compute what they read: 1e-8 is no difference before its root."""
    before = [side.graph.producers[name] for name in side.begins if name in side.graph.producers]
    return [*before, *side.nodes]


def _numbers(nodes: Sequence[Node]) -> list[_Number]:
    found = []
    for node in nodes:
        found += [
            _Number(node, name, float(value))
            for name, value in node.attributes.items()
            if isinstance(value, float) and math.isfinite(value)
        ]
        operand = node.parameters.get("operand")
        if operand is not None and np.dtype(operand.dtype).kind == "f" and math.prod(operand.shape) == 1:
            value = float(operand.numpy().reshape(-1)[0])
            if math.isfinite(value):
                found.append(_Number(node, "operand", value))
    return found


def _without(some: Sequence[_Number], others: Sequence[_Number]) -> list[_Number]:
    """Numbers of one side, without as many equal ones as the other side has."""
    left, found = [item.value for item in others], []
    for item in some:
        same = next((value for value in left if math.isclose(value, item.value, rel_tol=_SAME)), None)
        if same is None:
            found.append(item)
        else:
            left.remove(same)
    return found


def _could_be(theirs: _Number, ours: _Number) -> bool:
    """Whether one may stand for the other: attributes for those of their name, operands for any number."""
    return theirs.is_operand or theirs.name == ours.name


def _edit(number: _Number, value: float, setting: ProposalSetting) -> Edit | None:
    place = setting.in_editor.of(number.node)
    if place is None:
        return None
    if not number.is_operand:
        return SetAttributes(place.name, {number.name: value}) if number.name in place.attributes else None
    return set_to(place, "operand", np.array(value, np.float32))


def _distance(one: float, other: float) -> float:
    """How far two numbers lie apart, in powers of ten; those of other signs are further."""
    if one * other <= 0:
        return 100.0
    return abs(math.log10(abs(one)) - math.log10(abs(other)))
