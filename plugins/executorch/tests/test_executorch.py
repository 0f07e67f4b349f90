"""A right program is equivalent, a wrong one is named at its layer, as far as its handles say."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

import conrepair

pytest.importorskip("executorch", reason="ExecuTorch isn't installed: pip install executorch")
pytest.importorskip("conrepair_executorch", reason="the plug-in isn't installed: pip install plugins/executorch")

import torch
from executorch.devtools import generate_etrecord
from executorch.exir import to_edge


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = torch.nn.Conv2d(3, 4, 3), torch.nn.Conv2d(4, 8, 3)
        self.last = torch.nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.nn.functional.hardswish(self.second(torch.relu(self.first(x))))
        return self.last(torch.nn.functional.dropout(x.mean((2, 3)), 0.5, self.training))


def _exported(net: Net, path: Path, *, record: bool = True) -> Path:
    program = torch.export.export(net.eval(), (torch.zeros(1, 3, 12, 12),))
    torch.export.save(program, path.with_suffix(".pt2"))
    edge = to_edge(program)
    kept, made = copy.deepcopy(edge), edge.to_executorch()
    path.write_bytes(made.buffer)
    if record:
        generate_etrecord(str(path.with_suffix(".etrecord")), kept, made)
    return path


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _exported(Net(), tmp_path_factory.mktemp("right") / "right.pte")


def _wrong(folder: Path, *, record: bool) -> Path:
    net = Net()
    with torch.no_grad():
        net.second.weight *= 1.2
    return _exported(net, folder / "wrong.pte", record=record)


def test_a_right_program(right: Path) -> None:
    found = conrepair.localize(right.with_suffix(".pt2"), right, samples=4)
    assert found.verdict == "equivalent"
    assert len(found.localization.layers) >= 5


def test_a_wrong_one_is_named_at_its_layer(right: Path, tmp_path: Path) -> None:
    found = conrepair.localize(right.with_suffix(".pt2"), _wrong(tmp_path, record=True), samples=4)
    (fault,) = found.faults
    assert fault.source_layers == ("second",)


def test_without_a_record_the_outputs_are_judged(right: Path, tmp_path: Path) -> None:
    found = conrepair.localize(right.with_suffix(".pt2"), _wrong(tmp_path, record=False), samples=4)
    assert found.verdict == "faulty"
    assert any("only outputs were recorded" in note for note in found.localization.notes)
