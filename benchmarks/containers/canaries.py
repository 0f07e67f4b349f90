"""Ordinary files, and what code in them would look like: each leaves a mark where it runs."""

from __future__ import annotations

import io
import json
import pickle
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["FORMATS", "NOTE", "Canary", "Marking", "canary_of", "restoring_code"]

NOTE = "CONREPAIR_CANARY"
"""Set in the environment of the process by code of Python's, besides the mark."""


@dataclass(frozen=True)
class Canary:
    """A format.

    Attributes:
        suffix: Of its files; "" for a folder.
        whole: Members of an ordinary archive by name, or files of a folder; {"": content} for a file that's neither.
        hostile: Sets of members that hold code.
    """

    suffix: str
    whole: dict[str, bytes]
    hostile: tuple[dict[str, bytes], ...]


class Marking:
    """An object whose pickle leaves a mark."""

    def __init__(self, mark: str) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return exec, (_python(self.mark),)


def _python(mark: str) -> str:
    return f"__import__('os').environ.__setitem__('{NOTE}', '1'); open('{mark}', 'w').close()"


def _expression(mark: str) -> str:
    return f"(__import__('os').environ.__setitem__('{NOTE}', '1'), open('{mark}', 'w').close())"


def canary_of(name: str, mark: Path, scratch: Path) -> Canary:
    """Make a format's files.

    Args:
        name: Of `FORMATS`.
        mark: What the code would make; nothing is there.
        scratch: An empty folder.
    """
    return FORMATS[name](str(mark), scratch)


def _members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _pickled(mark: str) -> bytes:
    import torch

    buffer = io.BytesIO()
    torch.save(Marking(mark), buffer)
    return buffer.getvalue()


def _program(mark: str, scratch: Path) -> Canary:
    import torch

    size = torch.export.Dim.AUTO
    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())
    exported = torch.export.export(net, (torch.zeros(2, 4),), dynamic_shapes=({0: size},))
    torch.export.save(exported, scratch / "net.pt2")
    whole = _members(scratch / "net.pt2")
    name = "net/models/model.json"

    def changed(change: Callable[[dict[str, Any]], None]) -> dict[str, bytes]:
        value = json.loads(whole[name])
        change(value)
        return {name: json.dumps(value).encode()}

    def first(value: Any, key: str) -> dict[str, Any]:
        if isinstance(value, dict) and isinstance(value.get(key), str):
            return value
        inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
        return next((found for item in inner if (found := first(item, key))), {})

    run = _expression(mark)
    config = {
        "config": {"t": {"path_name": "opaque_obj_0", "is_param": False, "use_pickle": True, "tensor_meta": None}}
    }
    return Canary(
        ".pt2",
        whole,
        (
            changed(lambda value: value["guards_code"].insert(0, f"{run} is not None")),
            changed(lambda value: first(value["graph_module"], "expr_str").update(expr_str=run)),
            changed(lambda value: first(value["graph_module"], "name").update(name=f"a={run}")),
            {"net/data/sample_inputs/model.pt": _pickled(mark)},
            {
                "net/data/constants/model_constants_config.json": json.dumps(config).encode(),
                "net/data/constants/opaque_obj_0": pickle.dumps(Marking(mark)),
            },
        ),
    )


def _script(mark: str, scratch: Path) -> Canary:
    import torch

    torch.jit.script(torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())).save(str(scratch / "net.pt"))
    whole = _members(scratch / "net.pt")
    # The second such network of a process has its layers by other names.
    name = next(item for item in whole if re.search(r"/linear(/___torch_mangle_\d+)?\.py$", item))
    added = f"    weight = torch.add(self.weight, torch.sum(torch.from_file({mark!r}, True, 4)))"
    mapped = whole[name].replace(b"    weight = self.weight", added.encode(), 1)
    return Canary(
        ".pt",
        whole,
        (
            {name: whole[name] + restoring_code(mark).encode()},
            {name: mapped},
            {"net/data.pkl": pickle.dumps(Marking(mark), 2)},
        ),
    )


def restoring_code(mark: str) -> str:
    """TorchScript that writes a file when a layer is loaded.

    Args:
        mark: The file's path.
    """
    return f"""
  def __getstate__(self) -> Any:
    return 3
  def __setstate__(self, state: Any) -> NoneType:
    torch.save(3, {mark!r})
    return None
"""


def _hostile_configs(mark: str) -> list[dict[str, Any]]:
    """Layers in the place of a dense one."""
    import marshal

    function = compile(f"lambda x: {_expression(mark)}", "f", "eval").co_consts[0]
    code = __import__("base64").b64encode(marshal.dumps(function)).decode()
    stored = {"class_name": "__lambda__", "config": {"code": code, "defaults": None, "closure": None}}
    activation = {"module": "builtins", "class_name": "function", "config": "exec", "registered_name": "function"}
    return [
        {"module": "keras.layers", "class_name": "Lambda", "config": {"name": "l", "function": stored}},
        {"module": "subprocess", "class_name": "Popen", "config": {"args": ["touch", mark]}},
        {"config": {"name": "d", "units": 3, "activation": activation}},
        {"module": "builtins", "class_name": "exec", "config": _python(mark), "registered_name": "exec"},
    ]  # fmt: skip


def _with_layer(text: bytes | str, layer: dict[str, Any]) -> bytes:
    config = json.loads(text)
    next(item for item in config["config"]["layers"] if item["class_name"] == "Dense").update(layer)
    return json.dumps(config).encode()


def _keras_files(scratch: Path) -> None:
    import keras

    net = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, activation="relu", name="d")])
    net.save(scratch / "net.keras")
    net.save(scratch / "net.h5")


def _keras(mark: str, scratch: Path) -> Canary:
    _keras_files(scratch)
    whole = _members(scratch / "net.keras")
    hostile = [{"config.json": _with_layer(whole["config.json"], layer)} for layer in _hostile_configs(mark)]
    return Canary(".keras", whole, (*hostile, {"metadata.json": b"{}", **hostile[0]}))


def _hdf5(mark: str, scratch: Path) -> Canary:
    import h5py

    _keras_files(scratch)
    content = (scratch / "net.h5").read_bytes()
    hostile = []
    for layer in _hostile_configs(mark):
        for stored in (str, np.bytes_):
            stream = io.BytesIO(content)
            with h5py.File(stream, "r+") as file:
                text = _with_layer(file.attrs["model_config"], layer)
                file.attrs["model_config"] = stored(text.decode())
            hostile.append({"": stream.getvalue()})
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        for name, member in _members(scratch / "net.keras").items():
            archive.writestr(name, member)
    # Whoever looks at the end sees an ordinary archive.
    return Canary(".h5", {"": content, "zip": zipped.getvalue()}, tuple(hostile))


def _arrays(mark: str, scratch: Path) -> Canary:
    np.savez(scratch / "data.npz", x=np.zeros((2, 4), np.float32))
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.array([Marking(mark)], dtype=object), allow_pickle=True)
    whole = _members(scratch / "data.npz")
    return Canary(".npz", whole, ({"x.npy": stream.getvalue()}, {"x": pickle.dumps(Marking(mark))}))


def _saved(mark: str, scratch: Path) -> Canary:
    import tensorflow as tf
    from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

    v1 = tf.compat.v1
    folder = scratch / "net"
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 4], name="x")
        y = tf.matmul(x, v1.get_variable("weight", [4, 3], use_resource=True), name="y")
        session.run(v1.global_variables_initializer())
        builder = v1.saved_model.Builder(str(folder))
        signature = v1.saved_model.predict_signature_def({"x": x}, {"y": y})
        builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature})
        builder.save()
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    def changed(change: Callable[[Any], None]) -> dict[str, bytes]:
        saved = SavedModel.FromString(files["saved_model.pb"])
        graph = saved.meta_graphs[0].graph_def
        for name, value in (("file", mark.encode()), ("text", b"x")):
            constant = graph.node.add(name=name, op="Const")
            constant.attr["dtype"].type = tf.string.as_datatype_enum
            constant.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value))
        graph.node.add(name="write", op="WriteFile", input=["file", "text"])
        graph.node.add(name="reached", op="NoOp", input=["^write"])
        change(saved.meta_graphs[0])
        return {"saved_model.pb": saved.SerializeToString()}

    def by_signature(content: Any) -> None:
        content.signature_def["__saved_model_init_op"].outputs["__saved_model_init_op"].name = "reached"

    def by_output(content: Any) -> None:
        next(node for node in content.graph_def.node if node.name == "y").input.append("^write")

    hostile = (
        changed(lambda content: setattr(content.saver_def, "restore_op_name", "reached")),
        changed(lambda content: content.collection_def["table_initializer"].node_list.value.append("reached")),
        changed(lambda content: content.collection_def["saved_model_main_op"].node_list.value.append("reached")),
        changed(lambda content: content.collection_def["legacy_init_op"].node_list.value.append("reached")),
        changed(by_signature),
        changed(by_output),
    )
    return Canary("", files, hostile)


FORMATS: dict[str, Callable[[str, Path], Canary]] = {
    "pt2": _program, "torchscript": _script, "keras": _keras, "h5": _hdf5, "savedmodel": _saved, "npz": _arrays,
}  # fmt: skip
