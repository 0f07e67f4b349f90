"""Weights that a program computes from others, as onnx2torch's do, are given numbers of their own."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from small_models import export_pt2
from torch import nn

from conrepair.formats.editing.editor import Editor, NotEditableError
from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.runtime.files.whole import sha256_of

SIZE, FEATURES, STEPS = 5, 3, 4
GATES = (0, 3, 1, 2)  # ONNX's order from PyTorch's


class Reordered(nn.Module):
    """An LSTM whose weights are stored in ONNX's order of gates."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        shapes = {"w": (4 * SIZE, FEATURES), "r": (4 * SIZE, SIZE), "b": (8 * SIZE,)}
        for name, shape in shapes.items():
            self.register_buffer(name, torch.randn(shape, generator=generator))

    def forward(self, series: torch.Tensor) -> torch.Tensor:
        first, second = self.b.chunk(2)
        weights = [_from_onnx(item) for item in (self.w, self.r, first, second)]
        state = torch.zeros(1, series.shape[1], SIZE)
        return torch.lstm(series, (state, state), weights, True, 1, 0.0, False, False, False)[0]


def _from_onnx(array: torch.Tensor) -> torch.Tensor:
    parts = array.chunk(4)
    return torch.cat([parts[GATES.index(gate)] for gate in range(4)])


def exported(module: nn.Module, path: Path) -> Model:
    program = torch.export.export(module, (torch.zeros(STEPS, 2, FEATURES),))
    torch.export.save(program, path)
    return Model("torch", str(path), sha256_of(path))


def answered(editor: Editor, folder: Path) -> tuple[Model, Array, Array]:
    """What an editor writes, a series, and what that makes of it."""
    folder.mkdir()
    repaired = editor.save(folder, "repaired")
    series = np.random.default_rng(3).normal(size=(STEPS, 2, FEATURES)).astype(np.float32)
    runnable = framework("torch").load(dataclasses.replace(repaired, inputs=()))
    [given] = runnable.run({runnable.inputs[0].name: series}).values()
    return repaired, series, given


@pytest.mark.parametrize("roles", [("W",), ("R", "B"), ("W", "R", "B")])
def test_an_lstm_whose_weights_are_computed(roles: tuple[str, ...], tmp_path: Path) -> None:
    right, wrong = Reordered(1), Reordered(2)
    buffers = dict(zip("WRB", "wrb", strict=True))
    for role in set("WRB") - {*roles}:
        setattr(wrong, buffers[role], getattr(right, buffers[role]).clone())
    editor = open_editor(exported(wrong, tmp_path / "wrong.pt2"))
    [layer] = [node for node in editor.graph.nodes if node.op == "LSTM"]
    for role, name in buffers.items():
        np.testing.assert_array_equal(layer.parameters[role].numpy()[0], getattr(wrong, name).numpy())
    for role in roles:
        editor.set_parameter(layer, role, getattr(right, buffers[role]).numpy()[None])
    repaired, series, given = answered(editor, tmp_path / "out")
    np.testing.assert_allclose(given, right(torch.from_numpy(series)).numpy(), atol=1e-6)
    program = torch.export.load(repaired.path)
    assert set(program.state_dict) == {"w", "r", "b"}, "numbers are set where they're stored"
    assert len(program.graph.nodes) == len(torch.export.load(tmp_path / "wrong.pt2").graph.nodes)


class Sequences(nn.GRU):
    """Gives what each step ends in, and no states."""

    def forward(self, series: torch.Tensor) -> torch.Tensor:
        return super().forward(series)[0]


def test_each_parameter_that_localization_sees_of_a_layer_in_both_directions(tmp_path: Path) -> None:
    torch.manual_seed(42)
    right, wrong = (Sequences(FEATURES, SIZE, bidirectional=True) for _ in range(2))
    editor = open_editor(exported(wrong, tmp_path / "wrong.pt2"))
    other = open_editor(exported(right, tmp_path / "right.pt2"))
    [layer], [wanted] = ([node for node in item.graph.nodes if node.op == "GRU"] for item in (editor, other))
    assert set(layer.parameters) == {"W", "R", "B"}
    for role, parameter in wanted.parameters.items():
        editor.set_parameter(layer, role, parameter.numpy())
    _, series, given = answered(editor, tmp_path / "out")
    np.testing.assert_allclose(given, right(torch.from_numpy(series)).detach().numpy(), atol=1e-6)


class Scaled(nn.Module):
    """A layer whose weights are computed, not only moved."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("w", torch.randn((4, 3), generator=torch.Generator().manual_seed(5)))

    def forward(self, series: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(series, self.w * 2)


def test_what_is_computed_otherwise_gets_numbers_of_its_own(tmp_path: Path) -> None:
    editor = open_editor(exported(Scaled(), tmp_path / "wrong.pt2"))
    [layer] = [node for node in editor.graph.nodes if node.op == "MatMul"]
    np.testing.assert_array_equal(layer.parameters["weight"].numpy(), 2 * Scaled().w.numpy().T)
    wanted = np.random.default_rng(6).normal(size=(3, 4)).astype(np.float32)
    editor.set_parameter(layer, "weight", wanted)
    repaired, series, given = answered(editor, tmp_path / "out")
    np.testing.assert_allclose(given, series @ wanted, rtol=1e-5)
    assert "w" in torch.export.load(repaired.path).state_dict


class Pooled(nn.Module):
    """A convolution, an activation and a pooling."""

    def __init__(self, activation: nn.Module, pool: nn.Module) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(5)
        self.weight = nn.Parameter(torch.randn((4, 3, 3, 3), generator=generator))
        self.activation, self.pool = activation, pool

    def forward(self, picture: torch.Tensor) -> torch.Tensor:
        return self.pool(self.activation(torch.conv2d(picture, self.weight, padding=1)))


def changed(wrong: nn.Module, change: Callable[[Editor], None], folder: Path) -> tuple[Array, torch.Tensor]:
    """What the changed program makes of a picture, which comes too."""
    picture = torch.from_numpy(np.random.default_rng(6).normal(size=(2, 3, 8, 8)).astype(np.float32))
    export_pt2(wrong, [picture], folder / "wrong.pt2")
    editor = open_editor(Model("torch", str(folder / "wrong.pt2"), sha256_of(folder / "wrong.pt2")))
    change(editor)
    (folder / "out").mkdir()
    runnable = framework("torch").load(editor.save(folder / "out", "repaired"))
    [given] = runnable.run({runnable.inputs[0].name: picture.numpy()}).values()
    return given, picture


def test_a_softplus_with_a_number_of_its_own_is_none(tmp_path: Path) -> None:
    """It was called Softplus as the right one is, so nothing made it one."""

    def change(editor: Editor) -> None:
        [node] = [item for item in editor.graph.nodes if "softplus" in item.native]
        assert node.op != "Softplus"
        assert (node.attributes["beta"], node.attributes["threshold"]) == (2, 20)
        editor.set_operator(node, "Softplus", {})

    given, picture = changed(Pooled(nn.Softplus(beta=2), nn.MaxPool2d(2)), change, tmp_path)
    expected = Pooled(nn.Softplus(), nn.MaxPool2d(2))(picture).detach().numpy()
    np.testing.assert_allclose(given, expected, atol=1e-5)


def test_an_adaptive_pooling_to_several_places_has_windows(tmp_path: Path) -> None:
    """It was taken for a mean over everything."""

    def change(editor: Editor) -> None:
        [node] = [item for item in editor.graph.nodes if item.op == "AveragePool"]
        assert (node.attributes["kernel_shape"], node.attributes["strides"]) == ((4, 4), (4, 4))
        editor.set_operator(node, "MaxPool", node.attributes)

    given, picture = changed(Pooled(nn.ReLU(), nn.AdaptiveAvgPool2d((2, 2))), change, tmp_path)
    expected = Pooled(nn.ReLU(), nn.AdaptiveMaxPool2d((2, 2)))(picture).detach().numpy()
    np.testing.assert_allclose(given, expected, atol=1e-5)


def test_what_has_no_argument_for_a_change_is_left(tmp_path: Path) -> None:
    def change(editor: Editor) -> None:
        [node] = [item for item in editor.graph.nodes if item.op == "AveragePool"]
        with pytest.raises(NotEditableError, match="no argument for kernel_shape"):
            editor.set_attributes(node, {"kernel_shape": (2, 2)})
        with pytest.raises(NotEditableError, match="no argument for weight"):
            editor.set_parameter(node, "weight", np.zeros(1, np.float32))

    changed(Pooled(nn.ReLU(), nn.AdaptiveAvgPool2d((2, 2))), change, tmp_path)
