"""Give the product and the sum that stand for a normalization the numbers that it comes to."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from conrepair.graph.layer_graph import Array, Node
from conrepair.localization.diagnosis.channelwise import CHANNELWISE
from conrepair.repairs.edits import SetParameter
from conrepair.repairs.proposals.proposal import Proposal, Setting

__all__ = ["channelwise_proposals"]


def channelwise_proposals(setting: Setting) -> Iterator[Proposal]:
    """Both operands, where one node scales channels and one shifts them."""
    for ours, theirs in setting.reading.pairs:
        if ours is None or theirs is None or {ours.op, theirs.op} != {CHANNELWISE} or len(theirs.nodes) != 2:
            continue
        nodes = {node.op: node for node in theirs.nodes}
        if nodes.keys() != {"Add", "Mul"}:
            continue
        factor, offset = (ours.parameters[role].numpy() for role in ("factor", "offset"))
        if nodes["Mul"].inputs == nodes["Add"].outputs:
            with np.errstate(divide="ignore", invalid="ignore"):
                offset = offset / factor
        edits = [
            edit
            for op, values in (("Mul", factor), ("Add", offset))
            if (edit := _edit(setting.places.of(nodes[op]), values)) is not None
        ]
        if len(edits) == 2:
            yield tuple(edits)


def _edit(node: Node | None, values: Array) -> SetParameter | None:
    if node is None or "operand" not in node.parameters or not np.isfinite(values).all():
        return None
    shape = node.parameters["operand"].shape
    if values.size != int(np.prod(shape, dtype=np.int64)):
        return None
    return SetParameter(node.name, "operand", np.asarray(values.reshape(shape), np.float32, order="C"))
