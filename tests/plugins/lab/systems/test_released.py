"""Systems in other releases: an environment that stands for one runs what's installed here."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from fuzz_cases import padded_pool
from stand_in_environment import stand_in

from conrepair.ground.runtime.errors import UsageError
from conrepair.ground.runtime.outside import environments
from conrepair_lab.cases.case import Case
from conrepair_lab.fuzz.cause import isolated
from conrepair_lab.fuzz.looking import RIGHT, SUSPECT, look
from conrepair_lab.fuzz.suspicion import REFUSED
from conrepair_lab.fuzz.trial import tried
from conrepair_lab.systems import released
from conrepair_lab.systems.registry import entry, installed
from conrepair_lab.systems.released import Released
from conrepair_lab.systems.system import Program, Setting

pytestmark = pytest.mark.timeout(120)
HERE = importlib.metadata.version("onnxruntime")
NAME = f"ort-all@{HERE}"
IN_TVM = f"tvm-O2@{importlib.metadata.version('apache-tvm')}"


@pytest.fixture(autouse=True, scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Environments whose Python finds what ours finds; their processes stay, as they do outside tests."""
    folder = tmp_path_factory.mktemp("environments")
    with pytest.MonkeyPatch.context() as patch, none_running():
        patch.setattr(environments, "environments_folder", lambda: folder)
        for name in (NAME, IN_TVM):
            within = entry(name).within
            assert within is not None
            stand_in(within, folder)
        yield


@contextlib.contextmanager
def none_running() -> Iterator[None]:
    """Begin without a process, and end those that were started."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(released, "_processes", {})
        yield
        for process in released._processes.values():
            process.close()


def case(text: str, **inputs: np.ndarray) -> Case:
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["":20]> {text}')
    return Case(model.SerializeToString(), inputs)


PRODUCT = case(
    "g (float[2,2] a) => (float[2,2] y) { t = MatMul(a, a) \n y = Tanh(t) }", a=np.eye(2, dtype=np.float32) / 3
)


def test_answers_are_those_of_the_library(tmp_path: Path) -> None:
    asked, here = entry(NAME), entry("ort-all")
    given = tried(PRODUCT, asked.runs, asked.chosen, tmp_path)
    right = tried(PRODUCT, here.runs, here.chosen, tmp_path)
    assert given.ended is None
    assert given.answers[0]["y"].tobytes() == right.answers[0]["y"].tobytes()
    assert look(PRODUCT, asked.runs, asked.chosen, tmp_path).verdict == RIGHT


@pytest.fixture
def alone() -> Iterator[None]:
    with none_running():
        yield


@pytest.mark.usefixtures("alone")
def test_one_process_serves_all_models_by_turns(tmp_path: Path) -> None:
    asked = entry(NAME)
    other = case("g (float[2,2] a) => (float[2,2] y) { y = Neg(a) }", a=PRODUCT.inputs["a"])
    runnables = []
    for place, each in enumerate((PRODUCT, other)):
        path = tmp_path / f"{place}.onnx"
        path.write_bytes(each.network)
        from conrepair.formats.models.model import Model

        runnables.append(asked.runs.open(Model("onnx", str(path), str(place) * 64), asked.chosen, tmp_path))
    for _ in range(2):
        first, second = (item.run(dict(PRODUCT.inputs))["y"] for item in runnables)
        assert (second == -PRODUCT.inputs["a"]).all()
        assert not (first == second).all()
    assert len(released._processes) == 1


def test_what_the_library_raises_is_told_as_its_own(tmp_path: Path) -> None:
    wrong = case("g (float[2] a) => (float[2] y) { y = Reshape(a, a) }", a=np.ones(2, np.float32))
    asked, here = entry(NAME), entry("ort-all")
    there = tried(wrong, asked.runs, asked.chosen, tmp_path).ended
    ours = tried(wrong, here.runs, here.chosen, tmp_path).ended
    assert there is not None
    assert ours is not None
    assert (there.kind, there.error) == (ours.kind, ours.error)


def test_bfloat16_is_fed_and_given(tmp_path: Path) -> None:
    made = case(
        "g (bfloat16[2] a) => (bfloat16[2] y, float[2] z) { y = Identity (a) z = Cast <to = 1> (a) }",
        a=np.array([1.5, -2.0], ml_dtypes.bfloat16),
    )
    asked = entry(NAME)
    found = tried(made, asked.runs, asked.chosen, tmp_path)
    assert found.ended is None, found.ended
    assert found.answers[0]["y"].tobytes() == made.inputs["a"].tobytes()
    assert look(made, asked.runs, asked.chosen, tmp_path).verdict == RIGHT


def test_what_is_said_not_to_be_taken_is_refused(tmp_path: Path) -> None:
    text = case("g (string[2] a) => (string[2] y) { y = Identity(a) }", a=np.array(["a", "b"], object))
    asked = entry(NAME)
    found = look(text, asked.runs, asked.chosen, tmp_path)
    assert found.verdict == REFUSED
    assert "programs aren't fed" in found.message


@pytest.mark.parametrize(("name", "of_that"), [(NAME, "Pad_Fusion"), (IN_TVM, "FuseOps#0")])
def test_what_can_be_left_out_is_what_the_release_does(name: str, of_that: str, tmp_path: Path) -> None:
    asked, here = entry(name), entry(name.partition("@")[0])
    model = PRODUCT.file(tmp_path)
    there = asked.runs.switches(model, asked.chosen, tmp_path)
    assert there == here.runs.switches(model, here.chosen, tmp_path)
    off = [item for item in there if item.name == of_that]
    setting = asked.runs.without(asked.chosen, off)
    assert setting == here.runs.without(here.chosen, off) != asked.chosen
    if name == IN_TVM:
        assert of_that in asked.runs.open(model, asked.chosen, tmp_path).record["applications"]  # type: ignore[attr-defined]
        assert of_that not in asked.runs.open(model, setting, tmp_path).record["applications"]  # type: ignore[attr-defined]


def test_a_releases_fault_hangs_on_its_optimizer(tmp_path: Path) -> None:
    asked = entry(NAME)
    seen = look(padded_pool(), asked.runs, asked.chosen, tmp_path).suspicion
    assert seen is not None
    found = isolated(padded_pool(), seen, asked.runs, asked.chosen, tmp_path)
    assert (found.causes, found.exact) == ((("Pad_Fusion",),), True)


@pytest.mark.parametrize("name", [NAME, IN_TVM])
def test_drawn_options_are_those_of_the_system(name: str, tmp_path: Path) -> None:
    asked, here = entry(name), entry(name.partition("@")[0])
    drawn, same = (item.runs.drawn(item.chosen, np.random.default_rng(0)) for item in (asked, here))
    assert drawn == same
    assert asked.runs.with_drawn(asked.chosen, drawn) == here.runs.with_drawn(here.chosen, drawn)
    with_them = Case(PRODUCT.network, PRODUCT.inputs, {asked.system: drawn})
    assert look(with_them, asked.runs, asked.chosen, tmp_path).verdict == RIGHT


class _Dying(Released):
    def program(self, setting: Setting) -> Program:
        return Program("import os\n", f"os.kill(os.getpid(), {int(signal.SIGSEGV)})\n")


def test_a_crash_costs_the_process_of_the_release_alone(tmp_path: Path) -> None:
    asked = entry(NAME)
    dying = _Dying(entry("ort-all").runs, HERE)
    found = look(PRODUCT, dying, asked.chosen, tmp_path)
    assert found.verdict == SUSPECT
    assert found.suspicion is not None
    assert (found.suspicion.kind, found.suspicion.stage, found.suspicion.error) == ("crash", "run", "SIGSEGV")
    assert look(PRODUCT, asked.runs, asked.chosen, tmp_path).verdict == RIGHT, "another one was started"


@pytest.mark.usefixtures("alone")
def test_a_copy_of_a_process_starts_its_own(tmp_path: Path) -> None:
    asked = entry(NAME)
    assert look(PRODUCT, asked.runs, asked.chosen, tmp_path).verdict == RIGHT
    child = os.fork()
    if not child:
        try:
            right = look(PRODUCT, asked.runs, asked.chosen, tmp_path).verdict == RIGHT
            os._exit(0 if right and len(released._processes) == 2 else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert look(PRODUCT, asked.runs, asked.chosen, tmp_path).verdict == RIGHT


@pytest.mark.parametrize("name", ["torch-compile@2.4.0", "tflite@2.0.0", "convert-keras@3.0", "tvm-O3@0.26.0"])
def test_what_needs_this_installation_has_no_other_releases(name: str) -> None:
    with pytest.raises(UsageError, match="can't be run in other releases"):
        entry(name)


def test_names() -> None:
    asked = entry("tvm-O2@0.26.0")
    assert (asked.name, asked.plain.name) == ("tvm-O2@0.26.0", "tvm-O0@0.26.0")
    assert asked.runs.blamed(asked.chosen, {}) == {"apache-tvm": "0.26.0"}
    assert entry("convert-onnxslim@0.1.80").runs.blamed(entry("convert-onnxslim").chosen, {}) == {
        "onnxslim": "0.1.80"
    }
    with pytest.raises(UsageError, match=r"'' is no version"):
        entry("ort-all@")
    with pytest.raises(UsageError, match=r"only campaigns .* Leave out @1.20.1"):
        installed("ort-all@1.20.1")
