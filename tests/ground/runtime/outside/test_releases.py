"""Environments of other releases: what's pinned, what's refused, what's found again."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from conrepair.ground.runtime.errors import UsageError
from conrepair.ground.runtime.outside import releases
from conrepair.ground.runtime.outside.environments import ENVIRONMENTS
from conrepair.ground.runtime.outside.releases import (
    RELEASED,
    environments_of,
    made_releases,
    named_environment,
    release,
)


def test_a_release_goes_with_what_is_installed_here() -> None:
    found = release("onnxslim", "0.1.80")
    assert found.name == "onnxslim==0.1.80"
    ours = {name: importlib.metadata.version(name) for name in ("numpy", "onnx", "onnxruntime")}
    assert found.pins == {**ours, "onnxslim": "0.1.80"}
    assert found.imports == ("onnxslim", "onnx", "onnxruntime")


@pytest.mark.parametrize(("version", "numpy"), [("1.18.1", "1.26.4"), ("1.20.1", None)])
def test_old_releases_of_onnx_runtime_need_an_old_numpy(version: str, numpy: str | None) -> None:
    found = release("onnxruntime", version).pins
    assert found == {"onnxruntime": version, "numpy": numpy or importlib.metadata.version("numpy")}


def test_tvm_is_given_the_library_that_it_is_compiled_for() -> None:
    assert release("apache-tvm", "0.26.0").pins["apache-tvm-ffi"] == "0.1.13.post2"
    assert release("apache-tvm", "0.26.0").imports == ("tvm", "onnx")


@pytest.mark.parametrize("version", ["", "../../x", "1.0 --index-url http://x", "1.0;x", "-r", "1/2"])
def test_what_is_no_version_is_refused(version: str) -> None:
    with pytest.raises(UsageError, match="is no version of onnxruntime"):
        release("onnxruntime", version)


def test_other_libraries_are_refused() -> None:
    with pytest.raises(UsageError, match="other releases of 'requests' can't be run; there are those of onnxruntime"):
        release("requests", "2.0")


def test_names() -> None:
    assert named_environment("onnx2tf") is ENVIRONMENTS["onnx2tf"]
    assert named_environment("Apache_TVM==0.26.0") == release("apache-tvm", "0.26.0")
    with pytest.raises(UsageError, match="no environment 'nope'"):
        named_environment("nope")


def test_those_that_jobs_need() -> None:
    needs = {"onnx", "onnxruntime==1.20.1", "tensorflow", "onnx2tf"}
    assert environments_of(needs) == [ENVIRONMENTS["onnx2tf"], release("onnxruntime", "1.20.1")]
    with pytest.raises(UsageError, match="can't be run"):
        environments_of({"requests==2.0"})


def test_those_that_were_made_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releases, "environments_folder", lambda: tmp_path)
    assert made_releases() == []
    for name in ("onnxruntime==1.20.1", "onnxruntime==1.20.1", "other==2", "onnx2tf"):
        (tmp_path / f"{name}-{'0123456789abcdef'}").mkdir(exist_ok=True)
    assert [item.name for item in made_releases()] == ["onnxruntime==1.20.1"]
    assert set(RELEASED) >= {"onnxruntime", "apache-tvm", "onnxoptimizer"}


def test_what_a_plugin_brings_has_releases_too(monkeypatch: pytest.MonkeyPatch) -> None:
    packages = {"mine-compiler": "mine.compiler", "mine-runtime": "mine.runtime", "onnx": "onnx"}
    monkeypatch.setattr(releases, "_PLUGGED", {"mine": SimpleNamespace(packages=packages)})
    found = release("mine-compiler", "2.1")
    assert found.pins == {
        "numpy": importlib.metadata.version("numpy"),
        "mine-compiler": "2.1",
        "mine-runtime": "2.1",
        "onnx": importlib.metadata.version("onnx"),
    }
    assert found.imports == tuple(packages.values())
    with pytest.raises(UsageError, match="'mine-runtime' can't be run"):
        release("mine-runtime", "2.1")
