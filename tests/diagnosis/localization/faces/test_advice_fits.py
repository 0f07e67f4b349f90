"""What a fault is called, and what is advised, by what is there: a mask isn't a picture, a product has no weights."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from localizations import fault_of, row
from localizing import localize_networks
from onnx_networks import drawn, written
from small_models import model_of

from conrepair.application.report.localization.advice import About, fault_advice
from conrepair.diagnosis.localization.judge.quantized_rules import SATURATES
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.result import LocatedFault
from conrepair.formats.models.model import Model
from conrepair.formats.onnx.read.network import open_network
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.graph.kinds import Kind

_TEXT = """attention (float[2, 6, 8] x, int64[2, 6] mask) => (float[2, 6, 8] y) {{
    q = MatMul (x, wq)
    k = MatMul (x, wk)
    kt = Transpose <perm = [0, 2, 1]> (k)
    {early}
    s = MatMul ({product})
    scores = Mul (s, scale)
    m = Cast <to = 1> (mask)
    one_less = Sub (one, m)
    low = Mul (one_less, lowest)
    {more}
    axis = Constant <value = int64[1] {{1}}> ()
    row = Unsqueeze ({bias}, axis)
    masked = Add (scores, row)
    p = Softmax <axis = -1> (masked)
    v = MatMul (x, wv)
    y = MatMul (p, v)
}}"""
_WEIGHTS = {name: drawn(8, 8, seed=place) for place, name in enumerate(("wq", "wk", "wv"))}
_INPUTS = (TensorSpec("x", (2, 6, 8), "float32"), TensorSpec("mask", (2, 6), "int64"))
_NUMBERS = {"one": 1.0, "lowest": -1e4, "scale": 0.35}


def network(
    path: Path, *, early: str = "", product: str = "q, kt", more: str = "", bias: str = "low", **numbers: float
) -> Any:
    constants = {name: np.array(value, np.float32) for name, value in (_NUMBERS | numbers).items()}
    text = _TEXT.format(early=early, product=product, more=more, bias=bias)
    model = model_of("onnx", written(path, text, {**_WEIGHTS, **constants}))
    return open_network(model, _INPUTS)


@pytest.fixture
def found(tmp_path: Path) -> Any:
    def fault_of(**changes: Any) -> LocatedFault:
        generator = np.random.default_rng(0)
        mask = np.array([[1, 1, 1, 1, 0, 0], [1, 1, 0, 0, 0, 0]], np.int64)
        feeds = {"x": generator.normal(size=(2, 6, 8)).astype(np.float32), "mask": mask}
        sides = network(tmp_path / "a.onnx"), network(tmp_path / "b.onnx", **changes)
        (tmp_path / "work").mkdir()
        result = localize_networks(*sides, [(feeds, feeds)], tmp_path / "work", Options()).result
        (fault,) = result.faults
        return fault

    return fault_of


def test_what_is_done_to_a_mask_is_no_preparation_of_inputs(found: Any) -> None:
    fault = found(more="weak = Mul (low, less)", bias="weak", less=1e-4)
    assert fault.kind is Kind.GRAPH
    assert fault.target_layers[0] == "weak"
    assert "Preprocess inputs" not in fault_advice(fault, None)


def test_a_lone_number_is_no_weight(found: Any) -> None:
    fault = found(scale=0.7)
    assert fault.holds == ("operand",)
    told = "To prevent it, look at what writes `scores` into the converted model"
    assert fault_advice(fault, None).startswith(told)
    unknown = dataclasses.replace(fault, differences=())
    told = "Compare the number that `scores` computes with in the converted model"
    assert fault_advice(unknown, None).startswith(told)


def test_a_product_without_weights_has_none_to_compare(found: Any) -> None:
    fault = found(early="qt = Transpose <perm = [0, 2, 1]> (q)", product="k, qt")
    assert "weights" not in fault_advice(fault, None)


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize(("source", "target"), [("y", ""), ("", "y"), ("", "")])
def test_no_advice_quotes_a_name_that_is_empty(kind: Kind, source: str, target: str) -> None:
    sizes = dict.fromkeys(("introduced_error", "full_run_error", "noise_floor", "confidence"), 1.0)
    layers: dict[str, Any] = {"source_layers": (), "target_layers": (), "evidence": (), "step": ""}
    fault = LocatedFault(kind=kind, source_tensor=source, target_tensor=target, **layers, **sizes)
    assert "``" not in fault_advice(fault, None)


def test_the_command_that_quantizes_again_runs_as_it_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file as it's typed here, the preprocessing that photos had, and what is to be filled in."""
    monkeypatch.chdir(tmp_path)
    fault = fault_of(row(0, 1.0), Kind.PRECISION, differences=((SATURATES, "clips"),))
    models = [Model(name, str(tmp_path / "my nets" / f"net.{name}"), "0" * 64) for name in ("keras", "tflite")]
    told = About(source=models[0], target=models[1], recipe="keras:tf")
    command = "conrepair convert 'my nets/net.keras' --to tflite --option keras-tflite.quantize=int8 --data DATA"
    meant = "(DATA: a folder of photos, or arrays (.npz); NEW: the file to write)"
    assert fault_advice(fault, told).endswith(f": `{command} --recipe keras:tf -o NEW` {meant}.")
    told = dataclasses.replace(told, recipe="")
    assert f"`{command} -o NEW` (DATA: a folder of photos, with their --recipe, or" in fault_advice(fault, told)
