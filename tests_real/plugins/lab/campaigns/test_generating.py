"""Networks generated into a folder: whole, the same for the same seed, continued, whatever ends a worker."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import signal
from pathlib import Path
from typing import Any

import ending_networks
import killing
import numpy as np
import onnx
import onnxruntime
import pytest

from conrepair.application.cli import main
from conrepair.application.engine import place
from conrepair.application.engine.job_table import jobs
from conrepair.ground.runtime.errors import ConrepairError, UsageError
from conrepair.ground.runtime.files.journal import Journal
from conrepair.ground.runtime.files.outputs import LIST
from conrepair.ground.runtime.files.whole import sha256_of
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair_lab.campaigns import generate_jobs, generating
from conrepair_lab.campaigns.generating import GenerationRequest
from conrepair_lab.commands.generate import tell_generated
from conrepair_lab.generate.diversity import Diversity
from conrepair_lab.generate.generated import BLOCK
from conrepair_lab.generate.wishes import Wishes

FILES = {LIST, "model.onnx", "inputs.npz", "outputs.npz", "model.json"}
ASKED = GenerationRequest(Wishes(nodes=2, operators=("Add", "Relu"), dtypes=("float32",)), count=3, seed=7)


def generate(root: Path, asked: GenerationRequest = ASKED, **changes: Any) -> dict[str, Any]:
    force = changes.pop("force", False)
    with ProgressDisplay(quiet=True) as display:
        return generating.generate(dataclasses.replace(asked, **changes), root, display, force=force)


def hashes(root: Path) -> dict[str, str]:
    return {path.name: sha256_of(path) for path in root.iterdir() if path.is_dir()}


def test_a_network_is_a_folder_that_says_what_it_computes(tmp_path: Path) -> None:
    summary = generate(tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"00000", "00001", "00002", "generated.json"}
    for folder in sorted((tmp_path / "out").glob("0*")):
        assert {path.name for path in folder.iterdir()} == FILES
        about = json.loads((folder / "model.json").read_text())
        assert (about["seed"], f"{about['index']:05}") == (7, folder.name)
        model = onnx.load(folder / "model.onnx")
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        inputs, outputs = (dict(np.load(folder / name, allow_pickle=False)) for name in ("inputs.npz", "outputs.npz"))
        found = session.run(list(outputs), inputs)
        assert all(np.allclose(a, b, atol=1e-3) for a, b in zip(found, outputs.values(), strict=True))
    assert (summary["made"], summary["left"], summary["refused"]) == (3, 0, [])
    assert summary["optimized"]["same"] == 3
    abouts = [json.loads((tmp_path / "out" / f"{index:05}" / "model.json").read_text()) for index in range(3)]
    together = Diversity(("Add", "Relu"))
    for about in abouts:
        together.add_seen(about["seen"])
        assert about["diversity"]["ancestries"] == len(about["seen"]["ancestries"])
    assert summary["diversity"] == together.measures()
    assert set(summary["operators"]) <= {"Add", "Relu"}
    assert json.loads((tmp_path / "out" / "generated.json").read_text()) == summary


def test_a_seed_gives_the_same_files_however_it_comes_to_them(tmp_path: Path) -> None:
    count = BLOCK + 2
    generate(tmp_path / "once", count=count, workers=3)
    generate(tmp_path / "more", count=2)
    for name in ("00000", "generated.json"):  # as after a run that was stopped
        path = tmp_path / "more" / name
        if path.is_dir():
            (path / "model.json").unlink()
    generate(tmp_path / "more", count=count, workers=1)
    assert hashes(tmp_path / "once") == hashes(tmp_path / "more")
    assert len(hashes(tmp_path / "once")) == count


def test_networks_that_are_there_are_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = generate(tmp_path / "out")
    monkeypatch.setattr(place, "jobs", dict)
    again = generate(tmp_path / "out")
    assert again | {"seconds": 0} == first | {"seconds": 0}


@pytest.mark.parametrize("name", ["model.json", "model.onnx"])
def test_a_network_that_is_damaged_is_made_again(name: str, tmp_path: Path) -> None:
    first = generate(tmp_path / "out")
    whole = hashes(tmp_path / "out")
    damaged = tmp_path / "out" / "00001" / name
    damaged.unlink()
    again = generate(tmp_path / "out")
    assert hashes(tmp_path / "out") == whole
    assert again | {"seconds": 0} == first | {"seconds": 0}
    damaged.unlink()
    assert generate(tmp_path / "out", seed=8, count=1, force=True)["made"] == 1
    assert [path.name for path in (tmp_path / "out").glob("0*")] == ["00000"]


def test_a_network_that_somebody_cut_off_stays(tmp_path: Path) -> None:
    generate(tmp_path / "out")
    damaged = tmp_path / "out" / "00001" / "model.json"
    damaged.write_text('{"seed": 7')
    with pytest.raises(UsageError, match=r"00001/model\.json isn't as conrepair wrote it"):
        generate(tmp_path / "out")
    assert damaged.read_text() == '{"seed": 7'


def test_networks_of_other_wishes_are_not_mixed(tmp_path: Path) -> None:
    generate(tmp_path / "out", count=1)
    with pytest.raises(UsageError, match=r"made with other options \(seed: 7, not 8\)"):
        generate(tmp_path / "out", count=1, seed=8)
    summary = generate(tmp_path / "out", count=1, seed=8, force=True)
    assert (summary["seed"], summary["made"]) == (8, 1)


def test_what_is_put_into_networks_is_left_alone(tmp_path: Path) -> None:
    generate(tmp_path / "out", count=2)
    (tmp_path / "out" / "notes.txt").write_text("mine")
    (tmp_path / "out" / "00003").mkdir()
    assert generate(tmp_path / "out", count=4, seed=8, force=True)["made"] == 4
    assert (tmp_path / "out" / "notes.txt").read_text() == "mine"
    shutil.rmtree(tmp_path / "out" / "00003")
    (tmp_path / "out" / "00003").mkdir()
    (tmp_path / "out" / "00003" / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="00003 exists and no network of this version wrote it"):
        generate(tmp_path / "out", count=4, seed=8)
    shutil.rmtree(tmp_path / "out" / "00003")
    (tmp_path / "out" / "00001" / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"00001/notes\.txt was written by no"):
        generate(tmp_path / "out", count=1, force=True)
    (tmp_path / "out" / "00001" / "notes.txt").unlink()
    (tmp_path / "out" / "00002" / "model.json").write_text("annotated")
    before = hashes(tmp_path / "out")
    with pytest.raises(UsageError, match=r"00002/model\.json isn't as conrepair wrote it"):
        generate(tmp_path / "out", count=1, force=True)
    assert hashes(tmp_path / "out") == before


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="isn't a folder of generated networks"):
        generate(tmp_path, force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_no_network_is_begun_when_time_is_up(tmp_path: Path) -> None:
    summary = generate(tmp_path / "out", count=2 * BLOCK, seconds=0.0, workers=1)
    assert summary["left"] > 0
    assert summary["made"] + summary["left"] == 2 * BLOCK
    assert not list((tmp_path / "out").glob(".*"))


def test_what_is_stopped_by_ctrl_c_goes_on(tmp_path: Path) -> None:
    words = ["generate", "-n", "150", "--nodes", "2", "--operators", "Add,Relu", "--dtypes", "float32", "-o", "out"]
    process = killing.start(tmp_path, *words, "--seed", "7", "-q")
    killing.wait_until(lambda: (tmp_path / "out" / "00000").exists(), 60)
    os.killpg(process.pid, signal.SIGINT)
    assert "interrupted; finished steps are kept and reused" in killing.finish(process)
    assert process.returncode == 130
    so_far = hashes(tmp_path / "out")
    assert all((tmp_path / "out" / name / "model.json").is_file() for name in so_far)
    assert [path.name for path in (tmp_path / "out").glob(".*")] == []
    left = json.loads((tmp_path / "out" / "generated.json").read_text())["left"]
    assert left - (150 - len(so_far)) in {0, 1}  # the signal may come between a network's place and its count
    generate(tmp_path / "out", count=150)
    generate(tmp_path / "once", count=150)
    assert hashes(tmp_path / "out") == hashes(tmp_path / "once")


def test_an_operator_that_ends_the_process_that_asks_has_no_types(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.add("Add")
    found = generate_jobs.element_types(tmp_path, 20, ("Add", "Relu"), tmp_path / "journal", "", {})
    assert found["Add"] == []
    assert {"T": "float32"} in found["Relu"]


def test_onnx_runtime_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONREPAIR_CACHE", str(tmp_path / "cache"))
    generate(tmp_path / "one", count=1)
    others = {name: job for name, job in jobs().items() if name != "element_types"}
    monkeypatch.setattr(place, "jobs", lambda: others)  # nobody to ask
    assert generate(tmp_path / "other", count=2)["made"] == 2
    monkeypatch.setenv("CONREPAIR_CACHE", "")
    with pytest.raises(ConrepairError, match="there's no job 'element_types'"):
        generate(tmp_path / "without", count=1)


@pytest.mark.workers
def test_what_ends_a_worker_costs_one_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = tmp_path / "expected"
    generate(expected, count=8)
    monkeypatch.setattr(place, "jobs", lambda: {**jobs(), "generate": "ending_networks:generate"})
    summary = generate(tmp_path / "out", count=8, timeout=3.0)
    kills, hangs, fails = ending_networks.KILLS, ending_networks.HANGS, ending_networks.FAILS
    reasons = {item["index"]: item["reason"] for item in summary["refused"]}
    assert reasons.keys() == {kills, hangs, fails}
    assert reasons[kills].startswith("SIGSEGV")
    assert reasons[hangs] == "the time limit of 3 s"
    assert reasons[fails] == "LookupError: of ours"
    (found,) = summary["optimized"]["found"]
    assert (found["index"], found["verdict"]) == (ending_networks.OPTIMIZED_KILLS, "crashed")
    assert "SIGSEGV" in found["words"]
    crashed = tmp_path / "out" / f"{ending_networks.OPTIMIZED_KILLS:05}"
    assert {path.name for path in crashed.iterdir()} == FILES
    before = {"00000", "00001"}
    assert {name: hashes(expected)[name] for name in before} == {
        name: hashes(tmp_path / "out")[name] for name in before
    }


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--operators", "Ad"], "did you mean 'And' or 'Add'?"),
        (["--operators", ""], "--operators '': there's no name in it"),
        (["--dtypes", " , "], "--dtypes ' , ': there's no name in it"),
        (["--operators", "Gelu,RMSNormalization,Add"], "opset 20 has no RMSNormalization; opset 23 has it"),
        (["--operators", "Add", "--exclude", "Add"], "all of them are excluded"),
        (["--operators", "TopK", "--single"], "none of TopK takes tensors of any type with 0 to 6 axes"),
        (["--operators", "And", "--dtypes", "float32"], "none of And takes tensors of float32"),
        (["--output", ""], "give -o FOLDER"),
        (["--ranks", "9"], "ranks 9-9: give the fewest axes and then the most, of 0 to 6"),
        (["--seed", "-1"], "-1 isn't from 0 to"),
        (["--opset", "12"], "opset 12: there are specifications of opsets 17 to 24"),
        (["--ranks", "5-3"], "ranks 5-3: give the fewest axes"),
        (["--ranks", "some"], "--ranks: 'some' isn't a number of axes"),
        (["--form", "size of zero"], "--form size of zero: write NAME=SHARE, as in 'size of zero=0.1'"),
        (["--form", "size of zero=1.5"], "form size of zero: 1.5 is no share"),
        (["--form", "size of zera=1"], "there is no form 'size of zera' here; did you mean 'size of zero'"),
        (["--pattern", "conv and batch norm"], "write NAME=SHARE, as in 'conv and batch norm=0.5'"),
        (
            ["--pattern", "conv and batch nor=1"],
            "there is no pattern 'conv and batch nor' here; did you mean 'conv and",
        ),
        (["--pattern", "conv and batch norm=-1"], "pattern conv and batch norm: -1 is no share"),
        (["--symbolic", "2"], "--symbolic: 2 isn't a share, from 0 to 1"),
        (["--extremes", "some"], "--extremes: some isn't a finite number"),
        (["--form", "size of zero=many"], "'many' is no number"),
        (["--count", "0"], "0 isn't from 1"),
        (["--to", "kears"], "--to: unknown format 'kears'; did you mean 'keras'?"),
    ],
)
def test_wrong_options_are_told(
    words: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(["generate", "-o", str(tmp_path / "out"), *words])
    except SystemExit as error:
        code = error.code
    assert code == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_command_says_what_there_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["generate", "-n", "2", "--nodes", "2", "--operators", "Add,Relu", "--dtypes", "float32"]
    command += ["-o", str(tmp_path / "out"), "-q"]
    assert main(command) == 0
    first, second, third, last = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{tmp_path / 'out'}: 2 networks with 4 nodes of ")
    assert second == "  ONNX Runtime with its optimizations: same outputs for 2"
    assert re.fullmatch(
        r"  diversity: [12] of 2 operators, [\d.]+ % of their pairs, [\d.]+ % of their settings; "
        r"[\d.]+ % of nodes with an ancestry of their own; [\d.]+ % of sizes are 1",
        third,
    )
    assert last.startswith("next: `conrepair inspect ")
    assert main([*command, "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["made"] == 2


def test_what_was_named_and_has_no_room_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ways = ["--pattern", "attention of BERT=1", "--form", "dead branch=0", "--form", "rank six=1", "--ranks", "1-2"]
    command = ["generate", "-n", "1", "--nodes", "3", "--operators", "Add,Relu", "--dtypes", "float32", *ways, "-q"]
    assert main([*command, "-o", str(tmp_path / "out")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{tmp_path / 'out'}: 1 network with 3 nodes of ")
    need = "they need more nodes, or other operators, types or ranks"
    assert [line for line in lines if "no network has" in line] == [
        f"  forms that no network has: rank six; {need}",
        f"  patterns that no network has: attention of BERT; {need}",
    ]


def test_findings_and_refusals_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summary = generate(tmp_path / "out")
    found = [
        {"index": 1, "verdict": "differs", "output": "t3", "largest": 0.5, "elements": 2},
        {"index": 2, "verdict": "crashed", "words": "SIGSEGV: the worker process died"},
    ]
    optimized = {"same": 1, "differs": 1, "fails": 0, "crashed": 1, "timeout": 0, "found": found}
    refused = [{"index": 4, "reason": "why"}, {"index": 9, "reason": "why"}]
    code = tell_generated(summary | {"count": 6, "optimized": optimized, "refused": refused, "left": 1}, tmp_path)
    assert code == 1
    lines = [line for line in capsys.readouterr().out.splitlines() if "diversity" not in line]
    assert lines[1:6] == [
        "  ONNX Runtime with its optimizations: same outputs for 1, other outputs for 1, crashed on 1",
        "    00001 differs: 2 elements of `t3`, by up to 0.5",
        "    00002 crashed: SIGSEGV: the worker process died",
        "  2 networks not made (00004, 00009): why",
        "  1 network not started: the time was up; the same command continues",
    ]


def test_networks_are_converted_and_the_results_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    wishes = Wishes(nodes=1, operators=("Relu", "Hardmax"), dtypes=("float32",), ranks=(2, 3))
    asked = GenerationRequest(wishes, count=4, seed=1, formats=("torch",))
    summary = generate(tmp_path, asked)
    told = summary["conversions"]["torch"]
    assert (told["differs"], told["same"] + told["failed"]) == ([], 4)
    assert told["same"]
    assert told["failed"]
    assert all("Hardmax" in reason for reason in told["reasons"])
    converted = [path.parent.name for path in tmp_path.glob("*/model.pt2")]
    assert len(converted) == told["same"]
    said = json.loads((tmp_path / converted[0] / "conversions.json").read_text())
    assert said == {"torch": {"route": "onnx2torch", "file": "model.pt2", "verdict": "same"}}
    again = generate(tmp_path, asked)
    assert again | {"seconds": 0} == summary | {"seconds": 0}
    tell_generated(summary, tmp_path)
    assert (
        f"converted to torch: same outputs for {told['same']}, other outputs for 0, failed on {told['failed']}"
        in capsys.readouterr().out
    )


def test_a_configuration_asks_for_networks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    section: dict[str, Any] = {"count": 2, "nodes": 2, "seed": 7, "operators": ["Add", "Relu"], "dtypes": ["float32"]}
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"output": "out", "generate": section}))
    assert main(["config", "check", str(file)]) == 0
    assert "models: 0 of 0, a section `generate`" in capsys.readouterr().out
    assert main(["run", str(file), "-q"]) == 0
    assert hashes(tmp_path / "out" / "networks") == hashes_of(tmp_path / "own", 2)
    file.write_text(json.dumps({"generate": section | {"operators": ["Ad"]}}))
    for verb in (["config", "check"], ["run"]):
        assert main([*verb, str(file)]) == 2
        assert "$.generate: there is no operator 'Ad' here; did you mean 'And' or 'Add'?" in capsys.readouterr().err
    assert not (tmp_path / "generated").exists()


def test_options_and_the_configuration_have_all_that_networks_can_be(tmp_path: Path) -> None:
    command = ["generate", "-n", "1", "--nodes", "3", "--operators", "Relu", "--dtypes", "float32", "-q"]
    ways = [
        "--single",
        "--symbolic",
        "1",
        "--extremes",
        "0.5",
        "--woven",
        "0",
        "--pattern",
        "conv and activation=0.5",
    ]
    assert main([*command, *ways, "-o", str(tmp_path / "command")]) == 0
    section = {
        "count": 1, "nodes": 3, "operators": ["Relu"], "dtypes": ["float32"], "single": True, "symbolic": 1,
        "extremes": 0.5, "woven": 0, "patterns": {"conv and activation": 0.5},
    }  # fmt: skip
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"output": "out", "generate": section}))
    assert main(["run", str(file), "-q"]) == 0
    assert hashes(tmp_path / "command") == hashes(tmp_path / "out" / "networks")
    summary = json.loads((tmp_path / "command" / "generated.json").read_text())
    wishes = Wishes(
        nodes=3, operators=("Relu",), dtypes=("float32",), single=True, symbolic=1.0, extremes=0.5, woven=0.0,
        patterns={"conv and activation": 0.5},
    )  # fmt: skip
    assert summary["wishes"] == json.loads(json.dumps(dataclasses.asdict(wishes)))
    section["backward"] = 1
    file.write_text(json.dumps({"output": "other", "generate": section}))
    assert main(["run", str(file), "-q"]) == 0
    assert json.loads((tmp_path / "other" / "networks" / "generated.json").read_text())["wishes"]["backward"] == 1


def hashes_of(root: Path, count: int) -> dict[str, str]:
    generate(root, count=count)
    return hashes(root)


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ({"ranks": [2, 9]}, "$.generate.ranks[1]: "),
        ({"folder": "audit"}, "'audit' is a folder of something else"),
        ({"folder": "store/x"}, "'store' is a folder of something else"),
        ({"to": ["kears"]}, "did you mean 'keras'?"),
        ({"coun": 3}, "unknown key 'coun'; did you mean 'count'?"),
        ({"symbolic": 1.5}, "$.generate.symbolic: "),
        ({"patterns": {"conv": 1}}, "$.generate: there is no pattern 'conv' here"),
        ({"forms": {"size of zero": 2}}, "$.generate.forms.size of zero: "),
    ],
)
def test_what_is_wrong_in_a_configuration_is_told(
    section: dict[str, Any], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"generate": section}))
    assert main(["config", "check", str(file)]) == 2
    assert told in capsys.readouterr().err
