"""Campaigns over real networks: found, continued, tried again."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import numpy as np
import onnx
import pytest
from fuzz_cases import compared_by_halves_of_any, right
from hypothesis import given
from hypothesis import strategies as st
from stand_in import StandIn, leave_all, max_is_min, registered

from benchmarks.common.here_lane import HereLane
from conrepair.application.cli.main import main
from conrepair.ground.data.tensors import opened_arrays
from conrepair.ground.intake.data import write_arrays
from conrepair.ground.runtime.errors import UsageError
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair_lab.campaigns.fuzz_database import DATABASE
from conrepair_lab.campaigns.fuzz_jobs import case_for
from conrepair_lab.campaigns.fuzz_networks import FuzzNetwork, dealt, parts
from conrepair_lab.campaigns.rechecking import recheck
from conrepair_lab.generate.generated import INPUTS, MODEL
from conrepair_lab.options.fuzz import Fuzz
from conrepair_lab.report.fuzz.folder import findings_page, read_finding
from conrepair_lab.report.fuzz.summary import Summary
from conrepair_lab.report.schema import FINDING_DOCUMENT, FINDINGS_DOCUMENT
from conrepair_lab.systems.registry import entry

SPECIAL = "--special", "--systems"


@pytest.fixture(scope="module", autouse=True)
def systems() -> Iterator[None]:
    """One whose Max is wrong, and one that's right."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("conrepair.ground.runtime.processes.workers.Lane", HereLane)  # for what's made once, too
        registered(monkeypatch, StandIn(max_is_min, passes=[leave_all], name="wrong"))
        registered(monkeypatch, StandIn(passes=[leave_all], name="right"))
        yield


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign over two networks of a person, one of which a system gets wrong."""
    room = tmp_path_factory.mktemp("room")
    for name, case in (("wrong", compared_by_halves_of_any()), ("right", right())):
        onnx.save(case.model, room / f"{name}.onnx")
    files = [str(room / "wrong.onnx"), str(room / "right.onnx")]
    assert main(["fuzz", *files, *SPECIAL, "wrong-none,wrong-all", "-o", str(room / "out"), "-q"]) == 1
    return room


def found_in(folder: Path) -> dict[str, str]:
    return {path.parent.name: path.read_text() for path in sorted(folder.rglob("finding.json"))}


def test_a_finding_is_a_folder_with_a_program_that_shows_it(own: Path) -> None:
    (folder,) = (own / "out" / "findings").iterdir()
    finding = read_finding(folder)
    assert (finding.operators, finding.cause.plainly) == (("Max",), True)
    jsonschema.validate(json.loads((folder / "finding.json").read_text()), FINDING_DOCUMENT.schema)
    jsonschema.validate(json.loads((own / "out" / "findings.json").read_text()), FINDINGS_DOCUMENT.schema)
    shown = subprocess.run([sys.executable, folder / "reproduce.py"], capture_output=True, text=True, cwd=own)
    assert shown.returncode == 1, shown.stderr
    assert "right is 1, with a rounding error" in shown.stdout
    assert str(own) not in (folder / "finding.json").read_text().replace(finding.source, "")
    page = (own / "out" / "findings.html").read_text()
    assert finding.name in page
    assert "<script" not in page


def test_a_program_ends_with_0_where_it_is_not_so(own: Path, tmp_path: Path) -> None:
    (folder,) = (own / "out" / "findings").iterdir()
    text = (folder / "reproduce.py").read_text()
    before, _, after = text.partition("name, index, exact, allowed = ")
    given = read_finding(folder).suspicion
    mended = tmp_path / "mended.py"
    face = f"{given.output!r}, {given.index}, {given.given}, 0.0"
    mended.write_text(f"{before}name, index, exact, allowed = {face}\n{after.partition(chr(10))[2]}")
    shown = subprocess.run([sys.executable, mended], capture_output=True, cwd=tmp_path)
    assert shown.returncode == 0


def test_the_same_command_tries_nothing_again(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, files = found_in(own / "out"), [str(own / "wrong.onnx"), str(own / "right.onnx")]
    assert (
        main(
            [
                "fuzz",
                *files,
                "--special",
                "--systems",
                "wrong-none,wrong-all",
                "-o",
                str(own / "out"),
                "-q",
                "-f",
                "json",
            ]
        )
        == 1
    )
    told = json.loads(capsys.readouterr().out)
    assert found_in(own / "out") == before
    assert told["counts"]["wrong-none"]["suspect"] == 1
    assert told["over"]


def test_others_of_a_folder_are_told_apart(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fuzz", str(own / "wrong.onnx"), *SPECIAL, "wrong-none", "-o", str(own / "out"), "-q"]) == 2
    assert "another campaign" in capsys.readouterr().err


def test_what_is_known_ends_nothing(own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = tmp_path / "known.json"
    known.write_text(
        json.dumps([{"where": "an address", "system": "wrong", "kind": "numbers", "operators": ["Max"]}])
    )
    words = ["fuzz", str(own / "wrong.onnx"), *SPECIAL, "wrong-none", "--known", str(known), "-q"]
    assert main([*words, "-o", str(tmp_path / "out")]) == 0
    assert "1 known" in capsys.readouterr().out
    known.write_text('[{"system": "wrong"}]')
    assert main([*words, "-o", str(tmp_path / "other")]) == 2
    assert "is no baseline" in capsys.readouterr().err


def test_findings_are_tried_again_as_data(own: Path, tmp_path: Path) -> None:
    (folder,) = (own / "out" / "findings").iterdir()
    gone = tmp_path / "findings" / folder.name
    gone.mkdir(parents=True)
    for path in folder.iterdir():
        if path.is_file():
            (gone / path.name).write_bytes(path.read_bytes())
    told = json.loads((gone / "finding.json").read_text())
    (gone / "finding.json").write_text(json.dumps(told | {"system": "right", "setting": "all"}))
    (gone / "reproduce.py").write_text("raise SystemExit('never run')")
    with ProgressDisplay(quiet=True) as display:
        there = recheck(own / "out", tmp_path, display, workers=1, seconds=30)
        elsewhere = recheck(tmp_path / "findings", tmp_path, display, workers=1, seconds=30)
        with pytest.raises(UsageError, match="holds no finding"):
            recheck(own / "wrong.onnx", tmp_path, display, workers=1, seconds=30)
    assert [item.verdict for item in there] == ["there"]
    assert [item.verdict for item in elsewhere] == ["gone"]


def test_a_configurations_section(own: Path, tmp_path: Path) -> None:
    section = {"models": [str(own / "right.onnx")], "systems": ["wrong-none"]}
    (tmp_path / "campaign.json").write_text(json.dumps({"fuzz": section}))
    assert main(["fuzz", str(tmp_path / "campaign.json"), "-q"]) == 0
    assert (tmp_path / "generated" / "fuzz" / DATABASE).is_file()


def test_generated_networks_are_dealt_by_what_systems_cost() -> None:
    networks = [FuzzNetwork(str(place), place, Path(), place < 40, "") for place in range(100)]
    shares = dealt(Fuzz(systems=["ort-all", "tvm-O3", "torch-compile"]), networks)
    assert [len(share) for share in shares.values()] == [100, 8 + 3, 2]
    only = dealt(Fuzz(systems=["torch-compile"]), networks)
    assert len(only["torch-compile"]) == 100


def test_ones_own_inputs_are_fed(own: Path, tmp_path: Path) -> None:
    given = np.arange(8, dtype=np.float32)
    np.savez(tmp_path / "given.npz", x=given)
    asked = [
        "fuzz",
        str(own / "wrong.onnx"),
        "--data",
        str(tmp_path / "given.npz"),
        "--special",
        "--systems",
        "wrong-none",
        "-q",
    ]
    assert main([*asked, "-o", str(tmp_path / "out")]) == 1
    fed = [opened_arrays(path)["x"] for path in sorted((tmp_path / "out" / "own").glob("*/inputs.npz"))]
    assert np.concatenate(fed).tolist() == given.tolist()[: 4 * len(fed)]
    (finding,) = map(read_finding, (tmp_path / "out" / "findings").iterdir())
    assert finding.source.startswith("wrong.onnx, inputs ")
    assert finding.source.endswith("of the data")
    assert main(["fuzz", "--data", str(tmp_path / "given.npz"), "-o", str(tmp_path / "none"), "-q"]) == 2


def test_the_page_of_a_campaign_that_goes_on_loads_itself_anew() -> None:
    summary = Summary((), {"ort-all": {"right": 3, "alike": 1}}, {"ort-all": 1.0}, {}, {}, {}, 0, over=False)
    assert 'http-equiv="refresh"' in findings_page(summary, live=True)
    page = findings_page(summary)
    assert "refresh" not in page
    assert "The time was up" in page


def test_drawn_options_are_part_of_a_case(own: Path, tmp_path: Path) -> None:
    folder = tmp_path / "network"
    folder.mkdir()
    made = right()
    (folder / MODEL).write_bytes(made.network)
    write_arrays(folder / INPUTS, dict(made.inputs))
    always, _ = case_for(folder, entry("wrong-all"), 1.0)
    assert always.options["wrong"]["without"]
    assert case_for(folder, entry("wrong-all"), 1.0)[0].key == always.key
    assert case_for(folder, entry("wrong-all"), 0.0)[0].options == {}
    assert case_for(folder, entry("wrong-none"), 1.0)[0].options == {}


def test_functions_of_ones_own_filter_findings(own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.py").write_text("def no_max(finding):\n    return 'Max' not in finding.operators\n")
    asked = [
        "fuzz",
        str(own / "wrong.onnx"),
        "--special",
        "--systems",
        "wrong-none",
        "--function",
        f"{tmp_path}/mine.py:no_max",
    ]
    assert main([*asked, "-o", str(tmp_path / "out"), "-q"]) == 3
    assert "not run, as functions are programs" in capsys.readouterr().err
    assert main([*asked, "--trust", "-o", str(tmp_path / "out"), "-q"]) == 0
    assert "1 suspicion left out by your own functions" in capsys.readouterr().out
    made = ["generate", "-n", "1", "--function", f"{tmp_path}/mine.py:no_max", "--trust", "-o", str(tmp_path / "x")]
    assert main([*made, "-q"]) == 2
    assert "filters findings, which only `conrepair fuzz` has" in capsys.readouterr().err


@given(count=st.integers(0, 3000))
def test_rounds_are_all_networks_each_once_and_grow(count: int) -> None:
    found = list(parts(count, 400))
    assert [place for begin, upto in found for place in range(begin, upto)] == list(range(count))
    sizes = [upto - begin for begin, upto in found][:-1]
    assert sizes == sorted(sizes)
    assert not sizes or sizes[0] == 100
