"""One wrong layer among layers in eight bits is named, and repaired as if it had never been wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from quantized_faults import FAULTS, in_eight_bits, with_fault
from quantized_networks import source, subject
from small_models import model_of

from conrepair.diagnosis.localization.models import localize_models
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.repairs.options import RepairOptions
from conrepair.diagnosis.repairs.repair import repair_models
from conrepair.formats.models.model import Model
from conrepair.verdicts.evaluate.verdict import Verdict

_OPTIONS = Options(samples=8, batch_size=8, quantized=True)


@pytest.fixture(scope="module", params=["QDQ", "QOperator"])
def right(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Model, Model]:
    folder = tmp_path_factory.mktemp(request.param)
    made = source(folder)
    path = in_eight_bits(Path(made.path), folder / "int8.onnx", rows(40, seed=2), request.param)
    return made, model_of("onnx", path)


def rows(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, 3, 12, 12)).astype(np.float32)


def answers(path: Path) -> np.ndarray:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return np.concatenate([session.run(None, {"x": row[None]})[0] for row in rows(16, seed=11)])


def test_a_right_one_is_right(right: tuple[Model, Model], tmp_path: Path) -> None:
    found = localize_models(*(subject(model, tmp_path) for model in right), tmp_path / "at", _OPTIONS)
    assert (found.verdict, found.faults) == (Verdict.QUANTIZED, ())
    assert "of the top-1 predictions changed" in found.reason
    assert "quantization is taken as intended" in found.reason


@pytest.mark.parametrize("name", FAULTS)
def test_one_wrong_layer_is_named_and_as_good_as_new(name: str, right: tuple[Model, Model], tmp_path: Path) -> None:
    wrong = model_of("onnx", with_fault(Path(right[1].path), name, tmp_path / "wrong.onnx"))
    options = RepairOptions(_OPTIONS, seconds=90, unseen=8)
    result = repair_models(subject(right[0], tmp_path), subject(wrong, tmp_path), tmp_path / "out", options)
    assert FAULTS[name][1] in result.before.faults[0].evidence[0]
    if result.model is None:
        assert name == "a little", "only what eight bits hide may be no better on other samples"
        return
    assert not result.after.faults
    np.testing.assert_array_equal(answers(Path(result.model.path)), answers(Path(right[1].path)))
