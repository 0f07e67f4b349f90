"""An editor's other editors: each changes a copy of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_models import model_of

from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.models.registry import framework
from conrepair.ground.graph.layer_graph import Node
from tests.support.native_models import feeds_of, keras_file, tflite_file, torch_factory_model, torch_file

_FILES = {
    "torch": torch_file,
    "torch-factory": torch_factory_model,
    "keras": keras_file,
    "tflite": tflite_file,
}


def weighted(nodes: tuple[Node, ...]) -> Node:
    return next(node for node in nodes if node.op in {"Conv", "MatMul"} and "weight" in node.parameters)


@pytest.mark.parametrize("kind", list(_FILES))
def test_changes_of_one_are_none_of_another(kind: str, tmp_path: Path) -> None:
    model = _FILES[kind]("image", tmp_path)
    first = open_editor(model)
    one, other = first.again(), first.again()
    node = weighted(one.graph.nodes)
    one.set_parameter(node, "weight", np.zeros_like(node.parameters["weight"].numpy()))
    relu = next(item for item in one.graph.nodes if item.op in {"Relu", "Clip"})
    one.remove(relu)
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
    changed, same = one.save(tmp_path / "one", "net"), other.save(tmp_path / "other", "net")
    answers = []
    for item in (model, changed, same):
        runnable = framework(item.framework).load(item)
        fed = feeds_of("image", channels_last=kind in {"keras", "tflite"}).values()
        names = (spec.name for spec in runnable.inputs)
        answers.append(next(iter(runnable.run(dict(zip(names, fed, strict=True))).values())))
    np.testing.assert_array_equal(answers[2], answers[0])
    assert np.abs(answers[1] - answers[0]).max() > 1e-3


def test_pytorch_operators_that_read_one_another_are_taken_out(tmp_path: Path) -> None:
    import torch

    class Turned(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = torch.relu(x)
            return torch.cat([y[:, 7:8], y[:, :7]], 1)

    path = tmp_path / "turned.pt2"
    torch.export.save(torch.export.export(Turned(), (torch.zeros(2, 8),)), path)
    editor = open_editor(model_of("torch", path))
    for node in editor.graph.nodes:
        if node.name.startswith(("slice", "cat")):
            editor.remove(node)
    runnable = framework("torch").load(editor.save(tmp_path, "straight"))
    array = np.random.default_rng(1).normal(size=(2, 8)).astype(np.float32)
    (given,) = runnable.run({runnable.inputs[0].name: array}).values()
    np.testing.assert_array_equal(given, np.maximum(array, 0))


def test_a_copy_of_a_module_has_its_names(tmp_path: Path) -> None:
    """fx calls nothing as Python calls what it has built in, but for what an export has called so."""
    import torch

    class Named(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)

        def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002
            return torch.relu(self.linear(input))

    path = tmp_path / "named.pt2"
    torch.export.save(torch.export.export(Named(), (torch.zeros(2, 4),)), path)
    editor = open_editor(model_of("torch", path)).again()
    editor.remove(next(node for node in editor.graph.nodes if node.op in {"Relu", "Clip"}))
    runnable = framework("torch").load(editor.save(tmp_path, "linear"))
    assert [spec.name for spec in runnable.inputs] == ["input"]
    (given,) = runnable.run({"input": np.ones((2, 4), np.float32)}).values()
    assert given.min() < 0
