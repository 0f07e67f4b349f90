"""Plug-ins of an installed package in commands: told by files and names, run in workers, listed by doctor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
import standin_plugin

_NET = """<ir_version: 8, opset_import: ["" : 17]> g (float[n, 8] x) => (float[n, 4] y)
<float[8, 4] w = {%s}> { r = Relu (x) m = MatMul (r, w) y = Tanh (m) }"""
_ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.workers


def _write(path: Path, factor: float) -> None:
    numbers = ", ".join(f"{factor * (place % 7 - 3) / 5:.4f}" for place in range(32))
    data = onnx.parser.parse_model(_NET % numbers).SerializeToString()
    path.write_bytes((b"standin\n" if path.suffix == ".standin" else b"") + data)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plugins")
    standin_plugin.install(folder / "packages")
    _write(folder / "net.onnx", 1.0)
    net = onnx.load(folder / "net.onnx")
    for node in net.graph.node:
        node.name = node.op_type.lower()
    onnx.save(net, folder / "layers.onnx")
    _write(folder / "right.standin", 1.0)
    _write(folder / "wrong.standin", 1.1)
    return folder


def _run(place: Path, *words: str) -> tuple[int, str]:
    path = os.pathsep.join([str(_ROOT), str(place / "packages")])
    variables = os.environ | {"PYTHONPATH": path, "CONREPAIR_CACHE": str(place / "cache")}
    command = [sys.executable, "-m", "conrepair", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=place, env=variables)
    return done.returncode, done.stdout + done.stderr


def test_a_right_file_is_equivalent(place: Path) -> None:
    code, text = _run(place, "compare", "net.onnx", "right.standin")
    assert (code, "1 equivalent" in text) == (0, True), text


def test_a_wrong_one_is_named_at_its_layer(place: Path) -> None:
    code, text = _run(place, "localize", "net.onnx", "wrong.standin")
    assert code == 1, text
    assert "parameters at `m`" in text


def test_a_backend_runs_models_of_an_audit_under_its_options(place: Path) -> None:
    config = {
        "name": "audit",
        "dataset": {"synthetic": {"samples": 8}},
        "models": [{"name": "net", "path": "net.onnx", "conversions": ["standin"]}],
        "backends": ["libraries", {"name": "halves", "factor": 1.0, "label": "whole"}, "halves"],
    }
    (place / "audit.json").write_text(json.dumps(config))
    code, text = _run(place, "run", "audit.json")
    rows = json.loads((place / "generated" / "audit" / "result.json").read_text())["rows"]
    known = {(row["conversion"], row["backend"]): row["verdict"] for row in rows}
    assert code == 1, text
    assert known["", "whole"] == "equivalent"
    assert known["", "halves"] == "faulty"
    assert known["onnx-standin", "libraries"] == "equivalent"


@pytest.mark.parametrize(
    ("backend", "layer", "words"),
    [
        (("halves",), "relu", ""),
        (
            ("fuses",),
            "tanh",
            "computes these 2 operators as one: the error is gone",
        ),
        (("named",), "tanh", ""),
    ],
)
def test_a_layer_that_a_backend_computes_wrongly_is_named(
    place: Path, backend: tuple[str, ...], layer: str, words: str
) -> None:
    out = place / f"layers-{backend[0]}"
    code, text = _run(place, "localize", "layers.onnx", "--backend", *backend, "-o", str(out))
    told = " ".join(text.split())
    assert (code, f"compilation at `{layer}`" in told, words in told) == (1, True, True), text
    assert f"layers.onnx is right: report `{layer}` to the makers of {backend[0]}" in told
    (row,) = [row for row in json.loads((out / "result.json").read_text())["rows"] if row["backend"] == backend[0]]
    (step,) = row["localized"]["steps"]
    assert step["compared"]["backend"] == backend[0]


def test_a_backend_that_computes_rightly_is_not_at_fault(place: Path) -> None:
    code, text = _run(place, "localize", "layers.onnx", "--backend", "halves", "--option", "factor=1.0")
    assert (code, "equivalent" in text) == (0, True), text


def test_an_audit_says_which_layer_a_backend_computes_wrongly(place: Path) -> None:
    config = {
        "name": "layers",
        "dataset": {"synthetic": {"samples": 8}},
        "models": [{"name": "net", "path": "layers.onnx", "conversions": ["standin"]}],
        "backends": ["libraries", "fuses"],
        "stages": {"localize": True, "repair": True},
    }
    (place / "layers.json").write_text(json.dumps(config))
    code, text = _run(place, "run", "layers.json")
    assert (code, "report `tanh` to the makers of fuses" in " ".join(text.split())) == (1, True), text
    rows = json.loads((place / "generated" / "layers" / "result.json").read_text())["rows"]
    (row,) = [row for row in rows if row["backend"] == "fuses" and not row["conversion"]]
    assert row["repaired"]["result"] is None


@pytest.mark.parametrize(
    ("option", "words"),
    [("factor=0.5", "halves runs the same file"), ("fctor=0.5", "halves has no option fctor: it has factor")],
)
def test_a_backend_is_asked_for_by_its_name(place: Path, option: str, words: str) -> None:
    assert words in _run(place, "execute", "net.onnx", "--backend", "halves", "--option", option)[1]


def test_results_are_made_anew_when_the_plug_in_is_another(place: Path) -> None:
    options = ("execute", "net.onnx", "--backend", "halves", "--timings")
    kept = "execute (3), from the cache"
    _run(place, *options)
    assert kept in _run(place, *options)[1]
    module = place / "packages" / "standin.py"
    module.write_text(module.read_text() + "\n")
    assert kept not in _run(place, *options)[1]


def test_a_verb_is_known_by_its_name_and_listed(place: Path) -> None:
    assert _run(place, "greet", "you") == (0, "hello you\n")
    code, text = _run(place, "--help")
    assert "Say hello." in text
    assert "broken-verb" not in text
    code, text = _run(place, "broken-verb")
    assert code == 2
    assert "plug-in broken-verb of standin-plugins 1.2 can't be imported" in text
    assert "a_module_that_nobody_has" not in _run(place, "converters")[1]


def test_a_section_is_checked_and_run(place: Path) -> None:
    config = {"name": "audit", "output": "greeted", "greetings": {"names": ["you", "me"]}}
    (place / "greet.json").write_text(json.dumps(config))
    assert _run(place, "run", "greet.json")[0] == 0
    assert (place / "greeted" / "greetings" / "names.txt").read_text() == "you me"
    (place / "greet.json").write_text(json.dumps(config | {"greetings": {"names": ["nobody"], "word": 1}}))
    assert "$.greetings.word: unknown key 'word'" in _run(place, "config", "check", "greet.json")[1]
    (place / "greet.json").write_text(json.dumps(config | {"greetings": {"names": ["nobody"]}}))
    assert "$.greetings.names: nobody can't be greeted" in _run(place, "config", "check", "greet.json")[1]
