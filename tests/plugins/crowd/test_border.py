from __future__ import annotations

from pathlib import Path

import pytest

from conrepair.ground.runtime.errors import UsageError
from conrepair_crowd.border import paths_of, with_paths, with_texts
from conrepair_crowd.cluster import WITHOUT_TLS, check_addresses
from conrepair_crowd.placing import wanted_resources


def test_paths_are_found_by_their_keys_alone(tmp_path: Path) -> None:
    here = str(tmp_path)
    payload = {
        "model": {"path": here, "inputs": [{"name": here}]},
        "networks": [here, "/nowhere/at/all"],
        "name": here,
        "data": {"path": ""},
    }
    found = dict(paths_of(payload))
    assert found == {("model", "path"): tmp_path, ("networks", 0): tmp_path}, "a tensor may be called as a file is"
    made = with_paths(payload, [(place, "/there") for place in found])
    assert (made["model"]["path"], made["networks"], made["name"]) == ("/there", ["/there", "/nowhere/at/all"], here)
    assert payload["networks"] == [here, "/nowhere/at/all"]


def test_texts_that_come_back_have_this_machine_s_paths() -> None:
    value = {"path": "/w/1/model.onnx", "words": ["no /w/1/model.onnx.data", 3, None]}
    told = with_texts(value, {"/w/1/model.onnx": "/home/a/model.onnx", "/w/1/model.onnx.data": "/home/data"})
    assert told == {"path": "/home/a/model.onnx", "words": ["no /home/data", 3, None]}


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:8786", "tcp://[::1]:1", "tcp://localhost:1", "tls://10.0.0.1:1"]
)
def test_who_may_come_in(address: str) -> None:
    check_addresses([address], None)


@pytest.mark.parametrize("address", ["tcp://10.0.0.1:8786", "ws://node7:1", "tcp://:8786", "10.0.0.1:8786"])
def test_strangers_may_not_unless_somebody_says_so(address: str) -> None:
    with pytest.raises(UsageError, match="isn't encrypted"):
        check_addresses(["tcp://127.0.0.1:1", address], None)
    check_addresses([address], WITHOUT_TLS)


def test_what_is_asked_for_is_what_somebody_says_to_have() -> None:
    workers = [{"resources": {"tvm": 2.0, "onnx": 2.0}}, {"resources": {}}]
    assert wanted_resources({"tvm", "torch"}, "confined", workers) == {"tvm": 1.0}
    assert wanted_resources({"onnx"}, "gpu", [*workers, {"resources": {"gpu": 1.0}}]) == {"gpu": 1.0, "onnx": 1.0}
