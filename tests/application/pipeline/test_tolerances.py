"""Tolerances by output and by type, as every verb takes them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from verdict_networks import boxes_and_scores

import conrepair
from conrepair.application.cli import main
from conrepair.application.verbs.tolerances import tolerances
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import ConfigError, UsageError
from conrepair.testing import assert_equivalent
from conrepair.verdicts.evaluate.tolerance import Tolerance, check_names

LOOSE = "boxes:atol=0.5"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("boxes")
    return boxes_and_scores(folder / "source.onnx"), boxes_and_scores(folder / "target.onnx", moved=0.2)


def test_assertions_and_audits_hold_to_them(pair: tuple[Path, Path], tmp_path: Path) -> None:
    assert_equivalent(*pair, tolerance=LOOSE, in_process=True)
    with pytest.raises(AssertionError, match="boxes"):
        assert_equivalent(*pair, tolerance="scores:atol=0.5", in_process=True)
    config = {
        "models": [
            {"name": "a", "path": str(pair[0])},
            {"name": "b", "path": str(pair[1]), "compare_with": "a"},
        ],
        "dataset": {"synthetic": {"samples": 4}},
        "output": str(tmp_path),
    }
    for by_output, verdict in (({}, "faulty"), ({"boxes": {"atol": 0.5}}, "equivalent")):
        rows = conrepair.audit(config | {"tolerance": {"by_output": by_output}}).rows
        assert rows[-1].verdict == verdict


def test_on_a_command_line(pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    command = ["compare", *map(str, pair)]
    assert main([*command, "--tolerance", LOOSE, "--tolerance", "scores:rtol=0.1,atol=0"]) == 0
    assert main([*command, "--tolerance", "boxs:atol=0.5"]) == 2
    told = capsys.readouterr().err
    assert "the original has no output 'boxs'; did you mean 'boxes'?" in told
    assert "Its outputs are 'boxes', 'scores'" in told
    assert main([*command, "--tolerance", "boxes:atol=loose"]) == 2
    assert "--tolerance boxes:atol is 'loose': give a number" in capsys.readouterr().err
    assert main([*command, "--tolerance", "atol=1", "--atol", "2"]) == 2
    assert "given twice" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("boxes:atl=1", "'atl' is no tolerance"),
        ("boxes", "'boxes' is no tolerance"),
        ("atol=-1", "tolerance atol is -1.0: give at least 0"),
        ("atol=nan", "give a finite number"),
        (["a:atol=1", "a:atol=2"], "tolerance a:atol is given twice"),
        ({"a": 1}, r"tolerance\['a'\] is 1: give a dict"),
        (7, "tolerance is 7"),
    ],
)
def test_what_is_no_tolerance_is_said_by_its_name(value: Any, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        tolerances("tolerance", value)


def test_names_with_colons() -> None:
    assert tolerances("tolerance", "Identity:0:atol=1,rtol=2") == {"Identity:0": {"atol": 1.0, "rtol": 2.0}}


def test_types_are_those_that_a_target_computes_in_or_gives() -> None:
    half = Tolerance(by_output={"float16": {"rtol": 0.25}, "int64": {"atol": 2.0}})
    real, whole = TensorSpec("y", (), "float32"), TensorSpec("y", (), "int64")
    narrow = dataclasses.replace(real, dtype="float16")
    for given, precision in ((narrow, "float32"), (real, "float16")):
        found = half.of_output(real, given, precision)
        assert (found.rtol, found.atol, found.relative_l2, found.given) == (0.25, half.atol, None, True)
    assert half.of_output(real, real, "float32").rtol == half.rtol
    assert (half.of_output(whole, whole, "float16").rtol, half.of_output(whole, whole, "float16").atol) == (1e-4, 2.0)


def test_a_name_that_no_source_has_is_refused() -> None:
    check_names("tolerance", ["a", "bfloat16"], ["a", "b"], types=True)
    with pytest.raises(ConfigError, match=r"the original has no output 'c'\. Its outputs are 'a', 'b'"):
        check_names("tolerance", ["c"], ["a", "b"], types=True)
