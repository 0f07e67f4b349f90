"""Conversions that PyTorch and TensorFlow make: nothing is wrong with them, but what was damaged on the way."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import small_models as small
from located_faults import assert_clean

from conrepair.diagnosis.localization.models import localize_models
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.result import Localization
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.localization.run.opening import outputs_again
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.data.feeds import DataReference, batches, open_feeds
from conrepair.ground.data.synthetic import SyntheticRange
from conrepair.ground.graph.kinds import Kind
from conrepair.verdicts.evaluate.verdict import Verdict
from tests.support.native_models import keras_file, tensorflow_file, tflite_file, torch_file


def subject(model: Model, count: int = 4, names: FedModel | None = None) -> FedModel:
    inputs = framework(model.framework).describe(model).inputs
    samples = inputs if names is None else names.inputs
    data = DataReference("synthetic", count, samples=samples, limits=SyntheticRange(0, -1.0, 1.0, None))
    return FedModel(model, inputs, data, None)


def compared(source: Model, target: Model, folder: Path, **options: float) -> Localization:
    ours = subject(source)
    work = folder / "work"
    work.mkdir()
    return localize_models(ours, subject(target, names=ours), work, Options(samples=4, **options))  # type: ignore[arg-type]


def exported(folder: Path, *, dynamo: bool, damage: bool = False) -> tuple[Model, Model]:
    import torch

    network = small.torch_convnet()
    ours = small.model_of("torch", small.export_pt2(network, [torch.from_numpy(small.images())], folder / "net.pt2"))
    if damage:
        with torch.no_grad():
            network.pointwise.weight[2] *= 1.5
    path = folder / "net.onnx"
    torch.onnx.export(
        network, (torch.from_numpy(small.images()),), path, dynamo=dynamo, verbose=False, input_names=["image"]
    )
    return ours, small.model_of("onnx", path)


@pytest.mark.parametrize("dynamo", [False, True])
def test_exports_of_pytorch(dynamo: bool, tmp_path: Path) -> None:
    """Normalizations are folded by the one, and kept by the other."""
    assert_clean(compared(*exported(tmp_path, dynamo=dynamo), tmp_path), 6)


def test_a_channel_that_an_export_damages(tmp_path: Path) -> None:
    result = compared(*exported(tmp_path, dynamo=False, damage=True), tmp_path)
    [fault] = result.faults
    assert fault.kind is Kind.PARAMETERS
    assert "pointwise" in fault.source_layers[0]
    assert "scaled by 1.5 in 1 of 7 slices of axis 0" in fault.evidence[0]


def keras_and_tflite(folder: Path, *, damage: bool = False, kind: str = "float") -> tuple[Model, Model]:
    network = small.keras_convnet()
    network.save(folder / "net.keras")
    if damage:
        layer = next(layer for layer in network.layers if layer.name.startswith("depthwise"))
        layer.set_weights([2 * layer.get_weights()[0]])
    small.tflite_of(network, folder / "net.tflite", kind)
    return small.model_of("keras", folder / "net.keras"), small.model_of("tflite", folder / "net.tflite")


def test_tflite_of_a_keras_model(tmp_path: Path) -> None:
    assert_clean(compared(*keras_and_tflite(tmp_path), tmp_path), 6)


def test_a_depthwise_kernel_that_a_conversion_damages(tmp_path: Path) -> None:
    result = compared(*keras_and_tflite(tmp_path, damage=True), tmp_path)
    [fault] = result.faults
    assert fault.kind is Kind.PARAMETERS
    assert fault.source_layers[0].startswith("depthwise")


def test_half_precision_is_a_fault_unless_it_was_meant(tmp_path: Path) -> None:
    ours, theirs = keras_and_tflite(tmp_path, kind="float16")
    result = compared(ours, theirs, tmp_path)
    assert result.faults
    assert {fault.kind for fault in result.faults} == {Kind.PRECISION}
    (tmp_path / "meant").mkdir()
    meant = compared(ours, theirs, tmp_path / "meant", precision="float16")  # type: ignore[arg-type]
    assert meant.faults == ()


def test_torchscript_is_looked_into_through_onnx(tmp_path: Path) -> None:
    import torch

    network = small.torch_convnet()
    example = torch.from_numpy(small.images(1))
    traced = torch.jit.trace(network, example)
    traced.save(tmp_path / "net.pt")
    torch.onnx.export(network, (example,), tmp_path / "net.onnx", dynamo=False, input_names=["image"],
        dynamic_axes={"image": {0: "batch"}})  # fmt: skip
    shape = ("batch", small.CHANNELS, small.HEIGHT, small.WIDTH)
    script = small.model_of("torch", tmp_path / "net.pt", inputs=(small.TensorSpec("image", shape, "float32"),))
    result = compared(script, small.model_of("onnx", tmp_path / "net.onnx"), tmp_path)
    assert_clean(result, 6)
    assert any(note.startswith("the layers of net.pt are read by way of ONNX") for note in result.notes)


WRITERS = {"torch": torch_file, "keras": keras_file, "tensorflow": tensorflow_file, "tflite": tflite_file}


@pytest.mark.parametrize("name", ["pair", "text"])
@pytest.mark.parametrize("kind", WRITERS)
def test_rounding_is_measured_under_the_outputs_own_names(kind: str, name: str, tmp_path: Path) -> None:
    model = WRITERS[kind](name, tmp_path)
    runnable = framework(kind).load(model)
    rounded = outputs_again(subject(model), tmp_path / "work", Options(samples=4))
    assert rounded is not None
    assert [spec.name for spec in rounded.specs] == [spec.name for spec in runnable.outputs]
    ours = subject(model)
    reader = open_feeds(ours.data, runnable.inputs, None)
    reader.count = min(rounded.size, rounded.count)
    [batch] = batches(reader, runnable.inputs, rounded.size)
    right = runnable.run(batch.feeds)
    for output, array in rounded.measured.runs["rounded"][0].items():
        assert 0 < small.relative_l2(array, right[output]) < 1e-4


def test_nothing_is_latent_where_an_activation_is_in_pieces(tmp_path: Path) -> None:
    """Of large values, SiLU's are nearly zero where they're negative, and libraries round these otherwise."""
    import torch

    torch.manual_seed(1)
    network = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.SiLU(), torch.nn.Linear(64, 4)).eval()
    example = torch.ones(4, 8)
    ours = small.model_of("torch", small.export_pt2(network, [example], tmp_path / "net.pt2"))
    path = tmp_path / "net.onnx"
    torch.onnx.export(network, (example,), path, dynamo=True, verbose=False, input_names=["x"])
    assert [node.op_type for node in onnx.load(path).graph.node] == ["Gemm", "Sigmoid", "Mul", "Gemm"]
    assert compared(ours, small.model_of("onnx", path), tmp_path).latent == ()


@pytest.mark.parametrize("bend", ["silu", "gelu"])
def test_the_tail_of_an_activation_has_few_right_digits(bend: str, tmp_path: Path) -> None:
    """ONNX Runtime's sigmoid is right to seven digits of 1: where it gives 1e-5 that's two."""
    import torch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.front, self.head = torch.nn.Conv2d(3, 8, 3), torch.nn.Linear(8, 5)
            with torch.no_grad():
                self.front.weight *= 100

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            bent: torch.Tensor = getattr(torch.nn.functional, bend)(self.front(images))
            return self.head(bent.mean((2, 3)))  # type: ignore[no-any-return]

    torch.manual_seed(0)
    network, images = Net().eval(), torch.from_numpy(small.images())
    source = small.model_of("torch", small.export_pt2(network, [images], tmp_path / "net.pt2"))
    path = tmp_path / "net.onnx"
    torch.onnx.export(network, (images,), path, dynamo=False, verbose=False, input_names=["image"])
    result = compared(source, small.model_of("onnx", path), tmp_path)
    assert result.verdict is Verdict.EQUIVALENT, result.reason
    assert not result.faults
