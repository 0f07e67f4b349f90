"""From two networks to the layers at fault: known faults by name and kind, and none in conversions that are right."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import onnx_ir
import pytest
import rewritten_networks as networks
import small_models as small
from onnx import helper, numpy_helper
from rewritten_networks import damaged, feeds_of, opened, renamed

from conrepair.data.feeds import DataReference
from conrepair.data.synthetic import SyntheticRange
from conrepair.evaluate.verdict import Verdict
from conrepair.faults.catalogue import faults
from conrepair.faults.fault import Kind
from conrepair.faults.inject import inject
from conrepair.frameworks.model import Model
from conrepair.frameworks.registry import framework
from conrepair.localize.localize import localize_networks
from conrepair.localize.models import Subject, localize_models
from conrepair.localize.options import Options
from conrepair.localize.result import Localization

FAULTS = [
    *(("residual blocks", name) for name in (
        "shortcut-missing", "activation-replaced", "pads-shifted", "epsilon-of-another-library", "channels-permuted",
        "kernel-flipped", "bias-dropped", "weights-in-few-bits", "layer-in-float16", "pixels-scaled-twice",
        "weights-in-bfloat16", "normalization-missing", "deviation-for-variance",
    )),
    *(("encoder blocks", name) for name in (
        "matrix-transposed", "axis-of-another-layout", "operands-exchanged", "weights-scaled", "operator-replaced",
        "result-in-few-bits",
    )),
    *(("convnet", name) for name in (
        "alpha-ignored", "flatten-in-another-order", "labels-shifted", "activation-missing", "softmax-missing",
    )),
]  # fmt: skip


def localized(source: Path, target: Path, name: str, folder: Path, **options: float) -> Localization:
    feeds = feeds_of(name)
    batches = [(feeds, feeds), ({key: -array for key, array in feeds.items()},) * 2]
    work = folder / "work"
    work.mkdir()
    return localize_networks(opened(source, feeds), opened(target, feeds), batches, work, Options(**options))  # type: ignore[arg-type]


@cache
def source_of(name: str, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return networks.WRITERS[name](folder / f"{name}.onnx")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sources")


@pytest.mark.parametrize(("name", "fault_name"), FAULTS)
def test_the_layer_and_kind_of_known_faults(name: str, fault_name: str, sources: Path, tmp_path: Path) -> None:
    source = source_of(name, sources)
    [fault] = [item for item in faults() if item.name == fault_name]
    injection = inject(onnx_ir.load(source), fault, feeds_of(name), np.random.default_rng(3))
    assert injection is not None
    onnx_ir.save(injection.model, tmp_path / "faulty.onnx")
    result = localized(source, tmp_path / "faulty.onnx", name, tmp_path)
    assert result.verdict is Verdict.FAULTY
    first = result.faults[0]
    assert {*first.source_layers[:1], *first.target_layers[:1]} & injection.nodes, (injection.words, first)
    assert first.kind is fault.kind, first
    assert first.introduced_error > 10 * first.noise_floor
    assert first.evidence
    assert len(result.faults) == 1
    assert result.samples == 4


def test_a_product_that_is_transposed_by_its_attribute(tmp_path: Path) -> None:
    """The graph has the weights transposed; the file only says so."""
    text = "small (float[batch, 8] x) => (float[batch, 8] y) {{ [h] h = Gemm <transB = {}> (x, w)\n y = Tanh (h) }}"
    weights = {"w": networks.drawn(8, 8)}
    ours, theirs = (networks.written(tmp_path / f"{turned}.onnx", text.format(turned), weights) for turned in (0, 1))
    feeds = {"x": networks.drawn(4, 8, scale=1)}
    result = localize_networks(opened(ours, feeds), opened(theirs, feeds), [(feeds, feeds)], tmp_path, Options())
    [fault] = result.faults
    assert (fault.kind, fault.target_layers[0]) == (Kind.HYPERPARAMETERS, "h")
    assert "transB True in the target, False in the source" in fault.evidence[0]


def test_three_faults_at_once(sources: Path, tmp_path: Path) -> None:
    """One in the first block, one in the last, one at the end; with other names all over."""
    source = source_of("residual blocks", sources)
    damaged(source, tmp_path / "damaged.onnx", ["one0", "two3", "dense_b"])
    names = renamed(tmp_path / "damaged.onnx", tmp_path / "target.onnx")
    result = localized(source, tmp_path / "target.onnx", "residual blocks", tmp_path)
    assert {fault.source_tensor for fault in result.faults} == {"a0", "c3", "y"}
    assert {fault.target_tensor for fault in result.faults} == {names[name] for name in ("a0", "c3", "y")}
    assert {fault.kind for fault in result.faults} == {Kind.PARAMETERS}
    assert [fault.introduced_error for fault in result.faults] == sorted(
        (fault.introduced_error for fault in result.faults), reverse=True
    )
    behind = [row for row in result.layers if not row.guilty and row.source_tensor.startswith(("t1", "a2"))]
    assert behind
    assert all(row.inherited > 0.99 and row.full_run_error > 1e-3 for row in behind)


# --- conversions that are right ---


def subject(model: Model, count: int = 4, names: Subject | None = None) -> Subject:
    inputs = framework(model.framework).describe(model).inputs
    samples = inputs if names is None else names.inputs
    data = DataReference("synthetic", count, samples=samples, limits=SyntheticRange(0, -1.0, 1.0, None))
    return Subject(model, inputs, data, None)


def compared(source: Model, target: Model, folder: Path, **options: float) -> Localization:
    ours = subject(source)
    work = folder / "work"
    work.mkdir()
    return localize_models(ours, subject(target, names=ours), work, Options(samples=4, **options))  # type: ignore[arg-type]


def assert_clean(result: Localization, least: int) -> None:
    assert result.faults == ()
    assert result.verdict is Verdict.EQUIVALENT
    assert result.output_error < 1e-4
    assert len(result.layers) >= least
    assert not any(row.guilty for row in result.layers)


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
    assert "scaled by 1.5 to 1.5 in 1 of 7 slices of axis 0" in fault.evidence[0]


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


def simplified(source: Path, target: Path) -> None:
    onnxsim = pytest.importorskip("onnxsim")
    model, checked = onnxsim.simplify(onnx.load(source))
    assert checked
    onnx.save(model, target)


def later_opset(source: Path, target: Path) -> None:
    onnx.save(onnx.version_converter.convert_version(onnx.load(source), 21), target)


def folded(source: Path, target: Path) -> None:
    """Normalizations by hand, as exporters fold them."""
    proto = onnx.load(source)
    held = {item.name: item for item in proto.graph.initializer}
    for norm in [node for node in proto.graph.node if node.op_type == "BatchNormalization"]:
        [conv] = [node for node in proto.graph.node if node.output[0] == norm.input[0]]
        scale, shift, mean, variance = (numpy_helper.to_array(held[name]).astype(float) for name in norm.input[1:])
        factor = scale / np.sqrt(variance + 1e-5)
        weight, bias = held[conv.input[1]], held[conv.input[2]]
        new = (
            numpy_helper.to_array(weight) * factor[:, None, None, None],
            shift + factor * (numpy_helper.to_array(bias) - mean),
        )
        for tensor, array in zip((weight, bias), new, strict=True):
            tensor.CopyFrom(numpy_helper.from_array(array.astype(np.float32), tensor.name))
        conv.output[0] = norm.output[0]
        proto.graph.node.remove(norm)
    onnx.save(proto, target)


def channels_last_between(source: Path, target: Path) -> None:
    """A pair of Transposes around every activation, as other layouts leave them."""
    proto = onnx.load(source)
    nodes = list(proto.graph.node)
    del proto.graph.node[:]
    for node in nodes:
        if node.op_type == "Relu":
            first, second = f"{node.input[0]} last", f"{node.output[0]} last"
            proto.graph.node.append(helper.make_node("Transpose", node.input[:], [first], perm=[0, 2, 3, 1]))
            back = helper.make_node("Transpose", [second], node.output[:], perm=[0, 3, 1, 2])
            node.input[:], node.output[:] = [first], [second]
            proto.graph.node.extend([node, back])
        else:
            proto.graph.node.append(node)
    onnx.save(proto, target)


REWRITES: dict[str, Callable[[Path, Path], object]] = {
    "simplified": simplified,
    "later opset": later_opset,
    "folded": folded,
    "transposed": channels_last_between,
    "renamed": lambda source, target: renamed(source, target, copies=True),
}


UNCHANGED = [("residual blocks", rewrite) for rewrite in REWRITES] + [
    (name, rewrite) for name in ("encoder blocks", "convnet") for rewrite in ("simplified", "later opset", "renamed")
]


@pytest.mark.parametrize(("name", "rewrite"), UNCHANGED)
def test_rewrites_that_change_nothing(name: str, rewrite: str, sources: Path, tmp_path: Path) -> None:
    source = source_of(name, sources)
    REWRITES[rewrite](source, tmp_path / "target.onnx")
    assert_clean(localized(source, tmp_path / "target.onnx", name, tmp_path), 6)


@pytest.mark.parametrize("rewrite", REWRITES)
def test_a_fault_behind_a_rewrite(rewrite: str, sources: Path, tmp_path: Path) -> None:
    """The bias of the second block's second convolution is lost on the way."""
    source = source_of("residual blocks", sources)
    damaged(source, tmp_path / "damaged.onnx", ["two_b1"], 0.0)
    REWRITES[rewrite](tmp_path / "damaged.onnx", tmp_path / "target.onnx")
    result = localized(source, tmp_path / "target.onnx", "residual blocks", tmp_path)
    [fault] = result.faults
    assert fault.source_tensor == "c1"
    assert fault.kind is Kind.PARAMETERS


def test_large_errors_that_are_only_accumulated_are_noise(tmp_path: Path, sources: Path) -> None:
    """Every layer is within its floor; what's called equivalent is a matter of the margin."""
    source = source_of("residual blocks", sources)
    folded(source, tmp_path / "target.onnx")
    result = localized(source, tmp_path / "target.onnx", "residual blocks", tmp_path, equivalent=1e-12)
    assert result.faults == ()
    assert result.verdict is Verdict.NOISE


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
    assert any(note.startswith("net.pt is analysed through ONNX") for note in result.notes)
