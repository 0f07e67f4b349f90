"""Libraries on a GPU: what they're asked for, by stand-ins; and, where there is one, that they answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import small_models as small
import torch

import conrepair
from conrepair.formats.backends import inductor_runnable
from conrepair.formats.backends.all_backends import backend
from conrepair.formats.backends.inductor import TF32_OFF
from conrepair.formats.backends.inductor_runnable import InductorRunnable
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.errors import ConrepairError, DeviceError
from conrepair.ground.runtime.gpu_devices import gpu_devices

EAGER = {"backend": "eager", "device": "cuda"}


class Network(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)
        self.register_buffer("shift", torch.ones(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) + self.shift + torch.zeros(4, device=x.device)


X = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Model:
    path = tmp_path_factory.mktemp("torch") / "net.pt2"
    torch.export.save(torch.export.export(Network(), (torch.from_numpy(X),)), path)
    return small.model_of("torch", path)


@pytest.fixture(scope="module")
def convnet(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return small.model_of("onnx", small.onnx_convnet(tmp_path_factory.mktemp("onnx") / "net.onnx"))


@pytest.fixture
def without_gpu() -> None:
    if gpu_devices():
        pytest.skip("there is a GPU here")


def stand_in(monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    monkeypatch.setattr(inductor_runnable, "cuda_device", lambda: torch.device(device))


def test_a_program_is_moved_with_all_that_it_holds(program: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """To a device that computes nothing, and refuses what lies elsewhere."""
    stand_in(monkeypatch, "meta")
    runnable = backend("inductor").load(program, EAGER)
    assert isinstance(runnable, InductorRunnable)
    moved = runnable.module.program
    assert {tensor.device.type for tensor in (*moved.parameters(), *moved.buffers())} == {"meta"}
    (node,) = [node for node in moved.graph.nodes if "zeros" in str(node.target)]
    assert str(node.kwargs["device"]) == "meta"
    with pytest.raises(Exception, match="copy out of meta"):
        runnable.run({"x": X})


@pytest.mark.parametrize("tf32", [True, False])
def test_tf32_is_as_it_is_asked_for_while_it_runs(
    tf32: bool, program: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch, "cpu")
    seen: list[bool] = []
    flatten = inductor_runnable.flatten
    monkeypatch.setattr(
        inductor_runnable, "flatten", lambda found: seen.append(torch.backends.cudnn.allow_tf32) or flatten(found)
    )
    runnable = backend("inductor").load(program, {**EAGER, "tf32": tf32})
    (found,) = runnable.run({"x": X}).values()
    np.testing.assert_array_equal(found, next(iter(backend("libraries").load(program, {}).run({"x": X}).values())))
    assert seen == [tf32]
    assert torch.backends.cudnn.allow_tf32


def test_tf32_is_a_switch_on_a_gpu_alone(program: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "cpu")
    known = backend("inductor")

    def names(options: dict[str, Any]) -> list[str]:
        return [item.name for item in known.switches(options, lambda asked: known.load(program, asked))]

    assert names(EAGER) == ["tf32"]
    assert known.without(EAGER, ["tf32"]) == {**EAGER, "tf32": False}
    assert names({**EAGER, "tf32": False}) == names({"backend": "eager"}) == []
    exec(TF32_OFF, {"torch": torch})  # noqa: S102
    try:
        assert torch.backends.cudnn.conv.fp32_precision != "tf32"
        assert torch.backends.cudnn.rnn.fp32_precision != "tf32"
        assert torch.backends.cuda.matmul.fp32_precision != "tf32"
    finally:
        torch.backends.cudnn.allow_tf32 = True


def test_pytorch_says_that_there_is_none(program: Model, without_gpu: None) -> None:
    with pytest.raises(DeviceError, match=r"no CUDA device here that PyTorch can reach \(.+\)\. `conrepair doctor`"):
        backend("inductor").load(program, EAGER)


PROVIDERS = ["CUDAExecutionProvider", "CPUExecutionProvider"]


class Session:
    """ONNX Runtime's, on the processor, which says that it runs where it was asked to."""

    asked: tuple[Any, ...] = ()
    real = onnxruntime.InferenceSession

    def __init__(self, path: Any, options: Any, providers: list[Any], **more: Any) -> None:
        Session.asked = (*providers, more.get("disabled_optimizers"))
        self._session = Session.real(path, options, providers=providers[-1:], **more)

    def get_providers(self) -> list[str]:
        return PROVIDERS

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


def test_onnxruntime_is_asked_for_its_provider(convnet: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnxruntime, "InferenceSession", Session)
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [*PROVIDERS])
    known, on_cuda = backend("onnxruntime"), {"optimization": "basic", "device": "cuda"}
    (switch,) = [item for item in known.switches(on_cuda, lambda _: known.load(convnet, {})) if item.name == "tf32"]
    off = known.without(on_cuda, ["tf32", "MatMulAddFusion"])
    assert off == {**on_cuda, "disabled_optimizers": ["MatMulAddFusion"], "tf32": False}
    feeds = {"image": small.images(2)}
    for options, tf32 in ((on_cuda, 1), (off, 0)):
        found = known.load(convnet, options).run(feeds)["probabilities"]
        assert Session.asked[:2] == (("CUDAExecutionProvider", {"use_tf32": tf32}), "CPUExecutionProvider")
        np.testing.assert_allclose(found, known.load(convnet, {}).run(feeds)["probabilities"], atol=1e-6)
    assert "'use_tf32': 0" in switch.line
    assert "tf32" not in {item.name for item in known.switches(off, lambda _: known.load(convnet, {}))}


def test_onnxruntime_says_that_there_is_none(
    convnet: Model, without_gpu: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DeviceError, match=r"no CUDA device here that ONNX Runtime can reach \(it's built without"):
        backend("onnxruntime").load(convnet, {"device": "cuda"})
    monkeypatch.setattr(onnxruntime, "InferenceSession", Session)
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [*PROVIDERS])
    monkeypatch.setattr(Session, "get_providers", lambda _: PROVIDERS[1:])
    with pytest.raises(DeviceError, match=r"can reach \(CUDAExecutionProvider doesn't start\)\. `conrepair doctor`"):
        backend("onnxruntime").load(convnet, {"device": "cuda"})


@pytest.mark.workers
def test_execute_says_that_there_is_none(convnet: Model, without_gpu: None) -> None:
    with pytest.raises(ConrepairError, match="no CUDA device here that ONNX Runtime can reach"):
        conrepair.execute(convnet.path, backend="onnxruntime", options={"device": "cuda"})


@pytest.mark.gpu
@pytest.mark.workers
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("onnxruntime", {"device": "cuda", "tf32": False}),
        ("inductor", {**EAGER, "tf32": False}),
        ("inductor", {"device": "cuda", "tf32": False}),
    ],
)
def test_a_library_answers_on_a_gpu_as_the_source(name: Any, options: dict[str, Any], tmp_path: Path) -> None:
    if not gpu_devices():
        pytest.skip("there is no GPU here")
    path = small.onnx_convnet(tmp_path / "net.onnx")
    try:
        done = conrepair.execute(path, backend=name, options=options)
    except ConrepairError as error:
        if "device here" not in str(error):
            raise
        pytest.skip(str(error))
    assert done.verdict is not None
    assert done.verdict.is_right
    assert done.row.place is not None
    assert done.row.place.setting.endswith(", cuda without TF32")
