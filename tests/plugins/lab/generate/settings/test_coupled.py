"""Sizes that are solved for depend on nothing that was solved before."""

from __future__ import annotations

from random import Random

from conrepair_lab.generate.settings.expressions import Expression, Unknown
from conrepair_lab.generate.settings.ports import NotAllowedError
from conrepair_lab.generate.settings.solving import solved_by_z3


def sizes(seed: int) -> list[int] | None:
    random = Random(seed)
    unknowns = [Unknown(f"u{place}", 1, 40) for place in range(random.randint(3, 6))]
    conditions: list[Expression] = [unknowns[0] * unknowns[1] * unknowns[2] == random.choice([24, 36, 48, 60, 72])]
    if len(unknowns) > 3:
        conditions.append(unknowns[3] + unknowns[0] <= unknowns[1] * 2 + 7)
    try:
        found = solved_by_z3(unknowns, conditions, {}, random)
    except NotAllowedError:
        return None
    assert found[unknowns[0]] * found[unknowns[1]] * found[unknowns[2]] in {24, 36, 48, 60, 72}
    return list(found.values())


def test_in_another_order_the_same_is_found() -> None:
    order = list(range(40))
    found = {seed: sizes(seed) for seed in order}
    assert sum(each is not None for each in found.values()) > 20
    Random(1).shuffle(order)
    again = {seed: sizes(seed) for seed in order}
    assert again == found
