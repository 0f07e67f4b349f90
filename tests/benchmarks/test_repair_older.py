"""The conversions of the older ConRepAIr: which they are, what they start from, what becomes of them."""

from __future__ import annotations

import dataclasses
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.common import making as common
from benchmarks.common.models import MODELS
from benchmarks.repair import __main__ as benchmark
from benchmarks.repair.older import making, run
from benchmarks.repair.older.cases import CASES, FAULTS, FAULTY, OlderCase, chosen
from benchmarks.repair.older.making import Made, NotMadeError, with_answers
from benchmarks.repair.older.rows import OlderRow, read_older, write_older
from benchmarks.repair.older.tables import report_older
from benchmarks.repair.older.trial import audited
from conrepair.formats.models.builders import build_from_factory
from conrepair.formats.models.factories import call_factory
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.processes.workers import Failure, Job, Success

_SMALL = dataclasses.replace(
    MODELS["resnet101"],
    factory="torchvision.models:shufflenet_v2_x0_5",
    kwargs={},
    inputs=(TensorSpec("image", ("batch", 3, 64, 64), "float32"),),
)


def test_every_pair_of_formats_is_there_and_the_published_ones_come_first() -> None:
    assert len(CASES) == len({case.name for case in CASES}) == 3 * 12 * 2
    published = [case for case in CASES if case.published]
    assert len({(case.model, case.source, case.target) for case in published}) == 15
    assert Counter(case.model for case in published) == {"mobilenet-v2": 12, "resnet101": 14, "inception-v3": 4}
    assert list(CASES[:30]) == published
    assert [case.name for case in chosen(["inception-v3"], None)[:2]] == [
        "inception-v3:torch>keras:right",
        "inception-v3:torch>keras:wrong",
    ]
    assert chosen([], ["resnet101:tf>torch:wrong"]) == [OlderCase("resnet101", "tf", "torch", "keras:tf")]
    with pytest.raises(ValueError, match="no case resnet101:tf>onnx"):
        chosen([], ["resnet101:tf>onnx"])


class Converts:
    """Stands for the workers: a model is the list of what was done for it; one converter fails."""

    def __init__(self, broken: str = "") -> None:
        self.asked: list[list[str]] = []
        self.broken = broken

    def call(self, job: Job) -> Success | Failure:
        made = job.payload.get("side", {"made": []})["made"]
        made = [*made, job.payload.get("converter", job.payload.get("model"))]
        self.asked.append(made)
        if made[-1] == self.broken:
            return Failure("exception", "KeyError", "axis")
        return Success({"side": {"made": made}}, 1.0)


def _case(source: str, target: str) -> OlderCase:
    return OlderCase("resnet101", source, target, "torchvision")


def test_what_several_conversions_start_with_is_made_once(tmp_path: Path) -> None:
    workers, made = Converts(), Made(tmp_path)
    cases = [_case("tf", "tflite"), _case("torch", "tf"), _case("tf", "keras")]
    for _ in range(2):
        made.make(cases, workers)  # type: ignore[arg-type]
    assert len(workers.asked) == len({tuple(item) for item in workers.asked})
    assert workers.asked[0] == ["resnet101"]
    source, target = made.sides(cases[0])
    assert source["made"][2:] == ["onnx-keras", "keras-savedmodel"]
    assert target["made"] == [*source["made"], "savedmodel-tflite"]
    assert made.sides(cases[1]) == ({"made": ["resnet101"]}, source)
    assert made.sides(cases[2])[1]["made"][:4] == source["made"]


def test_a_conversion_that_fails_names_the_converter_and_leaves_the_others(tmp_path: Path) -> None:
    workers, made = Converts("savedmodel-onnx-tf2onnx"), Made(tmp_path)
    cases = [_case("tf", "keras"), _case("tf", "torch"), _case("tf", "tflite")]
    made.make(cases, workers)  # type: ignore[arg-type]
    for case in cases[:2]:
        with pytest.raises(NotMadeError, match="savedmodel-onnx-tf2onnx: KeyError: axis"):
            made.sides(case)
    assert sum(item[-1] == "savedmodel-onnx-tf2onnx" for item in workers.asked) == 1
    assert made.sides(cases[2])[1]["made"][-1] == "savedmodel-tflite"


def test_a_network_of_random_weights_tells_photos_apart(tmp_path: Path) -> None:
    import torch

    model = build_from_factory(
        target=_SMALL.factory,
        kwargs={},
        weights=None,
        inputs=_SMALL.inputs,
        initialize="variance-preserving",
        seed=3,
        folder=tmp_path,
    )
    photos = common.photo_inputs(dataclasses.replace(_SMALL, recipe="torchvision", samples=24))

    def classes() -> int:
        network = call_factory(model.factory).eval()  # type: ignore[arg-type]
        network.load_state_dict(torch.load(model.path, weights_only=True))
        with torch.no_grad():
            return len(np.unique(network(torch.from_numpy(photos)).argmax(1)))

    before = classes()
    changed = with_answers(model, photos)
    assert before < 8 <= classes()
    assert changed.sha256 != model.sha256
    features = dataclasses.replace(model, factory=dataclasses.replace(model.factory, target="torch.nn:Identity"))
    with pytest.raises(Exception, match=r"Identity|state_dict"):
        with_answers(features, photos)


def test_rows_are_kept_and_those_of_other_code_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[str] = []

    def measure(cases: Sequence[OlderCase], photos: int, folder: Path) -> Iterator[OlderRow]:
        for case in cases:
            asked.append(case.name)
            yield OlderRow(case.name, "measured", photos=photos, before=0.5, after=0.0, found=("preprocessing",))

    monkeypatch.setattr(run, "measure", measure)
    path, (first, second, *_) = tmp_path / "rows.json", CASES
    run.run_older([first], 5, path)
    rows = run.run_older([first, second], 5, path)
    assert asked == [first.name, second.name]
    assert rows == read_older(path)[1]
    with pytest.raises(SystemExit, match="--fresh"):
        run.run_older([first], 6, path)
    arguments = ["--cases", "older", "--case", first.name, "--photos", "6", "--json", str(path), "--fresh"]
    monkeypatch.setattr(sys, "argv", ["benchmarks.repair", *arguments])
    assert benchmark.main() == 0
    assert [row.name for row in read_older(path)[1]] == [first.name]


def test_the_table_counts_published_conversions_by_themselves(tmp_path: Path) -> None:
    published, other = CASES[0].name, CASES[-1].name
    rows = [
        OlderRow(published, "measured", photos=4, classes=3, before=0.25, after=0.0, edits=("a", "b"), seconds=1.6),
        OlderRow(CASES[1].name, "measured", photos=4, classes=3, before=0.5, after=0.0, recipe=("x / 255", "cut")),
        OlderRow(other, "failed", "onnx2torch: KeyError: axis"),
    ]
    write_older(tmp_path / "rows.json", {}, rows)
    text = report_older(read_older(tmp_path / "rows.json")[1])
    assert f"| {published} | 4 | 3 | 25.00 % |  |  | a; b | 0.00 % |  | 2 |" in text
    assert f"| {CASES[1].name} | 4 | 3 | 50.00 % |  | 1 |  | 0.00 % |  | 0 |" in text
    assert "Recipe 1: x / 255; cut." in text
    assert "2 of 2 published cases end" in text
    assert f"| {other} | failed: onnx2torch: KeyError: axis |" in text
    assert "0 of 1 not published cases end" in text


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["torchvision", "keras:tf"])
def test_a_conversion_is_audited_repaired_and_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, recipe: str
) -> None:
    monkeypatch.setitem(making.MODELS, "small", _SMALL)
    folders = [tmp_path / name for name in ("torch", "onnx", "keras")]
    for folder in folders:
        folder.mkdir()
    source = making.make(folders[0], model="small")["side"]
    target: dict[str, Any] = source
    for folder, converter in zip(folders[1:], ("torch-onnx-script", "onnx-keras"), strict=True):
        target = common.convert(folder, side=target, converter=converter, options={})["side"]
    row = audited(OlderCase("small", "torch", "keras", recipe), source, target, 12, tmp_path / "audits")
    assert (row.status, row.photos, row.after, row.left, row.edits) == ("measured", 12, 0.0, (), ())
    assert row.classes > 3
    wrong = recipe != "torchvision"
    assert (row.found, bool(row.recipe), row.before > 0) == (("preprocessing",) if wrong else (), wrong, wrong)  # type: ignore[operator]


def test_each_conversion_has_one_fault_of_each_sort() -> None:
    assert len({case.name for case in FAULTY}) == len(FAULTY) == 3 * 12 * 4
    assert {case.fault for case in FAULTY} == set(FAULTS)
    assert all(case.recipe == "torchvision" for case in FAULTY)
    assert chosen([], ["mobilenet-v2:keras>tflite:graph"])[0].published


def test_a_fault_is_put_into_what_is_converted(tmp_path: Path) -> None:
    """Into ONNX in front of PyTorch; the conversion has it, and answers otherwise."""
    onnx_side = common.make(tmp_path, model="digits-cnn", samples=2)["sides"]["onnx"]
    for place, fault in enumerate(FAULTS):
        folder = tmp_path / str(place)
        folder.mkdir()
        payload = {"side": onnx_side, "fault": fault, "converter": "onnx2torch", "seed": 1}
        found = making.make_faulty(folder, **payload)
        assert found["side"]["model"]["framework"] == "torch"
        assert found["words"]


def test_faulty_conversions_are_told_by_themselves() -> None:
    rows = [
        OlderRow(FAULTY[0].name, "measured", photos=4, before=0.5, after=0.0, found=("parameters",), injected="w"),
        OlderRow(FAULTY[1].name, "measured", photos=4, before=0.0, after=0.0, injected="d"),
        OlderRow(CASES[0].name, "measured", photos=4, before=0.0, after=0.0),
        OlderRow(CASES[1].name, "measured", photos=4, before=0.5, after=0.0, found=("preprocessing",)),
    ]
    text = report_older(rows)
    assert "In 1 of these 2 cases nothing is wrong, and the other 1 have the same fault of preprocessing" in text
    assert f"| {FAULTY[0].name} | w | 4 | 50.00 % | parameters |  | 0.00 % |  |" in text
    assert "Of 2 targets with a fault 1 are said to have one. In 1 of them none is left" in text
