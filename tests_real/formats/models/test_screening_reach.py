"""Files whose operators reach beyond the model: refused where nothing keeps them from it, harmless in a worker."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from benchmarks.containers.canaries import restoring_code  # noqa: E402
from conrepair.application.engine.job_table import JOBS  # noqa: E402
from conrepair.formats.models.admission import admitted  # noqa: E402
from conrepair.formats.models.identity import model_sha256  # noqa: E402
from conrepair.formats.models.model import Model  # noqa: E402
from conrepair.formats.models.outline import describe_unrun  # noqa: E402
from conrepair.formats.models.registry import framework  # noqa: E402
from conrepair.ground.data.tensor_spec import TensorSpec  # noqa: E402
from conrepair.ground.runtime.errors import ExitCode, ModelLoadError  # noqa: E402
from conrepair.ground.runtime.processes.confinement import CONFINED, within_reach  # noqa: E402
from conrepair.ground.runtime.processes.workers import Job, Outcome, Workers  # noqa: E402

pytestmark = pytest.mark.timeout(240)
needs_confinement = pytest.mark.skipif(not within_reach(CONFINED).full, reason="this kernel confines no worker")


def model(name: str, path: Path, **options: Any) -> Model:
    return Model(name, str(path), model_sha256(path), **options)


# --- Files ---


def saving(folder: Path, mark: Path) -> Model:
    """TorchScript that writes when it's called."""
    text = f"""
    def forward(self, x: Tensor) -> Tensor:
        torch.save(x, {str(mark)!r})
        return x * 2
    """
    return _scripted(folder, text)


def mapping(folder: Path, mark: Path) -> Model:
    """TorchScript that makes a file, which a tensor is mapped to."""
    text = f"""
    def forward(self, x: Tensor) -> Tensor:
        return x + torch.from_file({str(mark)!r}, True, 4)
    """
    return _scripted(folder, text)


def restoring(folder: Path, mark: Path) -> Model:
    """TorchScript that writes when it's loaded."""
    import torch

    module = torch.jit.script(torch.nn.Linear(4, 4))
    path = folder / "restoring.pt"
    module.save(str(path))
    changed = folder / "changed.pt"
    code = restoring_code(str(mark))
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(changed, "w") as new:
        for info in old.infolist():
            content = old.read(info)
            if re.search(r"/linear(\.py|/___torch_mangle_\d+\.py)$", info.filename):  # the second, third... script
                content += code.encode()
            new.writestr(info.filename, content)
    return model("torch", changed)


def _scripted(folder: Path, text: str) -> Model:
    import torch

    script = torch.jit.script(type("Net", (torch.nn.Module,), {})())
    script.define(text)
    path = folder / "net.pt"
    script.save(str(path))
    from conrepair.ground.data.tensor_spec import TensorSpec

    return model("torch", path, inputs=(TensorSpec("x", (4,), "float32"),))


def writing(folder: Path, mark: Path) -> Model:
    """A SavedModel whose signature writes a file, by way of another function."""
    import tensorflow as tf

    class Net(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
        def inner(self, x: Any) -> Any:
            tf.io.write_file(str(mark), "x")
            return x + 1.0

        @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
        def called(self, x: Any) -> Any:
            return {"y": self.inner(x)}

    net = Net()
    tf.saved_model.save(net, str(folder / "saved"), signatures=net.called)
    mark.unlink(missing_ok=True)
    return model("tensorflow", folder / "saved")


def initializing(folder: Path, mark: Path) -> Model:
    """A SavedModel whose table is filled by a function that writes a file: when it's loaded."""
    import tensorflow as tf

    class Filled(tf.lookup.KeyValueTensorInitializer):
        def initialize(self, table: Any) -> Any:
            with tf.control_dependencies([tf.io.write_file(str(mark), "x")]):
                return super().initialize(table)

    class Net(tf.Module):
        def __init__(self) -> None:
            self.table = tf.lookup.StaticHashTable(Filled(["a"], tf.constant([1], tf.int64)), -1)

        @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
        def called(self, x: Any) -> Any:
            return {"y": x + tf.cast(self.table.lookup(tf.constant("a")), tf.float32)}

    net = Net()
    tf.saved_model.save(net, str(folder / "saved"), signatures=net.called)
    mark.unlink(missing_ok=True)
    return model("tensorflow", folder / "saved")


def printing(folder: Path, mark: Path) -> Model:
    """A SavedModel that prints into a file."""
    import tensorflow as tf

    class Net(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
        def called(self, x: Any) -> Any:
            tf.print("x", output_stream=f"file://{mark}")
            return {"y": x + 1.0}

    net = Net()
    tf.saved_model.save(net, str(folder / "saved"), signatures=net.called)
    mark.unlink(missing_ok=True)
    return model("tensorflow", folder / "saved")


def frozen(folder: Path, mark: Path) -> Model:
    """A frozen graph with an output that a written file stands before."""
    import tensorflow as tf

    graph = tf.Graph()
    with graph.as_default():
        given = tf.compat.v1.placeholder(tf.float32, [None, 4], name="x")
        with tf.control_dependencies([tf.io.write_file(str(mark), "x")]):
            tf.identity(given + 1.0, name="y")
    (folder / "net.pb").write_bytes(graph.as_graph_def().SerializeToString())
    return model("tensorflow", folder / "net.pb")


FILES = {make.__name__: make for make in (saving, mapping, restoring, writing, initializing, printing, frozen)}


@pytest.fixture(params=FILES)
def reaching(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Model, Path]:
    (tmp_path / "outside").mkdir()
    mark = tmp_path / "outside" / "mark"
    (tmp_path / "files").mkdir()
    return FILES[request.param](tmp_path / "files", mark), mark


def test_where_nothing_confines_it_is_refused(reaching: tuple[Model, Path]) -> None:
    """As with `in_process=True`, and on a kernel without Landlock."""
    suspect, mark = reaching
    with pytest.raises(ModelLoadError, match=r"may reach beyond the model.*--trust.*`trust: true`") as caught:
        framework(suspect.framework).load(suspect)
    assert caught.value.exit_code == ExitCode.MODEL_LOAD
    with pytest.raises(ModelLoadError, match="--trust"):
        describe_unrun(suspect)
    assert not mark.exists()


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Workers, Path]]:
    room = tmp_path_factory.mktemp("room")
    with Workers(1, jobs=JOBS, folders=(room,)) as workers:
        yield workers, room


def described(workers: tuple[Workers, Path], suspect: Model, name: str, **more: Any) -> Outcome:
    folder = workers[1] / name
    folder.mkdir()
    payload = {"model": suspect, **more}
    return workers[0].call(Job("describe", payload, folder, frozenset({suspect.framework}), timeout=120.0))


@needs_confinement
@pytest.mark.workers
def test_in_a_worker_nothing_is_written(reaching: tuple[Model, Path], workers: tuple[Workers, Path]) -> None:
    suspect, mark = reaching
    place = str(abs(hash(suspect.path)))
    described(workers, suspect, place)
    described(workers, suspect, f"{place}-unrun", unrun=True)
    assert not mark.exists()


# --- Keras ---


@pytest.fixture(scope="module")
def keras_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    keras = pytest.importorskip("keras")
    path = tmp_path_factory.mktemp("keras") / "net.keras"
    keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, activation="relu")]).save(path)
    return path


def reconfigured(source: Path, path: Path, **fields: Any) -> Path:
    """The file, with another layer where its dense one was."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w") as new:
        for info in old.infolist():
            content = old.read(info)
            if info.filename == "config.json":
                config = json.loads(content)
                layer = next(item for item in config["config"]["layers"] if item["class_name"] == "Dense")
                layer.update(fields)
                content = json.dumps(config).encode()
            new.writestr(info.filename, content)
    return path


def function(module: str, name: str) -> dict[str, Any]:
    return {"module": module, "class_name": "function", "config": name, "registered_name": name}


OBJECTS = {
    "a class of another module": {"module": "subprocess", "class_name": "Popen", "registered_name": "Popen"},
    "a function of the system": {"config": {"units": 3, "activation": function("os", "system")}},
    "a function that fetches": {"config": {"units": 3, "activation": function("keras.utils", "get_file")}},
    "a function that loads": {"config": {"units": 3, "activation": function("keras.saving", "load_model")}},
    "a module that nobody has": {"module": "canary", "class_name": "Layer", "registered_name": "Layer"},
    "a Lambda": {"module": "keras.layers", "class_name": "Lambda", "config": {
        "name": "l", "function": {"class_name": "__lambda__", "config": {"code": "4wAAAAA=", "defaults": None,
                                                                         "closure": None}}}},
}  # fmt: skip


@pytest.mark.parametrize("what", OBJECTS)
def test_what_a_keras_file_names_isnt_run(
    what: str, keras_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "canary.py").write_text("open('mark', 'w')\n")
    monkeypatch.chdir(tmp_path)
    path = reconfigured(keras_file, tmp_path / "net.keras", **OBJECTS[what])
    with pytest.raises(ModelLoadError):
        framework("keras").describe(model("keras", path))
    assert not Path("mark").exists()


def test_a_lambda_in_h5_isnt_run(tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    net = keras.Sequential([keras.Input((4,)), keras.layers.Lambda(lambda x: x)])
    net.save(tmp_path / "net.h5")
    with pytest.raises(ModelLoadError, match="Lambda"):
        framework("keras").describe(model("keras", tmp_path / "net.h5"))


def test_ordinary_files_ask_for_nothing(keras_file: Path, tmp_path: Path) -> None:
    import keras
    import tensorflow as tf
    import torch

    with admitted(model("keras", keras_file)):
        pass
    keras.saving.load_model(keras_file).export(str(tmp_path / "exported"), verbose=False)
    with admitted(model("tensorflow", tmp_path / "exported")):
        pass
    (tmp_path / "words.txt").write_text("a\nb\n")

    class Net(tf.Module):
        def __init__(self) -> None:
            words = tf.lookup.TextFileInitializer(
                str(tmp_path / "words.txt"), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64,
                tf.lookup.TextFileIndex.LINE_NUMBER,
            )  # fmt: skip
            self.table = tf.lookup.StaticHashTable(words, -1)
            self.weight = tf.Variable(np.ones(3, np.float32))

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="x")])
        def called(self, x: Any) -> Any:
            tf.print("to the terminal's error")
            return {"y": self.table.lookup(x)}

    net = Net()
    tf.saved_model.save(net, str(tmp_path / "lookup"), signatures=net.called)
    with admitted(model("tensorflow", tmp_path / "lookup")):
        pass
    assert describe_unrun(model("tensorflow", tmp_path / "lookup")).missing == ()
    ran = framework("tensorflow").describe(model("tensorflow", tmp_path / "exported"))
    read = describe_unrun(model("tensorflow", tmp_path / "exported")).description
    assert (read.inputs, read.outputs, read.parameters, read.weights) == (
        ran.inputs, ran.outputs, ran.parameters, ran.weights,
    )  # fmt: skip
    script = torch.jit.script(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()))
    script.save(str(tmp_path / "net.pt"))
    with admitted(model("torch", tmp_path / "net.pt")):
        pass
    found = describe_unrun(model("torch", tmp_path / "net.pt"))
    assert (found.description.parameters, found.description.weights) == (20, {"float32": 20})
    assert found.missing == (
        "inputs and outputs: not tried, as that would run it (`conrepair execute` does; so does --trust)",
    )


def test_pickles_in_npz_are_not_made(tmp_path: Path) -> None:
    from conrepair.ground.data.tensors import read_tensors
    from conrepair.ground.runtime.errors import DataError

    class Marking:
        def __reduce__(self) -> Any:
            return Path.mkdir, (tmp_path / "mark",)

    np.savez(tmp_path / "data.npz", x=np.array([Marking()], dtype=object))
    with pytest.raises(DataError):
        read_tensors(tmp_path / "data.npz")
    assert not (tmp_path / "mark").exists()


# --- TorchScript: what a name resolves to ---


class _Layers(torch.nn.Module):
    """Layers and a method with names that operators have as well."""

    def __init__(self) -> None:
        super().__init__()
        self.save = torch.nn.Linear(4, 4)
        self.parts = torch.nn.ModuleDict({"load_tensor": torch.nn.Linear(4, 4), "1": torch.nn.ReLU()})

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        save = self.parts["load_tensor"](self.save(x)) + self.save.weight.sum()
        return {"save": self.parts["1"](save), "y": self.write_file(save)}

    @torch.jit.export
    def write_file(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


@pytest.mark.parametrize(
    "how", [torch.jit.script, lambda module: torch.jit.trace(module, torch.ones(3, 4), strict=False)]
)
def test_layers_may_have_operators_names(how: Any, tmp_path: Path) -> None:
    how(_Layers().eval()).save(str(tmp_path / "net.pt"))
    inputs = (TensorSpec("x", ("batch", 4), "float32"),)
    runnable = framework("torch").load(model("torch", tmp_path / "net.pt", inputs=inputs))
    assert {spec.name for spec in runnable.outputs} == {"save", "y"}


CALLS = {
    "by a name that's put together": 'getattr(torch, "sa" "ve")(x, MARK)',
    "by a name with escapes": 'getattr(torch, "\\x73ave")(x, MARK)',
    "by its library": "ops.aten.save(x, MARK)",
    "with spaces": "torch . save(x, MARK)",
    "under a layer's name": "_call(torch.save)",
    "of a layer that hasn't it": "self.parts.save(MARK)",
    "mapping": "torch.add_(x, torch.from_file(MARK, True, 4))",
    "in a loop": "[torch.save(x, MARK) for i in [1, 2]]",
}


@pytest.mark.parametrize("where", ["forward", "__setstate__", "another"])
@pytest.mark.parametrize("how", CALLS)
def test_operators_are_found_however_they_are_named(how: str, where: str, tmp_path: Path) -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.save = torch.nn.Linear(4, 4)
            self.parts = torch.nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.parts(self.save(x))

    torch.jit.script(Net()).save(str(tmp_path / "old.pt"))
    call = CALLS[how].replace("MARK", f'"{tmp_path / "mark"}"')
    bound = "    save = torch.save\n" if how == "under a layer's name" else ""
    call = call.replace("_call(torch.save)", f'save(x, "{tmp_path / "mark"}")')
    with zipfile.ZipFile(tmp_path / "old.pt") as old, zipfile.ZipFile(tmp_path / "net.pt", "w") as new:
        for info in old.infolist():
            text = old.read(info)
            if info.filename.endswith(".py") and b"class Net" in text:
                (kind,) = re.findall(r"self: ([\w.]+)", text.decode())[:1] or [""]
                own = f"  def {where}(self: {kind}, x: Tensor) -> Tensor:\n{bound}    _0 = {call}\n    return x\n"
                kept = text.decode() if where != "forward" else text.decode().partition("  def forward")[0]
                text = (kept + own).encode()
            new.writestr(info.filename, text)
    with pytest.raises(ModelLoadError, match="may reach beyond the model"):
        framework("torch").load(model("torch", tmp_path / "net.pt", inputs=(TensorSpec("x", (4,), "float32"),)))
    assert not (tmp_path / "mark").exists()
