"""What is decided otherwise at half and at twice of each number that decides: `numbers.txt` says it.

Its table is made anew by `python tests_real/diagnosis/localization/test_numbers.py`, and read by whoever changes a
number.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[3]), str(Path(__file__).parents[3] / "tests" / "support")]

import decisions.explaining as about_explaining
import decisions.few_bits as about_few_bits
import decisions.judging as about_judging
import decisions.naming as about_naming
import decisions.pairing as about_pairing
import decisions.preparing as about_preparing

from conrepair.diagnosis.localization.numbers import few_bits, judging, naming, pairing, preparing
from conrepair.verdicts.judging import numbers as explaining

TABLE = Path(__file__).with_name("numbers.txt")
STAGES: dict[ModuleType, list[Any]] = {
    pairing: about_pairing.DECISIONS,
    explaining: about_explaining.DECISIONS,
    judging: about_judging.DECISIONS,
    few_bits: about_few_bits.DECISIONS,
    preparing: about_preparing.DECISIONS,
    naming: about_naming.DECISIONS,
}
NOT_SHOWN = 1
"""Numbers of which half and twice decide nothing here otherwise; only goes down."""


def numbers(stage: ModuleType) -> dict[str, Any]:
    """The numbers of a stage."""
    return {name: value for name, value in vars(stage).items() if name.isupper()}


def times(value: Any, factor: float) -> Any:
    """A number, or each of several, times a factor; whole ones stay whole."""
    if isinstance(value, dict):
        return {key: times(item, factor) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(times(item, factor) for item in value)
    return type(value)(value * factor)


def answers(stage: ModuleType) -> dict[str, str]:
    """What is decided, by the question."""
    return {question: answer for decision in STAGES[stage] for question, answer in decision.answers()}


def rows(stage: ModuleType) -> Iterator[str]:
    """The lines of a stage: each number, and below it what half of it decides otherwise, and twice of it."""
    usual = answers(stage)
    for name, value in numbers(stage).items():
        yield f"{stage.__name__.rpartition('.')[2]}.{name} = {value}"
        found = []
        for words, factor in (("half", 0.5), ("twice", 2.0)):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(stage, name, times(value, factor))
                now = answers(stage)
            found += [f"  {words}: {key}: {old} -> {now[key]}" for key, old in usual.items() if old != now[key]]
        yield from found or ["  not shown"]


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: str(stage.__name__))
def test_what_half_and_twice_of_each_number_decide(stage: ModuleType) -> None:
    name = stage.__name__.rpartition(".")[2]
    blocks = TABLE.read_text(encoding="utf-8").split("\n\n")
    table = next(block for block in blocks if block.startswith(f"{name}."))
    assert list(rows(stage)) == table.strip().splitlines(), "changed on purpose: make the table anew"


def test_more_numbers_are_shown_rather_than_fewer() -> None:
    assert TABLE.read_text(encoding="utf-8").count("not shown") == NOT_SHOWN


if __name__ == "__main__":
    TABLE.write_text("\n\n".join("\n".join(rows(stage)) for stage in STAGES) + "\n", encoding="utf-8")
