"""`inspect` ends with a command that works when it's copied: any format, odd names, inputs that must be said."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from benchmarks.fuzz.seeds import FORMATS, write_models
from conrepair.application.cli import main


def told(capsys: pytest.CaptureFixture[str], words: Sequence[str]) -> str:
    """What the last line of `inspect` recommends; "" where that's nothing."""
    capsys.readouterr()
    assert main(["inspect", *words, "-q"]) == 0
    return capsys.readouterr().out.partition("next: ")[2].strip()


def works(line: str) -> None:
    """Run the command of the line, as a shell would."""
    (command,) = line.split("`")[1::2]
    program, *words = shlex.split(command)
    assert program == "conrepair"
    assert main([*words, "-q"]) == 0, command


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    write_models(folder)
    return folder


@pytest.mark.parametrize("name", FORMATS)
def test_files_of_every_format(
    name: str, models: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(models)
    given = ["saved" if name == "saved" else f"net.{name}"]
    works(told(capsys, given))


Net = Callable[[], onnx.ModelProto]


def net(nodes: list[onnx.NodeProto], inputs: dict[str, tuple[int, list[int | str]]], output: list[int | str]) -> Net:
    def make() -> onnx.ModelProto:
        graph = helper.make_graph(
            nodes,
            "net",
            [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, output)],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)

    return make


RELU = helper.make_node("Relu", ["x"], ["y"])
FLOAT = TensorProto.FLOAT
ODD: dict[str, Net] = {
    "open sizes": net([RELU], {"x": (FLOAT, ["batch", 3, "h", "w"])}, ["batch", 3, "h", "w"]),
    "open sizes of two inputs": net(
        [helper.make_node("Add", ["x", "z"], ["y"])],
        {"x": (FLOAT, ["batch", "n"]), "z": (FLOAT, ["batch", "n"])},
        ["batch", "n"],
    ),
    "one number for a batch": net(
        [helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0)], {"x": (FLOAT, ["batch", 3])}, []
    ),
    "no batch": net([RELU], {"x": (FLOAT, [3])}, [3]),
    "a scalar": net([RELU], {"x": (FLOAT, [])}, []),
    "a batch that is fixed": net([RELU], {"x": (FLOAT, [4, 3])}, [4, 3]),
}


@pytest.mark.parametrize("name", ODD)
def test_networks_that_take_more_than_their_file_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(ODD[name](), "net.onnx")
    works(told(capsys, ["net.onnx"]))


@pytest.mark.parametrize("name", ["my net", "it's", "-net", "--trust", "$HOME `id`", "é"])
def test_files_with_odd_names(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    name = f"{name}.onnx"
    onnx.save(ODD["a batch that is fixed"](), name)
    line = told(capsys, [f"./{name}" if name.startswith("-") else name])
    words = shlex.split(line.removesuffix("` runs it on random inputs").removeprefix("`"))
    assert main([*words[1:], "-q"]) == 0, words


def test_a_network_without_inputs_gives_its_constants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, last in (("one", 2.0), ("other", 3.0)):
        constant = helper.make_node("Constant", [], ["y"], value_floats=[1.0, last])
        onnx.save(net([constant], {}, [2])(), f"{name}.onnx")
    found = [
        main([verb, "one.onnx", name, "-q"])
        for verb in ("compare", "localize")
        for name in ("one.onnx", "other.onnx")
    ]
    assert found == [0, 1, 0, 1]


def test_texts_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    cast = helper.make_node("Cast", ["x"], ["y"], to=FLOAT)
    onnx.save(net([cast], {"x": (TensorProto.STRING, ["batch", 2])}, ["batch", 2])(), "text.onnx")
    assert "runs it on random inputs" in told(capsys, ["text.onnx"])
    assert main(["execute", "text.onnx", "-q"]) == 0


def test_what_was_allowed_and_declared_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import torch

    monkeypatch.chdir(tmp_path)
    scripted = torch.jit.script(torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Softmax(dim=1)))
    torch.jit.save(scripted, "net.pt")
    line = told(capsys, ["net.pt", "--input", "batch,3", "--trust"])
    assert "--input batch,3" in line
    assert "--trust" in line
    works(line)
    undeclared = told(capsys, ["net.pt"])
    assert "`conrepair inspect net.pt --input batch,3,224,224`" in undeclared
