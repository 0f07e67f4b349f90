"""What ONNX Runtime takes is asked once in a process, by who asks it and nobody else."""

from __future__ import annotations

from typing import Any

import asked_once
import pytest

from conrepair_lab.generate.onnx_form import accepted
from conrepair_lab.generate.support import Probed


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Operators that are really asked about, in a process that hasn't heard anything."""
    names = list[str]()

    def anew(support: Probed, op: str) -> Any:
        names.append(op)
        return usual(support, op)

    asked_once.remember()
    usual = Probed.asked_anew  # type: ignore[attr-defined]
    monkeypatch.setattr(Probed, "asked_anew", anew)
    monkeypatch.setattr(asked_once, "_KNOWN", {})
    return names


def test_it_is_asked_once_and_says_what_it_says(asked: list[str]) -> None:
    first, second = Probed(20, accepted), Probed(20, accepted)
    for support in (first, second):
        support.ask("Relu")
        support.ask("If")  # which has others in its branches
    assert first.found["Relu"] == Probed.asked_anew(Probed(20, accepted), "Relu")  # type: ignore[attr-defined]
    assert second.found["If"] == first.found["If"] != []
    assert sorted(set(asked[:-1])) == sorted(asked[:-1]), "each operator once"
    Probed(21, accepted).ask("Relu")
    assert asked[-1] == "Relu", "of another opset it may take others"


def test_who_asks_another_runtime_is_told_by_that(asked: list[str]) -> None:
    Probed(20, accepted).ask("Relu")
    other = Probed(20, lambda *_: False)
    other.ask("Relu")
    assert (other.found["Relu"], asked) == ([], ["Relu", "Relu"])


def test_who_has_heard_otherwise_asks_and_tells_nobody(asked: list[str]) -> None:
    told = Probed(20, accepted, {"Add": []})
    told.ask("Relu")
    Probed(20, accepted).ask("Relu")
    assert asked == ["Relu", "Relu"]
