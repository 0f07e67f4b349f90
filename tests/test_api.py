"""The verbs from Python: paths and objects, in this process and in a worker."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from documents import document
from localized import WEIGHTS, Variant

import conrepair
from conrepair.formats.models.registry import framework
from conrepair.ground.runtime.files.whole import sha256_of
from conrepair.testing import assert_equivalent
from conrepair.verdicts.evaluate.verdict import Verdict

LAYER = next(iter(WEIGHTS))


@pytest.fixture
def right(tmp_path: Path) -> Path:
    return Path(Variant(size=(12, 12)).write(tmp_path / "right.onnx").path)


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    weights = {LAYER: WEIGHTS[LAYER] * 1.5}
    return Path(Variant(size=(12, 12), weights=weights).write(tmp_path / "wrong.onnx").path)


def test_answers_are_compared(right: Path, wrong: Path, tmp_path: Path) -> None:
    same = conrepair.compare(right, right, in_process=True)
    assert (same.verdict, same.exit_code, same.faults) == (Verdict.EQUIVALENT, 0, ())
    found = conrepair.compare(right, wrong, in_process=True)
    assert (found.verdict, found.exit_code) == (Verdict.FAULTY, 1)
    assert str(found).startswith("faulty: ")
    folder = found.save(tmp_path / "report")
    report = document(folder)
    assert report["rows"][-1]["verdict"] == "faulty"
    assert report["config"]["source"] == str(right)
    assert found.to_dict()["rows"] == report["rows"]


def test_a_model_is_compiled_and_the_build_is_a_target(right: Path, tmp_path: Path) -> None:
    built = conrepair.build(right, setting="O1", in_process=True)
    assert (built.exit_code, built.via, built.record["importer"]) == (0, "", "relax.frontend.onnx")
    assert conrepair.localize(right, built.folder, samples=4, in_process=True).exit_code == 0
    folder = built.save(tmp_path / "build")
    assert built.to_dict()["build"]["kernels"] == json.loads((folder / "build.json").read_text())["kernels"]
    with pytest.raises(conrepair.ConrepairError, match="build exists"):
        built.save(folder)
    run = conrepair.execute(right, backend="tvm", tvm={"setting": "O1"}, samples=4, in_process=True)
    plain = conrepair.execute(right, samples=4, in_process=True)
    assert run.verdict is not None
    assert run.verdict.is_right
    for name, values in plain.outputs.items():
        np.testing.assert_allclose(run.outputs[name], values, rtol=1e-4, atol=1e-5)


def test_wrong_options_of_a_compiler_are_named(right: Path) -> None:
    with pytest.raises(conrepair.ConrepairError, match="setting"):
        conrepair.build(right, setting="O7", in_process=True)
    with pytest.raises(conrepair.ConrepairError, match="leave tvm out"):
        conrepair.execute(right, tvm={"target": "llvm"}, in_process=True)
    with pytest.raises(conrepair.ConrepairError, match="backend is 'tensorrt': give one of libraries"):
        conrepair.execute(right, backend="tensorrt", in_process=True)  # type: ignore[arg-type]


def test_a_given_tolerance_decides_alone(right: Path, wrong: Path) -> None:
    assert conrepair.compare(right, wrong, rtol=0.0, atol=1e6, in_process=True).verdict is Verdict.EQUIVALENT
    with pytest.raises(conrepair.ConrepairError, match="atol is -1"):
        conrepair.compare(right, wrong, atol=-1.0, in_process=True)
    with pytest.raises(conrepair.ConrepairError, match="rtol is -1"):
        conrepair.localize(right, wrong, rtol=-1.0)


def test_layers_at_fault_are_named(right: Path, wrong: Path, tmp_path: Path) -> None:
    found = conrepair.localize(right, wrong, in_process=True)
    (fault,) = found.faults
    assert (found.verdict, found.exit_code) == (Verdict.FAULTY, 1)
    assert fault.kind.value in str(found)
    folder = found.save(tmp_path / "layers")
    assert document(folder) == found.to_dict() | {"folder": str(folder)}


@pytest.mark.workers
def test_a_worker_says_what_this_process_says(right: Path, wrong: Path) -> None:
    here, there = (conrepair.localize(right, wrong, in_process=where) for where in (True, False))
    assert here.faults == there.faults
    assert here.reason == there.reason


def test_a_conversion_is_repaired(right: Path, wrong: Path, tmp_path: Path) -> None:
    before = sha256_of(wrong)
    done = conrepair.repair(right, wrong, output=tmp_path / "out", samples=16)
    assert done.faults
    assert done.mended
    assert done.exit_code == 0
    assert done.model is not None
    assert done.model.parent == tmp_path / "out"
    onnxruntime.InferenceSession(done.model, providers=["CPUExecutionProvider"])
    assert done.result is not None
    assert done.result.model is not None
    assert framework("onnx").describe(done.result.model).inputs
    assert done.result.patch == str(tmp_path / "out" / "patch.json")
    assert sha256_of(wrong) == before
    again = conrepair.repair(right, done.model, output=tmp_path / "none", samples=16, in_process=True)
    assert again.result is None
    assert again.mended
    assert not (tmp_path / "none").exists()


def test_a_repaired_model_is_there_as_long_as_its_result(right: Path, wrong: Path) -> None:
    done = conrepair.repair(right, wrong, samples=16, in_process=True)
    model = done.model
    assert model is not None
    assert conrepair.compare(right, model, in_process=True).exit_code == 0
    del done
    assert not model.exists()


def test_objects_need_no_file(right: Path, wrong: Path) -> None:
    one, two = onnx.load(right), onnx.load(wrong)
    by_name = conrepair.localize(right, wrong, in_process=True).faults
    assert conrepair.localize(one, two, in_process=True).faults == by_name
    assert conrepair.inspect(one, in_process=True).format == "ONNX"


def test_data_of_any_shape_is_taken(right: Path, wrong: Path) -> None:
    spec = conrepair.inspect(right, in_process=True).inputs[0]
    shape = [size if isinstance(size, int) else 1 for size in spec.shape[1:]]
    array = np.random.default_rng(3).standard_normal((6, *shape)).astype(np.float32)
    errors = []
    for data in (array, {spec.name: array}, iter([(array[:4], 0), (array[4:], 1)])):
        found = conrepair.compare(right, wrong, data=data, in_process=True)
        assert found.row.ran.run is not None
        assert found.row.ran.run.count == len(array)
        errors.append(found.reason)
    assert len(set(errors)) == 1


def test_one_s_mistakes_are_explained(right: Path, tmp_path: Path) -> None:
    with pytest.raises(conrepair.ConrepairError, match="target is 3: give a path"):
        conrepair.compare(right, 3, in_process=True)
    with pytest.raises(conrepair.ConrepairError, match=r"missing\.onnx"):
        conrepair.compare(right, tmp_path / "missing.onnx", in_process=True)
    with pytest.raises(conrepair.ConrepairError, match="gave no batch"):
        conrepair.localize(right, right, data=iter(()), in_process=True)
    with pytest.raises(conrepair.ConrepairError, match=r"low .* is above high"):
        conrepair.compare(right, right, low=2.0, high=1.0, in_process=True)
    with pytest.raises(conrepair.ConrepairError, match="samples is 0"):
        conrepair.localize(right, right, samples=0, in_process=True)


def test_a_damaged_file_is_said_in_this_process_too(right: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.onnx"
    damaged.write_bytes(right.read_bytes()[:-200])
    with pytest.raises(conrepair.ConrepairError) as caught:
        conrepair.localize(right, damaged, in_process=True)
    assert int(caught.value.exit_code) == 3


def test_a_model_is_converted_and_run(right: Path, wrong: Path, tmp_path: Path) -> None:
    if importlib.util.find_spec("onnx2torch") is None:
        pytest.skip("onnx2torch is not installed")
    done = conrepair.convert(right, to="torch", in_process=True)
    assert done.verdict in {Verdict.EQUIVALENT, Verdict.NOISE}
    assert done.route == "onnx2torch"
    path = done.save(tmp_path / "net.pt2")
    assert conrepair.compare(right, path, in_process=True).exit_code == 0
    with pytest.raises(conrepair.ConrepairError, match="exists"):
        done.save(path)
    with pytest.raises(conrepair.ConrepairError, match="is onnx already"):
        conrepair.convert(right, to="onnx", in_process=True)
    with pytest.raises(conrepair.ConrepairError, match="did you mean 'tflite'"):
        conrepair.convert(right, to="tfite", in_process=True)


@pytest.mark.parametrize("backend", ["libraries", "onnxruntime"])
def test_outputs_are_what_the_library_gives(backend: str, right: Path, tmp_path: Path) -> None:
    spec = conrepair.inspect(right, in_process=True).inputs[0]
    shape = [size if isinstance(size, int) else 1 for size in spec.shape[1:]]
    array = np.random.default_rng(3).standard_normal((5, *shape)).astype(np.float32)
    done = conrepair.execute(right, backend=backend, data=array, in_process=True)  # type: ignore[arg-type]
    session = onnxruntime.InferenceSession(right, providers=["CPUExecutionProvider"])
    for name, expected in zip(
        (item.name for item in session.get_outputs()), session.run(None, {spec.name: array}), strict=True
    ):
        np.testing.assert_allclose(done.outputs[name], expected, rtol=1e-4, atol=1e-5)
    folder = done.save(tmp_path / "run")
    assert document(folder)["rows"][-1]["backend"] == backend
    with pytest.raises(conrepair.ConrepairError, match="exists"):
        done.save(folder)


def test_a_backend_takes_the_options_of_a_configuration(right: Path) -> None:
    options = {"optimization": "basic", "disabled_optimizers": ["ConvBNFusion"]}
    done = conrepair.execute(right, backend="onnxruntime", options=options, in_process=True)
    assert done.row.place is not None
    assert done.row.place.setting == "basic, without ConvBNFusion"
    for wrong, words in (({"optimisation": "basic"}, "optimisation"), ({"disabled_optimizers": ["x"]}, "no 'x'")):
        with pytest.raises(conrepair.ConrepairError, match=words):
            conrepair.execute(right, backend="onnxruntime", options=wrong, in_process=True)


def test_results_are_frozen(right: Path) -> None:
    found = conrepair.localize(right, right, in_process=True)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.about = None  # type: ignore[misc, assignment]


def test_an_assertion_names_the_guilty_layer(right: Path, wrong: Path, tmp_path: Path) -> None:
    assert_equivalent(right, right, in_process=True)
    with pytest.raises(AssertionError) as caught:
        assert_equivalent(right, wrong, report=tmp_path / "report", in_process=True)
    lines = str(caught.value).splitlines()
    assert len(lines) <= 10
    (fault,) = conrepair.localize(right, wrong, in_process=True).faults
    assert fault.target_layers[0] in lines[1]
    assert lines[-1] == f"report: {tmp_path / 'report'}"
    assert (tmp_path / "report" / "result.json").is_file()


def test_reports_of_a_session_are_kept_by_test(
    right: Path, wrong: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONREPAIR_REPORTS", str(tmp_path / "reports"))
    for name in ("one", "one-1"):
        monkeypatch.setenv("PYTEST_CURRENT_TEST", "tests/test_net.py::one (call)")
        with pytest.raises(AssertionError, match=f"report: .*{name}$"):
            assert_equivalent(right, wrong, in_process=True)


@pytest.mark.parametrize(
    ("test", "folder"),
    [
        ("tests/test_net.py::one[a::b c] (call)", "one-a--b-c"),
        (f"tests/test_net.py::one[{'ü' * 300}] (call)", None),
        (f"tests/test_net.py::{'x' * 4000} (call)", None),
        ("tests/test_net.py::one[../../a/\\0] (call)", "one-------a--0"),
    ],
)
def test_reports_of_tests_of_any_name(
    right: Path,
    wrong: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    test: str,
    folder: str | None,
) -> None:
    monkeypatch.setenv("CONREPAIR_REPORTS", str(tmp_path / "reports"))
    monkeypatch.setenv("PYTEST_CURRENT_TEST", test)
    with pytest.raises(AssertionError, match="report: "):
        assert_equivalent(right, wrong, in_process=True)
    (found,) = (tmp_path / "reports").iterdir()
    assert (found / "result.json").is_file()
    assert found.name == (folder or found.name)


def test_an_import_costs_nothing_and_rooms_don_t_hide_verbs() -> None:
    code = (
        "import sys, conrepair; loaded = set(sys.modules)\n"
        "assert not {'numpy', 'pydantic', 'rich', 'onnx', 'conrepair.api'} & loaded, loaded\n"
        "import conrepair.diagnosis.localization.models, conrepair.diagnosis.repairs.result\n"
        "assert callable(conrepair.localize) and callable(conrepair.repair)\n"
        "assert sorted(conrepair.__all__) == conrepair.__all__\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_result_is_neither_true_nor_false(right: Path, wrong: Path) -> None:
    for verb in (conrepair.compare, conrepair.localize):
        with pytest.raises(TypeError, match="neither true nor false"):
            assert verb(right, wrong, samples=2, in_process=True)


@pytest.mark.parametrize("verb", [conrepair.compare, conrepair.localize])
def test_data_that_fits_no_input_is_an_error(verb: Any, right: Path, wrong: Path) -> None:
    with pytest.raises(conrepair.ConrepairError):
        verb(right, wrong, data=np.zeros((4, 7), np.float32), in_process=True)


def test_a_result_is_a_screen_of_text(right: Path, wrong: Path) -> None:
    """A notebook saves it with each cell."""
    found = conrepair.localize(right, wrong, samples=2, in_process=True)
    done = conrepair.repair(right, wrong, samples=2, advice=0, in_process=True)
    for value in (found, found.run, found.row, found.localization, done, done.run, done.row.repaired):
        assert len(repr(value)) < 2000, type(value)
        assert len(str(value).splitlines()) <= 25
    many = dataclasses.replace(found.run, rows=found.run.rows * 100)
    assert len(str(many)) < 5000
    assert "and 180 more" in repr(many)
    assert "faulty" in repr(found)
