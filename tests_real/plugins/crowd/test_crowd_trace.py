"""Traces of a folder on a cluster: several at once, to the same end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed")
pytest.importorskip("cryptography")

import dask
import onnx
from crowd_cluster import LoopbackCluster, tls_config

from conrepair.application.cli.main import main

pytestmark = [pytest.mark.slow, pytest.mark.workers, pytest.mark.timeout(600)]

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'
NETS = {
    "elu": "g (float[1, 8] x) => (float[1, 8] y) { y = Elu (x) }",
    "deep/relu": "g (float[n, 8] x) => (float[n, 8] y) { a = Relu (x) y = Neg (a) }",
    "mean": "g (float[1, 8] x) => (float[1, 8] y) { m = ReduceMean <axes=[1]> (x) d = Sub (x, m) y = Mul (d, d) }",
    "wrong": "g (float[1, 8] x) => (float[1, 8] y) { y = Reshape (x, x) }",
}
_CHANGING = {"seconds", "run_seconds", "model", "command", "cost", "history"}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LoopbackCluster]:
    with LoopbackCluster(tmp_path / "cluster", workers=2) as cluster, dask.config.set(tls_config(cluster.files)):
        yield cluster


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if key not in _CHANGING}
    return [plain(item) for item in value] if isinstance(value, list) else value


def test_a_folder_comes_to_the_same(
    cluster: LoopbackCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CONREPAIR_CACHE", "")
    for name, body in NETS.items():
        path = tmp_path / "nets" / f"{name}.onnx"
        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(onnx.parser.parse_model(HEAD + body), path)
    asked = ["trace", "nets", "--setting", "ort-all", "--evaluations", "60", "--builds", "8", "-q", "-f", "json"]

    def traced(*words: str) -> tuple[int, Any, list[Any], str]:
        code, told = main([*asked, "-o", words[0], *words[1:]]), capsys.readouterr()
        written = [plain(json.loads(path.read_text())) for path in sorted(Path(words[0]).rglob("trace.json"))]
        return code, plain(json.loads(told.out)), written, told.err

    there = traced("there", "--engine", "dask", "--scheduler", cluster.address, "--exchange", str(cluster.exchange))
    here = traced("here")
    assert there[:3] == here[:3]
    assert len(here[2]) == len(NETS) - 1
    assert "nets/wrong.onnx: " in there[3]
    assert there[3] == here[3]
