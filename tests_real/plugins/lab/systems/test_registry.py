"""Every system: it runs a network by each setting, and its programs do the same with nothing but the libraries."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from conrepair.application.engine.session import Session
from conrepair.application.engine.task import Task
from conrepair.formats.backends.all_backends import backend
from conrepair.formats.backends.base import Switch
from conrepair.formats.models.identity import copy_model, model_sha256
from conrepair.formats.models.model import Model
from conrepair.ground.intake.data import write_arrays
from conrepair.ground.runtime.errors import ConversionError, DeviceError, UsageError
from conrepair.ground.runtime.files.store import Entry as StoreEntry
from conrepair.ground.runtime.files.whole import HashedPath, sha256_of
from conrepair.ground.runtime.gpu_devices import gpu_devices
from conrepair.ground.runtime.processes.reach import GPU
from conrepair_lab.systems.registry import SYSTEMS, Entry, entry, names
from conrepair_lab.systems.system import Chosen, Setting

pytestmark = pytest.mark.workers  # compilers, and flags of processes

NAMES = names()
ON_A_GPU = [name for name in NAMES if entry(name).chosen.reach == GPU]
MARKED = [pytest.param(name, marks=pytest.mark.gpu) for name in ON_A_GPU]

NETWORK = """<ir_version: 8, opset_import: ["" : 17]>
g (float[1, 3, 8, 8] x) => (float[1, 4] y) <float[1] two = {2.0}>
{ a = Conv <pads = [1, 1, 1, 1]> (x, w, b) c = Relu (a) d = Mul (c, two) e = GlobalAveragePool (d)
  f = Flatten (e) h = MatMul (f, v) y = Tanh (h) }"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    made, rng = onnx.parser.parse_model(NETWORK), np.random.default_rng(3)
    for name, shape in (("w", (16, 3, 3, 3)), ("b", (16,)), ("v", (16, 4))):
        array = rng.normal(scale=0.3, size=shape).astype(np.float32)
        made.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    path = tmp_path_factory.mktemp("net") / "net.onnx"
    onnx.save(made, path)
    return Model("onnx", str(path), model_sha256(path))


@pytest.fixture(scope="module")
def feeds() -> Mapping[str, Any]:
    return {"x": np.random.default_rng(4).normal(size=(1, 3, 8, 8)).astype(np.float32)}


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with Session() as opened:
        yield opened


@dataclass
class InWorkers:
    """A system in processes that are started as it needs them."""

    session: Session
    asked: Entry
    model: Model
    count: int = 0

    def done(self, kind: str, setting: Setting, **more: Any) -> StoreEntry:
        self.count += 1
        payload = {"model": self.model, "chosen": Chosen(self.asked.system, setting), **more}
        listed = self.asked.runs.listing(setting) if kind == "switches" else setting
        task = Task(
            f"{self.asked.name} {kind} {self.count}",
            kind,
            lambda _: payload,
            needs=self.asked.runs.needs(setting),
            device=setting.reach,
            environment=self.asked.runs.environment(listed),
        )
        if setting.reach == GPU and not gpu_devices():
            pytest.skip("there is no GPU here")
        found = self.session.result(task)
        if found.failure is not None and setting.reach == GPU and "device here" in str(found.failure):
            pytest.skip(str(found.failure))  # a library that's built without
        assert found.entry is not None, found.failure
        return found.entry

    def answer(self, setting: Setting, feeds: Mapping[str, Any]) -> Any:
        path = self.session.room / "samples.npz"
        if not path.is_file():
            write_arrays(path, {name: array[None] for name, array in feeds.items()})
        made = self.done("answers", setting, given=HashedPath(str(path), sha256_of(path)))
        with np.load(made.folder / "outputs.npz") as found:
            return found["y"][0]

    def switches(self) -> list[Switch]:
        return list(self.done("switches", self.asked.chosen).read(tuple[Switch, ...]))


def in_a_plain_process(asked: Entry, setting: Setting, model: Model, feeds: Mapping[str, Any], folder: Path) -> Any:
    system = asked.runs
    copy_model(Path(system.programmed(model, setting, folder).path), folder / system.file)
    np.savez(folder / "inputs.npz", **feeds)
    (folder / "program.py").write_text(system.program(setting).text, encoding="utf-8")
    subprocess.run([sys.executable, "program.py"], cwd=folder, check=True)
    with np.load(folder / "outputs.npz") as found:
        return dict(found)


@pytest.fixture(scope="module")
def right(model: Model, feeds: Mapping[str, Any], session: Session) -> Any:
    return InWorkers(session, entry("ort-none"), model).answer(entry("ort-none").chosen, feeds)


@pytest.mark.parametrize("name", [*(name for name in NAMES if name not in ON_A_GPU), *MARKED])
def test_a_setting_answers_as_the_network_is_written(
    name: str, model: Model, feeds: Mapping[str, Any], session: Session, right: Any
) -> None:
    found = InWorkers(session, entry(name), model).answer(entry(name).chosen, feeds)
    if name == "convert-tvm-tflite":  # TVM keeps axes that TFLite drops
        found = found.reshape(right.shape)
    coarse = name in ON_A_GPU and not name.endswith("-ieee")  # TF32, and functions that are approximated
    np.testing.assert_allclose(found, right, atol=1e-2 if coarse else 1e-5)


def test_a_chain_that_doesnt_take_a_network_says_why(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[1, 4, 2, 2] x) => (float[1, 1, 4, 4] y) { y = DepthToSpace <blocksize = 2> (x) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "net.onnx")
    refused = Model("onnx", str(tmp_path / "net.onnx"), model_sha256(tmp_path / "net.onnx"))
    asked = entry("convert-onnx2torch")
    with pytest.raises(ConversionError, match="DepthToSpace"):
        asked.runs.open(refused, asked.chosen, tmp_path)


@pytest.mark.parametrize("name", ON_A_GPU)
def test_a_gpus_setting_is_refused_where_there_is_none(name: str, model: Model, tmp_path: Path) -> None:
    if gpu_devices():
        pytest.skip("there is a GPU here")
    with pytest.raises(DeviceError, match=r"there is no (CUDA|cuda) device here that .* can reach"):
        entry(name).runs.open(model, entry(name).chosen, tmp_path)


@pytest.mark.parametrize("name", ON_A_GPU)
def test_a_gpus_program_says_where_it_runs(name: str) -> None:
    asked = entry(name)
    written = asked.runs.program(asked.chosen).text
    compile(written, name, "exec")
    assert "cuda" in written.lower()
    exact = ("allow_tf32 = False", "'use_tf32': 0", "TVM_CUDA_NVCC_NO_FAST_MATH")
    assert any(words in written for words in exact) == name.endswith("-ieee")
    assert "cuda" not in asked.runs.program(asked.plain.chosen).text.lower()


@pytest.mark.parametrize("name", ["convert-onnxslim", "convert-version", "convert-import"])
def test_a_converters_program_does_the_same(
    name: str, model: Model, feeds: Mapping[str, Any], right: Any, tmp_path: Path
) -> None:
    asked = entry(name)
    plain = in_a_plain_process(asked, asked.chosen, model, feeds, tmp_path)
    np.testing.assert_allclose(plain["y"], right, atol=1e-5)


@pytest.mark.parametrize("name", [*(name for name, item in SYSTEMS.items() if item.kernels), *MARKED])
def test_a_switch_and_its_program_do_the_same(
    name: str, model: Model, feeds: Mapping[str, Any], session: Session, tmp_path: Path
) -> None:
    asked = entry(name)
    workers = InWorkers(session, asked, model)
    switches = workers.switches()
    assert switches
    assert all(item.line for item in switches)
    setting = asked.runs.without(asked.chosen, switches[len(switches) // 2 :][:1])
    assert setting != asked.chosen
    threads = {"threads": 1} if asked.runs.threads(asked.chosen) else {}
    plain = in_a_plain_process(asked, setting.with_options({**setting.options, **threads}), model, feeds, tmp_path)
    found = workers.answer(setting, feeds)
    again = np.asarray(next(iter(plain.values()))).ravel()
    np.testing.assert_allclose(again, found.ravel(), rtol=1e-5 if name in ON_A_GPU else 0)  # kernels are timed there


@pytest.mark.parametrize("name", [name for name, item in SYSTEMS.items() if item.kernels])
def test_all_may_be_left_out_at_once(
    name: str, model: Model, feeds: Mapping[str, Any], session: Session, right: Any
) -> None:
    asked = entry(name)
    workers = InWorkers(session, asked, model)
    bare = asked.runs.without(asked.chosen, workers.switches())
    np.testing.assert_allclose(workers.answer(bare, feeds), right, atol=1e-5)


def test_a_name_that_does_not_exist_is_refused() -> None:
    assert entry("ort") == Entry("ort", "all")
    assert entry("ort").plain == Entry("ort", "none")
    with pytest.raises(UsageError, match="did you mean 'ort-all'"):
        entry("ort-al")


@pytest.mark.parametrize("name", ["ort-all", "tvm-O2", "torch-compile", "ort-none", "convert-onnxslim", "tflite"])
def test_drawn_options_are_the_backends(name: str) -> None:
    asked = entry(name)
    drawn = [asked.runs.drawn(asked.chosen, np.random.default_rng(seed)) for seed in range(20)]
    assert drawn == [asked.runs.drawn(asked.chosen, np.random.default_rng(seed)) for seed in range(20)]
    for options in drawn:
        backend(asked.chosen.backend).check({**asked.chosen.options, **options})
    assert any(drawn) == (name in {"ort-all", "tvm-O2", "torch-compile", "convert-onnxslim"})


def test_a_single_number_stays_one_in_tensorflow(tmp_path: Path) -> None:
    """Keras's export gives it a batch."""
    graph = "g (float x, float[3] z) => (float y) { m = ReduceMean <keepdims = 0> (z) y = Add (x, m) }"
    path = tmp_path / "number.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 20]> {graph}'), path)
    asked = entry("tensorflow-eager")
    opened = asked.runs.open(Model("onnx", str(path), model_sha256(path)), asked.chosen, tmp_path)
    found = opened.run({"x": np.float32(2), "z": np.float32([1, 2, 3])})
    assert found["y"].shape == ()
    assert found["y"] == 4
