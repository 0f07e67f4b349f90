"""What a person is told of a repair."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path

import localizations
import pytest
from rich.console import Console

from conrepair.application.report.repair.summary import print_repair, repair_line, verified_on, why_left
from conrepair.diagnosis.localization.result import Localization, LocatedFault
from conrepair.diagnosis.repairs.outcomes import Agreement, Storage
from conrepair.diagnosis.repairs.result import RepairResult
from conrepair.ground.graph.kinds import Kind
from conrepair.verdicts.evaluate.verdict import Verdict

FAULT = LocatedFault(
    kind=Kind.PARAMETERS,
    source_layers=("conv",),
    target_layers=("conv",),
    step="",
    introduced_error=0.5,
    full_run_error=0.4,
    noise_floor=1e-6,
    confidence=1.0,
    evidence=("the weights are scaled by 1.5",),
    source_tensor="a",
    target_tensor="b",
)
FAULTY = Localization(
    verdict=Verdict.FAULTY,
    reason="`conv` introduces 0.5",
    faults=(FAULT,),
    layers=(),
    unmatched_source=(),
    unmatched_target=(),
    samples=8,
    output_error=0.4,
)
CLEAN = Localization(
    verdict=Verdict.EQUIVALENT,
    reason="clean",
    faults=(),
    layers=(),
    unmatched_source=(),
    unmatched_target=(),
    samples=8,
    output_error=1e-6,
)
REPAIRED = RepairResult(
    before=FAULTY,
    after=CLEAN,
    edits=("the weight of `conv` is taken from the original",),
    effects=(),
    model=None,
    unseen_before=Agreement(64, 0.4, 12, 20, 9),
    unseen_after=Agreement(64, 2e-6, 0, 20, 18),
    tried=1,
    seconds=2.0,
    in_time=True,
    storage=Storage(0, 0, 1000, 1010),
)


def shown(result: RepairResult) -> str:
    console = Console(file=io.StringIO(), width=240)
    print_repair(result, console, None)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    return str(text)


def test_a_repair_on_one_screen() -> None:
    text = shown(REPAIRED)
    assert "repaired: 1 fault found, 0 left; edits tried: 1" in text
    assert "found: parameters at conv: the weights are scaled by 1.5" in text
    assert "Before: 12 of 64 predictions differ, outputs off by 40 %, 9 of 20 predictions right; now: " in text
    assert "now: predictions the same, outputs off by 0.00020 %, 18 of 20 predictions right." in text
    assert "The file has 1,010 bytes, 1.0 % more than before." in text
    assert "quantized" not in text
    assert "left" not in text.replace("0 left", "")
    assert repair_line(REPAIRED) == "repaired: 1 fault found, 0 left: the weight of `conv` is taken from the original"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "none of the edits tried makes it right"),
        ({"tried": 0}, "no edit is known for this fault"),
        ({"refused": ("conv can't be removed",)}, "the file format doesn't allow it: conv can't be removed"),
        ({"in_time": False}, "the time was up"),
        (
            {"undone": "undone: outputs differ by 200 % on unseen samples, 100 % before"},
            "undone: outputs differ by 200 % on unseen",
        ),
    ],
)
def test_why_something_is_left(changes: dict[str, object], words: str) -> None:
    text = shown(dataclasses.replace(REPAIRED, after=FAULTY, edits=(), **changes))  # type: ignore[arg-type]
    assert "not repaired: 1 fault found, 1 left" in text
    assert "left: parameters at conv" in text
    assert words in text


def test_other_samples_count() -> None:
    """No layer is at fault where it was looked, and the answers are far off elsewhere."""
    result = dataclasses.replace(REPAIRED, unseen_after=Agreement(64, 0.2, 5))
    assert not result.mended
    assert "partly repaired" in shown(result)
    (line,) = why_left(result)
    assert line.startswith("no layer is faulty on 8 samples, but on 64 others outputs are off by 20 %")
    quantized = dataclasses.replace(result, after=dataclasses.replace(CLEAN, verdict=Verdict.QUANTIZED))
    assert quantized.mended


@pytest.mark.parametrize(
    ("floor", "elsewhere", "repaired"),
    [(1e-7, 9e-5, True), (1e-7, 2e-4, False), (1e-3, 9e-3, True), (1e-3, 0.02, False)],
)
def test_other_samples_may_show_what_rounding_explains(floor: float, elsewhere: float, repaired: bool) -> None:
    """By the floor that was measured, whatever the outputs that were looked at differ by."""
    after = dataclasses.replace(CLEAN, output_error=1e-3, output_floor=floor)
    assert dataclasses.replace(REPAIRED, after=after, unseen_after=Agreement(64, elsewhere, 0)).mended is repaired


def test_one_edit_that_makes_several_places_right_is_said_to_be_all() -> None:
    """Whoever transposes the kernels besides makes it worse."""
    others = tuple(dataclasses.replace(FAULT, target_layers=(f"conv_{place}",)) for place in range(3))
    several = dataclasses.replace(FAULTY, faults=others)
    result = dataclasses.replace(REPAIRED, before=several)
    words = "this one edit makes all 3 layers right; nothing else needs to be fixed"
    assert words in shown(result)
    assert words not in shown(dataclasses.replace(result, edits=("one", "another")))
    assert words not in shown(dataclasses.replace(result, after=several))
    assert "this one edit" not in shown(REPAIRED)


@pytest.mark.parametrize(
    ("samples", "drawn", "said"),
    [
        (8, {}, "64 samples, which the search saw, too: there are no more"),
        (72, {}, "64 other samples, which the search didn't see"),
        (72, {"net": 0}, "64 other random samples, which the search didn't see"),
    ],
)
def test_it_says_what_a_repair_was_verified_on(samples: int, drawn: dict[str, int], said: str) -> None:
    run = localizations.run_of(localizations.made(1), localizations.about())
    run = dataclasses.replace(run, samples={"data": ("a",) * samples}, seeds=drawn)
    assert verified_on(REPAIRED, run) == said
    console = Console(file=io.StringIO(), width=240)
    made = dataclasses.replace(REPAIRED, patch="/out/patch.json")
    print_repair(made, console, Path("/out"), on=said)
    told = console.file.getvalue()  # type: ignore[attr-defined]
    assert f"Verified on {said}. Before: 12 of 64" in told
    assert "written: /out: patch.json, result.json" in told
