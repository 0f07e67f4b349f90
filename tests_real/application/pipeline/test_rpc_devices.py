"""Devices over RPC in a whole audit, and by hand."""

from __future__ import annotations

import contextlib
import functools
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import rpc_servers as servers
import small_models as small
from documents import rows_in
from onnx import helper

from conrepair.application.cli import main
from conrepair.application.config.load import parse_config
from conrepair.application.pipeline.audit import run_audit
from conrepair.application.report.backend_matrix import matrices
from conrepair.application.report.result import AuditResult
from conrepair.application.report.summary import summary_text
from conrepair.ground.runtime.shown.progress import ProgressDisplay


def audit(folder: Path, devices: dict[str, Any]) -> AuditResult:
    value = {
        "output": str(folder / "generated"),
        "dataset": {"synthetic": {"samples": 5}},
        "batch_size": 2,
        "limits": {"workers": 1},
        "models": [{"name": "net", "path": "net.onnx"}],
        "devices": devices,
        "backends": ["libraries", {"name": "tvm"}, *({"name": "tvm", "device": name} for name in devices)],
    }
    with ProgressDisplay(quiet=True) as display:
        return run_audit(parse_config(value, "test"), folder, display)


@pytest.mark.workers
def test_a_device_that_fails_costs_its_own_rows(tmp_path: Path) -> None:
    small.onnx_convnet(tmp_path / "net.onnx")
    dead = servers.free_port()
    with servers.serving(servers.KEY) as server, servers.silence() as silent:
        ports = {"board": server.port, "dead": dead, "silent": silent}
        device = {"host": servers.HOST, "key": servers.KEY, "connect_seconds": 1, "attempts": 1}
        started = time.monotonic()
        result = audit(tmp_path, {name: device | {"port": port} for name, port in ports.items()})
        assert time.monotonic() - started < 120
    rows = {row.backend: row for row in result.rows}
    for label in ("tvm-llvm-O2", "tvm-llvm-O2-board"):
        assert rows[label].verdict is not None
        assert rows[label].verdict.value == "equivalent"
    board = rows["tvm-llvm-O2-board"]
    assert board.ran.run is not None
    assert (board.ran.run.count, board.ran.run.starts) == (5, (0, 2, 4))
    assert board.ran.times is not None
    assert 0 < board.ran.times.median < 0.1  # on the device: no upload, no transfers
    for name, words in {"dead": f"no server at 127.0.0.1:{dead}", "silent": "doesn't answer within 1 s"}.items():
        row = rows[f"tvm-llvm-O2-{name}"]
        assert (row.verdict, row.ran.run, row.exit_code) == (None, None, 2)
        assert f"device '{name}' at" in row.reason
        assert words in row.reason
    assert result.exit_code == 2
    (matrix,) = matrices(result)
    assert [row.place and row.place.device for row in matrix.rows] == ["local", "local", "board"]
    assert len(matrix.pairs) == 3
    assert {pair.figures["verdict"] for pair in matrix.pairs} == {"equivalent"}
    pairs = {frozenset((pair.reference, pair.candidate)) for pair in result.pairs}
    assert pairs == {frozenset({"net/source@tvm-llvm-O2", "net/source@tvm-llvm-O2-board"})}


def wide(path: Path) -> Path:
    """Little code, and a megabyte for each sample."""
    tensor, kind = helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    nodes = [helper.make_node("Relu", ["x"], ["h"]), helper.make_node("ReduceMax", ["h"], ["y"], axes=[1])]
    shapes = ["batch", 1 << 18], ["batch", 1]
    graph = helper.make_graph(nodes, path.stem, [tensor("x", kind, shapes[0])], [tensor("y", kind, shapes[1])])
    return small.save_onnx(path, graph)


@pytest.mark.slow  # backends/tvm/test_rpc.py kills one without an audit
@pytest.mark.workers
def test_a_server_that_is_killed_while_a_model_runs(tmp_path: Path) -> None:
    wide(tmp_path / "first.onnx")
    small.onnx_convnet(tmp_path / "second.onnx")
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(servers.serving(servers.KEY))
        kill = functools.partial(server.signal, signal.SIGKILL)
        port = stack.enter_context(servers.relayed(server.port, 5 << 20, kill))
        spare = stack.enter_context(servers.untouched())
        value = {
            "output": str(tmp_path / "generated"),
            "dataset": {"synthetic": {"samples": 10}},
            "batch_size": 1,
            "limits": {"workers": 1},
            "models": [{"name": name, "path": f"{name}.onnx"} for name in ("first", "second")],
            "devices": {
                "board": {"host": servers.HOST, "port": port, "key": servers.KEY, "connect_seconds": 2},
                "spare": {"host": servers.HOST, "port": spare, "key": servers.KEY},
            },
            "backends": ["libraries", {"name": "tvm"}, {"name": "tvm", "device": "board"}],
        }
        started = time.monotonic()
        with ProgressDisplay(quiet=True) as display:
            result = run_audit(parse_config(value, "test"), tmp_path, display)
        assert time.monotonic() - started < 120
        assert server.process.wait(5) == -signal.SIGKILL
    rows = {(row.model, row.backend): row for row in result.rows}
    assert len(rows) == 6
    for name in ("first", "second"):
        lost, local = rows[name, "tvm-llvm-O2-board"], rows[name, "tvm-llvm-O2"]
        assert (lost.verdict, lost.ran.run, lost.exit_code) == (None, None, 2)
        assert lost.problem is not None
        assert lost.problem.kind == "device"
        assert "device 'board' at" in lost.reason
        assert local.verdict is not None
        assert local.verdict.value == "equivalent"
        assert local.ran.run is not None
        assert local.ran.run.count == 10
    assert "the connection ended while running the model" in rows["first", "tvm-llvm-O2-board"].reason
    assert result.exit_code == 2


def test_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net, out = small.onnx_convnet(tmp_path / "net.onnx"), tmp_path / "run"
    np.savez(tmp_path / "data.npz", image=small.images(3))
    command = ["execute", str(net), "-q", "--backend", "tvm", "--data", str(tmp_path / "data.npz"), "-o", str(out)]
    with servers.serving(servers.KEY) as server:
        assert main([*command, "--device", f"rpc://{servers.HOST}:{server.port}/{servers.KEY}"]) == 0
    assert "equivalent" in capsys.readouterr().out
    assert np.load(out / "output_0.npy").shape == (3, small.CLASSES)
    assert rows_in(out)[-1]["ran"]["build"]["record"]["options"]["device"]["host"] == servers.HOST
    assert main([*command, "--force", "--device", "board"]) == 2
    assert "'board' is no device" in capsys.readouterr().err


def test_an_optional_device_makes_no_run_fail(tmp_path: Path) -> None:
    small.onnx_convnet(tmp_path / "net.onnx")
    value = {
        "output": str(tmp_path / "generated"),
        "dataset": {"synthetic": {"samples": 2}},
        "limits": {"workers": 1},
        "models": [{"name": "net", "path": "net.onnx", "batch_size": 1}, {"name": "own", "path": "net.onnx"}],
        "devices": {"gone": {"host": servers.HOST, "port": servers.free_port(), "attempts": 1}},
    }
    value["models"][1]["backends"] = [{"name": "tvm", "device": "gone", "optional": True}, {"name": "onnxruntime"}]
    with ProgressDisplay(quiet=True) as display:
        result = run_audit(parse_config(value, "test"), tmp_path, display)
    rows = {(row.model, row.backend): row for row in result.rows}
    assert list(rows) == [
        *[("net", "libraries"), ("own", "libraries"), ("own", "onnxruntime")],
        ("own", "tvm-llvm-O2-gone"),
    ]
    run = rows["net", "libraries"].ran.run
    assert run is not None
    assert run.starts == (0, 1)
    gone = rows["own", "tvm-llvm-O2-gone"]
    assert gone.problem is not None
    assert (gone.verdict, gone.problem.kind, gone.exit_code) == (None, "device", 0)
    assert result.exit_code == 0
    assert "1 without a device" in summary_text(result)
    assert "no server at" in summary_text(result)
