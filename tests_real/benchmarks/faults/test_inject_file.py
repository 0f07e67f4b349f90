"""Faults in files: every one changes the function, can be made again, and leaves the right file as it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

from benchmarks.faults.catalogue import faults
from benchmarks.faults.fault import Fault
from benchmarks.faults.inject_file import FileInjection, has_place, inject_file
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.runtime.files.whole import sha256_of
from tests.support import native_models
from tests.support.native_models import feeds_of, keras_file, tflite_file, torch_factory_model, torch_file
from tests.support.onnx_networks import quantized
from tests.support.small_models import model_of

ALL = ("image", "order", "text", "pair")
FORMATS: Mapping[str, tuple[Callable[[str, Path], Model], tuple[str, ...]]] = {
    "torch": (torch_file, ALL),
    "factory": (torch_factory_model, ALL),
    "keras": (keras_file, ALL),
    "tflite": (tflite_file, ALL),
    "fixed": (lambda name, folder: tflite_file(name, folder, "fixed"), ("image",)),
    "float16": (lambda name, folder: tflite_file(name, folder, "float16"), ("image",)),
    "int8": (lambda name, folder: tflite_file(name, folder, "full-int8"), ("image", "order")),
}
QUICK = {"tflite", "fixed"}
KINDS = [pytest.param(kind, marks=() if kind in QUICK else pytest.mark.slow) for kind in FORMATS]
ELSEWHERE = {
    *("alpha-ignored", "product-transposed"),  # attributes of ONNX's Gemm
    "reset-gate-elsewhere",  # PyTorch has no other; in Keras the bias has another shape then
    # these networks have no attention that's written out, and one Clip
    *("attention-scale-wrong", "attention-scale-wrong-everywhere", "upper-bound-lost-everywhere"),
    *("mask-after-softmax", "mask-lost", "mask-lost-everywhere"),
}
WITHOUT_PLACE = {
    "torch": {"epsilon-of-another-library-everywhere", *ELSEWHERE},
    "keras": {"padding-counted", "resize-coordinates", *ELSEWHERE},
    "tflite": {
        *ELSEWHERE,
        # normalizations are folded or decomposed, recurrent layers unrolled
        *("deviation-for-variance", "moving-mean-lost", "normalization-scale-lost", "normalization-shift-lost"),
        *("normalization-missing", "normalization-in-training-mode", "epsilon-of-another-library", "gates-permuted"),
        "epsilon-of-another-library-everywhere",
        # no such attributes
        *("axis-of-another-layout", "padding-counted"),
        "dilation-lost",  # see "fixed": a symbolic batch makes three operators of a dilated convolution
    },
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Model]:
    @cache
    def make(kind: str, name: str) -> Model:
        return FORMATS[kind][0](name, tmp_path_factory.mktemp(kind))

    return make


@pytest.fixture(scope="module")
def right(models: Callable[[str, str], Model]) -> Callable[[str, str], list[Any]]:
    """What the right networks answer."""
    return cache(lambda kind, name: outputs(models(kind, name), own_feeds(kind, name)))


def own_feeds(kind: str, name: str) -> Mapping[str, Any]:
    return feeds_of(name, channels_last=kind not in {"torch", "factory"})


def put(
    models: Callable[[str, str], Model], kind: str, name: str, fault: Fault, folder: Path
) -> FileInjection | None:
    return inject_file(models(kind, name), fault, own_feeds(kind, name), np.random.default_rng(0), folder)


def outputs(model: Model, feeds: Mapping[str, Any]) -> list[Any]:
    runnable = framework(model.framework).load(model)
    results = runnable.run(dict(zip([spec.name for spec in runnable.inputs], feeds.values(), strict=True)))
    return [results[spec.name] for spec in runnable.outputs]


def names_in(model: Model) -> set[str]:
    """All names that a file gives to layers, read by the framework's own means."""
    if model.framework == "keras":
        import keras

        def walk(network: Any) -> set[str]:
            inner = [walk(layer) for layer in network.layers if isinstance(layer, keras.Model)]
            return {item.name for item in getattr(network, "operations", network.layers)}.union(*inner)

        return walk(keras.saving.load_model(model.path, compile=False))
    if model.framework == "tflite":
        from ai_edge_litert.interpreter import Interpreter

        return {detail["name"] for detail in Interpreter(model_path=model.path).get_tensor_details()}
    import torch

    if model.factory is not None:
        module = getattr(native_models, model.factory.target.split(":")[1])()
        return {name for name, _ in module.named_modules()}
    program = torch.export.load(model.path)
    paths = {
        str(item[0]) for node in program.graph.nodes for item in (node.meta.get("nn_module_stack") or {}).values()
    }
    return {node.name for node in program.graph.nodes} | paths


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.name)
def test_a_fault(
    fault: Fault,
    kind: str,
    models: Callable[[str, str], Model],
    right: Callable[[str, str], list[Any]],
    tmp_path: Path,
) -> None:
    found = {}
    for name in FORMATS[kind][1]:
        before = sha256_of(Path(models(kind, name).path))
        injection = put(models, kind, name, fault, tmp_path / "one")
        assert sha256_of(Path(models(kind, name).path)) == before, "the right file is as it was"
        if injection is not None:
            found[name] = injection
    if kind in WITHOUT_PLACE:
        assert bool(found) == (fault.name not in WITHOUT_PLACE[kind])
    for name, injection in found.items():
        expected, wrong = right(kind, name), outputs(injection.model, own_feeds(kind, name))
        assert [item.shape for item in expected] == [item.shape for item in wrong]
        worst = max(
            float(np.linalg.norm(one - two) / np.linalg.norm(one)) for one, two in zip(expected, wrong, strict=True)
        )
        assert worst > 1e-4
        assert injection.effect == pytest.approx(worst, rel=1e-3)
        assert injection.kind == fault.kind
        assert sha256_of(injection.path) == injection.model.sha256
        assert injection.layers & names_in(injection.model), "a layer that a person can find in the file"
    for name in list(found)[:1]:
        again = put(models, kind, name, fault, tmp_path / "two")
        assert again is not None
        assert (again.words, again.layers) == (found[name].words, found[name].layers), "the seed decides"
        if again.model.sha256 != found[name].model.sha256:  # some formats keep when they were written
            for one, two in zip(*(outputs(item.model, own_feeds(kind, name)) for item in (found[name], again)),
                                strict=True):  # fmt: skip
                np.testing.assert_array_equal(one, two)


def test_weights_of_integers_in_onnx_files_have_places_too(tmp_path: Path) -> None:
    model = model_of("onnx", quantized(tmp_path / "quantized.onnx"))
    picture = np.random.default_rng(3).random((2, 3, 12, 10)).astype(np.float32)
    for name in ("kernel-flipped", "weights-zeroed"):
        fault = next(fault for fault in faults() if fault.name == name)
        found = inject_file(model, fault, {"image": picture}, np.random.default_rng(0), tmp_path / name)
        assert found is not None
        before, after = (onnx.load(item.path).graph for item in (model, found.model))
        assert [node.input for node in after.node] == [node.input for node in before.node]
        changed = [one.name for one, two in zip(before.initializer, after.initializer, strict=True) if one != two]
        assert changed == ["qw"]


def test_an_epsilon_that_changes_nothing_has_a_place_and_no_effect(tmp_path: Path) -> None:
    network = "one (float[2, 4] x, float[4] w) => (float[2, 4] y) { y = LayerNormalization <epsilon = 1e-5> (x, w) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 18]> {network}'), tmp_path / "one.onnx")
    model = model_of("onnx", tmp_path / "one.onnx")
    fault = next(fault for fault in faults() if fault.name == "epsilon-of-another-library")
    feeds = {"x": np.random.default_rng(0).normal(size=(2, 4)).astype(np.float32), "w": np.ones(4, np.float32)}
    for scale, expected in ((np.float32(100), False), (np.float32(1e-3), True)):
        scaled = feeds | {"x": feeds["x"] * scale}
        found = inject_file(model, fault, scaled, np.random.default_rng(0), tmp_path / "out")
        assert (found is not None) == expected
    assert has_place(model, fault)
    assert not has_place(model, next(fault for fault in faults() if fault.name == "gates-permuted"))
