"""Faults of an audit by their causes: what is the same over targets is told once, with what repaired it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import localizations
import pytest

from conrepair.application.report.causes import Cause, causes_of, decision_of, step_of
from conrepair.application.report.result import (
    AuditResult,
    Compared,
    LocalizedStep,
    LocalizedTarget,
    Place,
    Problem,
    Ran,
    RepairedTarget,
    Row,
)
from conrepair.application.report.summary import summary_text
from conrepair.diagnosis.localization.result import LocatedFault
from conrepair.diagnosis.repairs.conversion.result import Mending, Stop
from conrepair.formats.models.model import Model
from conrepair.ground.graph.kinds import Kind
from conrepair.verdicts.evaluate.verdict import Verdict

DROPPED = "divisor_override is in the original, and not in the converted model"
ABOUT = localizations.about()


def dropped(place: int, *, step: str = "exporter", words: str = DROPPED) -> LocatedFault:
    return localizations.fault_of(
        localizations.row(place, 0.5),
        step=step,
        evidence=(f"`layer_{place}`: {words}",),
        differences=((words, f"layer_{place}"),),
    )


def target(
    name: str, *faults: LocatedFault, conversion: str = "exporter", mended: bool = False, build: str = ""
) -> Row:
    """A row that isn't right; looked into where it has faults."""
    found = localizations.made(3, {1: 0.5}, faults=faults)
    step = LocalizedStep(Compared(ABOUT.source, ABOUT.target, build), found)
    return Row(
        model=name,
        conversion=conversion,
        backend="tvm-O2" if build else "libraries",
        place=Place("tvm") if build else None,
        kind="target",
        reference=name,
        verdict=Verdict.FAULTY,
        reason="relative error 0.5",
        localized=LocalizedTarget(steps=(step,)) if faults else LocalizedTarget(),
        repaired=RepairedTarget(verdict=Verdict.EQUIVALENT) if mended else RepairedTarget(),
    )


def causes(rows: Sequence[Row]) -> tuple[Cause, ...]:
    run = localizations.run_of(localizations.made(1), ABOUT, Path("/nowhere/out"))
    result: AuditResult = dataclasses.replace(run, kind="audit", rows=tuple(rows))
    return causes_of(result)


def names(cause: Cause) -> list[str]:
    return [item.name for item in cause.targets]


def test_what_one_step_does_alike_is_one_cause_with_its_targets() -> None:
    rows = [target(f"net{place}", dropped(place), mended=place != 3) for place in range(5)]
    (cause,) = causes(rows)
    assert (cause.step, cause.kind, cause.words) == ("exporter", "hyperparameters", DROPPED)
    assert names(cause) == [f"net{place}/exporter" for place in range(5)]
    assert [item.layers for item in cause.targets] == [(f"layer_{place}",) for place in range(5)]
    assert (cause.counted, cause.state) == ("5 targets, repaired in 4", "warning")
    assert "layer_3" in cause.advice, "of the one that is left"


@pytest.mark.parametrize(
    "other",
    [
        dropped(1, step="another"),
        dropped(1, words="ceil_mode is in the original, and not in the converted model"),
        dataclasses.replace(dropped(1), kind=Kind.GRAPH, differences=(), evidence=("the result is shifted",)),
    ],
    ids=["step", "attribute", "no difference"],
)
def test_another_step_or_attribute_is_another_cause(other: LocatedFault) -> None:
    assert [names(cause) for cause in causes([target("a", dropped(1)), target("b", other)])] == [
        ["a/exporter"],
        ["b/exporter"],
    ]


def test_values_and_options_of_a_step_make_no_other_cause() -> None:
    first = dropped(1, words="AveragePool has pads [0, 0, 2, 2], not [1, 1, 1, 1]")
    second = dropped(2, step="exporter,opset=18", words="AveragePool has pads [0, 0, 4, 4], not [2, 2, 2, 2]")
    (cause,) = causes([target("a", first), target("b", second)])
    assert cause.words == "AveragePool has pads …, not …"
    assert ["[0, 0, 2, 2]" in cause.targets[0].words, "[0, 0, 4, 4]" in cause.targets[1].words] == [True, True]


def test_of_several_differences_the_one_that_most_targets_share_is_the_cause() -> None:
    both = dataclasses.replace(dropped(1), differences=(("count_include_pad is False", "p"), (DROPPED, "p")))
    (cause,) = causes([target("a", both), target("b", dropped(1))])
    assert cause.words == DROPPED
    assert cause.targets[0].words == f"`layer_1`: count_include_pad is False; {DROPPED}"


def test_a_step_on_the_way_to_repaired_targets_is_none_of_its_own() -> None:
    way = dataclasses.replace(target("net"), kind="intermediate")
    final = target("net", dropped(1), conversion="exporter+importer", mended=True)
    run = dataclasses.replace(localizations.run_of(localizations.made(1), ABOUT), kind="audit", rows=(way, final))
    assert [names(cause) for cause in causes([way, final])] == [["net/exporter > importer"]]
    assert (run.exit_code_of(way), run.exit_code) == (0, 0)
    assert "faulty, on the way" in summary_text(run)
    left = dataclasses.replace(run, rows=(way, final, target("net", conversion="exporter+other")))
    assert (left.exit_code_of(way), left.exit_code) == (1, 1)
    unrepaired = dataclasses.replace(final, verdict=Verdict.NOISE, repaired=RepairedTarget())
    assert dataclasses.replace(run, rows=(way, unrepaired)).exit_code == 1, "nothing says that it's right"


def test_a_file_is_one_target_wherever_it_ran_and_repaired_where_it_is_so_everywhere() -> None:
    row = target("net", dropped(1), mended=True)
    beside = dataclasses.replace(target("net", mended=True), backend="onnxruntime")
    (cause,) = causes([row, beside])
    assert [item.backends for item in cause.targets] == [("own library", "onnxruntime")]
    assert cause.counted == "1 target, repaired"
    left = dataclasses.replace(beside, repaired=RepairedTarget())
    (cause,) = causes([row, left])
    assert (cause.counted, cause.state) == ("1 target", "wrong")


def test_a_compiler_is_the_step_of_a_build_and_stands_first_where_it_is_not_repaired() -> None:
    fault = localizations.fault_of(
        localizations.row(1),
        Kind.COMPILATION,
        evidence=("the kernel `pool_3` (AveragePool `p`) gives another result",),
    )
    rows = [target("net", dropped(1), mended=True), target("net", fault, conversion="", build="/nowhere/build")]
    compiled, exported = causes(rows)
    assert (compiled.step, compiled.words) == ("tvm", "the kernel (AveragePool) gives another result")
    assert exported.step == "exporter"
    assert [step_of(row) for row in rows] == ["", "tvm"], "of a conversion by one converter there's nothing to tell"


def test_the_step_is_named_of_a_route_of_several() -> None:
    row = target("net", dropped(1, step="exporter,opset=18"), conversion="exporter+importer")
    assert step_of(row) == "exporter"
    assert step_of(dataclasses.replace(row, localized=LocalizedTarget())) == ""


def test_what_has_no_layer_at_fault_is_told_by_its_verdict_and_reason() -> None:
    stop = Stop(converter="importer", error="Operator Foo isn't known")
    failed = [
        Row(
            model=name, conversion="importer", backend="libraries", kind="target", verdict=Verdict.UNDEPLOYABLE,
            reason=f"Operator Foo isn't known; node {place}",
            problem=Problem(message="x", explanation="Use another."),
            mending=Mending(stops=(stop,)),
        )
        for place, name in enumerate("ab")
    ]  # fmt: skip
    unseen = target("c")
    one, two = causes([*failed, unseen])
    assert (one.step, one.kind, one.words) == ("importer", "undeployable", "Operator Foo isn't known")
    assert (one.counted, one.advice) == ("2 targets", "Use another.")
    assert (two.kind, names(two)) == ("faulty", ["c/exporter"])
    assert "`localize`" in two.advice, "the way to learn which layers"
    (optimized,) = causes([dataclasses.replace(unseen, kind="reference", conversion="", backend="inductor")])
    assert "inductor runs the original file" in optimized.advice


def test_the_command_is_of_the_first_target_that_is_left() -> None:
    models = [Model("onnx", f"/x/{name}.onnx", "0" * 64) for name in ("net", "wrong one")]
    reference = Row(model="net", conversion="", backend="libraries", kind="reference", ran=Ran(artifact=models[0]))
    seen = dataclasses.replace(target("net", dropped(1)), ran=Ran(artifact=models[1]))
    (cause,) = causes([reference, seen])
    assert cause.command == "conrepair repair /x/net.onnx '/x/wrong one.onnx'"
    (cause,) = causes([reference, dataclasses.replace(seen, localized=LocalizedTarget())])
    assert cause.command == "conrepair localize /x/net.onnx '/x/wrong one.onnx'"
    (cause,) = causes([reference, dataclasses.replace(seen, repaired=RepairedTarget(problem=Problem(message="no")))])
    assert cause.command == "", "it was tried"


def test_a_run_that_is_right_has_no_cause() -> None:
    assert causes([dataclasses.replace(target("net"), verdict=Verdict.NOISE)]) == ()


def test_the_console_tells_a_cause_once_and_repeats_none_of_it_in_its_rows() -> None:
    rows = [target(name, dropped(1), conversion="exporter+importer", mended=name == "a") for name in "abc"]
    run = dataclasses.replace(localizations.run_of(localizations.made(1), ABOUT), kind="audit", rows=tuple(rows))
    text = summary_text(run)
    assert f"1. 3 targets, repaired in 1: exporter: {DROPPED} (hyperparameters)\n" in text
    where = "exporter > importer on own library at block/1/conv (layer_1 in the converted model)"
    assert f"   a/{where}\n   b/{where}, not repaired\n" in text
    assert text.count("divisor_override") == 2, "in the first sentence, and by its cause"
    assert "relative error 0.5" not in text, "the table has it"
    assert "   next: To prevent it, look at what writes" in text


def run_of(*rows: Row, **more: Any) -> AuditResult:
    run = localizations.run_of(localizations.made(1), ABOUT)
    return dataclasses.replace(run, kind="audit", rows=rows, **more)


def test_a_cause_of_many_targets_fits_a_screen() -> None:
    text = summary_text(run_of(*(target(f"net{place}", dropped(1)) for place in range(10))))
    assert "   and 2 more targets\n" in text
    assert "don't ship" in text.lower()


def test_an_audit_is_decided_in_a_sentence() -> None:
    right = dataclasses.replace(target("right"), verdict=Verdict.EQUIVALENT)
    given = dataclasses.replace(
        target("vendor", dropped(1), conversion=""), ran=Ran(artifact=Model("onnx", "/x/theirs.onnx", "0" * 64))
    )
    doubtful = dataclasses.replace(target("odd"), verdict=Verdict.UNDECIDED)
    said = decision_of(run_of(right, given, doubtful))
    assert said == (
        "Ship this one: right/exporter; "
        f"don't ship vendor (theirs.onnx): layer block/1/conv (layer_1 in the converted model): {DROPPED}; "
        "can't tell whether odd/exporter is right."
    )
    known = {row.where: "issue 7" for row in (given, doubtful)}
    assert decision_of(run_of(right, given, doubtful, known=known)) == (
        "Ship this one: right/exporter; known, and accepted as they are: vendor (theirs.onnx), odd/exporter."
    )
    assert decision_of(run_of()) == ""
