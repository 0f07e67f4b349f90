"""What an edit of a TFLite file doesn't name stays, bit for bit: metadata, files and numbers behind the model."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import flatbuffers
import numpy as np
import pytest
import small_models as small
from ai_edge_litert import schema_py_generated as schema

from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.models.registry import framework
from conrepair.formats.networks.network import open_network

LABELS = "".join(f"class {number}\n" for number in range(200)).encode()
METADATA = bytes(range(64))
MARK = b"M001"


@pytest.fixture(scope="module")
def outside() -> bytes:
    """What TensorFlow's converter writes when it puts numbers behind the flatbuffer."""
    import tensorflow as tf

    network = small.keras_convnet()
    converter = tf.lite.TFLiteConverter.from_keras_model(network)
    converter._experimental_use_buffer_offset = True
    return bytes(converter.convert())


@pytest.fixture(scope="module")
def inside(outside: bytes) -> bytes:
    """The same with all numbers among the tables."""
    model = schema.ModelT.InitFromPackedBuf(outside, 0)
    for buffer in model.buffers:
        if buffer.offset > 1:
            buffer.data = np.frombuffer(outside, np.uint8, buffer.size, buffer.offset)
            buffer.offset = buffer.size = 0
    return packed(model)


def packed(model: schema.ModelT) -> bytes:
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def with_metadata(content: bytes) -> bytes:
    """As TFLite Metadata does it: a buffer of a flatbuffer of its own, named in the model's table."""
    model = schema.ModelT.InitFromPackedBuf(content, 0)
    model.buffers.append(schema.BufferT(data=np.frombuffer(METADATA, np.uint8)))
    model.metadata = [
        *(model.metadata or []),
        schema.MetadataT(name="TFLITE_METADATA", buffer=len(model.buffers) - 1),
    ]
    model.description = b"what it's for"
    return packed(model)


def with_files(content: bytes, *, absolute: bool, compression: int = zipfile.ZIP_STORED) -> bytes:
    """As TFLite Metadata appends the files that go with a model; or as one appends an archive made before."""
    stream = io.BytesIO(content if absolute else b"")
    stream.seek(0, io.SEEK_END)
    with zipfile.ZipFile(stream, "a", compression) as archive:
        archive.comment = b"files"
        archive.writestr("labels.txt", LABELS)
        archive.writestr("sub/vocabulary.bin", METADATA)
    return stream.getvalue() if absolute else content + stream.getvalue()


def edited(path: Path) -> Path:
    """With another bias in one layer."""
    model = small.model_of("tflite", path)
    editor = open_editor(model)
    node = next(node for node in editor.graph.nodes if node.op == "Conv" and "bias" in node.parameters)
    bias = np.asarray(node.parameters["bias"].numpy())
    editor.set_parameter(node, "bias", bias + 1)
    folder = path.parent / "out"
    folder.mkdir()
    return Path(editor.save(folder, "repaired").path)


def bytes_of(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Every buffer by the names of what has it."""
    model = schema.ModelT.InitFromPackedBuf(content, 0)
    owners = [(tensor.name, tensor.buffer) for graph in model.subgraphs for tensor in graph.tensors]
    owners += [(item.name, item.buffer) for item in model.metadata or []]
    for name, place in owners:
        buffer = model.buffers[place]
        data = b"" if buffer.data is None else np.asarray(buffer.data, np.uint8).tobytes()
        yield str(name), content[buffer.offset : buffer.offset + buffer.size] if buffer.offset > 1 else data


@pytest.mark.parametrize("where", ["inside", "outside"])
@pytest.mark.parametrize("files", ["none", "absolute", "relative", "deflated"])
def test_all_else_stays(where: str, files: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    content = request.getfixturevalue(where)
    if where == "inside":
        content = with_metadata(content)
    if files != "none":
        compression = zipfile.ZIP_DEFLATED if files == "deflated" else zipfile.ZIP_STORED
        content = with_files(content, absolute=files != "relative", compression=compression)
    (path := tmp_path / "net.tflite").write_bytes(content)
    new = edited(path).read_bytes()
    before, after = dict(bytes_of(content)), dict(bytes_of(new))
    assert before.keys() == after.keys()
    changed = [name for name in before if before[name] != after[name]]
    assert len(changed) == 1
    one, two = (schema.ModelT.InitFromPackedBuf(item, 0) for item in (content, new))
    assert (one.description, one.version) == (two.description, two.version)
    assert [buffer.offset > 1 for buffer in one.buffers] == [buffer.offset > 1 for buffer in two.buffers]
    if files != "none":
        with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(io.BytesIO(new)) as kept:
            assert kept.testzip() is None
            assert (kept.comment, kept.namelist()) == (old.comment, old.namelist())
            for first, second in zip(old.infolist(), kept.infolist(), strict=True):
                assert old.read(first) == kept.read(second)
                assert (first.date_time, first.compress_type) == (second.date_time, second.compress_type)
                assert (first.header_offset - second.header_offset) % 16 == 0  # mapped ones stay aligned


def test_places_of_files_hold_where_the_model_grows(inside: bytes, tmp_path: Path) -> None:
    (path := tmp_path / "net.tflite").write_bytes(with_files(inside, absolute=True))
    editor = open_editor(small.model_of("tflite", path))
    node = next(node for node in editor.graph.nodes if node.op == "Conv")
    editor.set_parameter(node, "weight", np.asarray(node.parameters["weight"].numpy()) * 2)
    editor.add_output(next(item.outputs[0] for item in editor.graph.nodes if "Relu6" in item.op or item.op == "Clip"))
    (folder := tmp_path / "out").mkdir()
    new = Path(editor.save(folder, "repaired").path)
    with zipfile.ZipFile(new) as archive:
        assert archive.testzip() is None
        assert archive.read("labels.txt") == LABELS
        [stated] = [item.header_offset for item in archive.infolist() if item.filename == "labels.txt"]
    # Readers that take the places as they are (no search for what stands in front) find the files.
    assert new.read_bytes()[stated : stated + 4] == b"PK\x03\x04"
    framework("tflite").load(small.model_of("tflite", new))


def test_numbers_outside_are_described_and_looked_into(outside: bytes, inside: bytes, tmp_path: Path) -> None:
    paths = [tmp_path / "outside.tflite", tmp_path / "inside.tflite"]
    models = []
    for path, content in zip(paths, (outside, inside), strict=True):
        path.write_bytes(content)
        models.append(small.model_of("tflite", path))
    one, two = (framework("tflite").describe(model) for model in models)
    assert one.parameters == two.parameters > 100
    assert (one.weights, one.matrices) == (two.weights, two.matrices)
    graphs = [
        open_network(model, [replace(spec, shape=(2, *spec.shape[1:])) for spec in two.inputs]).graph
        for model in models
    ]
    for first, second in zip(*(graph.nodes for graph in graphs), strict=True):
        for role, numbers in first.parameters.items():
            np.testing.assert_array_equal(numbers.numpy(), second.parameters[role].numpy())


def test_numbers_go_outside_where_the_tables_would_be_too_large(
    inside: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("conrepair.formats.tflite.edit.file._MOST", 100)
    (path := tmp_path / "net.tflite").write_bytes(inside)
    new = edited(path)
    content = new.read_bytes()
    assert any(buffer.offset > 1 for buffer in schema.ModelT.InitFromPackedBuf(content, 0).buffers)
    before, after = dict(bytes_of(inside)), dict(bytes_of(content))
    assert sum(before[name] != after[name] for name in before) == 1
    images = small.images(3, channels_last=True)
    runnable = framework("tflite").load(small.model_of("tflite", new))
    runnable.run({runnable.inputs[0].name: images})
