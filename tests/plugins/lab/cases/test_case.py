"""A case comes back from its folder as it was, and nothing else does."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from conrepair.ground.runtime.errors import DataError
from conrepair_lab.cases.case import Case, read, written

MODEL = onnx.parser.parse_model(
    '<ir_version: 8, opset_import: ["" : 17]> g (float[n, 2] x) => (float[n, 2] y) { y = Relu (x) }'
)
TYPES = [np.float32, np.float16, np.int64, np.bool_, np.uint8, np.float64, ml_dtypes.bfloat16]
JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=4), st.lists, max_leaves=4)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    inputs = {}
    for name in draw(st.lists(st.sampled_from(["x", "a/b:0", "file", "ä"]), unique=True)):
        shape = draw(hnp.array_shapes(min_dims=0, min_side=0, max_dims=3, max_side=3))
        kind = draw(st.sampled_from(TYPES))
        inputs[name] = np.array(draw(hnp.arrays(np.int8, shape)), dtype=kind)
    options = draw(st.dictionaries(st.text(max_size=3), st.dictionaries(st.text(max_size=3), JSON), max_size=2))
    return Case.of(MODEL, inputs, options)


@given(cases())
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_was_written_is_read(tmp_path_factory: pytest.TempPathFactory, case: Case) -> None:
    folder = tmp_path_factory.mktemp("cases") / "case"
    written(case, folder)
    found = read(folder)
    assert found.key == case.key
    assert (found.network, found.options) == (case.network, case.options)
    for name, array in case.inputs.items():
        assert found.inputs[name].dtype == array.dtype
        np.testing.assert_array_equal(found.inputs[name], array)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    written(Case.of(MODEL, {"x": np.ones((1, 2), np.float32)}, {"ort": {"threads": 2}}), tmp_path / "case")
    return tmp_path / "case"


def test_nothing_in_the_folder_says_where_it_is(folder: Path) -> None:
    assert all(str(folder).encode() not in file.read_bytes() for file in folder.iterdir())


def test_another_number_is_another_case(folder: Path) -> None:
    case = read(folder)
    assert Case(case.network, {"x": 2 * case.inputs["x"]}, case.options).key != case.key


def _pickled(folder: Path) -> None:
    with (folder / "inputs.npz").open("wb") as file:
        np.savez(file, x=np.array([{}], dtype=object))


def _other_arrays(folder: Path) -> None:
    np.savez(folder / "inputs.npz", x=np.zeros((1, 2), np.float32))


def _other_names(folder: Path) -> None:
    np.savez(folder / "inputs.npz", y=np.ones((1, 2), np.float32))


def _other_model(folder: Path) -> None:
    (folder / "model.onnx").write_bytes(MODEL.SerializeToString() + MODEL.SerializeToString())


def _weights_elsewhere(folder: Path) -> None:
    model = onnx.ModelProto()
    model.CopyFrom(MODEL)
    weight = model.graph.initializer.add(name="w", data_type=1, dims=[2], data_location=onnx.TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value="../../secret")
    shutil.rmtree(folder)
    written(Case.of(model, {"x": np.ones((1, 2), np.float32)}), folder)


def _about(change: Any) -> Any:
    def changed(folder: Path) -> None:
        told = json.loads((folder / "case.json").read_text())
        (folder / "case.json").write_text(json.dumps(change(told)))

    return changed


@pytest.mark.parametrize(
    "damage",
    [
        _pickled,
        _other_arrays,
        _other_names,
        _other_model,
        _weights_elsewhere,
        lambda folder: (folder / "model.onnx").write_bytes(b"no model"),
        lambda folder: (folder / "model.onnx").unlink(),
        lambda folder: (folder / "inputs.npz").write_bytes(pickle.dumps(1)),
        lambda folder: (folder / "case.json").write_text("{"),
        _about(lambda told: [told]),
        _about(lambda told: told | {"version": 2}),
        _about(lambda told: told | {"inputs": {"x": 1}}),
        _about(lambda told: told | {"options": {"ort": 1}}),
        _about(lambda told: told | {"model": None}),
    ],
)
def test_what_was_damaged_is_not_read(folder: Path, damage: Any) -> None:
    damage(folder)
    with pytest.raises(DataError, match=str(folder)):
        read(folder)


@pytest.mark.parametrize(
    "case",
    [
        Case.of(MODEL, {"x": np.array([{}], dtype=object)}),
        Case.of(MODEL, {}, {"ort": {"limit": float("nan")}}),
        Case.of(MODEL, {}, {"ort": {"limit": {1}}}),
    ],
)
def test_what_is_no_data_is_not_written(tmp_path: Path, case: Case) -> None:
    with pytest.raises(DataError, match="case's"):
        written(case, tmp_path / "case")
    assert not list(tmp_path.iterdir())
