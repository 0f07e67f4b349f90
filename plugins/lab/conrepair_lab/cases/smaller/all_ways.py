"""All reduction steps; one of them, here, sets options of systems to their defaults."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from conrepair_lab.cases.draft import Change, Draft, Level
from conrepair_lab.cases.smaller.attributes import ATTRIBUTES
from conrepair_lab.cases.smaller.nodes import NODES
from conrepair_lab.cases.smaller.shapes import SHAPES, VALUES, WEIGHTS


def _left_out(draft: Draft) -> list[Change]:
    return [
        functools.partial(_leave_out, system=system, name=name)
        for system, named in draft.options.items()
        for name in named
    ]


def _leave_out(draft: Draft, system: str, name: str) -> None:
    del draft.options[system][name]
    if not draft.options[system]:
        del draft.options[system]


WAYS: Mapping[str, Sequence[Level]] = {
    "nodes": NODES,
    "options": (_left_out,),
    "shapes": SHAPES,
    "attributes": ATTRIBUTES,
    "weights": WEIGHTS,
    "values": VALUES,
}
"""What makes the others quicker comes first; of each the boldest level."""
