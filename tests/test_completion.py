"""Completion of the command line in shells."""

from __future__ import annotations

import argparse
import shutil
import subprocess
from pathlib import Path

import pytest

from conrepair.application.cli import main
from conrepair.application.cli.commands.completion import script_of
from conrepair.application.cli.main import command_line

BASH = shutil.which("bash")


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "completion.bash"
    path.write_text(script_of(command_line(), "bash"), encoding="utf-8")
    return path


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_verbs_and_options_are_in_it(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    (verbs,) = (item for item in command_line()._actions if isinstance(item, argparse._SubParsersAction))
    for name, parser in verbs.choices.items():
        assert name in text
        for option in parser._option_string_actions:
            if option.startswith("--"):
                assert (f"-l {option[2:]} " if shell == "fish" else option) in text, (name, option)


def test_another_shell_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["completion", "bahs"])
    assert "did you mean 'bash'?" in capsys.readouterr().err


@pytest.mark.skipif(BASH is None, reason="bash isn't here")
def test_bash_reads_it(script: Path) -> None:
    done = subprocess.run([str(BASH), "-n", str(script)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(BASH is None, reason="bash isn't here")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["loc"], {"localize"}),
        (["compare", "--ta"], {"--target-recipe"}),
        (["compare", "net"], {"net.onnx", "nets"}),
        (["compare", "net.onnx", "ne"], {"net.onnx", "nets"}),
        (["localize", "net.onnx", "net.onnx", "-o", "ne"], {"nets"}),
        (["build", "net.onnx", "--opt", "O"], {"O0", "O1", "O2", "O3"}),
        (["build", "net.onnx", "--target", "ne"], set()),
        (["repair", "net.onnx", "--apply", "net."], {"net.onnx"}),
    ],
)
def test_bash_completes(script: Path, tmp_path: Path, words: list[str], expected: set[str]) -> None:
    (tmp_path / "net.onnx").touch()
    (tmp_path / "nets").mkdir()
    ask = (
        'source "$1"; shift; COMP_WORDS=(conrepair "$@"); COMP_CWORD=$#; '
        '_shtab_conrepair conrepair "${@: -1}"; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        [str(BASH), "-c", ask, "bash", str(script), *words], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) == expected
