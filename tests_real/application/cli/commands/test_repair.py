"""`conrepair repair` as a user types it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rewritten_networks as networks
from documents import repair_in
from localizations import about, made, run_of
from localized import WEIGHTS, Variant
from PIL import Image
from told_runs import OF_EVERY_RUN

import conrepair
from benchmarks.faults.catalogue import faults
from benchmarks.faults.inject_file import inject_file
from conrepair.application.cli import main
from conrepair.application.report.result import Problem, RepairedTarget
from conrepair.application.report.results import Repaired
from conrepair.application.report.saved import read_result
from conrepair.diagnosis.localization.run.opening import OpenedNetwork, open_model
from conrepair.diagnosis.repairs.outcomes import Advice
from conrepair.formats.models.model import Model
from conrepair.formats.onnx.read.network import OnnxNetwork, open_network
from conrepair.ground.runtime.errors import ConrepairError
from conrepair.ground.runtime.files.whole import sha256_of
from tests.support.native_models import feeds_of, tflite_file
from tests.support.sized_networks import exported

Broken = Callable[[str], tuple[Path, Path]]


@pytest.fixture
def broken(tmp_path: Path) -> Broken:
    """A right model and a faulty one."""

    def make(name: str) -> tuple[Path, Path]:
        right = tflite_file("image", tmp_path)
        fault = next(fault for fault in faults() if fault.name == name)
        feeds = feeds_of("image", channels_last=True)
        changed = inject_file(right, fault, feeds, np.random.default_rng(3), tmp_path / "faulty")
        assert changed is not None
        return Path(right.path), changed.path

    return make


def test_a_repair_goes_on_from_the_localization(broken: Broken, monkeypatch: pytest.MonkeyPatch) -> None:
    right, wrong = map(str, broken("weights-scaled"))
    opened = []

    def noted(model: Model, *others: Any) -> OpenedNetwork:
        opened.append(model.path)
        return open_model(model, *others)

    monkeypatch.setattr("conrepair.diagnosis.repairs.bench.open_model", noted)
    found = conrepair.repair(right, wrong, in_process=True)
    assert found.exit_code == 0
    assert len(opened) == 1, "only the changed target is opened by the repair"
    assert not {right, wrong} & set(opened)


def test_each_file_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layer = next(iter(WEIGHTS))
    right = Variant(size=(12, 12)).write(tmp_path / "right.onnx").path
    wrong = Variant(size=(12, 12), weights={layer: WEIGHTS[layer] * 1.5}).write(tmp_path / "wrong.onnx").path
    opened = []

    def noted(model: Model, *others: Any) -> OnnxNetwork:
        opened.append(model.path)
        return open_network(model, *others)

    monkeypatch.setattr("conrepair.formats.onnx.read.network.open_network", noted)
    assert conrepair.localize(right, wrong, samples=4, in_process=True).exit_code == 1
    assert opened == [right, wrong]


def test_a_fault_is_repaired_written_and_can_be_applied_again(
    broken: Broken, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    right, wrong = broken("weights-scaled")
    before = sha256_of(wrong)
    assert main(["repair", str(right), str(wrong), "-o", str(tmp_path / "out"), "-q"]) == 0
    shown = capsys.readouterr().out
    assert "repaired: 1 fault found, 0 left" in shown
    assert "the weight of" in shown
    assert sha256_of(wrong) == before
    document = repair_in(tmp_path / "out")
    assert document["mended"]
    assert document["model"]["path"] == "repaired.tflite"
    assert document["before"]["faults"]
    assert not document["after"]["faults"]
    patch = str(tmp_path / "out" / "patch.json")
    assert main(["repair", str(wrong), "--apply", patch, "-o", str(tmp_path / "again")]) == 0
    assert sha256_of(tmp_path / "again" / "repaired.tflite") == sha256_of(tmp_path / "out" / "repaired.tflite")
    assert main(["repair", str(right), "--apply", patch, "-o", str(tmp_path / "other")]) == 2
    assert "the patch is for another model" in capsys.readouterr().err
    # The result is the source's equal: nothing is left to repair, and nothing is written.
    repaired = str(tmp_path / "out" / "repaired.tflite")
    assert main(["repair", str(right), repaired, "-o", str(tmp_path / "none"), "-q"]) == 0
    assert "nothing to repair" in capsys.readouterr().out
    assert not (tmp_path / "none").exists()


def test_what_is_there_already_is_not_replaced(broken: Broken, tmp_path: Path) -> None:
    right, wrong = broken("weights-scaled")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    assert main(["repair", str(right), str(wrong), "-o", str(tmp_path / "out"), "-q"]) == 2
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["notes.txt"]


def test_a_folder_that_holds_what_is_read_is_not_replaced(
    broken: Broken, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    right, wrong = broken("weights-scaled")
    assert main(["repair", str(right), str(wrong), "-o", str(tmp_path / "out"), "-q"]) == 0
    repaired = tmp_path / "out" / "repaired.tflite"
    assert main(["repair", str(right), str(repaired), "-o", str(tmp_path / "out"), "-q"]) == 2
    assert "which this repair would replace" in capsys.readouterr().err
    assert (
        main(["repair", str(wrong), "--apply", str(tmp_path / "out" / "patch.json"), "-o", str(tmp_path / "out")])
        == 2
    )
    assert repaired.is_file()


def test_one_model_alone_is_a_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.onnx").touch()
    assert main(["repair", str(tmp_path / "a.onnx"), "-o", str(tmp_path / "out")]) == 2
    assert "repair takes two models, ORIGINAL and CONVERTED" in capsys.readouterr().err


def test_a_target_for_pictures_of_another_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right, wrong = (exported("tflite", (size, size), tmp_path / str(size)).path for size in (24, 12))
    assert main(["localize", right, wrong, "-o", str(tmp_path / "located"), "-q"]) == 1
    assert "declared with another shape" in capsys.readouterr().out
    assert main(["repair", right, wrong, "-o", str(tmp_path / "out"), "-q", "--advice", "0"]) == 0
    shown = capsys.readouterr().out
    assert "repaired: 1 fault found, 0 left" in shown
    assert "Before: none could be compared" in shown
    config = {
        "output": str(tmp_path / "generated"),
        "models": [
            {"name": "right", "path": right},
            {"name": "wrong", "path": wrong, "compare_with": "right"},
            {"name": "mended", "path": str(tmp_path / "out" / "repaired.tflite"), "compare_with": "right"},
        ],
        "dataset": {"synthetic": {"samples": 6}},
        "stages": {"localize": True, "repair": True},
        "repair": {"advice_seconds": 0},
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert main(["run", str(tmp_path / "config.json"), "-q"]) == 0, "the target is repaired"
    (file,) = (tmp_path / "generated").rglob("result.json")
    rows = {row.model: row for row in read_result(file).rows}
    assert (str(rows["wrong"].verdict), str(rows["mended"].verdict)) == ("faulty", "equivalent")
    repaired = rows["wrong"].repaired.result
    assert repaired is not None
    assert repaired.mended
    assert repaired.model is not None
    assert Path(repaired.model.path) == file.parent / "repair" / "wrong" / "source" / "repaired.tflite"
    assert sha256_of(Path(repaired.model.path)) == repaired.model.sha256


def photos(folder: Path) -> str:
    folder.mkdir()
    generator = np.random.default_rng(8)
    for number in range(14):
        coarse = Image.fromarray(generator.integers(0, 255, (6, 7, 3), dtype=np.uint8))
        coarse.resize((60 + number, 50), Image.Resampling.BICUBIC).save(folder / f"{number}.png")
    return str(folder)


def test_photos_for_another_size_and_another_batch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right = exported("onnx", (24, 24), tmp_path / "right").path
    wrong = exported("torch", (12, 12), tmp_path / "wrong", batch=3).path
    data = ["--data", photos(tmp_path / "photos"), "--recipe", "torchvision", "-q", "--advice", "0"]
    assert main(["repair", right, wrong, "-o", str(tmp_path / "out"), *data]) == 0
    shown = capsys.readouterr().out
    assert "Verified on 6 other samples, which the search didn't see" in " ".join(shown.split())
    assert "repaired: 1 fault found, 0 left" in shown
    assert main(["repair", right, str(tmp_path / "out" / "repaired.pt2"), "-o", str(tmp_path / "none"), *data]) == 0
    assert "nothing to repair" in capsys.readouterr().out


def test_sizes_alone_arent_given_where_that_makes_it_worse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The number of places is a constant behind them, and there's no time to fix that."""
    for size in (24, 12):
        text = f"""mean (float[1, 3, {size}, {size}] x) => (float[1, 3] y) {{
            axes = Constant <value = int64[2] {{2, 3}}> ()
            s = ReduceSum <keepdims = 0> (x, axes)
            y = Div (s, count)
        }}"""
        count = np.array(size**2, np.float32)
        networks.written(tmp_path / f"{size}.onnx", text, {"count": count})
    sides = [str(tmp_path / "24.onnx"), str(tmp_path / "12.onnx"), "-o", str(tmp_path / "out")]
    data = ["--data", photos(tmp_path / "photos"), "--recipe", "torchvision", "-q", "--advice", "0"]
    assert main(["repair", *sides, *data, "--seconds", "0.001"]) == 1
    assert "undone" in capsys.readouterr().out
    assert {path.name for path in (tmp_path / "out").iterdir()} == OF_EVERY_RUN
    assert main(["repair", *sides, *data]) == 0
    assert "repaired: 1 fault found, 0 left" in capsys.readouterr().out


def scaled(folder: Path) -> tuple[str, str]:
    """A PyTorch network, and its export with one layer twice as large."""
    import onnx
    import torch
    from onnx import numpy_helper

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)).eval()
    example = (torch.rand(4, 8),)
    torch.export.save(torch.export.export(net, example), folder / "net.pt2")
    torch.onnx.export(net, example, folder / "net.onnx", dynamo=True, external_data=False)
    proto = onnx.load(folder / "net.onnx")
    weight = next(item for item in proto.graph.initializer if tuple(item.dims) == (4, 16))
    weight.CopyFrom(numpy_helper.from_array(2 * numpy_helper.to_array(weight), weight.name))
    onnx.save(proto, folder / "net.onnx")
    return str(folder / "net.pt2"), str(folder / "net.onnx")


def test_a_repair_that_fails_keeps_what_is_known_and_what_was_good(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    right, wrong = scaled(tmp_path)
    out = tmp_path / "out"
    assert main(["repair", right, wrong, "-o", str(out), "-q", "--seconds", "0.001"]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "not repaired: 1 fault found, 1 left" in shown
    assert f"{out}: anew.onnx (converted again; no layer of it is faulty), result.json" in shown
    document = repair_in(out)
    assert not document["mended"]
    assert document["before"]["faults"]
    (kept,) = [item["model"] for item in document["advice"] if item["avoids"]]
    assert kept["path"] == "anew.onnx"
    assert kept["sha256"] == sha256_of(out / "anew.onnx")
    assert main(["compare", right, str(out / "anew.onnx"), "-q", "-o", str(tmp_path / "compared")]) == 0
    # The same folder takes the next repair; what's repaired needs no other file.
    assert main(["repair", right, wrong, "-o", str(out), "-q"]) == 0
    names = {"patch.json", "patch.npz", "repaired.onnx"} | OF_EVERY_RUN
    assert {path.name for path in out.iterdir()} == names


def test_a_target_that_cannot_be_edited_keeps_the_same(tmp_path: Path) -> None:
    _, file = scaled(tmp_path)
    way = Advice("converted anew by a", "a", tried=True, avoids=True, outcome="tried", model=Model("onnx", file, "0"))
    refusal = Problem(message="the format can't be edited", exit_code=3)
    run = run_of(made(4, {2: 0.5}), about())
    row = dataclasses.replace(run.rows[0], repaired=RepairedTarget(problem=refusal, advice=(way,)))
    run = dataclasses.replace(run, rows=(row,), kind="repair")
    found = Repaired(run=run)
    with pytest.raises(ConrepairError) as caught:
        found.save(tmp_path / "out")
    told = str(caught.value)
    assert "the format can't be edited" in told
    assert f"written: {tmp_path / 'out'}, with anew.onnx: converted again; no layer of it is faulty" in told
    kept = read_result(tmp_path / "out").rows[0]
    assert kept.repaired.result is None
    assert kept.repaired.problem == refusal
    assert kept.localized.result is not None
    assert len(kept.localized.result.faults) == 1
    anew = kept.repaired.advice[0].model
    assert anew is not None
    assert anew.path == str(tmp_path / "out" / "anew.onnx")
    assert sha256_of(Path(anew.path)) == anew.sha256 == sha256_of(Path(file))
    circumstance = RepairedTarget(problem=dataclasses.replace(refusal, circumstance=True), advice=(way,))
    with pytest.raises(ConrepairError, match="can't be edited"):
        Repaired(run=run.with_row(dataclasses.replace(row, repaired=circumstance))).save(tmp_path / "none")
    assert not (tmp_path / "none").exists()
