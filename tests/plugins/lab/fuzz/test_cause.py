"""What a finding hangs on: a switch, nothing, or a converter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fuzz_cases import case, compared_by_halves, padded_pool

from conrepair_lab.fuzz.cause import Cause, isolated
from conrepair_lab.fuzz.looking import look
from conrepair_lab.fuzz.suspicion import Suspicion
from conrepair_lab.systems.registry import entry

NUMBERS = Suspicion("numbers", "answers")


def of(made: object, name: str, folder: Path, suspicion: Suspicion = NUMBERS, tries: int = 100) -> Cause:
    asked = entry(name)
    return isolated(made, suspicion, asked.runs, asked.chosen, folder, tries=tries)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["ort-all", "ort-extended", "ort-basic"])
def test_a_switch_is_named_with_a_line_that_switches_it_off(name: str, tmp_path: Path) -> None:
    found = of(padded_pool(), name, tmp_path)
    assert found.causes == found.heals == (("Pad_Fusion",),)
    assert "Pad_Fusion" in found.lines[0]
    assert (found.plainly, found.exact, found.words) == (False, True, "")


def test_without_that_switch_it_is_not_seen(tmp_path: Path) -> None:
    from conrepair.formats.backends.base import Switch

    asked = entry("ort-all")
    healed = asked.runs.without(asked.chosen, [Switch("Pad_Fusion", "pass", "")])
    assert look(padded_pool(), asked.runs, healed, tmp_path).verdict == "right"


@pytest.mark.parametrize("name", ["ort-none", "ort-all"])
def test_a_kernels_fault_hangs_on_nothing(name: str, tmp_path: Path) -> None:
    found = of(compared_by_halves(), name, tmp_path)
    assert (found.plainly, found.causes, found.tries) == (True, (), 1)


def test_a_converters_doing_has_no_switches(tmp_path: Path) -> None:
    text = """g (float x, float r) => (bool[1] y) <int64[1] s = {1}, bool t = {0}>
    { a = Erf (x) b, m = Dropout (a, r, t) y = Expand (m, s) }"""
    made = case(text, x=np.float32(0.5), r=np.float32(0.5))
    asked = entry("convert-onnxslim")
    suspicion = look(made, asked.runs, asked.chosen, tmp_path).suspicion
    assert suspicion is not None
    found = of(made, asked.name, tmp_path, suspicion)
    assert (found.causes, found.plainly) == ((), False)
    assert "converter" in found.words


def test_few_tries_are_kept_to_and_said_not_to_be_all(tmp_path: Path) -> None:
    found = of(padded_pool(), "ort-all", tmp_path, tries=2)
    assert found.tries <= 3
    assert not found.exact


def test_nothing_is_left_in_the_folder(tmp_path: Path) -> None:
    of(padded_pool(), "ort-all", tmp_path)
    assert not list(tmp_path.iterdir())
