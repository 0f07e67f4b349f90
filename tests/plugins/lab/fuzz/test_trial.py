"""A case is converted, loaded and run, and how that ended is kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz_cases import case, right

from conrepair_lab.fuzz.trial import CONVERT, LOAD, RUN, tried
from conrepair_lab.systems.registry import entry
from conrepair_lab.systems.system import Setting

ORT = entry("ort-none")


def test_a_right_network_answers_the_same_three_times(tmp_path: Path) -> None:
    found = tried(right(), ORT.runs, ORT.chosen, tmp_path)
    assert found.ended is None
    assert [answer["y"].tolist() for answer in found.answers] == [[1.0, -2.0]] * 3
    assert not list(tmp_path.iterdir())


def test_what_a_runtime_lacks_is_a_refusal(tmp_path: Path) -> None:
    found = tried(
        case("g (double[1] x) => (double[1] y) { y = Softsign (x) }", x=np.ones(1)),
        ORT.runs,
        ORT.chosen,
        tmp_path,
    )
    assert found.ended is not None
    assert (found.ended.stage, found.ended.kind) == (LOAD, "refused")


def test_an_exception_keeps_its_words_and_no_place_of_the_machine(tmp_path: Path) -> None:
    x = np.zeros(1, np.float32)
    text = "g (float[1] x) => (float[1] y) <int64[1] i = {7}> { y = Gather (x, i) }"
    found = tried(case(text, x=x), ORT.runs, ORT.chosen, tmp_path)
    assert found.ended is not None
    assert (found.ended.stage, found.ended.kind) == (RUN, "exception")
    assert "indices element out of data bounds" in found.ended.message
    assert str(tmp_path) not in found.ended.message


@pytest.mark.parametrize(
    ("error", "sort"),
    [
        (NotImplementedError("later"), "refused"),
        (RuntimeError("STFT is not supported by this frontend"), "refused"),
        (RuntimeError("Assertion `false` failed: No Previous Version of AffineGrid exists"), "refused"),
        (KeyError("Relu"), "refused"),  # a table without the operator
        (KeyError("'t41'"), "exception"),
        (IndexError("list index out of range"), "exception"),
    ],
)
def test_a_gap_is_told_from_a_fault(error: Exception, sort: str, tmp_path: Path) -> None:
    class Raising(type(ORT.runs)):  # type: ignore[misc]
        def converted(self, model: Any, setting: Setting, folder: Path) -> Any:
            raise error

    found = tried(right(), Raising(), ORT.chosen, tmp_path)
    assert found.ended is not None
    assert (found.ended.stage, found.ended.kind) == (CONVERT, sort)
    assert found.ended.place.startswith("test_trial.py:")


def test_options_of_a_case_reach_its_system(tmp_path: Path) -> None:
    made = right()
    other = type(made)(made.network, made.inputs, {"ort": {"optimization": "nonsense"}})
    found = tried(other, ORT.runs, ORT.chosen, tmp_path)
    assert found.ended is not None
    assert "nonsense" in found.ended.message


def test_what_a_system_writes_into_what_it_is_fed_changes_no_case(tmp_path: Path) -> None:
    class Writing(type(ORT.runs)):  # type: ignore[misc]
        def open(self, *args: Any) -> Any:
            opened = super().open(*args)
            run = opened.run

            def written(feeds: Mapping[str, Any]) -> Any:
                found = run(feeds)
                for array in feeds.values():
                    if array.flags.writeable:
                        array[...] = 7
                return found

            opened.run = written
            return opened

    made = right()
    tried(made, Writing(), ORT.chosen, tmp_path)
    assert made.inputs["x"].tolist() == [0.5, -2.0]


def test_the_second_run_is_fed_arrays_with_gaps(tmp_path: Path) -> None:
    fed: list[Mapping[str, Any]] = []

    class Watching(type(ORT.runs)):  # type: ignore[misc]
        def open(self, *args: Any) -> Any:
            opened = super().open(*args)
            run = opened.run
            opened.run = lambda feeds, **more: (fed.append(feeds), run(feeds, **more))[1]
            return opened

    tried(right(), Watching(), ORT.chosen, tmp_path)
    assert [feeds["x"].flags.c_contiguous for feeds in fed] == [True, False, True, True]
    assert not fed[1]["x"].flags.writeable
    assert fed[2]["x"].tolist() == [-2.0, 0.5], "other numbers in between"
