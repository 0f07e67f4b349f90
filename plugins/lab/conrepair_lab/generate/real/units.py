"""The units of a model: nodes, those together that are tied by what isn't a tensor of numbers; and pieces of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import onnx

from conrepair.formats.onnx.load.proto_file import read_by
from conrepair_lab.generate.pieces import operator_of
from conrepair_lab.generate.real.opened import OpenedFile


@dataclass(frozen=True, eq=False)
class Unit:
    """Nodes that are one in a network.

    Attributes:
        nodes: In order.
        reads: Names of tensors of numbers, constants apart, that they read from others.
        makes: Names of tensors of numbers that they make.
    """

    nodes: tuple[onnx.NodeProto, ...]
    reads: tuple[str, ...]
    makes: tuple[str, ...]

    @property
    def op(self) -> str:
        """The operator that it's about."""
        return operator_of(self.nodes[-1])


def units_of(model: OpenedFile) -> list[Unit]:
    """All units, in an order in which they can be computed."""
    made_by = {name: place for place, node in enumerate(model.nodes) for name in node.output if name}
    group = list(range(len(model.nodes)))
    for place, node in enumerate(model.nodes):
        for name in read_by(node):
            if name in made_by and name not in model.values:
                old, new = group[made_by[name]], group[place]
                group = [new if own == old else own for own in group]
    found = []
    for number in sorted(set(group), key=lambda own: max(place for place, other in enumerate(group) if other == own)):
        places = [place for place, own in enumerate(group) if own == number]
        unit = _unit(model, places)
        if _comes_last(model, unit, places) and unit.makes:
            found.append(unit)
    return found


def cut(units: Sequence[Unit], most: int, random: Random) -> list[Unit]:
    """Some units that hang together.

    Args:
        units: Of a model.
        most: How many.
        random: Where it begins, and how it goes on, comes from here.
    """
    if len(units) <= most:
        return list(units)
    names: dict[str, list[int]] = {}
    for place, unit in enumerate(units):
        for name in (*unit.reads, *unit.makes):
            names.setdefault(name, []).append(place)
    start = random.randrange(len(units))
    chosen, border = {start}, [start]
    while border and len(chosen) < most:
        unit = units[border[random.randrange(len(border))]]
        beside = {place for name in (*unit.reads, *unit.makes) for place in names[name]} - chosen
        if not beside:
            border = [place for place in border if units[place] is not unit]
            continue
        new = random.choice(sorted(beside))
        chosen.add(new)
        border.append(new)
    return [unit for place, unit in enumerate(units) if place in chosen]


def _unit(model: OpenedFile, places: Sequence[int]) -> Unit:
    nodes = tuple(model.nodes[place] for place in places)
    made = dict.fromkeys(name for node in nodes for name in node.output if name)
    read = dict.fromkeys(name for node in nodes for name in read_by(node))
    return Unit(
        nodes,
        tuple(name for name in read if name not in made and name not in model.constants),
        tuple(name for name in made if name in model.values),
    )


def _comes_last(model: OpenedFile, unit: Unit, places: Sequence[int]) -> bool:
    """Whether a unit reads tensors of numbers alone, and whatever reads of it comes behind all of it."""
    made, inner = set(unit.makes), set(places)
    between = (node for place, node in enumerate(model.nodes[: places[-1]]) if place not in inner)
    return all(name in model.values for name in unit.reads) and not any(made & set(read_by(node)) for node in between)
