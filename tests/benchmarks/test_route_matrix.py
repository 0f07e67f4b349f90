"""The route matrix: all directions of small networks, ways around what fails, and a user's mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import small_models as small

from benchmarks.route_matrix import running as module
from benchmarks.route_matrix.__main__ import main
from benchmarks.route_matrix.running import _culprits, _declared, _detours, _with_detour, run_matrix
from benchmarks.route_matrix.table import FORMATS, Cell, Matrix
from conrepair.application.config.load import parse_config
from conrepair.application.config.model import AuditConfig, ConversionConfig, ModelConfig
from conrepair.application.report.result import AuditResult, Problem, Ran, Row
from conrepair.formats.converters.all_converters import CONVERTERS
from conrepair.formats.converters.routes import find_route, pinned_route
from conrepair.formats.models.model import Description, Model
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import ConrepairError, ExitCode
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair.verdicts.evaluate.verdict import Verdict

NETS = """
from torch import nn


def build():
    return nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 5))
"""
SYNTHETIC = {"synthetic": {"samples": 4}}
FAILED = Problem(message="ConversionError: no", kind="exception")


def run(folder: Path, models: list[dict[str, Any]], **changes: Any) -> Matrix:
    value = {"name": "test", "output": "out", "dataset": SYNTHETIC, "models": models} | changes
    with ProgressDisplay(quiet=True) as display:
        return run_matrix(parse_config(value, "test"), folder, display)


@pytest.mark.slow
def test_every_direction_of_a_network_of_a_factory(tmp_path: Path) -> None:
    """Beside it a conversion made elsewhere, which the matrix leaves aside."""
    (tmp_path / "matrix_nets.py").write_text(NETS)
    inputs = [{"name": "image", "shape": ["batch", 3, 12, 12], "layout": "NCHW"}]
    net = {"factory": "matrix_nets:build", "inputs": inputs}
    result = run(tmp_path, [net | {"name": "tiny.net"}, net | {"name": "again", "compare_with": "tiny.net"}])
    assert result.models == ["tiny.net"]
    assert len(result.cells) == 20
    assert {place: cell.row.verdict for place, cell in result.cells.items() if cell.row} == dict.fromkeys(
        result.cells, Verdict.EQUIVALENT
    )
    assert {form for _, form in result.made} == set(FORMATS)
    assert result.exit_code == ExitCode.EQUIVALENT
    # Its own format isn't made anew by a round trip.
    assert all(row.conversion == "" for row in result.made.values() if row.ran.artifact.framework == "torch")


@pytest.mark.slow
def test_a_file_as_source_and_one_that_isnt_there(tmp_path: Path) -> None:
    """The table that a TFLite file's integers index stays known in formats that don't show it."""
    small.tflite_of(small.keras_text(), tmp_path / "text.v1.tflite")
    models = [{"name": "text.v1", "path": "text.v1.tflite"}, {"name": "lost", "path": "lost.keras"}]
    config = {"name": "test", "output": "out", "dataset": SYNTHETIC, "models": models}
    (tmp_path / "config.json").write_text(json.dumps(config))
    code = main([str(tmp_path / "config.json"), "-o", str(tmp_path / "matrix.md")])
    text = (tmp_path / "matrix.md").read_text()
    assert code == ExitCode.MODEL_LOAD
    assert "40 directions of 2 models: 20 equivalent, 20 not made" in text
    assert "The original doesn't work: " in text
    assert "lost.keras: no such model file" in text
    assert "- tflite: the original; " in text


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ([], "models"),
        ([{"name": "a", "path": "a.onnx", "skip_analysis": True}], "no model to start from"),
        (None, "architectures"),
    ],
)
def test_nothing_to_start_from(tmp_path: Path, models: list[dict[str, Any]] | None, message: str) -> None:
    only: dict[str, Any] = {} if models is not None else {"architectures": [{"family": "torchvision"}]}
    with pytest.raises(ConrepairError, match=message) as caught:
        run(tmp_path, models or [], **only)
    assert caught.value.exit_code == ExitCode.USAGE


# --- Ways around ---


def row(conversion: str, verdict: Verdict, kind: str = "target") -> Row:
    problem = FAILED if verdict is Verdict.UNDEPLOYABLE else None
    return Row(
        model="net.tensorflow",
        conversion=conversion,
        backend="libraries",
        kind=kind,
        verdict=verdict,
        reason="so",
        problem=problem,
    )


def start(form: str) -> ModelConfig:
    return ModelConfig(name=f"net.{form}", path=f"/nowhere/model.{form}", conversions=())


def test_the_first_converter_that_fails_is_the_culprit() -> None:
    rows = [
        row("savedmodel-onnx-tf2onnx", Verdict.EQUIVALENT),
        row("savedmodel-onnx-tf2onnx+onnx-keras,inputs=source", Verdict.FAULTY, "intermediate"),
        row("savedmodel-onnx-tf2onnx+onnx-keras,inputs=source+keras-tflite", Verdict.FAULTY),
        row("savedmodel-tflite", Verdict.UNDEPLOYABLE),
    ]
    assert _culprits(rows[2], rows) == {"onnx-keras"}
    assert _culprits(rows[3], rows) == {"savedmodel-tflite"}
    assert _culprits(rows[0], rows) == frozenset()


def test_detours_leave_the_culprits_out_until_none_is_left() -> None:
    place = ("net", "tensorflow", "tflite")
    failed = row("savedmodel-tflite", Verdict.UNDEPLOYABLE)
    cell = Cell(failed.conversion, failed, culprits=_culprits(failed, [failed]))
    starts: dict[tuple[str, str], ModelConfig | None] = {("net", "tensorflow"): start("tensorflow")}
    tried: list[tuple[str, ...]] = []
    while around := _detours({place: cell}, starts):
        (model,) = around
        (conversion,) = model.conversions
        assert isinstance(conversion, ConversionConfig)
        assert conversion.via is not None
        assert not cell.culprits & set(conversion.via)
        tried.append(conversion.via)
        chains = ["+".join(conversion.via[: length + 1]) for length in range(len(conversion.via))]
        rows = [row(chain, Verdict.UNDEPLOYABLE, "intermediate") for chain in chains[:-1]]
        cell = _with_detour(cell, start("tensorflow"), "tflite", [*rows, row(chains[-1], Verdict.UNDEPLOYABLE)])
    assert tried[0] == ("savedmodel-onnx-tf2onnx", "onnx-keras", "keras-tflite")
    assert len(set(tried)) == len(tried) == len(cell.detours)
    assert cell.instead is None


def test_a_detour_that_works_ends_the_search() -> None:
    place = ("net", "tensorflow", "tflite")
    failed = row("savedmodel-tflite", Verdict.FAULTY)
    cell = Cell(failed.conversion, failed, culprits=frozenset({"savedmodel-tflite"}))
    works = row("savedmodel-onnx-tf2onnx+onnx-keras+keras-tflite", Verdict.EQUIVALENT)
    cell = _with_detour(cell, start("tensorflow"), "tflite", [failed, works])
    assert cell.instead is works
    assert not cell.good
    assert not _detours({place: cell}, {("net", "tensorflow"): start("tensorflow")})


class Audits:
    """In place of audits: gives rows made by hand, and keeps what was asked for."""

    def __init__(self, working: set[str]) -> None:
        self.working = working
        self.asked: dict[str, list[tuple[str, str]]] = {}

    def __call__(self, config: AuditConfig, base: Path, display: ProgressDisplay) -> AuditResult:
        rows = [item for model in config.models for item in self.rows(model)]
        self.asked[config.name] = [(item.model, item.conversion) for item in rows if item.kind == "target"]
        return AuditResult(
            name=config.name,
            folder=base,
            rows=tuple(rows),
            samples={},
            datasets={},
            recipes={},
            pairs=(),
            versions={},
            config={},
            seconds=0.0,
        )

    def rows(self, model: ModelConfig) -> list[Row]:
        form = model.name.rpartition(".")[2] if "." in model.name else "torch"
        found = [
            Row(
                model=model.name,
                conversion="",
                backend="libraries",
                kind="reference",
                ran=Ran(artifact=Model(form, f"/{form}", "0")),
            )
        ]
        for conversion in model.conversions:
            assert isinstance(conversion, ConversionConfig)
            steps = pinned_route(conversion.via, form) if conversion.via else find_route(form, conversion.to or "")
            fails = False
            for count, step in enumerate(steps.steps, 1):
                name = "+".join(item.name for item in steps.steps[:count])
                kind = "target" if count == len(steps.steps) else "intermediate"
                fails = fails or step.name not in self.working
                artifact = None if fails else Model(step.target, f"/{name}", "0")
                verdict, problem = (Verdict.UNDEPLOYABLE, FAILED) if fails else (Verdict.EQUIVALENT, None)
                found.append(
                    Row(
                        model=model.name,
                        conversion=name,
                        backend="libraries",
                        kind=kind,
                        verdict=verdict,
                        reason="so",
                        ran=Ran(artifact=artifact),
                        problem=problem,
                    )
                )
        return found


def matrix_of(monkeypatch: pytest.MonkeyPatch, audits: Audits) -> Matrix:
    monkeypatch.setattr(module, "run_audit", audits)
    return run(Path("/nowhere"), [{"name": "net", "path": "net.pt2"}])


def test_formats_that_their_own_routes_dont_make_are_made_by_detours(monkeypatch: pytest.MonkeyPatch) -> None:
    """One converter that all routes begin with fails; nothing of the row is lost for it."""
    audits = Audits(set(CONVERTERS) - {"torch-onnx-dynamo"})
    result = matrix_of(monkeypatch, audits)
    around = {
        "keras": "torch-onnx-script+onnx-keras",
        "tensorflow": "torch-onnx-script+onnx-keras+keras-savedmodel",
        "tflite": "torch-onnx-script+onnx-keras+keras-tflite",
        "onnx": "torch-onnx-script",
    }
    assert audits.asked["test-formats-detours-1"] == [("net", route) for route in around.values()]
    assert "test-formats-detours-2" not in audits.asked
    assert {form: item.conversion for (_, form), item in result.made.items()} == {"torch": ""} | around
    assert result.missing == {}
    assert {model for model, _ in audits.asked["test-matrix"]} == {f"net.{form}" for form in FORMATS}
    bad = {place[1:]: cell for place, cell in result.cells.items() if not cell.good}
    assert {pair: cell.instead.conversion for pair, cell in bad.items() if cell.instead} == {
        ("torch", form): route for form, route in around.items()
    }
    assert len(bad) == 4


def test_only_what_isnt_made_is_tried_again_until_no_route_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    audits = Audits(set(CONVERTERS) - {"keras-tflite", "savedmodel-tflite"})
    result = matrix_of(monkeypatch, audits)
    assert audits.asked["test-formats-detours-1"] == [
        ("net", "torch-onnx-dynamo+onnx-keras+keras-savedmodel+savedmodel-tflite")
    ]
    assert "test-formats-detours-2" not in audits.asked, "nothing else writes TFLite"
    assert set(result.made) == {("net", form) for form in FORMATS if form != "tflite"}
    (place, item), *others = result.missing.items()
    assert not others
    assert place == ("net", "tflite")
    assert item.conversion == "torch-onnx-dynamo+onnx-keras+keras-tflite", "the first, not the detour"


def test_where_all_works_nothing_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    audits = Audits(set(CONVERTERS))
    assert matrix_of(monkeypatch, audits).exit_code == ExitCode.EQUIVALENT
    assert list(audits.asked) == ["test-sources", "test-formats", "test-matrix"]


# --- What a file doesn't say ---


def test_the_table_of_an_input_is_declared_where_the_file_hides_it() -> None:
    source = (TensorSpec("x", ("batch", 4), "float32"), TensorSpec("tokens", ("batch", 16), "int64", high=100))
    mine = (TensorSpec("args_0", ("batch", 16), "int32"), TensorSpec("args_1", ("batch", 4), "float32"))
    about = Description("SavedModel", mine, (), {}, 0, {})
    model = Model("tensorflow", "/nowhere", "0", inputs=source)
    declared = _declared(
        Row(
            model="net",
            conversion="a",
            backend="libraries",
            kind="target",
            ran=Ran(artifact=model, description=about),
        )
    )
    assert declared is not None
    (only,) = declared
    assert (only.name, only.dtype, only.shape, only.high) == ("args_0", "int32", ("batch", 16), 100)
    plain = Model("tensorflow", "/nowhere", "0", inputs=source[:1])
    assert (
        _declared(
            Row(
                model="net",
                conversion="a",
                backend="libraries",
                kind="target",
                ran=Ran(artifact=plain, description=about),
            )
        )
        is None
    )


def test_the_shipped_configuration_is_valid() -> None:
    path = Path(__file__).parents[2] / "examples" / "route-matrix-other.json"
    config = parse_config(json.loads(path.read_text()), str(path))
    assert isinstance(config, AuditConfig)
    assert [model.name for model in config.models] == ["encoder", "lstm", "gru", "two_inputs"]
