"""Models that a compiler runs, in whole audits and by hand."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import small_models as small
from documents import rows_in
from onnx import helper

from conrepair.application.cli import main
from conrepair.application.config.load import parse_config
from conrepair.application.pipeline.audit import run_audit
from conrepair.application.report.audit_folder import write_audit
from conrepair.application.report.result import AuditResult
from conrepair.ground.runtime.errors import ConfigError
from conrepair.ground.runtime.shown.progress import ProgressDisplay


def audit(folder: Path, models: list[dict[str, Any]], backends: list[Any], **settings: Any) -> AuditResult:
    value = {
        "output": str(folder / "generated"),
        "dataset": {"synthetic": {"samples": 5}},
        "batch_size": 3,
        "models": models,
        "backends": backends,
        **settings,
    }
    with ProgressDisplay(quiet=True) as display:
        return run_audit(parse_config(value, "test"), folder, display)


def odd(path: Path) -> Path:
    """A model with an operator that TVM's importer doesn't have."""
    tensor = helper.make_tensor_value_info
    shape = ["batch", 4]
    graph = helper.make_graph(
        [helper.make_node("Mish", ["x"], ["h"]), helper.make_node("Det", ["h3"], ["y"])],
        "g",
        [tensor("x", onnx.TensorProto.FLOAT, shape)],
        [tensor("y", onnx.TensorProto.FLOAT, ["batch"])],
        [helper.make_tensor("shape", onnx.TensorProto.INT64, [3], [-1, 2, 2])],
    )
    graph.node.insert(1, helper.make_node("Reshape", ["h", "shape"], ["h3"]))
    return small.save_onnx(path, graph, opset=18)


def test_an_audit_compares_settings_with_the_library(tmp_path: Path) -> None:
    small.onnx_convnet(tmp_path / "net.onnx")
    odd(tmp_path / "odd.onnx")
    models = [{"name": name.partition(".")[0], "path": name} for name in ("net.onnx", "odd.onnx")]
    result = audit(
        tmp_path, models, [{"name": "tvm", "setting": "O0"}, {"name": "tvm", "setting": "O2", "label": "best"}]
    )
    rows = {(row.model, row.backend): row for row in result.rows}
    assert set(rows) == {(name, label) for name in ("net", "odd") for label in ("libraries", "tvm-llvm-O0", "best")}
    assert rows["net", "libraries"].reason == "the original"
    for label in ("tvm-llvm-O0", "best"):
        row = rows["net", label]
        assert row.verdict is not None
        assert row.verdict.value == "equivalent"
        assert row.ran.build is not None
        assert (row.ran.build.via, row.ran.build.record["importer"]) == ("", "relax.frontend.onnx")
        assert row.ran.build.record["inputs"][0]["shape"][0] == 3  # five samples: the last batch is filled up
        assert row.ran.run is not None
        assert row.ran.run.count == 5
        assert row.ran.times is None  # no size of a batch comes twice: three samples, then two
    for label in ("tvm-llvm-O0", "best"):
        row = rows["odd", label]
        assert row.verdict is not None
        assert row.verdict.value == "undeployable"
        assert "stops at operator Det" in row.reason
    pairs = {frozenset((pair.reference, pair.candidate)) for pair in result.pairs}
    assert frozenset({"net/source@tvm-llvm-O0", "net/source@best"}) in pairs
    assert result.exit_code == 4
    write_audit(result, tmp_path / "generated" / "store")
    builds = {(row["name"], row["backend"]): row["ran"]["build"] for row in rows_in(result.folder)}
    folders = {key: build and build["folder"] for key, build in builds.items()}
    assert {key for key, folder in folders.items() if folder} == {
        ("net/source", label) for label in ("tvm-llvm-O0", "best")
    }
    folder = folders["net/source", "best"]
    assert folder == "runs/net/source/best/build"
    assert {path.name for path in (result.folder / folder).iterdir()} == {
        *("build.json", "calls.json", "host.ll", "relax.py")
    }
    assert json.loads((result.folder / folder / "build.json").read_text())["options"]["setting"] == "O2"


def test_importers_are_compared_on_one_model(tmp_path: Path) -> None:
    small.tflite_of(small.keras_convnet(), tmp_path / "net.tflite")
    backends = [{"name": "tvm", **pinned} for pinned in ({}, {"importer": "tflite"}, {"importer": "onnx"})]
    result = audit(tmp_path, [{"name": "net", "path": "net.tflite"}], backends)
    rows = {row.backend: row for row in result.rows}
    assert set(rows) == {"libraries", "tvm-llvm-O2", "tvm-llvm-O2-tflite", "tvm-llvm-O2-onnx"}
    for label, importer in (("tvm-llvm-O2", ""), ("tvm-llvm-O2-tflite", "tflite"), ("tvm-llvm-O2-onnx", "onnx")):
        row = rows[label]
        assert row.verdict is not None
        assert row.verdict.value == "equivalent"
        assert row.place is not None
        assert row.place.importer == importer
        assert row.ran.build is not None
        assert row.ran.build.record["importer"] == f"relax.frontend.{importer or 'tflite'}"
    write_audit(result, tmp_path / "generated" / "store")
    lines = list(csv.DictReader((result.folder / "backends.csv").open()))
    compared = [line for line in lines if line["second_importer"] == "onnx" and line["first_importer"] == "tflite"]
    assert len(compared) == 1
    assert float(compared[0]["relative_l2"]) < 1e-5


def test_what_tvm_does_not_read_is_compiled_by_way_of_onnx(tmp_path: Path) -> None:
    network = small.keras_convnet()
    network.save(tmp_path / "net.keras")
    small.tensorflow_of(network, tmp_path / "saved")
    models = [{"name": "keras", "path": "net.keras"}, {"name": "saved", "path": "saved"}]
    result = audit(tmp_path, models, [{"name": "tvm"}])
    routes = {}
    for row in result.rows:
        if row.backend == "libraries":
            continue
        assert row.verdict is not None
        assert row.verdict.value in {"equivalent", "noise"}
        assert row.ran.build is not None
        kept = json.loads((row.ran.build.folder / "build.json").read_text())
        assert (kept["importer"], kept["source"]["framework"]) == ("relax.frontend.onnx", "onnx")
        assert row.ran.build.record["importer"] == "relax.frontend.onnx"
        assert row.ran.build.record["inputs"][0]["shape"][0] == 3
        assert row.ran.run is not None
        assert row.ran.run.count == 5
        routes[row.model] = row.ran.build.via
    assert routes == {"keras": "keras-onnx-tf2onnx", "saved": "savedmodel-onnx-tf2onnx"}


@pytest.mark.parametrize(
    ("backends", "message"),
    [
        (
            [{"name": "tvm", "disabled_pass": ["FuseOp"]}],
            r"\$.backends\[0\]: disabled_pass: .*did you mean 'FuseOps'",
        ),
        (["libraries", {"name": "tvm", "target": "metal"}], r"\$.backends\[1\]: target 'metal'"),
    ],
)
def test_wrong_options_are_said_before_anything_is_done(tmp_path: Path, backends: list[Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        audit(tmp_path, [{"name": "net", "path": "missing.onnx"}], backends)


def test_build_writes_a_folder_as_a_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net = small.onnx_convnet(tmp_path / "net.onnx")
    out = tmp_path / "build"
    assert main(["build", str(net), "-q", "--opt", "O2", "-o", str(out)]) == 0
    assert "; compiled, not run\n" in capsys.readouterr().out
    record = json.loads((out / "build.json").read_text())
    assert sorted(record["files"]) == sorted({path.name for path in out.iterdir()} - {"build.json"})
    assert main(["build", str(net), "-q", "-o", str(out)]) == 2
    assert "--force" in capsys.readouterr().err
    assert main(["build", str(odd(tmp_path / "odd.onnx")), "-q", "-o", str(tmp_path / "none")]) == 4
    assert "Det" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("target", "code", "word"),
    [("opencl", "device.cl", "__kernel"), ("cuda -arch=sm_90", "device.cu", "__global__")],
)
def test_build_for_a_gpu_needs_none(
    target: str,
    code: str,
    word: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hidden = {"OCL_ICD_VENDORS": str(tmp_path / "none"), "OCL_ICD_FILENAMES": "", "CUDA_VISIBLE_DEVICES": ""}
    for variable, value in hidden.items():
        monkeypatch.setenv(variable, value)
    net, out = small.onnx_convnet(tmp_path / "net.onnx"), tmp_path / "build"
    assert main(["build", str(net), "-q", "--target", target, "-o", str(out)]) == 0
    said = capsys.readouterr().out
    assert f"kernels for {target} in " in said
    assert "imported by relax.frontend.onnx; " in said
    *_, told, last = said.strip().splitlines()
    assert told.endswith(("compiled nor run", ", not run"))
    assert last.startswith("next: `conrepair localize ")
    assert word in (out / code).read_text()
    assert {code, "module.so"} <= set(json.loads((out / "build.json").read_text())["files"])


def test_explain_lists_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "any.onnx").touch()
    assert main(["build", str(tmp_path / "any.onnx"), "--explain", "--opt", "O0", "--required-pass", "FuseOps"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "llvm O0:"
    assert any(" FuseOps " in line for line in lines)
    assert not any(" FuseTIR " in line for line in lines)


def test_execute_keeps_outputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net, out = small.onnx_convnet(tmp_path / "net.onnx"), tmp_path / "run"
    np.savez(tmp_path / "data.npz", image=small.images(3))
    command = ["execute", str(net), "-q", "--backend", "tvm", "--data", str(tmp_path / "data.npz"), "-o", str(out)]
    assert main(command) == 0
    assert "equivalent" in capsys.readouterr().out
    assert np.load(out / "output_0.npy").shape == (3, small.CLASSES)
    assert np.load(out / "seconds.npy").shape == (3,)
    assert rows_in(out)[-1]["ran"]["build"]["record"]["options"]["setting"] == "O2"
    assert main(command) == 2
