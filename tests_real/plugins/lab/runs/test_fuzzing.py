"""A person's own networks in a campaign: open sizes, odd inputs, their names, and what's in the folder already."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from fuzz_cases import HEAD, compared_by_halves_of_any, right

from conrepair.ground.runtime.errors import ConrepairError, UsageError
from conrepair_lab.campaigns.fuzz_jobs import read_network
from conrepair_lab.options.fuzz import Fuzz
from conrepair_lab.report.fuzz.folder import PAGE
from conrepair_lab.report.fuzz.summary import Summary
from conrepair_lab.runs.fuzzing import fuzz


def saved(folder: Path, text: str, name: str = "net.onnx") -> Path:
    onnx.save(onnx.parser.parse_model(HEAD + text), folder / name)
    return folder / name


def campaign(folder: Path, *models: Path, **more: Any) -> Summary:
    told: Any = {"models": list(map(str, models)), "systems": ["ort-none"], "workers": 1, "reduction_seconds": 5.0}
    return fuzz(Fuzz(**(told | more)), folder / "fuzz", quiet=True)


def own(folder: Path) -> list[Path]:
    return sorted((folder / "fuzz" / "own").iterdir())


def test_an_open_batch_becomes_a_number_and_each_try_has_other_inputs(tmp_path: Path) -> None:
    net = saved(tmp_path, "g (float[n, 3] x) => (float[n, 3] y) { a = Relu (x) y = Add (a, x) }")
    before = net.read_bytes()
    found = campaign(tmp_path, net)
    assert found.counts == {"ort-none": {"right": len(own(tmp_path))}}
    drawn = [read_network(folder)[0] for folder in own(tmp_path)]
    assert len(drawn) >= 2
    assert len({case.key for case in drawn}) == len(drawn)
    for case in drawn:
        sizes = [size.dim_value for size in case.model.graph.input[0].type.tensor_type.shape.dim]
        assert case.inputs["x"].shape == tuple(sizes)
        assert sizes[1] == 3
    assert net.read_bytes() == before


@pytest.mark.parametrize(
    "text",
    [
        "g () => (float[2] y) <float[2] c = {1, -1}> { y = Relu (c) }",
        "g (float x) => (float y) { y = Neg (x) }",
        "g (float[2, 3] x, int64[2] i, bool b) => (float[2, 3] y, bool c) { y = Gather (x, i) c = Not (b) }",
        "g (float[n] x, float[n] z) => (float[n] y) { y = Add (x, z) }",
        "g (float[n, m] x) => (float[m, n] y) { y = Transpose (x) }",
    ],
)
def test_inputs_of_any_form(text: str, tmp_path: Path) -> None:
    found = campaign(tmp_path, saved(tmp_path, text))
    assert set(found.counts["ort-none"]) == {"right"}
    assert found.over
    assert found.exit_code == 0


def test_two_networks_are_told_apart_and_a_finding_says_which(tmp_path: Path) -> None:
    for name, made in (("wrong", compared_by_halves_of_any()), ("right", right())):
        onnx.save(made.model, tmp_path / f"{name}.onnx")
    found = campaign(tmp_path, tmp_path / "wrong.onnx", tmp_path / "right.onnx")
    (finding,) = found.findings
    assert "wrong.onnx" in finding.source
    assert found.counts["ort-none"]["right"] >= 1
    assert found.seen_in == {finding.name: found.counts["ort-none"]["suspect"]}
    assert (tmp_path / "fuzz" / PAGE).is_file()


def test_the_same_network_in_two_files_is_tried_once(tmp_path: Path) -> None:
    text = "g (float[2] x) => (float[2] y) { y = Relu (x) }"
    found = campaign(tmp_path, saved(tmp_path, text, "one.onnx"), saved(tmp_path, text, "two.onnx"))
    assert sum(found.counts["ort-none"].values()) == len(own(tmp_path))


def test_weights_beside_a_network_come_along(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(f"{HEAD}g (float[1, 64] x) => (float[1, 64] y) {{ y = Mul (x, w) }}")
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.full((1, 64), 2, np.float32), "w"))
    onnx.save(model, tmp_path / "net.onnx", save_as_external_data=True, location="weights", size_threshold=0)
    found = campaign(tmp_path, tmp_path / "net.onnx")
    assert set(found.counts["ort-none"]) == {"right"}
    assert {path.name for path in own(tmp_path)[0].iterdir()} == {"model.onnx", "inputs.npz"}


@pytest.mark.workers
def test_a_crash_of_a_persons_network_is_a_finding(tmp_path: Path) -> None:
    text = """g (float[2] x) => (float[2] y) <int32[2] least = {-2147483648, -2147483648}, int32[2] minus = {-1, -1}>
    { a = Div (least, minus) b = Cast <to = 1> (a) y = Add (x, b) }"""
    found = campaign(tmp_path, saved(tmp_path, text), systems=["ort-none"], network_seconds=20.0)
    assert found.counts["ort-none"] == {"suspect": len(own(tmp_path))}
    (finding,) = found.findings
    assert (finding.suspicion.kind, finding.suspicion.error) == ("crash", "SIGFPE")
    assert "Div" in finding.operators


def test_drawn_numbers_in_a_persons_network_are_no_finding(tmp_path: Path) -> None:
    net = saved(tmp_path, "g (float[4] x) => (float[4] y) { a = RandomNormalLike (x) y = Add (a, x) }")
    assert campaign(tmp_path, net).findings == ()


def test_a_wrong_system_can_be_corrected(tmp_path: Path) -> None:
    net = saved(tmp_path, "g (float[2] x) => (float[2] y) { y = Relu (x) }")
    with pytest.raises(UsageError, match="did you mean 'ort-none'"):
        campaign(tmp_path, net, systems=["ort-non"])
    assert campaign(tmp_path, net).over


def test_a_wrong_operator_can_be_corrected(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no operator 'Reluu'"):
        campaign(tmp_path, operators=["Reluu"], alone=1, count=0)
    assert campaign(tmp_path, operators=["Relu"], alone=1, count=0).over


def test_what_is_no_network_can_be_corrected(tmp_path: Path) -> None:
    net = saved(tmp_path, "g (float[2] x) => (float[2] y) { y = Relu (x) }")
    (tmp_path / "no.onnx").write_bytes(b"no network")
    with pytest.raises(ConrepairError, match=r"no\.onnx"):
        campaign(tmp_path, net, tmp_path / "no.onnx")
    assert campaign(tmp_path, net).over


def test_a_persons_folder_stays(tmp_path: Path) -> None:
    net = saved(tmp_path, "g (float[2] x) => (float[2] y) { y = Relu (x) }")
    (tmp_path / "fuzz").mkdir()
    (tmp_path / "fuzz" / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="isn't replaced"):
        campaign(tmp_path, net)
    assert [path.name for path in (tmp_path / "fuzz").iterdir()] == ["notes.txt"]


def test_a_persons_file_in_a_campaigns_folder_stays(tmp_path: Path) -> None:
    net = saved(tmp_path, "g (float[2] x) => (float[2] y) { y = Relu (x) }")
    campaign(tmp_path, net)
    (tmp_path / "fuzz" / "notes.txt").write_text("mine")
    assert campaign(tmp_path, net).over
    assert (tmp_path / "fuzz" / "notes.txt").read_text() == "mine"


def test_what_becomes_known_is_known_when_it_goes_on(tmp_path: Path) -> None:
    onnx.save(compared_by_halves_of_any().model, tmp_path / "wrong.onnx")
    (finding,) = campaign(tmp_path, tmp_path / "wrong.onnx").findings
    known = tmp_path / "known.json"
    known.write_text(json.dumps([{"where": "issue 7", "key": finding.key}]))
    again = campaign(tmp_path, tmp_path / "wrong.onnx", known=str(known))
    assert [item.known for item in again.findings] == ["issue 7"]
    assert again.exit_code == 0
    assert "issue 7" in (tmp_path / "fuzz" / PAGE).read_text(encoding="utf-8")
