"""Devices over RPC on loopback: right ones, and every way in which one can fail."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import signal
import socket
import tarfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rpc_servers as servers
import small_models as small

from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.formats.tvm.backend import BACKEND
from conrepair.formats.tvm.options import read_options
from conrepair.formats.tvm.rpc.runnable import RemoteRunnable
from conrepair.formats.tvm.rpc.watch import Peer, cut_after, is_connected
from conrepair.ground.runtime.errors import ConfigError, ConversionError, DeviceError, ModelLoadError

FEEDS = {"image": small.images(2)}
NATIVE = f"llvm -mtriple={platform.machine()}-linux-gnu"
OTHER = "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72"
AARCH64 = 183


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return small.model_of("onnx", small.onnx_convnet(tmp_path_factory.mktemp("source") / "net.onnx"))


@pytest.fixture(scope="module")
def build(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("build")
    BACKEND.compile(model, {}, 2, folder)
    return folder


@pytest.fixture(scope="module")
def server() -> Iterator[servers.Server]:
    with servers.serving(servers.KEY) as started:
        yield started


def at(port: int, **changes: Any) -> dict[str, Any]:
    return {"name": "pi", "host": servers.HOST, "port": port, "key": servers.KEY, "connect_seconds": 5} | changes


def opened(build: Path, port: int, **changes: Any) -> RemoteRunnable:
    runnable = BACKEND.load(Model("onnx", "", ""), {"device": at(port, **changes), "build": {"path": str(build)}})
    assert isinstance(runnable, RemoteRunnable)
    return runnable


def test_it_answers_as_the_source_and_says_how_long_it_took(
    model: Model, build: Path, server: servers.Server
) -> None:
    runnable = opened(build, server.port)
    expected, found = framework("onnx").load(model).run(FEEDS), runnable.run(FEEDS)
    assert small.relative_l2(expected["probabilities"], found["probabilities"]) < 1e-6
    assert runnable.device_seconds is not None
    assert 0 < runnable.device_seconds < 1
    other = {"image": small.images(4)[2:]}
    expected, found = framework("onnx").load(model).run(other), runnable.run(other)
    assert small.relative_l2(expected["probabilities"], found["probabilities"]) < 1e-6


def test_a_session_ends_with_what_used_it(build: Path, server: servers.Server) -> None:
    for _ in range(3):  # a server has one session at a time
        runnable = opened(build, server.port, connect_seconds=2, attempts=1)
        runnable.run(FEEDS)
        assert is_connected(Peer(servers.HOST, server.port))
        del runnable
        assert not is_connected(Peer(servers.HOST, server.port))


def test_objects_are_linked_on_the_device(model: Model, server: servers.Server, tmp_path: Path) -> None:
    options = {"device": at(server.port), "target": NATIVE, "check_device": True, "threads": 1}
    record = BACKEND.compile(model, options, 2, tmp_path)
    assert record["library"] == "module.tar"
    found = BACKEND.load(model, options | {"build": {"path": str(tmp_path)}}).run(FEEDS)
    expected = framework("onnx").load(model).run(FEEDS)
    assert small.relative_l2(expected["probabilities"], found["probabilities"]) < 1e-6


@pytest.mark.parametrize(
    ("target", "host_target"),
    [(OTHER, None), ("cuda -arch=sm_90", OTHER), ("opencl", OTHER)],
)
def test_code_for_another_processor(target: str, host_target: str | None, model: Model, tmp_path: Path) -> None:
    options = {"device": at(9090, host_target=host_target), "target": target}
    record = BACKEND.compile(model, options, 2, tmp_path)
    assert record["library"] == "module.tar"
    with tarfile.open(tmp_path / record["library"]) as archive:
        objects = [file.read(20) for item in archive.getmembers() if (file := archive.extractfile(item))]
    machines = {int.from_bytes(header[18:20], "little") for header in objects if header[:4] == b"\x7fELF"}
    assert machines == {AARCH64}


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ here")
def test_a_linker_of_this_machine(model: Model, tmp_path: Path) -> None:
    options = {"device": at(9090, linker="g++"), "target": NATIVE}
    assert BACKEND.compile(model, options, 2, tmp_path)["library"] == "module.so"
    options = {"device": at(9090, linker="no-such-g++"), "target": NATIVE}
    with pytest.raises(ConversionError, match=r"'pi' at 127.*`linker` no-such-g\+\+ isn't on the path"):
        BACKEND.compile(model, options, 2, tmp_path)


def test_nobody_listens(model: Model, tmp_path: Path) -> None:
    port = servers.free_port()
    with pytest.raises(
        DeviceError,
        match=rf"device 'pi' at 127.0.0.1:{port}: no server at .* \(connection refused\)\. Start the server "
        rf"\(python -m tvm.exec.rpc_server --host 127.0.0.1 --port {port} --key board\) there.* Tried 2 times\.",
    ):
        BACKEND.compile(model, {"device": at(port), "check_device": True}, 2, tmp_path)
    assert list(tmp_path.iterdir()) == []  # it's said before anything is built


def test_a_server_that_never_answers(build: Path) -> None:
    started = time.monotonic()
    with (
        servers.silence() as port,
        pytest.raises(DeviceError, match=r"takes the connection and doesn't answer within 0.5 s.*Tried 2 times"),
    ):
        opened(build, port, connect_seconds=0.5)
    assert time.monotonic() - started < 10


def test_a_tracker_that_never_answers(build: Path) -> None:
    with servers.silence() as port, pytest.raises(DeviceError, match=r"doesn't answer within 0.5 s"):
        opened(build, port, connect_seconds=0.5, tracker=True, attempts=1)


def test_what_listens_is_something_else(build: Path, server: servers.Server) -> None:
    with pytest.raises(DeviceError, match=r"doesn't answer as a tracker of TVM.*leave `tracker` out"):
        opened(build, server.port, tracker=True, attempts=1)
    with pytest.raises(DeviceError, match=r"has another key than 'mango'\. Correct `key`"):
        opened(build, server.port, key="mango", attempts=1)
    opened(build, server.port).run(FEEDS)  # and the server has survived that


def test_a_busy_server(build: Path, server: servers.Server) -> None:
    first = opened(build, server.port)
    with pytest.raises(DeviceError, match=r"busy with another session, or hangs"):
        opened(build, server.port, connect_seconds=0.5, attempts=1)
    first.run(FEEDS)


def test_an_absent_gpu_is_said(server: servers.Server, model: Model, tmp_path: Path) -> None:
    import tvm

    if tvm.cuda(0).exist:
        pytest.skip("there is a CUDA device")
    options = {"device": at(server.port), "target": "cuda -arch=sm_90", "check_device": True}
    with pytest.raises(DeviceError, match=r"'pi' at .* has no cuda device that its TVM can reach"):
        BACKEND.compile(model, options, 2, tmp_path)


def test_a_build_that_the_device_refuses(build: Path, server: servers.Server, tmp_path: Path) -> None:
    shutil.copytree(build, tmp_path / "broken")
    (tmp_path / "broken" / "module.so").write_bytes(b"no library")
    with pytest.raises(ModelLoadError, match=r"'pi' at .* can't load the build: .*Is its TVM 0\."):
        opened(tmp_path / "broken", server.port)


def test_a_lost_connection_is_opened_again(model: Model, build: Path, server: servers.Server) -> None:
    runnable = opened(build, server.port)
    cut(server)
    expected, found = framework("onnx").load(model).run(FEEDS), runnable.run(FEEDS)
    assert small.relative_l2(expected["probabilities"], found["probabilities"]) < 1e-6
    cut(server)
    with pytest.raises(DeviceError, match=r"connection ended while running the model.*ended 2 times"):
        runnable.run(FEEDS)


def cut(server: servers.Server) -> None:
    with cut_after(Peer(servers.HOST, server.port), 0):
        time.sleep(0.2)


def test_a_session_has_an_end(build: Path, server: servers.Server) -> None:
    runnable = opened(build, server.port, session_seconds=1)
    time.sleep(1.3)
    with pytest.raises(DeviceError, match=r"the session's 1 s were over while running.*Raise `session_seconds`"):
        runnable.run(FEEDS)


def test_a_server_that_is_killed_in_mid_run(build: Path) -> None:
    with servers.serving(servers.KEY) as started:
        runnable = opened(build, started.port, attempts=2)
        runnable.run(FEEDS)
        started.signal(signal.SIGSTOP)  # so that the next run is under way when it dies
        threading.Timer(0.5, started.signal, [signal.SIGKILL]).start()
        words = r"connection ended while running the model.*Start the server again\. Then: .*no server at"
        with pytest.raises(DeviceError, match=words):
            runnable.run(FEEDS)


def test_a_server_that_hangs_in_mid_run(build: Path) -> None:
    with servers.serving(servers.KEY) as started:
        runnable = opened(build, started.port, step_seconds=1)
        started.signal(signal.SIGSTOP)
        with pytest.raises(DeviceError, match=r"no answer within 1 s while running the model.*raise `step_seconds`"):
            runnable.run(FEEDS)


def test_by_a_tracker(model: Model, build: Path) -> None:
    with servers.serving() as tracker:
        with pytest.raises(DeviceError, match=r"tracker knows no server with key 'board'; it knows none at all"):
            opened(build, tracker.port, tracker=True, attempts=1)
        with servers.serving(servers.KEY, str(tracker.port)):
            runnable = opened(build, tracker.port, tracker=True)
            expected, found = framework("onnx").load(model).run(FEEDS), runnable.run(FEEDS)
            assert small.relative_l2(expected["probabilities"], found["probabilities"]) < 1e-6
            with pytest.raises(DeviceError, match=r"no server with key 'board' became free within 0.5 s; 1 is"):
                opened(build, tracker.port, tracker=True, connect_seconds=0.5, attempts=1)
            with pytest.raises(DeviceError, match=r"no server with key 'mango'; it knows board"):
                opened(build, tracker.port, tracker=True, key="mango", attempts=1)


@pytest.mark.parametrize("tracker", [False, True])
def test_connections_go_to_the_configured_addresses_only(
    tracker: bool, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that Python makes, those that TVM is told to make, and those that the process has."""
    from tvm import rpc

    made: set[tuple[str, int]] = set()
    connect_socket, connect_session = socket.socket.connect, rpc.connect

    def connect(self: socket.socket, address: Any) -> None:
        made.add(address)
        connect_socket(self, address)

    def session(host: str, port: int, *rest: Any) -> Any:
        made.add((host, port))
        return connect_session(host, port, *rest)

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(rpc, "connect", session)
    with contextlib.ExitStack() as stack:
        ports = [stack.enter_context(servers.serving()).port] if tracker else []
        ports.append(stack.enter_context(servers.serving(servers.KEY, *map(str, ports))).port)
        before = peers()
        options = {"device": at(ports[0], tracker=tracker), "check_device": True}
        BACKEND.compile(model, options, 2, tmp_path)
        runnable = BACKEND.load(model, options | {"build": {"path": str(tmp_path)}})
        runnable.run(FEEDS)
        assert made == {(servers.HOST, port) for port in ports}
        assert peers() - before == {(servers.HOST, ports[-1])}
        del runnable


def peers() -> set[Any]:
    """Whom this process is connected to over a network."""
    found = set()
    for entry in list(Path("/dev/fd").iterdir()):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(entry.name))) as one:
            if one.family in {socket.AF_INET, socket.AF_INET6}:
                found.add(one.getpeername())
    return found


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"setting": "tuned"}, "'tuned' measures on this machine"),
        ({"target": "llvm -mcpu=native"}, r"-mcpu=native is this machine's processor\. Name that of device 'pi'"),
    ],
)
def test_what_only_this_machine_can_do(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_options(options | {"device": at(9090)})


def test_looking_for_connections_leaves_none_open() -> None:
    before = len(list(Path("/dev/fd").iterdir()))
    for _ in range(20):
        assert not is_connected(Peer(servers.HOST, 9))
    assert len(list(Path("/dev/fd").iterdir())) <= before


def test_outputs_of_every_kind_come_back(server: servers.Server, tmp_path: Path) -> None:
    """Several outputs, of other types than float32, and an input without axes."""
    import onnx
    from onnx import helper

    tensor, kinds = helper.make_tensor_value_info, onnx.TensorProto
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "s"], ["y"]), helper.make_node("ArgMax", ["x"], ["place"], axis=1)],
        "g",
        [tensor("x", kinds.FLOAT, [3, 4]), tensor("s", kinds.FLOAT, [])],
        [tensor("y", kinds.FLOAT, [3, 4]), tensor("place", kinds.INT64, [3, 1])],
    )
    net = small.model_of("onnx", small.save_onnx(tmp_path / "net.onnx", graph, opset=17))
    (tmp_path / "build").mkdir()
    BACKEND.compile(net, {}, 1, tmp_path / "build")
    feeds = {"x": np.random.default_rng(3).normal(size=(3, 4)).astype(np.float32), "s": np.float32(2.5)}
    found = opened(tmp_path / "build", server.port).run({name: np.asarray(value) for name, value in feeds.items()})
    np.testing.assert_array_equal(found["y"], feeds["x"] * feeds["s"])
    np.testing.assert_array_equal(found["place"][:, 0], feeds["x"].argmax(1))
    assert found["place"].dtype == np.int64
