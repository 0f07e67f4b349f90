"""What other packages bring by entry points is known by its name, and breaks nothing that doesn't use it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import standin_plugin

from conrepair.application.cli.commands.doctor import _about_plugin
from conrepair.application.cli.main import VERBS
from conrepair.application.config.parts import PARTS
from conrepair.application.engine import fingerprint
from conrepair.application.engine.fingerprint import code_fingerprint
from conrepair.diagnosis.localization.faces.diagnose import DIAGNOSES, _told
from conrepair.formats.backends.all_backends import BACKENDS
from conrepair.formats.converters.all_converters import CONVERTERS
from conrepair.formats.converters.routes import find_route
from conrepair.formats.models.detect import detect_framework
from conrepair.formats.models.formats import FORMATS
from conrepair.formats.models.identity import model_sha256
from conrepair.ground.runtime import plugins
from conrepair.ground.runtime.errors import ConfigError


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(standin_plugin.install(tmp_path / "packages")))
    registries = FORMATS, BACKENDS, CONVERTERS, VERBS, PARTS, DIAGNOSES
    kept = [dict(item._loaded) for item in registries]
    plugins.plugins.cache_clear()
    yield tmp_path
    plugins.plugins.cache_clear()
    for item, loaded in zip(registries, kept, strict=True):
        item._loaded = loaded
    for name in [name for name in sys.modules if name.startswith("standin") and name != "standin_plugin"]:
        del sys.modules[name]


def test_those_that_can_be_imported_are_listed_behind_ours(installed: Path) -> None:
    assert list(FORMATS) == [*FORMATS.own, "standin"]
    assert list(BACKENDS) == [*BACKENDS.own, "halves", "fuses", "named"]
    assert set(CONVERTERS) - set(CONVERTERS.own) >= {"onnx-standin"}


def test_a_broken_one_says_what_is_wrong_where_it_is_asked_for(installed: Path) -> None:
    with pytest.raises(ConfigError, match=r"plug-in broken of standin-plugins 1\.2 can't be imported .*nobody_has"):
        FORMATS["broken"]


def test_one_of_another_type_is_refused(installed: Path) -> None:
    with pytest.raises(ConfigError, match=r"is a str, and entry points of conrepair\.backends are Backends"):
        BACKENDS["text"]


def test_none_stands_in_the_place_of_ours(installed: Path) -> None:
    assert type(BACKENDS["tvm"]).__name__ == "TvmBackend"
    plugin = next(item for item in plugins.plugins() if item.name == "tvm")
    assert "conrepair itself has a backend called tvm" in BACKENDS.problem(plugin)


def test_a_name_that_nobody_has_is_none(installed: Path) -> None:
    assert "caffe" not in FORMATS
    with pytest.raises(KeyError):
        FORMATS["caffe"]


def test_files_are_told_by_their_format(installed: Path) -> None:
    path = installed / "net.bin"
    path.write_bytes(b"standin\n")
    assert detect_framework(path) == "standin"
    assert len(model_sha256(path)) == 64
    assert find_route("onnx", "standin").name == "onnx-standin"


def test_jobs_are_named_and_not_imported(installed: Path) -> None:
    assert plugins.named("jobs")["standin_job"] == "standin:job"
    assert "standin" not in sys.modules


def test_nothing_is_read_before_it_is_asked_for() -> None:
    code = (
        "import sys, conrepair.api; from conrepair.formats.models.formats import FORMATS; FORMATS['onnx'].suffixes; "
        "from conrepair.formats.backends.all_backends import backend; backend('onnxruntime'); "
        "from conrepair.ground.runtime.plugins import plugins; print(plugins.cache_info().currsize)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0"


@pytest.mark.parametrize(
    ("name", "state", "words"),
    [
        ("standin", "installed", ""),
        ("broken", "fails", "a_module_that_nobody_has"),
        ("halves", "missing", "pip install nothing"),
        ("tvm", "fails", "conrepair itself has a backend called tvm"),
        ("standin_job", "installed", ""),
        ("greet", "installed", ""),
        ("greetings", "installed", ""),
        ("odd-sizes", "installed", ""),
        ("misspelled", "fails", "there's no group conrepair.diagnosis; there are formats, backends"),
    ],
)
def test_doctor_says_of_each_what_is_wrong(installed: Path, name: str, state: str, words: str) -> None:
    line = _about_plugin(next(item for item in plugins.plugins() if item.name == name))
    assert (line.state, line.detail[:19]) == (state, "standin-plugins 1.2")
    assert words in line.remedy


def test_a_diagnosis_names_a_fault_and_one_that_fails_costs_nothing(installed: Path) -> None:
    sides = (_side("a"), _side("b"))
    region = SimpleNamespace(source=sides[0], target=sides[1])
    found = [finding for name in ("odd-sizes", "fails") for finding in _told(name, region)]
    assert [finding.words for finding in found] == ["the stand-in's rule explains it"]


def test_a_diagnosis_is_part_of_the_key_of_what_asks_it(installed: Path) -> None:
    def keys() -> list[str]:
        fingerprint._plugin.cache_clear()
        return [code_fingerprint.__wrapped__(kind) for kind in ("localize", "look", "execute")]

    before, module = keys(), installed / "packages" / "standin_diagnosis.py"
    assert keys() == before
    module.write_text(module.read_text() + "\n")
    assert [one == two for one, two in zip(before, keys(), strict=True)] == [False, False, True]


def _side(layer: str) -> Any:
    return SimpleNamespace(nodes=(SimpleNamespace(op="MatMul", layer=layer),))
