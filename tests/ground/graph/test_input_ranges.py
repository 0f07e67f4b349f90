"""What a file says of its inputs' values, in each format as its own tools write it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import torch
from onnx_networks import drawn, written
from small_models import export_pt2, model_of, tensorflow_of, tflite_of

from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.formats.networks.network import open_network
from conrepair.ground.data.input_range import InputRange
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.graph.input_ranges import input_ranges


def ranges(model: Model) -> list[InputRange | None]:
    """By the order of the inputs."""
    inputs = framework(model.framework).describe(model).inputs
    network = open_network(model, [sized(spec) for spec in inputs])
    found = input_ranges(network.graph)
    return [found.get(network.input_names[spec.name]) for spec in inputs]


def sized(spec: TensorSpec) -> TensorSpec:
    return replace(spec, shape=tuple(size if isinstance(size, int) else 2 for size in spec.shape))


def ends(found: InputRange | None) -> tuple[float, float] | None:
    return None if found is None else (round(min(found.low), 6), round(max(found.high), 6))


def convolved(*first: Any, channels: int = 3) -> Any:
    layers = [
        keras.Input((6, 6, channels)),
        *first,
        keras.layers.Conv2D(4, 3, padding="same"),
        keras.layers.Flatten(),
    ]
    return keras.Sequential([*layers, keras.layers.Dense(3)])


def normalization(mean: list[float], variance: list[float]) -> Any:
    return keras.layers.Normalization(mean=mean, variance=variance)


def as_keras(network: Any, folder: Path) -> Model:
    network.save(folder / "n.keras")
    return model_of("keras", folder / "n.keras")


def as_saved(network: Any, folder: Path) -> Model:
    return model_of("tensorflow", tensorflow_of(network, folder / "saved"))


def as_tflite(network: Any, folder: Path) -> Model:
    return model_of("tflite", tflite_of(network, folder / "n.tflite"))


PHOTO = [123.675, 116.28, 103.53], [58.4**2, 57.1**2, 57.4**2]
PREPARED = {
    "bytes to -1 and 1": (lambda: [keras.layers.Rescaling(1 / 127.5, offset=-1)], (0, 255)),
    "bytes to 0 and 1": (lambda: [keras.layers.Rescaling(1 / 255)], (0, 255)),
    "mean and deviation": (lambda: [normalization(*PHOTO)], (0, 255)),
    "0 to 1": (lambda: [keras.layers.Rescaling(2.0, offset=-1)], (0, 1)),
    "a limit": (lambda: [keras.layers.ReLU(6.0)], (0, 6)),
    "nothing": (list, None),
    "small already": (lambda: [keras.layers.Rescaling(0.9, offset=0.1)], None),
}


@pytest.mark.parametrize("make", [as_keras, as_saved, as_tflite])
@pytest.mark.parametrize("case", PREPARED)
def test_what_prepares_inputs(case: str, make: Callable[[Any, Path], Model], tmp_path: Path) -> None:
    layers, expected = PREPARED[case]
    if make is as_tflite and case == "bytes to 0 and 1":
        expected = None  # the converter multiplies the weights
    assert ends(ranges(make(convolved(*layers()), tmp_path))[0]) == expected


@pytest.mark.parametrize("make", [as_keras, as_saved, as_tflite])
def test_each_column_of_a_table_has_its_own_range(make: Callable[[Any, Path], Model], tmp_path: Path) -> None:
    mean, deviation = np.array([5000.0, 0.2, -3.0]), np.array([2000.0, 0.1, 1.0])
    columns = normalization([*mean], [*np.square(deviation)])
    network = keras.Sequential([keras.Input((3,)), columns, keras.layers.Dense(4)])
    (found,) = ranges(make(network, tmp_path))
    assert found is not None
    np.testing.assert_allclose(found.low, mean - np.sqrt(3) * deviation, rtol=1e-3)
    np.testing.assert_allclose(found.high, mean + np.sqrt(3) * deviation, rtol=1e-3)
    assert found.axis == -1


class Prepared(torch.nn.Module):
    def __init__(self, mean: list[float], deviation: list[float]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean)[:, None, None])
        self.register_buffer("deviation", torch.tensor(deviation)[:, None, None])
        self.conv = torch.nn.Conv2d(3, 4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv((x - self.mean) / self.deviation)


@pytest.mark.parametrize(
    ("mean", "deviation", "expected"),
    [
        ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225], (0, 1)),
        ([123.7, 116.3, 103.5], [58.4, 57.1, 57.4], (0, 255)),
        ([123.7, 116.3, 103.5], [1.0, 1.0, 1.0], (0, 247.4)),
    ],
)
def test_photos_of_pytorch(
    mean: list[float], deviation: list[float], expected: tuple[float, float], tmp_path: Path
) -> None:
    path = export_pt2(Prepared(mean, deviation).eval(), (torch.rand(2, 3, 8, 8),), tmp_path / "n.pt2")
    (found,) = ranges(model_of("torch", path))
    assert ends(found) == pytest.approx(expected, rel=1e-5)


class Tokens(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.kinds = torch.nn.Embedding(50, 8), torch.nn.Embedding(2, 8)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor, kinds: torch.Tensor) -> torch.Tensor:
        h = self.words(ids) + self.kinds(kinds)
        hidden = (1.0 - mask[:, None, :].to(torch.float32)) * torch.finfo(torch.float32).min
        return (h @ h.transpose(1, 2) + hidden).softmax(-1) @ h


@pytest.mark.parametrize("form", ["torch", "onnx"])
def test_tokens_their_mask_and_their_kinds(form: str, tmp_path: Path) -> None:
    module = Tokens().eval()
    examples = (torch.randint(0, 50, (2, 6)), torch.ones(2, 6, dtype=torch.long), torch.zeros(2, 6, dtype=torch.long))
    if form == "torch":
        path = export_pt2(module, examples, tmp_path / "n.pt2", dynamic=False)
    else:
        path = tmp_path / "n.onnx"
        torch.onnx.export(module, examples, path, input_names=["ids", "mask", "kinds"], dynamo=False)
    ids, mask, kinds = ranges(model_of(form, path))
    assert (ends(ids), ends(kinds)) == ((0, 49), (0, 1))
    assert mask is not None
    assert mask.mask


QUANTIZED = """small (float[2, 3] x) => (float[2, 4] y) {
    q = QuantizeLinear (x, scale, zero)
    [back] d = DequantizeLinear (q, scale, zero)
    y = MatMul (d, w)
}"""
ASKED = """small (int64[2, 5] ids, int64[2, 5] left) => (float[2, 5, 4] y) {
    [word] w = Gather <axis = 0> (table, ids)
    [is] p = Equal (left, one)
    u = Unsqueeze (p, last)
    y = Where (u, w, nothing)
}"""


def test_how_an_input_is_quantized(tmp_path: Path) -> None:
    weights = {"scale": np.float32(0.05), "zero": np.uint8(100), "w": drawn(3, 4)}
    (found,) = ranges(model_of("onnx", written(tmp_path / "n.onnx", QUANTIZED, weights)))
    assert ends(found) == (-5, 7.75)


IN_PIECES = """small (int64[2, 5] ids) => (float[2, 5, 4] y) {
    from_end = Add (ids, nine)
    negative = Less (ids, zero)
    plain = Not (negative)
    second = Cast <to = 7> (negative)
    first = Cast <to = 7> (plain)
    one = Mul (ids, first)
    other = Mul (second, from_end)
    index = Add (one, other)
    [word] y = Gather <axis = 0> (table, index)
}"""


def test_a_choice_of_indices_in_pieces_ends_in_a_table(tmp_path: Path) -> None:
    weights = {"table": drawn(9, 4), "nine": np.int64(9), "zero": np.int64(0)}
    (found,) = ranges(model_of("onnx", written(tmp_path / "n.onnx", IN_PIECES, weights)))
    assert ends(found) == (0, 8)
    assert found is not None
    assert not found.mask


def test_a_number_that_is_asked_for_is_a_mask(tmp_path: Path) -> None:
    weights = {"table": drawn(9, 4), "one": np.int64(1), "last": np.array([2]), "nothing": np.float32(0)}
    ids, left = ranges(model_of("onnx", written(tmp_path / "n.onnx", ASKED, weights)))
    assert ends(ids) == (0, 8)
    assert left is not None
    assert left.mask


def test_an_activation_is_no_preparation(tmp_path: Path) -> None:
    text = "small (float[2, 3] x) => (float[2, 3] y) { [a] s = Mul (x, c) [b] t = Sin (s) y = Add (t, x) }"
    assert ranges(model_of("onnx", written(tmp_path / "n.onnx", text, {"c": np.float32(1e-4)}))) == [None]
