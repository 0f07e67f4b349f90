"""Files in which our reader and a library's could see different things: what's loaded is what was looked through."""

from __future__ import annotations

import gc
import io
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.containers.canaries import restoring_code
from conrepair.formats.models.admission import admitted
from conrepair.formats.models.model import Model
from conrepair.formats.models.outline import describe_unrun, outline
from conrepair.formats.models.registry import framework
from conrepair.ground.runtime.errors import ModelLoadError
from conrepair.ground.runtime.processes.confinement import Hold

_ROOT = Path(__file__).parents[3]


def model(name: str, path: Path, **options: Any) -> Model:
    return Model(name, str(path), "", **options)


def looks(name: str) -> tuple[Callable[[Model], Any], ...]:
    return framework(name).describe, framework(name).load, describe_unrun


def rewritten(source: Path, path: Path, change: Callable[[str, bytes], bytes | None], **more: bytes) -> Path:
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            content = change(info.filename, old.read(info))
            if content is not None:
                new.writestr(info.filename, content)
        for name, content in more.items():
            new.writestr(name, content)
    return path


def refused(suspect: Model, mark: Path, match: str) -> None:
    for look in looks(suspect.framework):
        with pytest.raises(ModelLoadError, match=match) as told:
            look(suspect)
        assert "conrepair-" not in str(told.value)  # the copy is nobody's business
    assert not mark.exists()


# --- PyTorch ---


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch = pytest.importorskip("torch")
    path = tmp_path_factory.mktemp("torch") / "net.pt2"
    torch.export.save(torch.export.export(torch.nn.Linear(4, 3), (torch.zeros(2, 4),)), path)
    return path


def with_code(name: str, content: bytes) -> bytes:
    if not name.endswith("models/model.json"):
        return content
    value = json.loads(content)
    value["guards_code"] = ["__import__('os').mkdir('MARK') is None"]
    return json.dumps(value).encode()


HEADER = b"net/models/model.json"
LISTED = b"PK\x01\x02"


def other_checksum(data: bytearray) -> None:
    place = data.rindex(HEADER)
    assert data[place - 46 : place - 42] == LISTED
    data[place - 30] ^= 1


def other_name(data: bytearray) -> None:
    data[data.index(HEADER) + 4] ^= 32  # a capital: PyTorch's reader takes no notice


def other_names(data: bytearray) -> None:
    other_name(data)
    data[data.rindex(HEADER) + 4] ^= 32


@pytest.mark.parametrize("disguise", [other_checksum, other_name, other_names])
def test_code_in_a_member_that_we_find_damaged(
    disguise: Callable[[bytearray], None], program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = rewritten(program, tmp_path / "net.pt2", with_code)
    data = bytearray(path.read_bytes())
    disguise(data)
    path.write_bytes(data)
    refused(model("torch", path), tmp_path / "MARK", r"net\.pt2 isn't loaded.*--trust")


@pytest.mark.parametrize("place", ["CODE", "Code"])
def test_code_of_torchscript_elsewhere(place: str, tmp_path: Path) -> None:
    """PyTorch finds it there: its reader takes no notice of capitals."""
    torch = pytest.importorskip("torch")
    mark = tmp_path / "mark"
    script = torch.jit.script(torch.nn.Sequential(torch.nn.Linear(4, 3)))
    script.save(str(tmp_path / "net.pt"))
    code = restoring_code(str(mark))
    path = tmp_path / "hostile.pt"
    with zipfile.ZipFile(tmp_path / "net.pt") as old, zipfile.ZipFile(path, "w") as new:
        for info in old.infolist():
            content = old.read(info) + (code.encode() if info.filename.endswith("/linear.py") else b"")
            new.writestr(info.filename.replace("/code/", f"/{place}/"), content)
    for look in looks("torch"):
        with pytest.raises(ModelLoadError):
            look(model("torch", path))
    assert not mark.exists()


def test_weights_that_are_only_said_to_be_there_take_no_memory(program: Path, tmp_path: Path) -> None:
    def grown(name: str, content: bytes) -> bytes:
        if name.endswith("model_weights_config.json"):
            value = json.loads(content)
            value["config"]["weight"]["tensor_meta"]["sizes"] = [{"as_int": 1 << 20}, {"as_int": 1 << 11}]
            return json.dumps(value).encode()
        return b"" if name.endswith("weights/weight_0") else content

    path = rewritten(program, tmp_path / "net.pt2", grown)
    refused(model("torch", path), tmp_path / "none", r"weights would be of 8\.0 GiB \(limit 0\.2")


def test_a_text_that_would_become_millions_of_objects(program: Path, tmp_path: Path) -> None:
    def grown(name: str, content: bytes) -> bytes:
        return content[:-1] + b', "x": [' + b"[]," * (6 << 20) + b"[]]}" if name.endswith("model.json") else content

    path = rewritten(program, tmp_path / "net.pt2", grown)
    refused(model("torch", path), tmp_path / "none", "a text of 18 MiB, and 16 are the most")
    assert outline(model("torch", path)) is None  # what says why a file isn't loaded doesn't read it, either


def test_a_state_dict_that_unpacks_to_more_than_it_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr("conrepair.ground.runtime.files.archive._LEAST_UNPACKED", 100 << 10)
    torch.save({"weight": torch.zeros(60 << 10)}, tmp_path / "large.pt")
    path = rewritten(tmp_path / "large.pt", tmp_path / "net.pt", lambda _, content: content)
    refused(model("torch", path), tmp_path / "none", r"unpacks to 0\.0 GiB")


def test_what_pytorch_gets_is_what_programs_have(program: Path, tmp_path: Path) -> None:
    path = rewritten(program, tmp_path / "net.pt2", lambda _, content: content, **{"net/notes/read.me": b"x"})
    with admitted(model("torch", path)) as place, zipfile.ZipFile(place) as copy, zipfile.ZipFile(program) as whole:
        assert {name: copy.read(name) for name in copy.namelist()} == {
            name: whole.read(name) for name in whole.namelist()
        }
    assert not place.exists()


def test_a_trusted_file_is_given_as_it_is(program: Path) -> None:
    with admitted(model("torch", program, trust=True)) as place:
        assert place == program


def test_torchscript_of_old_names_no_code(tmp_path: Path) -> None:
    """Before PyTorch 1.3 a member `model.json` said which members are code."""
    torch = pytest.importorskip("torch")
    torch.jit.script(torch.nn.Sequential(torch.nn.ReLU())).save(str(tmp_path / "net.pt"))
    path = rewritten(
        tmp_path / "net.pt",
        tmp_path / "old.pt",
        lambda _, content: content,
        **{"net/model.json": b"{}", "net/x.py": b""},
    )
    with admitted(model("torch", path)) as place, zipfile.ZipFile(place) as copy:
        assert not {"net/model.json", "net/x.py"} & set(copy.namelist())
        assert any(name.startswith("net/code/") for name in copy.namelist())


# --- Keras ---


@pytest.fixture(scope="module")
def layers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    keras = pytest.importorskip("keras")
    folder = tmp_path_factory.mktemp("keras")
    net = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, activation="relu", name="dense")])
    net.save(folder / "net.keras")
    net.save(folder / "net.h5")
    return folder


def test_an_archive_behind_hdf5(layers: Path, tmp_path: Path) -> None:
    """By its end it's one file, by its beginning another."""
    path = tmp_path / "net.h5"
    path.write_bytes((layers / "net.h5").read_bytes() + (layers / "net.keras").read_bytes())
    refused(model("keras", path), tmp_path / "none", "isn't HDF5, or not only")


def test_hdf5_behind_something(layers: Path, tmp_path: Path) -> None:
    path = tmp_path / "net.h5"
    path.write_bytes(bytes(512) + (layers / "net.h5").read_bytes())
    refused(model("keras", path), tmp_path / "none", "isn't HDF5, or not only")


def of_hdf5(change: Callable[[Any], None]) -> Callable[[bytes], bytes]:
    def changed(content: bytes) -> bytes:
        import h5py

        stream = io.BytesIO(content)
        with h5py.File(stream, "r+") as file:
            change(file)
        return stream.getvalue()

    return changed


def _first(file: Any) -> tuple[Any, str]:
    """A dataset's group and name."""
    import h5py

    found = []
    file.visititems(lambda name, item: found.append(name) if isinstance(item, h5py.Dataset) else None)
    group, _, name = found[0].rpartition("/")
    return file[group], name


def external_link(file: Any) -> None:
    import h5py

    group, name = _first(file)
    del group[name]
    group[name] = h5py.ExternalLink("/etc/other.h5", "/x")


def soft_link(file: Any) -> None:
    import h5py

    group, name = _first(file)
    group["other"] = h5py.SoftLink(f"{group.name}/{name}")


def external_numbers(file: Any) -> None:
    group, name = _first(file)
    shape, dtype = group[name].shape, group[name].dtype
    del group[name]
    group.create_dataset(name, shape, dtype, external=[("/etc/passwd", 0, int(np.prod(shape)) * 4)])


def unwritten(file: Any) -> None:
    group, name = _first(file)
    del group[name]
    group.create_dataset(name, (1 << 20, 1 << 10), "float32", chunks=(1 << 10, 1 << 10), compression="gzip")


HDF5 = {
    "is a link to something else": (external_link, soft_link),
    "lie in another file": (external_numbers,),
    r"numbers take at least 4\.0 GiB \(limit 0\.2": (unwritten,),
}


@pytest.mark.parametrize("suffix", ["h5", "keras"])
@pytest.mark.parametrize("match", HDF5)
def test_numbers_that_arent_in_the_file(match: str, suffix: str, layers: Path, tmp_path: Path) -> None:
    path = tmp_path / f"net.{suffix}"
    for change in HDF5[match]:
        within = of_hdf5(change)
        if suffix == "h5":
            path.write_bytes(within((layers / "net.h5").read_bytes()))
        else:
            with zipfile.ZipFile(layers / "net.keras") as old, zipfile.ZipFile(path, "w") as new:
                for name in old.namelist():
                    new.writestr(name, within(old.read(name)) if name.endswith("h5") else old.read(name))
        refused(model("keras", path), tmp_path / "none", match)


def test_a_configuration_that_unpacks_to_more_than_it_may(layers: Path, tmp_path: Path) -> None:
    def grown(name: str, content: bytes) -> bytes:
        return content + b" " * (20 << 20) if name == "config.json" else content

    path = rewritten(layers / "net.keras", tmp_path / "net.keras", grown)
    refused(model("keras", path), tmp_path / "none", "a text of 20 MiB, and 16 are the most")
    assert outline(model("keras", path)) is None


# --- TensorFlow ---


def tf1(folder: Path, mark: Path, change: Callable[[Any], None]) -> Model:
    """A SavedModel of TensorFlow 1 with an operator that writes, which nothing that's called needs."""
    tf = pytest.importorskip("tensorflow")
    from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 3], name="x")
        weight = v1.get_variable("weight", [3, 2], use_resource=True)
        y = tf.matmul(x, weight, name="y")
        write = tf.io.write_file(str(mark), "x", name="write")
        with tf.control_dependencies([write]):
            v1.no_op(name="reached")
            tf.constant(1.0, name="told")
        session.run(v1.global_variables_initializer())
        builder = v1.saved_model.Builder(str(folder))
        signature = v1.saved_model.predict_signature_def({"x": x}, {"y": y})
        builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature})
        builder.save()
    file = folder / "saved_model.pb"
    saved = SavedModel.FromString(file.read_bytes())
    change(saved.meta_graphs[0])
    file.write_bytes(saved.SerializeToString())
    return model("tensorflow", folder)


def by_restoring(content: Any) -> None:
    content.saver_def.restore_op_name = "reached"


def by_the_files_name(content: Any) -> None:
    content.saver_def.filename_tensor_name = "told:0"


def by_an_initializer(content: Any) -> None:
    content.collection_def["table_initializer"].node_list.value.append("reached")


def by_a_variable(content: Any) -> None:
    from tensorflow.core.framework.variable_pb2 import VariableDef

    for collection in content.collection_def.values():
        for place, value in enumerate(collection.bytes_list.value):
            variable = VariableDef.FromString(value)
            variable.initializer_name = "reached"
            collection.bytes_list.value[place] = variable.SerializeToString()
    content.collection_def["local_variables"].CopyFrom(content.collection_def["variables"])


def by_the_main_operator(content: Any) -> None:
    content.collection_def["saved_model_main_op"].node_list.value.append("reached")


def by_a_signature(content: Any) -> None:
    content.signature_def["__saved_model_init_op"].outputs["__saved_model_init_op"].name = "reached"


@pytest.mark.parametrize(
    "change",
    [by_restoring, by_the_files_name, by_an_initializer, by_a_variable, by_the_main_operator, by_a_signature],
)
def test_what_loading_runs_is_looked_at(change: Callable[[Any], None], tmp_path: Path) -> None:
    suspect = tf1(tmp_path / "net", tmp_path / "mark", change)
    refused(suspect, tmp_path / "mark", "WriteFile, which reaches beyond the model")


@pytest.mark.parametrize("change", [by_restoring, by_an_initializer])
def test_what_only_saving_needs_counts_where_loading_runs_it(change: Callable[[Any], None], tmp_path: Path) -> None:
    """Each SavedModel has operators that write its checkpoint, and nobody runs them."""

    def renamed(content: Any) -> None:
        for node in content.graph_def.node:
            if node.name in {"reached", "write", "told"}:
                node.op, node.input[:] = "NoOp" if node.op == "NoOp" else node.op, []
        content.graph_def.node.remove(next(node for node in content.graph_def.node if node.name == "write"))

    def saving(content: Any) -> None:
        renamed(content)
        change(content)
        next(node for node in content.graph_def.node if node.name == "reached").input.append("^save/SaveV2")

    with admitted(tf1(tmp_path / "right", tmp_path / "mark", renamed)):
        pass
    refused(tf1(tmp_path / "net", tmp_path / "mark", saving), tmp_path / "mark", "SaveV2, which reaches beyond")


def test_tensorflow_gets_a_graph_its_numbers_and_vocabularies(tmp_path: Path) -> None:
    suspect = tf1(tmp_path / "net", tmp_path / "mark", lambda content: content.graph_def.node.remove(
        next(node for node in content.graph_def.node if node.name == "write")
    ))  # fmt: skip
    for name in ("saved_model.pbtxt", "saved_model.cpb", "fingerprint.pb", "assets/words.txt", "elsewhere/x"):
        (tmp_path / "net" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "net" / name).write_text("x")
    with admitted(suspect) as place:
        found = {path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()}
    assert {name for name in found if not name.startswith("variables/")} == {"saved_model.pb", "assets/words.txt"}
    assert "variables/variables.index" in found


def test_a_converter_gets_what_was_looked_through(tmp_path: Path) -> None:
    from conrepair.formats.converters.all_converters import converter

    suspect = tf1(tmp_path / "net", tmp_path / "mark", by_restoring)
    step = converter("savedmodel-tflite")
    with pytest.raises(ModelLoadError, match="WriteFile"):
        step.convert(suspect, tmp_path, step.complete({}))
    assert not (tmp_path / "mark").exists()


def test_vocabularies_stay_as_long_as_the_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tensorflow as tf

    monkeypatch.setattr("conrepair.formats.models.admission.held", lambda: Hold(True, True, True))

    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    (tmp_path / "words.txt").write_text("first\nsecond\n")

    class Net(tf.Module):
        def __init__(self) -> None:
            self.words = tf.saved_model.Asset(str(tmp_path / "words.txt"))

        @tf.function(input_signature=[tf.TensorSpec([1], tf.float32, name="x")])
        def called(self, x: Any) -> Any:
            lines = tf.strings.split(tf.strings.strip(tf.io.read_file(self.words.asset_path)), "\n")
            return {"y": x * tf.cast(tf.size(lines), tf.float32)}

    net = Net()
    tf.saved_model.save(net, str(tmp_path / "net"), signatures=net.called)
    runnable = framework("tensorflow").load(model("tensorflow", tmp_path / "net"))
    copies = set(scratch.glob("conrepair-*"))
    assert runnable.run({"x": np.ones(1, np.float32)})["y"] == 2
    del runnable
    gc.collect()
    assert copies
    assert not set(scratch.glob("conrepair-*"))


def test_an_asset_that_lies_outside(tmp_path: Path) -> None:
    def change(content: Any) -> None:
        content.asset_file_def.add().filename = "../../../precious"

    suspect = tf1(tmp_path / "net", tmp_path / "mark", lambda content: (change(content), by_restoring(content)))
    refused(suspect, tmp_path / "mark", "which lies outside")


# --- All ---

_LOADERS = re.compile(
    r"torch\.jit\.load\(|torch\.export\.load\(|saving\.load_model\(|saved_model\.load\(|from_saved_model\(|(?<!_)load_exported\("
)
_BEHIND_THE_DOOR = {
    "formats/torch/load/framework.py", "formats/keras/load/framework.py", "formats/tensorflow/load/framework.py",
    "formats/torch/load/exported_outline.py", "formats/torch/load/exported.py",
    "formats/converters/from_savedmodel.py",
    "formats/converters/scripts/torch_tflite.py",  # a program that we wrote just before
    "systems/tensorflow.py", "systems/torch.py",  # texts of programs that a trace writes
}  # fmt: skip


def test_nothing_else_loads_formats_that_hold_code() -> None:
    found = {
        path.relative_to(package).as_posix()
        for package in (_ROOT / "conrepair", _ROOT / "plugins" / "lab" / "conrepair_lab")
        for path in package.rglob("*.py")
        if _LOADERS.search(path.read_text())
    }
    assert found == _BEHIND_THE_DOOR
