"""Lists of architectures: what a configuration means, and audits of short lists."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import killing
import pytest
from documents import rows_in

from conrepair.application.cli import main
from conrepair.application.config.load import parse_config, read_json
from conrepair.application.config.model import ModelConfig
from conrepair.application.pipeline.architectures import architecture_models
from conrepair.application.pipeline.audit import run_audit
from conrepair.application.pipeline.from_config import check_converters
from conrepair.application.report.audit_folder import write_audit, write_so_far
from conrepair.application.report.result import AuditResult
from conrepair.ground.runtime.errors import ConfigError
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair.ground.runtime.torchvision import import_torchvision
from conrepair.ground.zoo import architectures as zoo
from conrepair.ground.zoo.architectures import FAMILIES, Architecture, select

SMALL = ("squeezenet1_1", "shufflenet_v2_x0_5")


def models(**changes: Any) -> list[ModelConfig]:
    return architecture_models(parse_config({"architectures": [{"family": "torchvision"} | changes]}, "test"))


# --- What there is ---


def test_the_lists_are_those_of_the_installed_libraries() -> None:
    import_torchvision()
    import keras
    import torchvision

    assert [item.name for item in FAMILIES["torchvision"]] == torchvision.models.list_models(torchvision.models)
    assert [item.name for item in FAMILIES["keras"]] == sorted(
        name for name in dir(keras.applications) if name[0].isupper()
    )


@pytest.mark.parametrize(
    ("family", "name", "wanted", "size"),
    [
        ("torchvision", "resnet18", 64, 64),
        ("torchvision", "resnet18", 20, 32),
        ("torchvision", "inception_v3", 64, 75),
        ("torchvision", "vgg16_bn", 64, 224),
        ("torchvision", "vit_h_14", 64, 70),
        ("torchvision", "vit_b_32", 65, 96),
        ("keras", "InceptionResNetV2", 64, 75),
        ("keras", "Xception", 64, 71),
        ("keras", "VGG16", 64, 64),
    ],
)
def test_the_size_is_one_that_the_architecture_takes(family: str, name: str, wanted: int, size: int) -> None:
    assert select(family, [name])[0].size(wanted) == size


def test_arguments_say_the_size_where_the_factory_asks_for_it() -> None:
    assert select("torchvision", ["vit_b_16"])[0].arguments(64) == {"weights": None, "image_size": 64}
    assert select("torchvision", ["maxvit_t"])[0].arguments(224) == {"weights": None, "input_size": [224, 224]}
    assert select("torchvision", ["resnet18"])[0].arguments(64) == {"weights": None}
    assert select("keras", ["VGG16"])[0].arguments(64) == {"weights": None, "input_shape": [64, 64, 3]}


def test_patterns_and_exclusions() -> None:
    names = [item.name for item in select("torchvision", ["vgg1?", "resnet*", "vgg11"], ["vgg13", "resnet1*"])]
    assert names == ["vgg11", "vgg16", "vgg19", "resnet34", "resnet50"]
    with pytest.raises(ConfigError, match="did you mean 'resnet18'"):
        select("torchvision", ["resnet81"])


# --- What a configuration means ---


def test_all_of_a_family() -> None:
    assert len(models()) == len(FAMILIES["torchvision"])
    assert len(models(exclude=["*net*"])) < len(FAMILIES["torchvision"])


def test_a_model_of_an_architecture() -> None:
    (model,) = models(names=["resnet18"], size=48, seed=3, conversions=["onnx"])
    assert (model.name, model.factory, model.seed) == ("torchvision.resnet18", "torchvision.models:resnet18", 3)
    assert model.initialize == "variance-preserving"
    assert model.inputs is not None
    assert model.inputs[0].shape == ("batch", 3, 48, 48)
    assert model.dataset is not None
    assert model.dataset.synthetic is not None
    assert model.dataset.synthetic.ends == (-1, 1)
    (pixels,) = models(family="keras", names=["EfficientNetB0"])
    assert pixels.dataset is not None
    assert pixels.dataset.synthetic is not None
    assert (pixels.dataset.synthetic.low, pixels.dataset.synthetic.high) == (0, 255)


def test_the_list_that_is_measured() -> None:
    config = parse_config(read_json(Path(__file__).parents[3] / "benchmarks" / "architectures.json"), "the list")
    check_converters(config)
    families = [model.name.partition(".")[0] for model in architecture_models(config)]
    assert (families.count("torchvision"), families.count("keras")) == (30, 30)


def test_mistakes_name_their_place(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"architectures\[0\].*'resnet18'"):
        models(names=["resnet81"])
    with pytest.raises(ConfigError, match="there is nothing to do"):
        models(names=["resnet18"], exclude=["*"])
    twice = {"family": "torchvision", "names": ["resnet18"]}
    with pytest.raises(ConfigError, match=r"architectures\[1\].*twice"):
        architecture_models(parse_config({"architectures": [twice, twice]}, "test"))
    value = {"architectures": [twice | {"conversions": [{"via": ["torch-onix"]}]}]}
    with pytest.raises(ConfigError, match=r"architectures\[0\].conversions\[0\]"):
        run_audit(parse_config(value, "test"), tmp_path, ProgressDisplay(quiet=True))
    assert list(tmp_path.iterdir()) == []


# --- Audits ---


def audit(folder: Path, tell: Callable[[AuditResult], None] = write_so_far, **changes: Any) -> AuditResult:
    value = {
        "architectures": [
            {
                "family": "torchvision",
                "names": SMALL,
                "size": 32,
                "conversions": [{"via": ["torch-onnx-script"]}],
                "dataset": {"synthetic": {"samples": 3}},
            }
        ]
    }
    config = parse_config(value | changes, "test")
    result = run_audit(config, folder, ProgressDisplay(quiet=True), tell=tell)
    write_audit(result, folder / "generated" / "store")
    return result


def heavy(folder: Path) -> list[str]:
    """Model files in the store."""
    return [path.name for path in (folder / "generated" / "store").glob("[bc]*/*") if path.name != "record.json"]


@pytest.mark.timeout(600)
def test_a_short_list_is_audited_and_continued(tmp_path: Path) -> None:
    tables: list[list[str]] = []

    def tell(result: AuditResult) -> None:
        write_so_far(result)
        text = (tmp_path / "generated" / f"{result.name}.unfinished.md").read_text()
        tables.append([name for name in SMALL if f"| torchvision.{name} |" in text])

    first = audit(tmp_path, tell)
    assert tables == [list(SMALL[: index + 1]) for index in range(len(SMALL))]
    assert not (tmp_path / "generated" / f"{first.name}.unfinished.md").exists(), "the folder has it all"
    assert [row.name for row in first.rows if row.kind == "reference"] == [
        f"torchvision.{name}/source" for name in SMALL
    ]
    assert {str(row.verdict) for row in first.rows if row.kind != "reference"} <= {"equivalent", "noise"}
    assert not any(row.ran.reused for row in first.rows)
    assert heavy(tmp_path) == [], "the models of an evaluated architecture go"
    records = killing.entries(tmp_path / "generated" / "store")

    again = audit(tmp_path)
    assert all(row.ran.reused for row in again.rows)
    assert [(row.name, row.verdict, row.reason) for row in again.rows] == [
        (row.name, row.verdict, row.reason) for row in first.rows
    ]
    assert killing.entries(tmp_path / "generated" / "store") == records, "nothing was done again"

    markdown = (first.folder / "verdicts.md").read_text()
    assert "| torchvision.squeezenet1_1 | equivalent |" in markdown
    table = list(csv.DictReader((first.folder / "verdicts.csv").open()))
    assert [line["architecture"] for line in table] == [row.model for row in first.rows]
    assert rows_in(first.folder)[1]["verdict"] == "equivalent"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_was_removed_is_made_anew_where_it_is_needed(tmp_path: Path) -> None:
    listed = {"family": "torchvision", "names": SMALL[:1], "size": 32}
    audit(tmp_path, architectures=[listed | {"conversions": [{"via": ["torch-onnx-script"]}]}])
    assert heavy(tmp_path) == []
    routes = [{"via": ["torch-onnx-script", "onnx2torch"]}]
    more = audit(tmp_path, architectures=[listed | {"conversions": routes}], keep_models=True)
    assert [str(row.verdict) for row in more.rows] == ["None", "equivalent", "equivalent"]
    assert {"weights.pt", "model.onnx"} <= set(heavy(tmp_path))
    assert (more.folder / "models/torchvision.squeezenet1_1/torch-onnx-script/model.onnx").is_file()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_list_that_is_killed_continues(tmp_path: Path) -> None:
    """Killed in the second architecture: nothing of the first is done again."""
    listed = {"family": "torchvision", "names": SMALL, "size": 32, "conversions": [{"via": ["torch-onnx-script"]}]}
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"architectures": [listed]}))
    store = tmp_path / "generated" / "store"
    process = killing.start(path)
    killing.wait_until(lambda: len(list(store.glob("build-*"))) == 2)
    killing.kill(process, everybody=False)
    assert killing.damaged(store) == []
    before = killing.entries(store)
    released = {path.parent.name for path in store.glob("*/record.json") if "released" in path.read_text()}
    assert len(released) == 2, "the first architecture's source and conversion"
    output = killing.finish(process := killing.start(path))
    assert process.returncode == 0, output
    after = killing.entries(store)
    kept = released | {name for name in before if name.startswith("execute")}
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert heavy(tmp_path) == []
    assert killing.leftovers(tmp_path / "generated") == []
    assert "2 equivalent" in output or "1 noise" in output


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_of_each_family_by_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = [
        *("architectures", "--quiet", "--size", "32", "--to", "onnx"),
        *("--names", *SMALL, "MobileNet", "MobileNetV3Small"),
    ]
    assert main(arguments) == 0
    output = capsys.readouterr().out
    for name in ("torchvision.squeezenet1_1", "keras.MobileNetV3Small"):
        assert name in output
    rows = rows_in(tmp_path / "generated" / "architectures")
    assert len(rows) == 8
    assert {row["verdict"] for row in rows} <= {None, "equivalent", "noise"}
    assert heavy(tmp_path) == []


def test_listing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["architectures", "--list", "--names", "vit_*", "EfficientNetB0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert lines[0].split() == ["torchvision", "vit_b_16", "64", "x", "64,", "-1..1"]
    assert lines[-1].split() == ["keras", "EfficientNetB0", "64", "x", "64,", "0..255"]


# --- Bounds ---


@pytest.mark.workers
@pytest.mark.slow  # test_workers.py stops a job for its memory; quick ones have other failures
@pytest.mark.timeout(120)
def test_an_architecture_that_takes_too_much_memory_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It allocates; the one behind it is audited."""
    (tmp_path / "hungrynets.py").write_text(
        """
import time
from torch import nn

def hungry(weights=None):
    held = []
    for _ in range(100):
        held.append(bytearray(b"x" * (64 << 20)))
        time.sleep(0.02)
    return nn.Identity()
"""
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Architecture, "factory", property(_factory))
    monkeypatch.setitem(
        zoo.FAMILIES,
        "torchvision",
        (Architecture("torchvision", "hungry"), *select("torchvision", SMALL[:1])),
    )
    short = {"family": "torchvision", "size": 32, "conversions": [{"via": ["torch-onnx-script"]}]}
    for reused in (False, True):
        result = audit(tmp_path, architectures=[short], limits={"memory_gb": 1.0, "workers": 1})
        hungry, *others = result.rows
        assert hungry.problem is not None
        assert hungry.problem.kind == "memory"
        assert "1 are allowed" in hungry.reason
        assert [str(row.verdict) for row in others] == ["None", "equivalent"]
        assert all(row.ran.reused is reused for row in others)
    assert "| torchvision.hungry | memory |" in (result.folder / "verdicts.md").read_text()


def _factory(architecture: Architecture) -> str:
    module = "hungrynets" if architecture.name == "hungry" else "torchvision.models"
    return f"{module}:{architecture.name}"
