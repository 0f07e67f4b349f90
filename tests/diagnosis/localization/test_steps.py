"""At which step of a conversion a fault came in."""

from __future__ import annotations

from located_faults import located

from conrepair.diagnosis.localization.result import Localization, LocatedFault, attribute_steps
from conrepair.verdicts.evaluate.verdict import Verdict


def localization(*faults: LocatedFault) -> Localization:
    return Localization(
        verdict=Verdict.FAULTY,
        reason="",
        faults=faults,
        layers=(),
        unmatched_source=(),
        unmatched_target=(),
        samples=4,
        output_error=0.1,
    )


def test_a_fault_came_in_at_the_first_step_that_has_it() -> None:
    one, two, three = located("a", 0.1), located("b", 0.2), located("c", 0.3)
    between = [("first", localization(one)), ("second", localization(one, located("elsewhere", 1, layers=("b",))))]
    result = attribute_steps(localization(three, two, one), between, "last")
    assert [fault.step for fault in result.faults] == ["last", "second", "first"]
    assert result.notes == ()


def test_a_step_that_was_not_looked_into_makes_a_note() -> None:
    between = [("first", None), ("second", localization(located("a", 0.1)))]
    result = attribute_steps(localization(located("a", 0.1)), between, "last")
    assert result.faults[0].step == "second"
    assert "models made by first couldn't be opened" in result.notes[0]
    assert attribute_steps(localization(), between, "last").notes == ()
