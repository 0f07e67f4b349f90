"""Audits in a matrix of releases: a row for each, and what a release can't do is that row's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import parser
from stand_in_environment import stand_in

import conrepair
from conrepair.application.config.load import parse_config
from conrepair.application.engine import place
from conrepair.application.pipeline.audit import run_and_write
from conrepair.application.pipeline.config_check import problems_of_run
from conrepair.application.report.result import AuditResult
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.errors import ExitCode, ToolEnvironmentError
from conrepair.ground.runtime.outside.environments import Environment
from conrepair.ground.runtime.outside.releases import release
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair.verdicts.evaluate.verdict import Verdict
from conrepair_lab.systems.registry import entry

pytestmark = [pytest.mark.workers, pytest.mark.timeout(600)]

PADDED = """
<ir_version: 8, opset_import: ["" : 13]>
g (float[N, 1, 4, 4] x) => (float[N, 1, 4, 4] y) <int64[8] pads = {0, 0, 0, 0, 0, 0, 1, 1}>
{
    p = Pad (x, pads)
    y = AveragePool <kernel_shape = [2, 2]> (p)
}
"""
REFUSING = """
class SessionOptions:
    pass

class GraphOptimizationLevel:
    ORT_ENABLE_ALL = 99

def InferenceSession(*_, **__):
    raise RuntimeError("unsupported model IR version: 8")
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "conrepair" / "environments"


def audited(folder: Path, *backends: Any) -> AuditResult:
    onnx.save(parser.parse_model(PADDED), folder / "net.onnx")
    asked = {
        "name": "releases",
        "models": [{"name": "net", "path": "net.onnx"}],
        "dataset": {"synthetic": {"samples": 5, "low": 1.0, "high": 2.0}},
        "backends": backends,
        "batch_size": 2,
        "output": str(folder / "out"),
    }
    config = parse_config(asked, "releases.json")
    assert problems_of_run(config, folder) == []
    return run_and_write(config, folder, quiet=True)


def test_each_release_is_a_row_of_its_own(tmp_path: Path, cache: Path) -> None:
    stand_in(release("onnxruntime", "98.0"), cache)
    (stand_in(release("onnxruntime", "97.0"), cache) / "onnxruntime.py").write_text(REFUSING)
    at_basic = {"name": "onnxruntime", "release": "98.0", "optimization": "basic", "label": "older"}
    found = audited(tmp_path, "onnxruntime@97.0", "onnxruntime@98.0", at_basic, "onnxruntime")
    rows = {row.backend: row for row in found.rows}
    assert [*rows] == ["libraries", "onnxruntime@97.0", "onnxruntime@98.0", "older", "onnxruntime"]
    for name in ("onnxruntime@98.0", "older", "onnxruntime"):
        assert rows[name].verdict is Verdict.EQUIVALENT, rows[name].reason
    assert rows["onnxruntime@97.0"].verdict is Verdict.UNDEPLOYABLE
    assert rows["onnxruntime@97.0"].reason == "onnxruntime==97.0: RuntimeError: unsupported model IR version: 8"
    places = [row.place for row in found.rows]
    assert [(item.library, item.setting) for item in places if item][1:] == [
        ("onnxruntime 97.0", "all"),
        ("onnxruntime 98.0", "all"),
        ("onnxruntime 98.0", "basic"),
        ("onnxruntime", "all"),
    ]
    told = json.loads((tmp_path / "out" / "releases" / "result.json").read_text())
    assert [row["backend"] for row in told["rows"]] == [*rows]


def test_a_release_that_can_t_be_installed_is_said_in_its_row(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(wanted: Environment, _: ProgressDisplay) -> None:
        raise ToolEnvironmentError(f"environment {wanted.name} could not be made: there's no network.")

    monkeypatch.setattr(place, "make_environment", make)
    _, missing, here = audited(tmp_path, "onnxruntime@96.0", "onnxruntime").rows
    assert (missing.verdict, here.verdict) == (None, Verdict.EQUIVALENT)
    assert missing.problem is not None
    assert missing.problem.exit_code == ExitCode.USAGE
    assert missing.reason.startswith("environment onnxruntime==96.0 could not be made")


def test_one_model_is_run_in_a_release_as_well(tmp_path: Path, cache: Path) -> None:
    stand_in(release("onnxruntime", "98.0"), cache)
    onnx.save(parser.parse_model(PADDED), tmp_path / "net.onnx")
    done = conrepair.execute(tmp_path / "net.onnx", backend="onnxruntime", options={"release": "98.0"})
    assert done.verdict is Verdict.EQUIVALENT
    assert done.row.backend == "onnxruntime@98.0"


@pytest.mark.slow
def test_compiled_for_as_many_samples_as_a_batch_has(tmp_path: Path, cache: Path) -> None:
    pytest.importorskip("tvm")
    stand_in(release("apache-tvm", "98.0"), cache)
    found = audited(tmp_path, {"name": "tvm", "setting": "O1", "release": "98.0"}, {"name": "tvm", "setting": "O1"})
    assert [row.verdict for row in found.rows[1:]] == [Verdict.EQUIVALENT] * 2, [row.reason for row in found.rows]
    assert found.rows[1].backend == "tvm-llvm-O1@98.0"
    assert found.rows[1].ran.run is not None
    assert found.rows[1].ran.run.count == 5


def problems(*backends: Any) -> list[str]:
    config = parse_config({"models": [{"name": "a", "zoo": "resnet18"}], "backends": backends}, "")
    return problems_of_run(config, Path())


@pytest.mark.parametrize(
    ("backend", "words"),
    [
        ({"name": "tvm", "setting": "O1", "stable": ["Softmax"]}, "this setting of tvm can't be run"),
        ({"name": "tvm", "setting": "O1", "device": "rpc://127.0.0.1:9090"}, "this setting of tvm can't be run"),
        ({"name": "tvm", "setting": "O1", "importer": "torch"}, "this setting of tvm can't be run"),
        ({"name": "onnxruntime", "device": "cuda"}, "this setting of ort can't be run"),
    ],
)
def test_what_a_release_s_program_doesn_t_say_is_refused(backend: dict[str, Any], words: str) -> None:
    assert not any(words in line for line in problems(backend))
    assert any(f"$.backends[0]: {words}" in line for line in problems(backend | {"release": "1.0"}))


@pytest.mark.parametrize("name", ["onnxruntime@", "libraries@1.0", "tflite@2.1", "onnxruntime@1 0", "@1.0"])
def test_what_names_no_release_is_refused(name: str) -> None:
    with pytest.raises(conrepair.ConrepairError):
        problems(name)


@pytest.mark.slow
@pytest.mark.network
def test_since_which_release_a_model_answers_otherwise(tmp_path: Path) -> None:
    """Up to 1.20 pads of Pad were made those of AveragePool, which it doesn't count."""
    found = audited(tmp_path, "onnxruntime@1.20.1", "onnxruntime@1.22.0", "onnxruntime")
    verdicts = {row.backend: row.verdict for row in found.rows[1:]}
    assert verdicts == {
        "onnxruntime@1.20.1": Verdict.FAULTY,
        "onnxruntime@1.22.0": Verdict.EQUIVALENT,
        "onnxruntime": Verdict.EQUIVALENT,
    }


def test_a_network_is_sized_for_what_leaves_nothing_open(tmp_path: Path) -> None:
    onnx.save(parser.parse_model(PADDED), tmp_path / "net.onnx")
    model = Model("onnx", str(tmp_path / "net.onnx"), "0" * 64)
    asked = entry("tvm-O1@98.0")
    sized = asked.runs.sized(model, 3, tmp_path)
    (given,) = onnx.load(sized.path).graph.input
    assert [size.dim_value for size in given.type.tensor_type.shape.dim] == [3, 1, 4, 4]
    assert entry("ort-all@98.0").runs.sized(model, 3, tmp_path) is model
