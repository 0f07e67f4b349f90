"""The screen."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path

import localizations
import pytest
from rich.console import Console

from conrepair.application.report.localization.summary import print_localization
from conrepair.diagnosis.localization.result import Coverage, Localization
from conrepair.ground.graph.kinds import Kind
from conrepair.verdicts.evaluate.verdict import Verdict


def shown(result: Localization, width: int = 100, **more: object) -> list[str]:
    stream = io.StringIO()
    print_localization(result, Console(file=stream, width=width), **more)  # type: ignore[arg-type]
    return stream.getvalue().splitlines()


def test_a_real_localization(tmp_path: Path) -> None:
    result, about = localizations.wrong_pads(tmp_path)
    lines = shown(result, about=about, folder=Path("/out/here"))
    assert lines[0].startswith("faulty: `conv` adds an error of")
    assert lines[2].startswith("1. hyperparameters at `conv`")
    text = "\n".join(lines)
    assert "pads" in text
    told = " ".join(text.split())
    assert "To prevent it, look at what writes `conv` into target.onnx: the converter, or a script after it." in told
    assert lines[-1].endswith("Files: /out/here")
    coverage = result.coverage
    assert coverage is not None
    assert coverage.nodes == coverage.all_nodes
    assert f"Compared: all {coverage.nodes} operators and all weights." in " ".join(text.split())
    assert "tensors were compared" not in text


def test_it_fits_on_a_screen_whatever_was_found() -> None:
    result = localizations.made(60, dict.fromkeys(range(20, 60), 0.5))
    result = localizations.with_names(result, "a/very/long/name" * 30, range(20, 40))
    long = dataclasses.replace(
        result,
        reason="words " * 200,
        faults=tuple(
            dataclasses.replace(fault, evidence=("more words " * 100,), step="a+b+c") for fault in result.faults
        ),
        notes=("a note " * 80,) * 9,
        unmatched_source=("x",) * 50,
    )
    lines = shown(long, folder=Path("/out"))
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100
    text = "\n".join(lines)
    assert "more faults" in text
    assert "50 of the original" in text
    assert "and 6 more notes" in text


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_says_where_to_look(kind: Kind) -> None:
    result = localizations.made(3, {1: 0.5})
    fault = dataclasses.replace(result.faults[0], kind=kind, step="tf2onnx")
    about = localizations.about("/models/mine.onnx", "/models/theirs.tflite")
    text = " ".join(" ".join(shown(dataclasses.replace(result, faults=(fault,)), about=about)).split())
    assert "theirs.tflite" in text
    assert "brought in by tf2onnx" in text
    assert "next: Repeat the step tf2onnx with other options, or with another converter." in text


@pytest.mark.parametrize("verdict", [Verdict.EQUIVALENT, Verdict.NOISE, Verdict.QUANTIZED])
def test_where_nothing_is_wrong_it_says_what_was_not_looked_at(verdict: Verdict) -> None:
    lines = shown(localizations.made(4, verdict=verdict))
    assert lines[0].startswith(f"{verdict.value}: ")
    text = " ".join(" ".join(lines).split())
    assert "Not tested: " in text
    assert "4 tensors were compared on 8 samples. 1.8 s." in text


def test_it_says_why_layers_are_compared_on_fewer_samples() -> None:
    result = dataclasses.replace(localizations.made(4), coverage=covered(9))
    about = localizations.about("a.onnx", "b.onnx")
    few = " ".join(" ".join(shown(result, about=about)).split())
    told = "The layers were compared on 8 samples, which tell a fault from rounding, so no outputs of more"
    assert told in few
    all_ = " ".join(" ".join(shown(result, about=dataclasses.replace(about, samples=32))).split())
    told = "compared on 8 of 32 samples, which tell a fault from rounding; the outputs on all 32. 1.8 s."
    assert told in all_
    alone = dataclasses.replace(result, layers=())
    none = " ".join(" ".join(shown(alone, about=dataclasses.replace(about, samples=32))).split())
    assert "The outputs were compared on 32 samples. 1.8 s." in none
    same = " ".join(" ".join(shown(result, about=dataclasses.replace(about, samples=8))).split())
    assert "The layers were compared on 8 samples. 1.8 s." in same


def covered(nodes: int, explained: float | None = None, parameters: int = 0) -> Coverage:
    """Of 10 parameters."""
    return Coverage(
        nodes=nodes, all_nodes=21, parameters=parameters, all_parameters=10, unseen=(), explained=explained
    )


def test_it_says_how_much_was_compared() -> None:
    result = localizations.made(4, {1: 0.5})
    text = " ".join(" ".join(shown(dataclasses.replace(result, coverage=covered(19, 0.934, 9)))).split())
    assert "Compared: 19 of 21 operators in 4 segments and 90 % of the weights, by their effect on results." in text
    assert "The faulty layers account for 93 % of the error of the outputs." in text
    text = " ".join(" ".join(shown(dataclasses.replace(result, coverage=covered(21, 0.999, 10)))).split())
    assert "Compared: all 21 operators in 4 segments and all weights." in text
    assert "The faulty layers account for the whole error of the outputs." in text


def test_a_figure_is_told_once() -> None:
    (fault,) = localizations.made(3, {1: 0.5}).faults

    def told(**changes: float) -> str:
        faults = (dataclasses.replace(fault, introduced_error=0.5, **changes),)
        found = dataclasses.replace(localizations.made(3, {1: 0.5}), faults=faults)
        return " ".join(" ".join(shown(found)).split())

    assert "before it" not in told(full_run_error=0.501, confidence=1.0)
    assert "confidence" not in told(full_run_error=0.501, confidence=0.996)
    text = told(full_run_error=0.7, confidence=0.9)
    assert "; 70 % with the errors of the layers before it; confidence 90 %" in text


def test_it_says_in_how_many_segments_it_looked() -> None:
    result = localizations.made(4, verdict=Verdict.EQUIVALENT)
    assert result.coverage is None
    whole = Coverage(nodes=21, all_nodes=21, parameters=0, all_parameters=0, unseen=(), explained=None)
    text = "\n".join(shown(dataclasses.replace(result, coverage=whole)))
    assert "Compared: all 21 operators in 4 segments." in text


def test_it_promises_no_more_than_was_seen() -> None:
    result = localizations.made(4, verdict=Verdict.EQUIVALENT)
    about = dataclasses.replace(
        localizations.about("a.onnx", "b.onnx"), data="synthetic: 8 samples, uniform in [-1, 1]"
    )
    text = " ".join(" ".join(shown(result, about=about)).split())
    assert (
        "next: Nothing to do: no layer is faulty on 8 samples (of synthetic: 8 samples, uniform in [-1, 1])." in text
    )
    hidden = localizations.made(4, {1: 0.5}).faults
    text = " ".join(" ".join(shown(dataclasses.replace(result, latent=hidden), about=about)).split())
    assert "Nothing to do" not in text
    assert "Right on 8 samples, but one layer differs in a way that these inputs don't trigger. Your own" in text
    told = f"Not triggered by these inputs: at {hidden[0].target_layers[0]}: {hidden[0].evidence[0]}"
    assert told in text.replace("`", "")
    many = dataclasses.replace(result, latent=hidden * 5, notes=("a note",) * 5)
    text = " ".join(" ".join(shown(many, about=about, folder=Path("/out"))).split())
    assert "and 2 more that these inputs don't trigger, in result.json" in text
    assert "and 2 more notes in result.json" in text


def test_names_are_shown_as_they_are_and_command_no_terminal() -> None:
    name = "[red]x[/red] :smile: \x1b[31m"
    text = "\n".join(shown(localizations.with_names(localizations.made(3, {1: 0.5}), name, [1])))
    assert "[red]x[/red] :smile: \\x1b[31m" in text
    assert "\x1b" not in text


def test_colour_is_left_out_where_it_is_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    result = localizations.made(3, {1: 0.5})

    def printed() -> str:
        stream = io.StringIO()
        print_localization(result, Console(file=stream, width=100, force_terminal=True))
        return stream.getvalue()

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[1;31m" in printed()
    monkeypatch.setenv("NO_COLOR", "1")
    assert "31m" not in printed()


FUSED = "net/expand/Relu6;net/expand/BatchNorm/FusedBatchNormV3;net/project/BatchNorm/FusedBatchNormV3;" * 4


def fused() -> Localization:
    """A fault of a layer that a converter called by all that it fused."""
    found = localizations.made(5, {2: 0.5})
    evidence = (f"the weights of `{FUSED}` are scaled by 2",)
    (fault,) = found.faults
    fault = dataclasses.replace(
        fault,
        kind=Kind.PARAMETERS,
        target_layers=(FUSED,),
        source_layers=("expand",),
        evidence=evidence,
        holds=("weight",),
    )
    return dataclasses.replace(found, faults=(fault,), reason=f"`{FUSED}` adds an error of 50 % itself")


def test_a_fused_name_is_told_once_and_the_fact_whole() -> None:
    console = Console(file=io.StringIO(), width=300)
    print_localization(fused(), console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "faulty: `expand` adds an error of 50 % itself" in text
    assert "the weights of `expand` are scaled by 2" in text
    assert "parameters at `expand`, in the converted model `" in text
    assert text.count("FusedBatchNormV3") == 1
