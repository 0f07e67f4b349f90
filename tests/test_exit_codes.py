"""Every exit code other than 0 has its sentence on the console, in every verb."""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from legacy_configs import minimal, model
from onnx import TensorProto, helper
from PIL import Image
from two_files import save_pair

from conrepair.application.cli.commands import doctor
from conrepair.application.cli.commands import execute as execute_command
from conrepair.application.cli.main import command_line, main
from conrepair.application.report.result import Row
from conrepair.application.report.results import Executed
from conrepair.verdicts.evaluate.verdict import Verdict

DAMAGED = "can't be loaded"
STOPS = "invalid indice found"  # ONNX Runtime's words for an index out of bounds
DRAWN = {"dataset": {"synthetic": {"samples": 2}}}
NETS = {"source": "source.onnx", "target": "target.onnx", "damaged": "damaged.onnx", "failing": "failing.onnx"}

GENERATE = "generate -o out --nodes 1 --workers 1 --trust"

# (verb, exit code): the command, and what it must say.
CASES: dict[tuple[str, int], tuple[str, str]] = {
    ("compare", 1): ("compare source.onnx target.onnx", "faulty.*relative error"),
    ("compare", 2): ("compare source.onnx target.onnx --data gone.npz", "no such data file"),
    ("compare", 3): ("compare source.onnx damaged.onnx", DAMAGED),
    ("compare", 4): ("compare failing.onnx failing.onnx", STOPS),
    ("localize", 1): ("localize source.onnx target.onnx", "adds an error of"),
    ("localize", 2): ("localize source.onnx target.onnx --data gone.npz", "no such data file"),
    ("localize", 3): ("localize source.onnx damaged.onnx", DAMAGED),
    ("localize", 4): ("localize failing.onnx failing.onnx", STOPS),
    ("repair", 1): ("repair source.onnx target.onnx --seconds 0 -o out", "not repaired|no time|time"),
    ("repair", 2): ("repair source.onnx target.onnx --data gone.npz -o out", "no such data file"),
    ("repair", 3): ("repair source.onnx damaged.onnx -o out", DAMAGED),
    ("repair", 4): ("repair failing.onnx failing.onnx -o out", STOPS),
    ("convert", 1): (
        "convert random.onnx --to onnx --via onnx-normalise -o out.onnx --samples 2",
        "can't be told apart",
    ),
    ("convert", 2): ("convert source.onnx --to onxx -o out.onnx", "unknown format 'onxx'"),
    ("convert", 3): ("convert damaged.onnx --to torch -o out.pt2", DAMAGED),
    ("convert", 4): ("convert random.onnx --to torch -o out.pt2 --no-repair", "onnx2torch: .*RandomNormalLike"),
    ("inspect", 2): ("inspect source.onnx --input x=", "give a shape"),
    ("inspect", 3): ("inspect damaged.onnx", DAMAGED),
    ("inputs", 2): ("inputs source.onnx -o inputs.txt", "inputs are written as .npz"),
    ("inputs", 3): ("inputs damaged.onnx -o inputs.npz", DAMAGED),
    ("execute", 1): ("execute source.onnx --backend tvm --samples 2", "faulty: relative error 0.5"),
    ("execute", 2): ("execute source.onnx --debug", "--debug keeps the results of kernels"),
    ("execute", 3): ("execute damaged.onnx", DAMAGED),
    ("execute", 4): ("execute failing.onnx --backend tvm --samples 2", f"its original, didn.t run: .*{STOPS}"),
    ("build", 2): ("build source.onnx --target 6502 -o out", "6502"),
    ("build", 3): ("build damaged.onnx -o out", DAMAGED),
    ("build", 4): ("build random.onnx -o out", "RandomNormalLike"),
    ("run", 1): ("run target.json", "faulty"),
    ("run", 2): ("run gone.json", "no such configuration file"),
    ("run", 3): ("run damaged.json", DAMAGED),
    ("run", 4): ("run failing.json", STOPS),
    ("report", 1): ("report saved-1", "faulty.*relative error"),
    ("report", 2): ("report photos", "result.json"),
    ("report", 3): ("report saved-3", DAMAGED),
    ("report", 4): ("report saved-4", STOPS),
    ("architectures", 2): ("architectures --family keras --names Gone", "Gone"),
    ("config", 1): ("config check older.json", "refused: "),
    ("config", 2): ("config check gone.json", "no such configuration file"),
    ("generate", 1): (f"{GENERATE} --count 2 --function picky.py:few", "1 of 2 networks"),
    ("generate", 2): ("generate -o out --operators Gone", "there is no operator 'Gone'"),
    ("generate", 4): (f"{GENERATE} --count 1 --function picky.py:none", "doesn't keep it"),
    ("trace", 1): ("trace elu.onnx --setting ort-all --against exact --evaluations 60", "wrong: ort-all is"),
    ("trace", 2): ("trace source.onnx --setting tvm-O33", "did you mean 'tvm-O3'"),
    ("trace", 3): ("trace damaged.onnx", DAMAGED),
    ("trace", 4): ("trace failing.onnx --setting ort-all", STOPS),
    ("fuzz", 1): ("fuzz max.onnx --systems ort-none", "ort-none: wrong numbers for Max"),
    ("fuzz", 2): ("fuzz --systems ort-al", "did you mean 'ort-all'"),
    ("fuzz", 3): ("fuzz damaged.onnx --systems ort-none", DAMAGED),
    ("fuzz", 4): ("fuzz --recheck found", "can't tell: .*there is no CUDA device"),
    ("accuracy", 1): ("accuracy ort-all --operator Elu", "Elu"),
    ("accuracy", 2): ("accuracy ort-all --operator Eluu", "did you mean 'Elu'"),
    ("accuracy", 4): ("accuracy tvm-O0 --operator Celu", "no system runs any of these operators"),
    ("doctor", 1): ("doctor", "onnx.*fails"),
    ("environments", 2): ("environments make gone", "gone"),
    ("cache", 2): ("cache limit", "limit"),
    ("converters", 2): ("converters now", "now"),
    ("completion", 2): ("completion cmd", "cmd"),
}
NEVER = {  # what a verb doesn't end with
    "inspect": {1, 4},
    "inputs": {1, 4},
    "build": {1},
    "config": {3, 4},
    "generate": {3},
    "accuracy": {3},
    "doctor": {2, 3, 4},
    **{verb: {1, 3, 4} for verb in ("converters", "completion", "cache", "environments")},
}
SLOW = {("generate", 1), ("generate", 4), ("build", 4), ("convert", 4), ("execute", 1), ("repair", 1)}
SAME_AS_RUN = {"architectures"}
"""An audit of theirs is run and told as that of `run`; what only they do is refused before."""


def test_every_verb_and_exit_code_has_a_case() -> None:
    (verbs,) = (item for item in command_line()._actions if isinstance(item, argparse._SubParsersAction))
    for verb in verbs.choices:
        known = {code for name, code in CASES if name == verb}
        wanted = {1, 2, 3, 4} - NEVER.get(verb, set())
        assert known == wanted if verb not in SAME_AS_RUN else known <= wanted, verb
    assert {name for name, _ in CASES} == set(verbs.choices)


def _cases() -> list[Any]:
    return [
        pytest.param(*case, marks=[pytest.mark.slow] if case in SLOW else [], id="-".join(map(str, case)))
        for case in CASES
    ]


@pytest.mark.parametrize(("verb", "code"), _cases())
def test_a_sentence_says_why(
    verb: str, code: int, room: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    line, words = CASES[verb, code]
    PREPARED.get((verb, code), lambda *_: None)(room, monkeypatch)
    capsys.readouterr()
    assert _ended(line.split()) == code
    printed = capsys.readouterr()
    told = " ".join(f"{printed.out} {printed.err}".split())
    assert "Traceback" not in told
    assert re.search(words, told), told


def _ended(words: list[str]) -> int:
    try:
        return main([*words, "-q"])
    except SystemExit as error:  # argparse's
        return int(error.code or 0)


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with networks that are right, differ, are damaged, random, or fail on what is drawn."""
    monkeypatch.chdir(tmp_path)
    save_pair(tmp_path)
    whole = (tmp_path / "source.onnx").read_bytes()
    (tmp_path / "damaged.onnx").write_bytes(whole[: len(whole) // 2])
    _save(
        "failing.onnx",
        [
            helper.make_node("Add", ["i", "beyond"], ["j"]),
            helper.make_node("ScatterND", ["x", "j", "u"], ["y"]),
        ],
    )
    noise = [helper.make_node("RandomNormalLike", ["x"], ["r"]), helper.make_node("Add", ["x", "r"], ["y"])]
    _save("random.onnx", noise)
    _save("elu.onnx", [helper.make_node("Elu", ["x"], ["y"])])
    _save(  # ONNX Runtime compares 32 bits of these
        "max.onnx",
        [
            helper.make_node("Cast", ["x"], ["whole"], to=TensorProto.INT64),
            helper.make_node("Constant", [], ["large"], value_int=1 << 31),
            helper.make_node("Max", ["whole", "large"], ["most"]),
            helper.make_node("Cast", ["most"], ["y"], to=TensorProto.FLOAT),
        ],
    )
    for name in ("target", "damaged", "failing"):
        other = {"name": "other", "path": NETS[name]} | ({"compare_with": "net"} if name == "target" else {})
        models = [{"name": "net", "path": "source.onnx"}, other]
        (tmp_path / f"{name}.json").write_text(json.dumps({"models": models} | DRAWN))
    (tmp_path / "picky.py").write_text(
        "seen = []\n\n\ndef few(network):\n    seen.append(network)\n    return len(seen) < 2\n\n\n"
        "def none(network):\n    return False\n"
    )
    (tmp_path / "photos").mkdir()
    return tmp_path


def _save(name: str, nodes: list[onnx.NodeProto]) -> None:
    fed = {"x": [4], "i": [3, 1], "u": [3]} if len(nodes) > 1 and nodes[0].op_type == "Add" else {"x": [4]}
    inputs = [
        helper.make_tensor_value_info(key, TensorProto.INT64 if key == "i" else TensorProto.FLOAT, shape)
        for key, shape in fed.items()
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])]
    beyond = [helper.make_tensor("beyond", TensorProto.INT64, [1], [100])] if "i" in fed else []
    graph = helper.make_graph(nodes, "net", inputs, outputs, beyond)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), name)


def _saved(target: str, source: str = "source.onnx") -> Callable[[Path, pytest.MonkeyPatch], None]:
    def prepare(room: Path, _: pytest.MonkeyPatch) -> None:
        main(["compare", source, target, "-q", "-o", "made"])
        (folder,) = (room / "made").iterdir()
        code = {"target.onnx": 1, "damaged.onnx": 3, "failing.onnx": 4}[target]
        folder.rename(room / f"saved-{code}")

    return prepare


def _found_elsewhere(_: Path, __: pytest.MonkeyPatch) -> None:
    """A finding of a system that isn't here."""
    main(["fuzz", "max.onnx", "--systems", "ort-none", "-o", "found", "-q"])
    (file,) = Path("found").rglob("finding.json")
    file.write_text(file.read_text().replace('"setting": "none"', '"setting": "cuda"'))


def _older(room: Path, _: pytest.MonkeyPatch) -> None:
    for name, other in (("net.onnx", "source.onnx"), ("other.onnx", "target.onnx")):
        (room / name).write_bytes((room / other).read_bytes())
    Image.fromarray(np.zeros((9, 6, 3), np.uint8)).save(room / "photos" / "black.png")
    data = {"datasets": [{"dataset_path_relative": "/photos"}], "selected_dataset": 0}
    value = minimal(**data) | {"models": [model(model="f(x)", dll_libraries=[], export_dlls=False)]}
    (room / "older.json").write_text(json.dumps(value))


def _wrong_compiler(_: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a compiler made that computes something else: TVM here is right."""
    real = execute_command.execute_model

    def execute(*arguments: Any, **options: Any) -> Executed:
        done = real(*arguments, **options)
        row: Row = dataclasses.replace(done.row, verdict=Verdict.FAULTY, reason="relative error 0.5")
        return dataclasses.replace(done, run=done.run.with_row(row))

    monkeypatch.setattr(execute_command, "execute_model", execute)


def _broken_library(_: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = doctor.DoctorLine("onnx", False, "it crashes", "pip install onnx")
    monkeypatch.setattr(doctor, "_findings", lambda **_: iter([broken]))


PREPARED: dict[tuple[str, int], Callable[[Path, pytest.MonkeyPatch], None]] = {
    ("report", 1): _saved("target.onnx"),
    ("report", 3): _saved("damaged.onnx"),
    ("report", 4): _saved("failing.onnx", "failing.onnx"),
    ("fuzz", 4): _found_elsewhere,
    ("config", 1): _older,
    ("execute", 1): _wrong_compiler,
    ("doctor", 1): _broken_library,
}
