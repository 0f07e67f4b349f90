"""The command that's recorded is that of a command, and of nothing behind it."""

from __future__ import annotations

from contextvars import copy_context

import pytest

from conrepair.application.cli import main
from conrepair.ground.runtime.invocation import invoked, invoked_by


def test_a_command_can_be_typed() -> None:
    def told() -> str:
        invoked_by(["compare", "my net.onnx", "b.onnx"])
        return invoked()

    assert copy_context().run(told) == "conrepair compare 'my net.onnx' b.onnx"


def test_what_python_calls_behind_a_command_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "nowhere.onnx"]) != 0
    assert "nowhere.onnx" in capsys.readouterr().err
    assert invoked() == ""
