"""Devices: by name, by address, and what's wrong with one."""

from __future__ import annotations

from typing import Any

import pytest

from conrepair.application.config.load import parse_config
from conrepair.application.config.model import AuditConfig, RpcDeviceConfig, TvmConfig
from conrepair.ground.runtime.errors import ConfigError

PI = {"host": "pi.example", "key": "pi", "target": "llvm -mtriple=aarch64-linux-gnu"}


def config(backends: list[Any], devices: dict[str, Any] | None = None) -> AuditConfig:
    return parse_config({"models": [{"name": "n", "path": "n"}], "devices": devices or {}, "backends": backends}, "t")


def devices_of(found: AuditConfig) -> list[RpcDeviceConfig | None]:
    return [item.device for item in found.backends if isinstance(item, TvmConfig)]


def test_backends_name_devices() -> None:
    found = config([{"name": "tvm", "device": "pi", "setting": "O3"}, {"name": "tvm", "device": "local"}], {"pi": PI})
    assert devices_of(found) == [RpcDeviceConfig(name="pi", **PI), None]
    assert [item.label for item in found.backends] == ["tvm-llvm-aarch64-linux-gnu-O3-pi", "tvm-llvm-O2"]
    assert parse_config(found.model_dump(mode="json", by_alias=True), "again") == found


def test_a_backend_has_its_own_target() -> None:
    found = config([{"name": "tvm", "device": PI, "target": "opencl", "label": "gpu"}, {"name": "tvm", "device": PI}])
    assert [item.target for item in found.backends if isinstance(item, TvmConfig)] == ["opencl", PI["target"]]
    assert [item.label for item in found.backends] == ["gpu", "tvm-llvm-aarch64-linux-gnu-O2-pi.example-9090"]


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("cuda -arch=sm_90", "cuda-sm_90"),
        ("cuda -max_threads_per_block=1024 -thread_warp_size=32", "cuda-1024-32"),
        ("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72", "llvm-aarch64-linux-gnu-cortex-a72"),
    ],
)
def test_a_name_has_the_values_of_a_target(target: str, said: str) -> None:
    assert config([{"name": "tvm", "target": target}]).backends[0].label == f"tvm-{said}-O2"


def test_a_name_is_short_whatever_the_target_has() -> None:
    targets = [f"cuda -arch=sm_{number} " + " ".join(f"-a{i}=1024" for i in range(40)) for number in (80, 90)]
    labels = [item.label for item in config([{"name": "tvm", "target": target} for target in targets]).backends]
    assert max(map(len, labels)) < 60
    assert len(set(labels)) == 2


def test_a_pinned_importer_is_in_the_name() -> None:
    found = config([{"name": "tvm", "device": PI, **pinned} for pinned in ({}, {"importer": "torch"})])
    assert [item.label for item in found.backends] == [
        f"tvm-llvm-aarch64-linux-gnu-O2-{rest}9090" for rest in ("pi.example-", "torch-pi.example-")
    ]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("rpc://10.0.0.7:9091/pi", {"host": "10.0.0.7", "port": 9091, "key": "pi"}),
        ("rpc://[::1]:9091", {"host": "::1", "port": 9091}),
        ("tracker://lab:9190/pi", {"host": "lab", "port": 9190, "key": "pi", "tracker": True}),
    ],
)
def test_addresses(text: str, keys: dict[str, Any]) -> None:
    assert devices_of(config([{"name": "tvm", "device": text}])) == [RpcDeviceConfig(**keys)]


@pytest.mark.parametrize(
    ("device", "message"),
    [
        (
            "pie",
            r"\$.backends\[0\].device: 'pie' is no device; write local, a name of `devices`, rpc://HOST:PORT/KEY",
        ),
        ("rpc://host", r"'rpc://host' is no device"),
        ("rpc://host:99999", r"'rpc://host:99999' is no device"),
        ("rpc://me:secret@host:1", "is no device"),
        ("tracker://lab:9190", "a tracker finds servers by their key: give 'key'"),
        ({"host": "h", "prt": 1}, r"\$.backends\[0\].device.prt: unknown key 'prt'; did you mean 'port'\?"),
        ({"host": "h", "port": 70000}, r"\$.backends\[0\].device.port: .*65535"),
    ],
)
def test_what_is_none_is_refused(device: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config([{"name": "tvm", "device": device}], {"pi": PI})


def test_local_is_this_machine() -> None:
    with pytest.raises(ConfigError, match=r"\$\.devices\.local: this machine is called so"):
        config([{"name": "tvm", "device": "local"}], {"local": PI})


def test_a_model_has_backends_and_a_batch_size_of_its_own() -> None:
    value = {
        "models": [
            {"name": "a", "path": "a", "batch_size": 1, "backends": [{"name": "tvm", "device": "pi"}]},
            {"name": "b", "path": "b"},
        ],
        "devices": {"pi": PI},
    }
    found = parse_config(value, "t")
    own, other = found.models
    assert [item.label for item in found.backends_of(own)] == ["tvm-llvm-aarch64-linux-gnu-O2-pi"]
    assert found.backends_of(other) == found.backends
    assert (found.batch_size_of(own), found.batch_size_of(other)) == (1, 16)
    with pytest.raises(ConfigError, match="two backends are called 'onnxruntime'"):
        parse_config({"models": [{"name": "a", "path": "a", "backends": ["onnxruntime", "onnxruntime"]}]}, "t")
