"""Which cases the repair benchmark has."""

from __future__ import annotations

from collections import Counter

from benchmarks.common import cases
from benchmarks.common.cases import CORRECT, DEVELOPMENT_SEEDS, SEVERAL
from benchmarks.repair.cases import QUANTIZED, asked_by_command, plan

_SMALL = ["digits-cnn", "perceptron"]


def test_all_cases_of_localization_and_more() -> None:
    shared = {case.name for case in cases.plan(_SMALL, DEVELOPMENT_SEEDS)}
    chosen = plan(_SMALL, DEVELOPMENT_SEEDS)
    names = [case.name for case in chosen]
    assert len(set(names)) == len(names)
    assert shared < set(names)
    more = [case for case in chosen if case.name not in shared]
    assert {case.group for case in more} == {SEVERAL, QUANTIZED}
    native = Counter((case.format, case.count) for case in more if case.group == SEVERAL)
    assert set(native) == {(name, count) for name in ("tflite", "keras", "torch") for count in (2, 3)}
    assert {case.format for case in more if case.group == QUANTIZED} == {"tflite", "onnx"}


def test_the_command_is_asked_about_files_alone() -> None:
    chosen = plan(_SMALL, DEVELOPMENT_SEEDS)
    asked = [case for case in chosen if case.name in asked_by_command(chosen)]
    assert {case.group for case in asked} == {CORRECT}
    assert all(case.source != "torch" and case.format != "torch" for case in asked)
    assert Counter((case.model, case.format) for case in asked) == {
        (model, name): 1 for model in _SMALL for name in ("onnx", "tflite", "keras", "tensorflow")
    }
