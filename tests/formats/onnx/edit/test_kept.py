"""What an edit of an ONNX file doesn't name stays: what's said, functions, training, other constants."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import small_models as small
from onnx import TensorProto, helper, numpy_helper

from conrepair.formats.editing.open_editor import open_editor


def said(message: Any, key: str) -> None:
    message.doc_string = f"about {key}"
    if "metadata_props" in message.DESCRIPTOR.fields_by_name:
        message.metadata_props.add(key=key, value=f"value of {key}")
        message.metadata_props.add(key="also", value="in the order of the file")


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    """With everything in it that a file can say besides its graph."""
    generator = np.random.default_rng(0)

    def constant(name: str, *shape: int) -> onnx.TensorProto:
        tensor = numpy_helper.from_array(generator.normal(size=shape).astype(np.float32), name)
        said(tensor, name)
        return tensor

    weight, bias, other = constant("w", 4, 3), constant("b", 4), constant("other", 4)
    inner = helper.make_node("Relu", ["a"], ["r"])
    names = ("Used", "Unused")
    functions = [
        helper.make_function("my", name, ["a"], ["r"], [inner], [helper.make_opsetid("", 20)]) for name in names
    ]
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["g"], name="gemm", transB=1),
        helper.make_node("Used", ["g"], ["u"], name="used", domain="my"),
        helper.make_node("Add", ["u", "other"], ["y"], name="add"),
    ]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", size]) for name, size in (("x", 3), ("y", 4))
    ]
    ends[0].type.denotation = "IMAGE"
    ends[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    values = [helper.make_tensor_value_info("g", TensorProto.FLOAT, ["n", 4])]
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:], [weight, bias, other], value_info=values)
    for place, item in enumerate([*functions, *nodes, *ends, *values, inner, graph]):
        said(item, f"item {place}")
    graph.quantization_annotation.add(tensor_name="g").quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="b")
    made = helper.make_model(
        graph,
        functions=functions,
        opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("my", 1)],
        ir_version=10,
        producer_name="somebody",
        producer_version="3",
        domain="org.example",
        model_version=7,
    )
    said(made, "labels")
    training = made.training_info.add()
    training.algorithm.name = "step"
    training.algorithm.node.append(helper.make_node("Identity", ["w"], ["w2"]))
    training.algorithm.output.append(helper.make_tensor_value_info("w2", TensorProto.FLOAT, [4, 3]))
    training.update_binding.add(key="w", value="w2")
    onnx.checker.check_model(made)
    return made


def parts(model: onnx.ModelProto) -> Iterator[tuple[str, bytes]]:
    """Everything that can be named, as bytes; where numbers were stored is no part of them."""
    for tensor in model.graph.initializer:
        tensor.ClearField("data_location")
    for field, value in model.ListFields():
        if field.name not in {"graph", "functions"}:
            yield field.name, str(value).encode()
    for function in model.functions:
        yield f"function {function.name}", function.SerializeToString(deterministic=True)
    for field, value in model.graph.ListFields():
        for place, item in enumerate(value if field.name != "name" and not isinstance(value, str) else []):
            name = getattr(item, "name", "") or place
            yield f"{field.name} {name}", item.SerializeToString(deterministic=True)
        if isinstance(value, str):
            yield field.name, value.encode()


def edited(path: Path, edit: str) -> Path:
    editor = open_editor(small.model_of("onnx", path))
    node = next(item for item in editor.graph.nodes if item.name.startswith("gemm"))
    if edit == "numbers":
        editor.set_parameter(node, "weight", node.parameters["weight"].numpy() * 2)
    else:
        last = next(item for item in editor.graph.nodes if item.op == "Add" and item.name != node.name)
        editor.remove(last)
    (folder := path.parent / "out").mkdir()
    return Path(editor.save(folder, "repaired").path)


@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize(
    ("edit", "names"), [("numbers", {"initializer w"}), ("node", {"node add", "initializer other"})]
)
def test_all_else_stays(model: onnx.ModelProto, edit: str, names: set[str], external: bool, tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(copy.deepcopy(model), path, save_as_external_data=external, size_threshold=0)
    new = edited(path, edit)
    before, after = dict(parts(onnx.load(path))), dict(parts(onnx.load(new)))
    changed = {name for name in before if before[name] != after.get(name)}
    assert changed - {"output y", "node used"} == names, changed
    assert after.keys() <= before.keys()


def test_the_default_domain_keeps_its_name(model: onnx.ModelProto, tmp_path: Path) -> None:
    renamed = copy.deepcopy(model)
    renamed.opset_import[0].domain = renamed.graph.node[2].domain = "ai.onnx"
    onnx.save(renamed, tmp_path / "net.onnx")
    before, after = (onnx.load(path) for path in (tmp_path / "net.onnx", edited(tmp_path / "net.onnx", "numbers")))
    assert after.opset_import == before.opset_import
    assert after.graph.node == before.graph.node


def test_what_is_said_of_changed_numbers_stays(model: onnx.ModelProto, tmp_path: Path) -> None:
    onnx.save(model, tmp_path / "net.onnx")
    tensors = {item.name: item for item in onnx.load(edited(tmp_path / "net.onnx", "numbers")).graph.initializer}
    assert tensors["w"].doc_string == "about w"
    assert [(item.key, item.value) for item in tensors["w"].metadata_props] == [
        ("w", "value of w"),
        ("also", "in the order of the file"),
    ]
