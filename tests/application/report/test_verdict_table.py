"""The table of verdicts of architectures: cells, counts, classes of failures."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from rich.console import Console

from conrepair.application.report.result import AuditResult, Problem, Ran, Row
from conrepair.application.report.verdict_table import (
    failure_class,
    first_line,
    print_verdicts,
    verdicts_csv,
    verdicts_markdown,
)
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.errors import ExitCode
from conrepair.verdicts.evaluate.verdict import Verdict

MODEL = Model("onnx", "/nowhere/model.onnx", "0")


def row(
    name: str, conversion: str, verdict: Verdict | None, problem: Problem | None = None, **changes: object
) -> Row:
    kind = "target" if conversion else "reference"
    reason = problem.message if problem else "as it is"
    return Row(
        model=name,
        conversion=conversion,
        backend="libraries",
        kind=kind,
        verdict=verdict,
        reason=reason,
        problem=problem,
        **changes,
    )


def refused(message: str, kind: str = "exception", code: ExitCode = ExitCode.EXECUTION) -> Problem:
    return Problem(message=message, exit_code=int(code), kind=kind)


ROWS = (
    row("keras.A", "", None),
    row("keras.A", "x", Verdict.EQUIVALENT, ran=Ran(artifact=MODEL)),
    row("keras.A", "x+y", Verdict.NOISE, ran=Ran(artifact=MODEL)),
    row("keras.B", "", None),
    row("keras.B", "x", Verdict.UNDEPLOYABLE, refused("Exporting the operator 'aten::roll' failed\nand | more")),
    row("keras.B", "x+y", Verdict.UNDEPLOYABLE, refused("not tried: keras.B/x failed", "")),
    row("mine", "x", Verdict.FAULTY),
)
RESULT = AuditResult(
    name="test",
    folder=Path("/out"),
    rows=ROWS,
    samples={},
    datasets={},
    recipes={},
    pairs=(),
    versions={},
    config={},
    seconds=61.0,
    architectures=("keras.A", "keras.B"),
)


def test_markdown() -> None:
    text = verdicts_markdown(RESULT)
    assert "| architecture | x | x+y |" in text
    assert "| keras.A | equivalent | noise |" in text
    assert "| keras.B | undeployable (refused) | not tried |" in text
    assert "| x | 1 | 0 | 0 | 0 | 0 | 1 | 0 |" in text
    assert "| keras.B | x | refused: aten::roll | Exporting the operator 'aten::roll' failed |" in text
    assert "1 refused\n" in text
    assert "mine" not in text


def test_csv() -> None:
    lines = list(csv.DictReader(io.StringIO(verdicts_csv(RESULT))))
    assert [(line["architecture"], line["route"], line["verdict"]) for line in lines] == [
        ("keras.A", "source", "reference"),
        ("keras.A", "x", "equivalent"),
        ("keras.A", "x+y", "noise"),
        ("keras.B", "source", "reference"),
        ("keras.B", "x", "undeployable (refused)"),
        ("keras.B", "x+y", "not tried"),
    ]
    assert lines[4]["class"] == "refused: aten::roll"


def test_console() -> None:
    stream = io.StringIO()
    print_verdicts(RESULT, Console(file=stream, width=120, no_color=True))
    text = stream.getvalue()
    assert "[1] x" in text
    assert "x: 1 equivalent, 1 undeployable" in text
    assert "2 architectures in 61 s" in text


@pytest.mark.parametrize(
    ("problem", "has_model", "expected"),
    [
        (refused("stopped after 5 s", "timeout"), False, "timeout"),
        (refused("too much", "memory"), False, "memory"),
        (refused("the worker process died (SIGSEGV)", "crash"), False, "crash"),
        (refused("x wrote a model that doesn't load. Why", "refused", ExitCode.MODEL_LOAD), False, "doesn't load"),
        (refused("Gather: index out of range"), True, "doesn't run"),
        (refused("no array of the data fits", "refused", ExitCode.USAGE), True, "doesn't run"),
        (refused("there is no route", "", ExitCode.USAGE), False, "no route"),
        (refused("not implemented (OperationDescription(operation_type='Erf', version=13))"), False, "refused: Erf"),
        (
            refused("Unsupported: ONNX export of operator adaptive_avg_pool2d, x"),
            False,
            "refused: adaptive_avg_pool2d",
        ),
        (refused("tf2onnx could not convert Roll ('a/b'): ONNX opset 17"), False, "refused: Roll"),
        (refused("ValueError: axis 3 is out of range"), False, "converter failed"),
    ],
)
def test_classes(problem: Problem, has_model: bool, expected: str) -> None:
    found = failure_class(
        row("a", "x", Verdict.UNDEPLOYABLE, problem, ran=Ran(artifact=MODEL if has_model else None))
    )
    assert found == expected


def test_a_wrong_answer() -> None:
    assert failure_class(row("a", "x", Verdict.FAULTY)) == "wrong outputs"
    assert failure_class(row("a", "x", Verdict.NOISE)) == ""


def test_where_tensorflow_fails_doesnt_hide_why() -> None:
    reason = (
        'ConverterError: <unknown>:0: error: loc(callsite(fused["TensorListReserve:", "a/TensorArrayV2_1"] at '
        "fused[\"b\"])): 'tf.TensorListReserve' op requires element_shape to be static\n<unknown>:0: note: more"
    )
    assert first_line(reason) == "ConverterError: 'tf.TensorListReserve' op requires element_shape to be static"
    problem = refused(reason)
    assert failure_class(row("a", "x", Verdict.UNDEPLOYABLE, problem)) == "refused: tf.TensorListReserve"
