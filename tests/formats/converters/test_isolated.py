"""The converters whose tools run in environments of their own, which are made if they aren't there (minutes)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import small_models as small
from onnx import helper

from conrepair.application.engine.job_table import JOBS
from conrepair.application.engine.place import make_environments
from conrepair.application.jobs.values import ConversionStep
from conrepair.formats.converters.all_converters import CONVERTERS, converter
from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import Description, Factory, Model
from conrepair.formats.models.registry import framework
from conrepair.ground.data.binding import bind_inputs
from conrepair.ground.runtime.files.whole import sha256_of
from conrepair.ground.runtime.processes.workers import Failure, Job, Outcome, Success, Workers
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair.ground.runtime.typed import typed
from conrepair.verdicts.evaluate.pairing import fit, pair_outputs

pytestmark = [pytest.mark.slow, pytest.mark.workers, pytest.mark.network, pytest.mark.timeout(1800)]
NAMES = [name for name, item in CONVERTERS.items() if item.environment]
LITERT = "torch-tflite-litert"


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    with Workers(1, jobs=JOBS) as workers, ProgressDisplay(quiet=True) as display:
        for name in NAMES:
            make_environments(converter(name).job_needs, display)
        yield workers


def source_of(name: str, kind: str, folder: Path) -> Model:
    if name != LITERT:
        return small.model_of("onnx", getattr(small, f"onnx_{kind}")(folder / "net.onnx"))
    import torch

    arrays = {
        "convnet": [small.images()], "pair": [small.images(), small.vectors()],
        "twins": [small.vectors(), small.vectors()], "text": [small.tokens()],
    }[kind]  # fmt: skip
    path = small.export_pt2(getattr(small, f"torch_{kind}")(), [*map(torch.from_numpy, arrays)], folder / "net.pt2")
    return small.model_of("torch", path)


def call(workers: Workers, source: Model, name: str, folder: Path, **options: Any) -> Outcome:
    step = converter(name)
    inputs = framework(source.framework).describe(source).inputs
    payload = {"model": source, "step": ConversionStep.of(step, step.complete(options)), "inputs": inputs}
    (folder / "out").mkdir()
    return workers.call(Job("convert", payload, folder / "out", step.needs, 600.0))


def convert(workers: Workers, source: Model, name: str, folder: Path, **options: Any) -> tuple[Model, Description]:
    outcome = call(workers, source, name, folder, **options)
    assert isinstance(outcome, Success), (outcome, outcome.last_words)
    value = outcome.value["model"]
    path = folder / "out" / value["path"]
    assert list((folder / "out").iterdir()) == [path], "no scratch is left"
    return typed(Model, value | {"path": str(path)}), typed(Description, outcome.value["description"])


def differences(source: Model, target: Model, count: int = 1) -> list[float]:
    one, two = framework(source.framework).load(source), framework(target.framework).load(target)
    generator = np.random.default_rng(count)
    named = {"height": small.HEIGHT, "width": small.WIDTH}
    arrays = {}
    for spec in one.inputs:
        shape = [count, *(named.get(str(size), size) for size in spec.shape[1:])]
        values = generator.normal(size=shape) if spec.is_float else generator.integers(0, small.WORDS, shape)
        arrays[spec.name] = values.astype(spec.dtype)
    feeds = {}
    for binding in bind_inputs(one.inputs, two.inputs):
        array = arrays[binding.sample]
        feeds[binding.input] = array if binding.permutation is None else array.transpose(binding.permutation)
    expected, given = one.run(arrays), two.run(feeds)
    pairs, unpaired = pair_outputs(expected, given)
    assert not unpaired
    return [small.relative_l2(*fit(pair, expected[pair.reference], given[pair.candidate])) for pair in pairs]


@pytest.mark.parametrize("kind", ["convnet", "pair", "twins", "text"])
@pytest.mark.parametrize("name", NAMES)
def test_small_networks(workers: Workers, tmp_path: Path, name: str, kind: str) -> None:
    source = source_of(name, kind, tmp_path)
    target, about = convert(workers, source, name, tmp_path)
    assert max(differences(source, target)) < 1e-5
    assert about.precision == "float32"
    assert sha256_of(Path(source.path)) == source.sha256
    tools = target.provenance.tools if target.provenance else {}
    assert tools[converter(name).distributions[0]] in {"0.10.0", "1.29.24"}


@pytest.mark.parametrize("name", NAMES)
def test_the_batch(workers: Workers, tmp_path: Path, name: str) -> None:
    """litert-torch fixes it; onnx2tf keeps a symbolic one unless it's told otherwise."""
    source = source_of(name, "convnet", tmp_path)
    target, about = convert(workers, source, name, tmp_path, batch=3)
    assert about.inputs[0].shape[0] == 3
    assert max(differences(source, target, 3)) < 1e-5
    if name != LITERT:
        (tmp_path / "symbolic").mkdir()
        target, about = convert(workers, source, name, tmp_path / "symbolic")
        assert isinstance(about.inputs[0].shape[0], str)
        assert max(differences(source, target, 3)) < 1e-5


def test_a_factory_s_network(workers: Workers, tmp_path: Path) -> None:
    import torch

    torch.save(small.torch_convnet().state_dict(), tmp_path / "net.pt")
    factory = Factory("small_models:torch_convnet")
    source = small.model_of("torch", tmp_path / "net.pt", factory=factory, inputs=(small.IMAGE,))
    target, _ = convert(workers, source, LITERT, tmp_path)
    assert max(differences(source, target)) < 1e-5


def test_torchscript_is_refused(workers: Workers, tmp_path: Path) -> None:
    import torch

    torch.jit.trace(small.torch_convnet(), torch.zeros(2, 3, 12, 10)).save(str(tmp_path / "net.pt"))
    source = small.model_of("torch", tmp_path / "net.pt", inputs=(small.IMAGE,))
    assert converter(LITERT).accepts(source) is not None
    outcome = call(workers, source, LITERT, tmp_path)
    assert isinstance(outcome, Failure)
    assert "torch.export doesn't read TorchScript" in str(outcome)


@pytest.mark.parametrize("name", [name for name in NAMES if name != LITERT])
def test_external_data(workers: Workers, tmp_path: Path, name: str) -> None:
    source = small.model_of("onnx", small.onnx_convnet(tmp_path / "net.onnx", external=True))
    source = dataclasses.replace(source, sha256=model_sha256(Path(source.path)))
    target, _ = convert(workers, source, name, tmp_path)
    assert max(differences(source, target)) < 1e-5


def test_what_onnx2tf_cannot_convert(workers: Workers, tmp_path: Path) -> None:
    """It leaves by sys.exit; its last words say why."""
    graph = helper.make_graph(
        [helper.make_node("DFT", ["x"], ["y"], name="transform", axis=1)],
        "one",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 8, 1])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 8, 2])],
    )
    source = small.model_of("onnx", small.save_onnx(tmp_path / "net.onnx", graph, opset=17, check=False))
    outcome = call(workers, source, "onnx-tflite-onnx2tf", tmp_path)
    assert isinstance(outcome, Failure)
    assert outcome.kind == "refused"
    assert str(outcome).startswith("onnx2tf: ")
    assert "DFT" in outcome.last_words
