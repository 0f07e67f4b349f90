"""Exported programs are loaded without running code that they hold."""

from __future__ import annotations

import contextlib
import io
import zipfile
from pathlib import Path

import pytest
import torch

from conrepair.formats.models.model import Model
from conrepair.formats.torch.load.exported import load_exported
from conrepair.formats.torch.load.framework import load_module
from conrepair.ground.runtime.errors import ModelLoadError


class _Deed:
    """Pickled, it makes a file when it's loaded."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (self.path, "w")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
    path = tmp_path / "net.pt2"
    torch.export.save(torch.export.export(module.eval(), (torch.zeros(2, 3),)), path)
    return path


def poisoned(program: Path, deed: Path) -> Path:
    buffer = io.BytesIO()
    torch.save(((_Deed(str(deed)),), {}), buffer)
    path = program.with_name("poisoned.pt2")
    replaced = 0
    with zipfile.ZipFile(program) as source, zipfile.ZipFile(path, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            if "sample_inputs" in name:
                content, replaced = buffer.getvalue(), replaced + 1
            target.writestr(name, content)
    assert replaced == 1
    return path


def test_an_honest_program_loads(program: Path) -> None:
    assert load_exported(program).module()(torch.ones(2, 3)).shape == (2, 2)


def test_torch_alone_would_run_the_code(program: Path, tmp_path: Path) -> None:
    """The reason for the guard; when this fails, torch has closed the hole."""
    deed = tmp_path / "deed"
    with contextlib.suppress(Exception):
        torch.export.load(poisoned(program, deed))
    assert deed.exists()


def test_code_in_example_inputs_is_refused(program: Path, tmp_path: Path) -> None:
    deed = tmp_path / "deed"
    with pytest.raises(ModelLoadError, match="would run code"):
        load_module(Model("torch", str(poisoned(program, deed)), ""))
    assert not deed.exists()


def test_the_guard_is_lifted_afterwards(program: Path, tmp_path: Path) -> None:
    load_exported(program)
    buffer = io.BytesIO()
    torch.save(_Deed(str(tmp_path / "deed")), buffer)
    buffer.seek(0)
    torch.load(buffer, weights_only=False).close()
    assert (tmp_path / "deed").exists()
