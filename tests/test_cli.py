"""The command line: exit codes, messages, and what it doesn't import."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from verdict_networks import convolution

from conrepair.application.cli import main
from conrepair.ground.runtime.files.whole import sha256_of
from conrepair.ground.runtime.outside.environments import ENVIRONMENTS

HEAVY = {"numpy", "onnx", "onnxruntime", "pydantic", "rich", "scipy", "tensorflow", "torch", "tvm"}


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return convolution(tmp_path / "net.onnx")


def test_help_imports_no_library() -> None:
    """`--help` answers at once because nothing heavy is imported (a benchmark has the time)."""
    code = f"import sys, conrepair.application.cli; print(sorted({HEAVY!r} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "verb",
    [
        "run",
        "compare",
        "architectures",
        "converters",
        "convert",
        "inspect",
        "config",
        "doctor",
        "environments",
    ],
)
def test_every_verb_has_help_with_exit_codes(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([verb, "--help"])
    assert ended.value.code == 0
    assert "1 a difference or a fault was found" in capsys.readouterr().out


def test_a_verb_that_was_taken_out_says_what_there_is_instead(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["matrix", "config.json"])
    assert ended.value.code == 2
    assert "there's no verb matrix: `conrepair run CONFIG` with `conversions`" in capsys.readouterr().err


def test_comparing_equals(net: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = convolution(tmp_path / "nhwc.onnx", layout="NHWC")
    hashes = sha256_of(net), sha256_of(other)
    assert main(["compare", str(net), str(net), "-q"]) == 0
    printed = capsys.readouterr().out
    assert "equivalent" in printed
    assert "32 random samples, uniform in [-1, 1], seed 0" in printed
    words = "takes the shape [9, 6, 3] for each sample, `x` of the original [3, 9, 6]"
    assert main(["compare", str(net), str(other), "-q"]) == 0  # a layout that the network undoes itself
    assert f"the signature differs, the numbers don't: input `image` {words}" in " ".join(
        capsys.readouterr().out.split()
    )
    assert main(["compare", str(net), str(other), "-q", "--strict-signature"]) == 1
    assert f"{words} (the numbers are equivalent" in " ".join(capsys.readouterr().out.split())
    assert (sha256_of(net), sha256_of(other)) == hashes


def test_comparing_different_models(net: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = convolution(tmp_path / "scaled.onnx", scale=1.01)
    assert main(["compare", str(net), str(other), "-q", "-f", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert [row["verdict"] for row in report["rows"]] == [None, "faulty"]
    error = report["rows"][1]["comparison"]["outputs"][0]["error"]
    assert error["relative_l2"] == pytest.approx(0.01, rel=1e-3)
    assert main(["compare", str(net), str(other), "-q", "--rtol", "0.1"]) == 0


def test_comparing_on_tensors(net: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(5, 3, 9, 6)).astype(np.float32))
    assert main(["compare", str(net), str(net), "-q", "--data", "x.npy"]) == 0
    np.save(tmp_path / "x.npy", np.zeros((5, 2), np.float32))
    assert main(["compare", str(net), str(net), "-q", "--data", "x.npy"]) == 2


def test_inspecting(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(net), "-q", "-f", "json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert value["operators"] == {"Conv": 1, "ReduceMean": 1, "Relu": 1}
    assert value["parameters"] == 4 * 3 * 3 * 3
    assert value["opset"] == 17
    assert main(["inspect", str(net), "-q"]) == 0
    assert "x: float32[batch, 3, 9, 6]" in capsys.readouterr().out


def test_converting(net: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "out" / "net.pt2"
    assert main(["convert", str(net), "--to", "torch", "-o", str(output), "-q"]) == 0
    assert output.is_file()
    assert "onnx2torch" in capsys.readouterr().out
    assert main(["convert", str(net), "--to", "torch", "-o", str(output), "-q"]) == 2
    assert "--force" in capsys.readouterr().err


def test_external_data_are_found_from_any_folder(net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And those of another model, which lie in the working directory under the same name, are not taken."""
    for name, scale in (("right", 1.0), ("wrong", 3.0)):
        (tmp_path / name).mkdir()
        proto = onnx.load(convolution(tmp_path / "net.onnx", scale=scale))
        onnx.save(
            proto, tmp_path / name / "net.onnx", save_as_external_data=True, location="net.data", size_threshold=0
        )
    monkeypatch.chdir(tmp_path / "wrong")
    source, output = str(tmp_path / "right" / "net.onnx"), str(tmp_path / "net.pt2")
    assert main(["convert", source, "--to", "torch", "-o", output, "-q"]) == 0
    assert main(["compare", source, output, "-q", "-o", str(tmp_path / "out")]) == 0
    data = tmp_path / "right" / "net.data"
    data.write_bytes(bytes(len(data.read_bytes())))
    assert main(["compare", source, output, "-q", "-o", str(tmp_path / "out")]) == 1


def test_converting_over_the_source_is_refused(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sha256_of(net)
    assert main(["convert", str(net), "--to", "torch", "-o", str(net.parent), "--force", "-q"]) == 2
    assert "lies in or around it" in capsys.readouterr().err
    assert main(["convert", str(net), "--to", "torch", "-o", str(net.with_name("x.onnx")), "-q"]) == 2
    assert "suffix of onnx" in capsys.readouterr().err
    assert sha256_of(net) == before


def test_a_folder_that_no_audit_wrote_is_not_replaced(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = net.parent / "mine"
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")
    config = net.parent / "c.json"
    config.write_text(json.dumps({"name": "mine", "output": ".", "models": [{"name": "n", "path": "net.onnx"}]}))
    assert main(["run", str(config), "-q"]) == 2
    assert "no audit of this version wrote it" in capsys.readouterr().err
    assert (folder / "thesis.txt").read_text() == "years of work"


def test_a_conversion_to_an_unknown_format(net: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", str(net), "--to", "coreml", "-o", str(tmp_path / "x"), "-q"]) == 2
    told = capsys.readouterr().err
    assert "unknown format 'coreml'; known: torch, keras, tensorflow, tflite, onnx" in told
    assert not (tmp_path / "x").exists()


def test_a_library_that_is_not_installed(
    net: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "rich.table", None)
    monkeypatch.delitem(sys.modules, "conrepair.application.cli.commands.inspect", raising=False)
    assert main(["inspect", str(net)]) == 2
    assert capsys.readouterr().err.startswith(
        f"conrepair: the library rich.table isn't installed for {sys.executable}"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "is empty"), (b"\x08\x07garbage" * 40, "can't be loaded as an ONNX")],
)
def test_models_that_cannot_be_loaded(
    net: Path, tmp_path: Path, content: bytes, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(content)
    assert main(["inspect", str(bad), "-q"]) == 3
    assert message in capsys.readouterr().err
    assert main(["compare", str(net), str(bad), "-q"]) == 3
    printed = capsys.readouterr()
    assert message in printed.out + printed.err


def test_the_default_configuration(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "-q"]) == 2
    assert "config.json: no such configuration file" in capsys.readouterr().err
    other = net.parent / "other.json"
    other.write_text(json.dumps({"models": [{"name": "n", "path": "net.onnx"}], "dataset": {"synthetic": {}}}))
    assert main(["run", "-q", "--fresh"], default_config=str(other)) == 0


def test_a_broken_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.json"
    path.write_text('{"models": [{"name": "a", "zoo": "mobilenet_v2", "conversion": []}]}')
    assert main(["run", str(path)]) == 2
    printed = capsys.readouterr().err
    assert "$.models[0].conversion: unknown key 'conversion'; did you mean 'conversions'?" in printed
    assert main(["run", str(tmp_path / "none.json")]) == 2
    assert "no such configuration file" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["make"], ["remove"], ["list", "onnx2tf"], ["make", "nope"]])
def test_environments_without_a_name_or_with_a_wrong_one(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["environments", *arguments]) == 2
    assert "litert-torch, onnx2tf" in capsys.readouterr().err


def test_a_conversion_whose_environment_cannot_be_made(
    net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    huge = dataclasses.replace(ENVIRONMENTS["onnx2tf"], gigabytes=1e9)
    monkeypatch.setitem(ENVIRONMENTS, "onnx2tf", huge)
    via = ["--via", "onnx-tflite-onnx2tf", "-o", str(tmp_path / "net.tflite")]
    assert main(["convert", str(net), "--to", "tflite", *via, "-q"]) == 2
    assert "environment onnx2tf needs about 1e+09 GB" in capsys.readouterr().err
