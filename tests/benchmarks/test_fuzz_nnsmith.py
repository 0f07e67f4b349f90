"""NNSmith's networks in our campaigns, and its own reports beside known bugs, with stand-ins for both."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

import onnx
import pytest

from benchmarks.fuzz.nnsmith_networks import NNSmithNetworks
from benchmarks.fuzz.nnsmith_reports import page
from benchmarks.generate import nnsmith_process
from benchmarks.generate.nnsmith_process import NNSmith
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair_lab.campaigns.fuzz_jobs import read_network
from conrepair_lab.campaigns.fuzz_networks import ROUND
from conrepair_lab.campaigns.network_folder import read_about
from conrepair_lab.options.fuzz import Fuzz

HEAD = '<ir_version: 10, opset_import: ["" : 20]> '
_STAND_IN = """
import json, pathlib, sys
import numpy, onnx
print(json.dumps({}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    for seed in asked["seeds"][1:]:
        nodes = " ".join(f"t{place} = Neg ({f't{place - 1}' if place else 'x'})" for place in range(asked["nodes"]))
        text = f"g (float[2] x) => (float[2] t{asked['nodes'] - 1}) {{ {nodes} }}"
        model = onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 20]> ' + text)
        path = pathlib.Path(asked["folder"]) / f"{seed}.onnx"
        onnx.save(model, path)
        numpy.savez(path.with_suffix(".npz"), x=numpy.full(2, seed, numpy.float32))
    print(json.dumps([{"failed": "no"}] + [{"seconds": 0.1}] * (len(asked["seeds"]) - 1)), flush=True)
"""


def test_its_networks_are_a_campaigns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    side = tmp_path / "side.py"
    side.write_text(_STAND_IN, encoding="utf-8")
    monkeypatch.setattr(nnsmith_process, "_SIDE", side)
    with NNSmith(Path(sys.executable)) as peer, ProgressDisplay(quiet=True) as display:
        source = NNSmithNetworks(peer)
        rounds = source(Fuzz(seed=7), tmp_path / "campaign", [], display, None)  # type: ignore[arg-type]
        first, second = itertools.islice(rounds, 2)
    assert (len(first), len(second)) == (ROUND - 10, 2 * ROUND - 20)
    assert source.failed == 30
    assert len({item.name for item in first + second}) == len(first + second)
    case, answers = read_network(first[0].folder)
    assert answers is None
    assert case.inputs["x"].tolist() == [8.0, 8.0]
    assert read_about(first[0].folder) == {"operators": {"Neg": 5}}
    assert {len(read_network(item.folder)[0].model.graph.node) for item in first} == {5, 10}


def test_its_reports_are_held_against_known_bugs(tmp_path: Path) -> None:
    text = "g (float[2,2] a) => (float[2,2] y) { t = Transpose (a) m = MatMul (t, a) n = Add (m, a) y = Neg (n) }"
    for place, (symptom, words) in enumerate(
        [
            ("inconsistency", "AssertionError: far"),
            ("exception", "RuntimeException: 3"),
            ("exception", "NOT_IMPLEMENTED"),
        ]
    ):
        report = tmp_path / f"bug-{place}"
        report.mkdir()
        onnx.save(onnx.parser.parse_model(HEAD + text), report / "model.onnx")
        (report / "meta.json").write_text(json.dumps({"symptom": symptom}), encoding="utf-8")
        (report / "err.log").write_text(f"Traceback\n{words}\n", encoding="utf-8")
    lines = list(page(tmp_path, "ort-all@1.20.1"))
    assert lines[0] == "3 reports, 1 of them of gaps"
    assert "| exception | RuntimeException: .. | 1 |" in lines
    assert "| identity transpose into Gemm | 1 |" in lines
    assert "| two pads fused | 0 |" in lines
