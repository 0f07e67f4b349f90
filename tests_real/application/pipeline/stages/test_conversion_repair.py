"""Conversions that fail for real are repaired, or routed around, and what was done is said."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import failing_jobs
import numpy as np
import onnx
import pytest
import small_models as small
from documents import rows_in
from registries import put, taken_out

from conrepair.application.cli import main
from conrepair.application.engine import place
from conrepair.application.engine.job_table import JOBS
from conrepair.application.pipeline.stages.conversion_repair import ConversionRepairer, RouteTrial
from conrepair.application.report.repair.summary import conversion_lines
from conrepair.diagnosis.repairs.conversion.remedies import RouteStep
from conrepair.diagnosis.repairs.conversion.result import Stop
from conrepair.formats.converters.all_converters import CONVERTERS
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.formats.networks import synthetic_inputs
from conrepair.formats.onnx.passes.files import load
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.onnx_session import open_session
from conrepair.ground.runtime.processes.workers import Failure

_POOLS = "pool-padding"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def save(text: str, *, opset: int, shape: str, constants: str = "") -> None:
    head = f'<ir_version: 8, opset_import: ["" : {opset}]> g (float[{shape}] x) => (float[] y)'
    proto = onnx.parser.parse_model(f"{head} {f'<{constants}>' if constants else ''} {{ {text} }}")
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    onnx.save(onnx.shape_inference.infer_shapes(proto), "net.onnx")


def converted(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and what is told in JSON."""
    code = main(["convert", *arguments, "-q", "-f", "json"])
    return code, json.loads(capsys.readouterr().out)


def made(told: dict[str, Any]) -> dict[str, Any]:
    """The row of what was written."""
    found: dict[str, Any] = next(row for row in told["rows"] if row["instead_of"])
    return found


def repair_of(told: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(row["mending"] for row in told["rows"] if row["mending"])
    return found


def test_an_opset_that_onnx2torch_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    """ReduceMean and Pad of opset 18, one behind the other."""
    constants = "int64[8] p = {0, 0, 1, 1, 0, 0, 2, 0}, int64[2] a = {2, 3}"
    save("r = Relu (x) q = Pad (r, p) s = Sigmoid (q) y = ReduceMean (s, a)", opset=18, shape="n, 3, 8, 8", constants=constants)  # fmt: skip  # noqa: E501
    route = ["net.onnx", "--to", "torch", "--option", "onnx2torch.opset=18", "-o", "net.pt2"]
    code, told = converted(capsys, *route)
    assert code == 0
    (stop,) = repair_of(told)["stops"]
    assert (stop["operators"], stop["of"], stop["exact"]) in ((["ReduceMean"], 4, True), (["Pad"], 4, True))
    assert stop["operators"][0] in stop["error"]
    assert made(told)["conversion"] == "onnx2torch"
    assert repair_of(told)["verdict"] == "equivalent"
    assert main(["compare", "net.onnx", "net.pt2", "-q"]) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "shape", "rewrite"),
    [
        ('r = Relu (x) y = DepthToSpace <blocksize = 2, mode = "DCR"> (r)', "n, 4, 6, 6", "depth-to-space"),
        ("r = Relu (x) y = AveragePool <kernel_shape = [2, 2], pads = [0, 0, 1, 1]> (r)", "n, 3, 8, 8", _POOLS),
        ("r = Relu (x) y = MaxPool <kernel_shape = [3, 3], pads = [2, 2, 2, 2]> (r)", "n, 3, 8, 8", _POOLS),
    ],
)
def test_operators_that_onnx2torch_does_not_know(
    capsys: pytest.CaptureFixture[str], text: str, shape: str, rewrite: str
) -> None:
    save(text, opset=17, shape=shape)
    code, told = converted(capsys, "net.onnx", "--to", "torch", "-o", "net.pt2")
    assert code == 0
    assert [len(stop["nodes"]) for stop in repair_of(told)["stops"]] == [1]
    assert repair_of(told)["via"] == ["onnx-normalise", "onnx2torch"]
    assert repair_of(told)["options"] == {"onnx-normalise": {"rewrite": rewrite}}
    artifact = made(told)["ran"]["artifact"]
    sizes = tuple(map(int, shape.split(",")[1:]))
    inputs = (TensorSpec("x", ("n", *sizes), "float32"),)
    target = framework("torch").load(Model("torch", artifact["path"], artifact["sha256"], inputs=inputs))
    array = np.random.default_rng(1).normal(size=(3, *sizes)).astype(np.float32)
    (right,) = open_session(Path("net.onnx")).run(None, {"x": array})
    (given,) = target.run({target.inputs[0].name: array}).values()
    np.testing.assert_allclose(given, right, rtol=1e-5, atol=1e-6)


def test_what_nothing_helps_against_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    save("r = Relu (x) u = Unique (r) y = Neg (u)", opset=17, shape="4, 3")
    assert main(["convert", "net.onnx", "--to", "torch", "-o", "net.pt2", "-q"]) == 4
    said = capsys.readouterr().err
    assert "onnx2torch: NotImplementedError" in said
    assert "onnx2torch stops at Unique" in said
    assert "1 of 3 nodes" in said
    assert "not repaired: " in said
    assert not Path("net.pt2").exists()


@pytest.mark.workers
@pytest.mark.parametrize("name", ["crashing", pytest.param("hanging", marks=pytest.mark.slow)])
def test_a_converter_that_kills_its_process_or_hangs(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(monkeypatch, CONVERTERS, name, failing_jobs.FAILING[name])
    own = {kind: f"failing_jobs:{kind}" for kind in failing_jobs.__all__ if kind in JOBS}
    monkeypatch.setattr(place, "jobs", lambda: {**JOBS, **own})
    save("r = Sin (x) s = Relu (r) h = Hardmax (s) y = Add (h, x)", opset=17, shape="2, 5")
    limits = ["--timeout", "5", "--seconds", "200"]
    code, told = converted(capsys, "net.onnx", "--to", "onnx", "--via", name, "-o", "new.onnx", *limits)
    assert code == 0
    (stop,) = repair_of(told)["stops"]
    assert (stop["operators"], stop["of"], stop["exact"]) == (["Hardmax"], 4, True)
    assert repair_of(told)["options"] == {"onnx-normalise": {"rewrite": "one-hot"}}
    assert "Hardmax" not in {node.op_type for node in load("new.onnx").graph}


def test_the_stage_repair_of_an_audit(folder: Path) -> None:
    small.onnx_convnet(folder / "plain.onnx")
    save('r = Relu (x) y = DepthToSpace <blocksize = 2, mode = "DCR"> (r)', opset=17, shape="n, 4, 6, 6")
    config = {
        "output": "out",
        "dataset": {"synthetic": {"samples": 4}},
        "limits": {"workers": 1},
        "stages": {"repair": True},
        "models": [
            {"name": "net", "path": "net.onnx", "conversions": ["torch"]},
            {"name": "plain", "path": "plain.onnx", "conversions": ["torch"]},
        ],
    }
    Path("config.json").write_text(json.dumps(config))
    assert main(["run", "config.json", "-q"]) == 4  # what was configured gave nothing
    rows = rows_in("out/audit")
    verdicts = {row["name"]: row["verdict"] for row in rows if row["kind"] == "target"}
    stood_in = "net/onnx-normalise,rewrite=depth-to-space+onnx2torch"
    assert verdicts == {"net/onnx2torch": "undeployable", stood_in: "equivalent", "plain/onnx2torch": "equivalent"}
    (failed,) = (row for row in rows if row["mending"])
    assert failed["mending"]["stops"][0]["operators"] == ["DepthToSpace"]
    assert "repaired: the graph is first rewritten" in Path("out/audit/summary.txt").read_text()
    assert list(Path("out/audit/models").glob(f"{stood_in}/*.pt2"))
    assert main(["run", "config.json", "-q"]) == 4  # from the store


@pytest.mark.parametrize(
    ("text", "more", "kept", "repaired"),
    [
        ("y = ReduceMean (r, a)", ["--option", "onnx2torch.opset=18"], (), "onnx2torch with opset 17: "),
        pytest.param(
            "y = AveragePool <kernel_shape = [2, 2], pads = [0, 0, 1, 1]> (r)",
            [],
            ("onnx-keras", "keras-torch"),
            "another route: ",
            marks=pytest.mark.slow,  # Keras exports from processes of its own
        ),
    ],
)
def test_what_could_not_be_compared_repairs_nothing(
    text: str,
    more: Sequence[str],
    kept: Sequence[str],
    repaired: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing says which sizes it takes, so there's no data, and whether another way is right isn't known.

    Unless nobody wants to know.
    """
    taken_out(monkeypatch, CONVERTERS, set(CONVERTERS) - {"onnx-normalise", "onnx2torch", *kept})
    monkeypatch.setattr(synthetic_inputs, "_TRIALS", 0)  # so none of the sizes that are tried
    save(f"r = Relu (x) {text}", opset=18 if more else 17, shape="n, 3, h, w", constants="int64[2] a = {2, 3}")
    command = ["convert", "net.onnx", "--to", "torch", "-o", "net.pt2", "-q", *more]
    assert main(command) == 4
    err = capsys.readouterr().err
    assert "not repaired: " in err
    assert "of them convert, but their outputs couldn't be compared: input x: float32[n, 3, h, w] has no" in err
    assert not Path("net.pt2").exists()
    assert main([*command, "--no-check"]) == 0
    assert f"repaired: {repaired}" in capsys.readouterr().out


def test_a_full_disk_ends_the_search_for_other_ways() -> None:
    model = Model("onnx", "net.onnx", "0")
    steps = (RouteStep(CONVERTERS["onnx2torch"], {}),)
    tried = []

    def try_route(steps: Sequence[RouteStep]) -> RouteTrial:
        tried.append(steps)
        return RouteTrial(models=(model,), failure=Failure("storage", "OSError", "no space left to write below /tmp"))

    failed = RouteTrial(steps, models=(model,), failure=Failure("crash", "SIGBUS", "died"))
    attempts = SimpleNamespace(stop_of=lambda *_, **__: (Stop(converter="onnx2torch", error="died"), None))
    found, trial = ConversionRepairer(attempts, try_route, 60.0).repair(failed)
    assert (len(tried), trial) == (1, None)
    lines = conversion_lines(found)
    assert lines[-1] == "not repaired: other ways can't be tried: no space left to write below /tmp"
    assert "were tried" not in " ".join(lines)
