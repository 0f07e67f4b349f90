"""The route matrix as a value and as Markdown, from rows made by hand."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

from benchmarks.route_matrix.table import FORMATS, Cell, Matrix, matrix_markdown
from conrepair.application.report.result import AuditResult, Problem, Ran, Row
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.errors import ExitCode
from conrepair.verdicts.evaluate.verdict import Verdict

MADE = "Made by hand."
MODEL = Model("onnx", "/nowhere/model.onnx", "0")
REFUSED = Problem(message="ConversionError: no such | operator", kind="exception")


def row(model: str, conversion: str, verdict: Verdict | None, problem: Problem | None = None) -> Row:
    kind = "target" if conversion else "reference"
    artifact = None if problem else MODEL
    reason = problem.message if problem else "as it is"
    return Row(
        model=model,
        conversion=conversion,
        backend="libraries",
        kind=kind,
        verdict=verdict,
        reason=reason,
        ran=Ran(artifact=artifact),
        problem=problem,
    )


def good_cells(model: str) -> dict[tuple[str, str, str], Cell]:
    return {
        (model, one, two): Cell(f"{one}-{two}", row(f"{model}.{one}", f"{one}-{two}", Verdict.EQUIVALENT))
        for one, two in permutations(FORMATS, 2)
    }


def matrix(
    cells: dict[tuple[str, str, str], Cell],
    missing: dict[tuple[str, str], Row] | None = None,
    unmade: tuple[str, ...] = (),
) -> Matrix:
    made = {("net", form): row("net", f"to-{form}" if form != "torch" else "", Verdict.NOISE) for form in FORMATS}
    made = {place: item for place, item in made.items() if place[1] not in unmade}
    audit = AuditResult(
        name="a",
        folder=Path("/out"),
        rows=(),
        samples={},
        datasets={"net": "8 samples"},
        recipes={},
        pairs=(),
        versions={},
        config={},
        seconds=61.0,
    )
    return Matrix(cells, made, missing or {}, (audit, audit))


def test_all_good() -> None:
    result = matrix(good_cells("net"))
    text = matrix_markdown(result, MADE)
    assert "20 directions of 1 models: 20 equivalent. 122 s." in text
    assert "- torch: the original; 8 samples" in text
    assert "- keras: made by to-keras, noise" in text
    assert "| **torch** | - | equivalent | equivalent | equivalent | equivalent |" in text
    assert "## Failures" not in text
    assert "| onnx | tflite | onnx-tflite |" in text
    assert result.exit_code == ExitCode.EQUIVALENT


def test_a_failure_with_a_detour_that_works() -> None:
    cells = good_cells("net")
    tried = row("net.tensorflow", "a+b", Verdict.FAULTY), row("net.tensorflow", "a+c", Verdict.NOISE)
    failed = row("net.tensorflow", "tensorflow-tflite", Verdict.UNDEPLOYABLE, REFUSED)
    cells["net", "tensorflow", "tflite"] = Cell("tensorflow-tflite", failed, tried, frozenset({"b"}))
    result = matrix(cells)
    text = matrix_markdown(result, MADE)
    assert "19 equivalent, 1 undeployable; another route works for 1 of those that fail." in text
    assert "**converter failed**; instead: noise" in text
    line = next(line for line in text.splitlines() if line.startswith("| net | tensorflow | tflite |"))
    assert line.endswith("| converter failed | ConversionError: no such \\| operator | a+c |")
    assert result.exit_code == ExitCode.DIFFERENT


def test_a_failure_without_a_way_around() -> None:
    cells = good_cells("net")
    tried = (row("net.torch", "a+b", Verdict.FAULTY),)
    cells["net", "torch", "onnx"] = Cell("x", row("net.torch", "x", Verdict.FAULTY), tried)
    text = matrix_markdown(matrix(cells), MADE)
    assert "another route works for 0" in text
    assert "| net | torch | onnx | x | wrong outputs | as it is | nothing (tried: a+b) |" in text


def test_a_format_that_never_came_to_be_says_why() -> None:
    cells = good_cells("net")
    for form in FORMATS:
        if form != "tflite":
            cells["net", "tflite", form] = Cell("", None)
    failed = row("net", "torch-tflite", Verdict.UNDEPLOYABLE, REFUSED)
    text = matrix_markdown(matrix(cells, {("net", "tflite"): failed}, unmade=("tflite",)), MADE)
    assert "16 equivalent, 4 not made" in text
    assert "- tflite: not made by torch-tflite: ConversionError: no such | operator" in text
    assert "| **tflite** | not made | not made | not made | - | not made |" in text


def test_a_source_that_doesnt_load_is_in_the_matrix_with_its_reason() -> None:
    cells = dict.fromkeys(good_cells("lost"), Cell("", None))
    problem = Problem(message="lost.keras: no such model file.", exit_code=int(ExitCode.MODEL_LOAD))
    result = matrix(cells, {("lost", ""): row("lost", "", None, problem)})
    text = matrix_markdown(result, MADE)
    assert "20 directions of 1 models: 20 not made" in text
    assert "## lost\n\nThe original doesn't work: lost.keras: no such model file." in text
    assert "| **torch** |" not in text
    assert "## Failures" not in text
    assert result.exit_code == ExitCode.MODEL_LOAD
