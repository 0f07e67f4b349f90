"""TensorFlow and Keras models compiled by XLA."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import small_models as small

from conrepair.formats.backends.all_backends import backend
from conrepair.formats.backends.base import Switch
from conrepair.formats.backends.xla import BACKEND
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.errors import ConfigError

FEEDS = {"image": small.images(2, channels_last=True)}


@pytest.fixture(scope="module")
def convnet(tmp_path_factory: pytest.TempPathFactory) -> Model:
    path = tmp_path_factory.mktemp("keras") / "net.keras"
    small.keras_convnet().save(path)
    return small.model_of("keras", path)


def output(name: str, model: Model, **options: Any) -> small.Array:
    (result,) = backend(name).load(model, options).run(FEEDS).values()
    return result


@pytest.mark.parametrize("kind", ["keras", "tensorflow"])
def test_compiled_models_are_near_their_own(
    kind: str, convnet: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = convnet
    if kind == "tensorflow":
        small.keras_convnet().export(tmp_path / "saved", verbose=False)
        model = small.model_of("tensorflow", tmp_path / "saved")
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false")
    runnable = backend("xla").load(model, {})
    (result,) = runnable.run(FEEDS).values()
    assert small.relative_l2(output("libraries", model), result) < 1e-5
    assert runnable.device_seconds is not None
    assert runnable.device_seconds < 1, "of the call, not of compiling"
    more = {"image": np.concatenate([FEEDS["image"]] * 2)}
    np.testing.assert_allclose(next(iter(runnable.run(more).values()))[:2], result, rtol=1e-4, atol=1e-5)


def test_flags_are_those_of_the_process(convnet: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    with pytest.raises(ConfigError, match="start it with XLA_FLAGS='--xla_cpu_enable_fast_math=false'"):
        output("xla", convnet)


def test_options_become_flags() -> None:
    flags = backend("xla").environment(
        {"fast_math": True, "optimization_level": 0, "disabled_hlo_passes": ["algsimp", "fusion"]}
    )["XLA_FLAGS"]
    assert flags.startswith("--xla_cpu_enable_fast_math=true --xla_cpu_fast_math_honor_nans=false")
    assert flags.endswith("--xla_backend_optimization_level=0 --xla_disable_hlo_passes=algsimp,fusion")
    with pytest.raises(ConfigError, match="no 'algsim'; did you mean 'algsimp'"):
        backend("xla").check({"disabled_hlo_passes": ["algsim"]})


def switches(ran: list[str], options: dict[str, Any]) -> list[Switch]:
    """Those of a model that some passes changed."""
    told = SimpleNamespace(inputs=(), run=lambda _: {}, ran=ran)
    return BACKEND.switches(options, lambda asked: told if asked["lists_passes"] else None)  # type: ignore[arg-type, return-value]


def test_parts_are_those_that_ran_and_are_on() -> None:
    ran = ["dce", "layout-assignment", "algsimp", "dce", "simplification"]
    names = [part.name for part in switches(ran, {"fast_math": True})]
    assert names == ["dce", "algsimp", "optimization_level", "max_isa", "fast_math"]
    options = BACKEND.without({"fast_math": True, "disabled_hlo_passes": ["cse"]}, ["dce", "fast_math"])
    assert options == {"fast_math": False, "disabled_hlo_passes": ["cse", "dce"]}
    assert [part.name for part in switches(ran, options)] == ["algsimp", "optimization_level", "max_isa"]
    assert BACKEND.without({}, ["optimization_level", "max_isa"]) == {"optimization_level": 0, "max_isa": "SSE4_2"}


def test_formats() -> None:
    wanted = {name: backend("xla").takes(Model(name, "net", ""), {}) for name in ("onnx", "keras", "tensorflow")}
    assert wanted == {"onnx": "keras", "keras": "keras", "tensorflow": "tensorflow"}


SCRIPT = """
import json, os, sys
from conrepair.formats.backends import xla
path, options = sys.argv[1], json.loads(sys.argv[2])
os.environ |= xla.BACKEND.environment(options)
import small_models as small
from pathlib import Path
runnable = xla.BACKEND.load(small.model_of("keras", Path(path)), options)
(result,) = runnable.run({"image": small.images(2, channels_last=True)}).values()
print(json.dumps({"ran": runnable.ran, "bits": result.tobytes().hex()}))
"""


def in_a_process(model: Model, **options: Any) -> dict[str, Any]:
    support = str(Path(small.__file__).parent)
    script = f"import sys; sys.path.insert(0, {support!r}); {SCRIPT}"
    done = subprocess.run(
        [sys.executable, "-c", script, model.path, json.dumps(options)], check=True, capture_output=True, text=True
    )
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


@pytest.mark.slow
def test_passes_are_listed_and_left_out(convnet: Model) -> None:
    whole = in_a_process(convnet, lists_passes=True)
    assert {"algsimp", "fusion", "layout-assignment"} <= set(whole["ran"])
    left = in_a_process(convnet, **BACKEND.without({"lists_passes": True}, ["algsimp", "fusion"]))
    assert {"algsimp", "fusion"}.isdisjoint(left["ran"])
    names = [part.name for part in switches(whole["ran"], {})]
    assert in_a_process(convnet, **BACKEND.without({}, names))["bits"] != whole["bits"]
    assert in_a_process(convnet)["ran"] == []
