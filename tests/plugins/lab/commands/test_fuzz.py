"""`conrepair fuzz` at the command line: exit codes, configurations, wrong names, and findings tried again."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import onnx
import pytest
from fuzz_cases import compared_by_halves, compared_by_halves_of_any, right
from fuzz_findings import comparing, finding_of, written_finding

from conrepair.application.cli.main import main
from conrepair.ground.runtime.errors import ExitCode
from conrepair_lab.campaigns.fuzz_database import DATABASE

FAST = "-j 1 --reduce 5 -q"


@pytest.fixture
def nets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, made in (("wrong", compared_by_halves_of_any()), ("right", right())):
        onnx.save(made.model, f"{name}.onnx")
    return tmp_path


def test_a_right_network_ends_with_0_and_a_wrong_one_with_1(nets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(f"fuzz right.onnx --systems ort-none,ort-all -o one {FAST}".split()) == 0
    told = capsys.readouterr().out
    assert "0 new findings" in told
    assert "ort-all: " in told
    assert main(f"fuzz wrong.onnx right.onnx --systems ort-none -o two {FAST}".split()) == 1
    told = capsys.readouterr().out
    assert "ort-none: wrong numbers for " in told
    assert "should be" in told
    assert {"findings", "findings.json", "findings.html", DATABASE} <= {path.name for path in Path("two").iterdir()}
    (folder,) = (nets / "two" / "findings").iterdir()
    assert (folder / "reproduce.py").is_file()


def test_json_is_what_the_folder_has(nets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(f"fuzz wrong.onnx --systems ort-none -f json {FAST}".split()) == 1
    told = json.loads(capsys.readouterr().out)
    saved = json.loads(Path("fuzz/findings.json").read_text(encoding="utf-8"))
    assert saved == {"schema_version": 1, **told}
    assert told["findings"][0]["operators"]


def test_findings_are_put_into_a_baseline_and_known_from_then_on(
    nets: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("known.json").write_text('[{"where": "issue 7", "system": "tvm"}]', encoding="utf-8")
    words = f"fuzz wrong.onnx --systems ort-none --baseline known.json {FAST}"
    assert main([*words.split(), "--update-baseline"]) == 0
    first, added = json.loads(Path("known.json").read_text(encoding="utf-8"))
    assert first == {"where": "issue 7", "system": "tvm"}
    (finding,) = json.loads(Path("fuzz/findings.json").read_text(encoding="utf-8"))["findings"]
    assert (added["key"], added["system"]) == (finding["key"], "ort-none")
    capsys.readouterr()
    assert main([*words.split(), "-o", "again"]) == 0
    assert "and 1 known" in capsys.readouterr().out
    assert main(f"fuzz wrong.onnx --systems ort-none --update-baseline {FAST}".split()) == 2
    assert "--baseline FILE: name it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("right.onnx --systems ort-nine", "did you mean 'ort-none'"),
        ("right.onnx --systems tensorrt", "there is no system called 'tensorrt'"),
        ("right.onnx --known missing.json", "is no baseline"),
        ("--recheck right.onnx", "holds no finding"),
        ("missing.json", "missing.json"),
    ],
)
def test_a_wrong_word_ends_with_2_and_says_what_is_meant(
    words: str, said: str, nets: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fuzz", *words.split(), *FAST.split()]) == 2
    assert said in capsys.readouterr().err
    assert not Path("fuzz/findings.json").exists()


def test_a_network_that_is_not_there_is_named(nets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(f"fuzz missing.onnx --systems ort-none {FAST}".split()) == ExitCode.MODEL_LOAD
    assert "missing.onnx: no such model file" in capsys.readouterr().err


@pytest.mark.parametrize("words", ["--count -1", "--alone x", "--seconds -1", "-j 0", "--each 0", "--no-such-option"])
def test_a_wrong_option_ends_with_2(words: str, nets: Path) -> None:
    code: object = None
    with contextlib.suppress(SystemExit):
        code = main(["fuzz", "missing.onnx", *words.split()])
    assert code in {None, 2}, "the option was taken"


def test_a_wrong_systems_name_can_be_corrected(nets: Path) -> None:
    assert main(f"fuzz right.onnx --systems ort-nine {FAST}".split()) == 2
    assert main(f"fuzz right.onnx --systems ort-none {FAST}".split()) == 0


def test_another_campaigns_folder_is_refused_and_stays(nets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(f"fuzz right.onnx --systems ort-none {FAST}".split()) == 0
    before = Path("fuzz/findings.json").read_bytes()
    for other in ("right.onnx --systems ort-all", "wrong.onnx --systems ort-none", "right.onnx --systems ort-none --seed 3"):  # fmt: skip  # noqa: E501
        assert main(f"fuzz {other} {FAST}".split()) == 2
        assert "another campaign" in capsys.readouterr().err
    assert Path("fuzz/findings.json").read_bytes() == before
    assert main(f"fuzz right.onnx --systems ort-none {FAST}".split()) == 0


def configured(told: dict[str, Any]) -> Path:
    path = Path("sub/campaign.json")
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(told), encoding="utf-8")
    return path


def test_a_configuration_starts_from_its_own_folder(nets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    section = {"models": ["../wrong.onnx"], "systems": ["ort-none"], "folder": "found", "reduction_seconds": 5}
    path = configured({"output": "out", "limits": {"workers": 1}, "fuzz": section})
    assert main(["fuzz", str(path), "-q"]) == 1
    assert (nets / "sub" / "out" / "found" / "findings.html").is_file()
    (finding,) = json.loads((nets / "sub" / "out" / "found" / "findings.json").read_text())["findings"]
    known = nets / "sub" / "known.json"
    known.write_text(json.dumps([{"where": "issue 7", "key": finding["key"]}]), encoding="utf-8")
    configured({"output": "out", "limits": {"workers": 1}, "fuzz": section | {"known": "known.json"}})
    assert main(["fuzz", str(path), "-q"]) == 0
    assert "1 known" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"models": [{"name": "net", "path": "../right.onnx"}]}, "no section `fuzz`"),
        ({"fuzz": {"system": ["ort-none"]}}, "systems"),
        ({"fuzz": {"count": -1}}, "count"),
        ({"fuzz": {"models": ["../right.onnx"], "systems": ["ort-nine"]}}, "did you mean 'ort-none'"),
        ({"fuzz": {"network_seconds": 0}}, "network_seconds"),
    ],
)
def test_a_wrong_configuration_ends_with_2(
    told: dict[str, Any], said: str, nets: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fuzz", str(configured(told)), "-q"]) == 2
    assert said in capsys.readouterr().err


def test_findings_are_tried_again(nets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    there = written_finding(comparing(nets), compared_by_halves(), nets)
    assert main(["fuzz", "--recheck", "findings", "-j", "1", "-q"]) == 1
    assert f"still there: {there.name}: numbers: y" in capsys.readouterr().out
    gone = finding_of(right(), "ort-none", nets, suspicion=comparing(nets).suspicion)
    (nets / "others").mkdir()
    where = written_finding(gone, right(), nets / "others")
    assert main(["fuzz", "--recheck", str(where), "-j", "1", "-q"]) == 0
    assert f"gone: {gone.name}: right" in capsys.readouterr().out
    assert main(["fuzz", "--recheck", str(nets), "-j", "1", "-q", "-f", "json"]) == 1
    assert sorted(item["verdict"] for item in json.loads(capsys.readouterr().out)) == ["gone", "there"]


def test_a_damaged_finding_is_a_problem_with_data(nets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = written_finding(comparing(nets), compared_by_halves(), nets)
    (where / "finding.json").write_text("{}", encoding="utf-8")
    assert main(["fuzz", "--recheck", str(where), "-j", "1", "-q"]) not in {0, 1}
    assert "is no finding" in capsys.readouterr().err


def test_help_names_systems_and_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["fuzz", "--help"])
    assert ended.value.code == 0
    told = capsys.readouterr().out
    for words in ("--systems", "--recheck", "conrepair fuzz campaign.json", "ort-all"):
        assert words in told
