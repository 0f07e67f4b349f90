"""What a quantized piece introduces may be its bits; that its weights are the source's is known better."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from quantized_networks import converted, source, subject
from small_models import model_of

from conrepair.diagnosis.localization.align.layout import layouts
from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.faces.region import Side
from conrepair.diagnosis.localization.judge import doubtful
from conrepair.diagnosis.localization.judge.doubtful import _is_doubtful, _unexplained
from conrepair.diagnosis.localization.judge.judgement import Judged
from conrepair.diagnosis.localization.localize import Localization
from conrepair.diagnosis.localization.models import localize_models
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.run.measurement import Cut
from conrepair.ground.graph.layer_graph import LayerGraph, Node, Parameter

_OPTIONS = Options(samples=8, batch_size=4, quantized=True)


def located(folder: Path, steps: float) -> Localization:
    """With the third layer's weights off by a number of their steps on average."""
    right = source(folder)
    model = onnx.load(converted(right, "onnx-quantize-static", folder / "made").path)
    weight = next(item for item in model.graph.initializer if item.name == "w2_quantized")
    held = numpy_helper.to_array(weight)
    noise = np.random.default_rng(5).normal(0, steps, held.shape)
    changed = np.clip(np.rint(held + noise), -127, 127).astype(held.dtype)
    weight.CopyFrom(numpy_helper.from_array(changed, weight.name))
    onnx.save(model, folder / "wrong.onnx")
    sides = (subject(item, folder) for item in (right, model_of("onnx", folder / "wrong.onnx")))
    return localize_models(*sides, folder / "work", _OPTIONS)


def test_a_weight_that_is_further_off_than_its_bits_allow_is_found(tmp_path: Path) -> None:
    found = located(tmp_path, 1.0)
    (row,) = [row for row in found.layers if row.guilty]
    assert row.noise_floor < row.introduced_error < 4 * row.noise_floor
    assert found.faults[0].source_layers[0] == "g"


@pytest.mark.parametrize("steps", [0.0, 0.1])
def test_rounding_is_no_other_weight(tmp_path: Path, steps: float) -> None:
    assert not located(tmp_path, steps).faults


@pytest.mark.parametrize(
    ("introduced", "full", "guilty", "doubtful"),
    [
        (0.03, 0.03, False, True),
        (0.03, 0.03, True, False),
        (0.02, 0.03, False, False),
        (0.03, 0.02, False, False),
        (0.01, 0.5, False, False),
    ],
)
def test_doubt_is_between_what_is_expected_and_a_few_times_that(
    introduced: float, full: float, guilty: bool, doubtful: bool
) -> None:
    plain = layouts((2, 3), (2, 3))[0]
    cut = Cut(Pair("s", "t", plain, 1.0, ""))
    assert _is_doubtful(Judged(cut, introduced, full, 0.02, guilty)) is doubtful


def stored(values: np.ndarray) -> Parameter:
    return Parameter("w", values.shape, "int8", lambda: values, 8, (0.1,))


def test_half_a_step_of_each_number_is_rounding() -> None:
    right = np.random.default_rng(0).normal(size=(40, 50))
    size = float(np.sqrt(np.mean(right**2)))
    limit = min(0.1, float(np.abs(right).max()) / 127) / 12**0.5
    signs = np.where(np.arange(right.size).reshape(right.shape) % 2, 1.0, -1.0)
    for times, told in ((1.0, False), (1.5, False), (1.9, False), (2.5, True), (9.0, True)):
        found = _unexplained(right, stored(right + times * limit * signs))
        assert found == (pytest.approx(times * limit / size) if told else 0.0)
    assert _unexplained(right, stored(right[:3] * 2)) == 0.0, "of another size"
    assert _unexplained(right * 0, stored(right)) == 0.0, "no relative error of nothing"


class Sides:
    """Stands for the cuts: of each piece the readings are what's given, without recurrent layers."""

    def sides(self, _pair: Pair) -> tuple[Side, Side]:
        return Side(LayerGraph((), (), {}, ()), (), (), ""), Side(LayerGraph((), (), {}, ()), (), (), "")


@pytest.mark.parametrize(
    ("introduced", "off", "found"),
    [
        (0.1, 0.0, False),
        (0.1, 0.01, False),  # its bits
        (0.1, 0.3, True),
        (0.1, 0.39, True),
        (0.1, 0.41, False),  # so wrong a weight would do more
        (0.02, 0.3, False),
        (3.0, 0.3, True),
    ],
)
def test_a_wrong_weight_explains_an_error_that_is_as_large(
    introduced: float, off: float, found: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = np.random.default_rng(0).normal(size=(40, 50))
    real = Parameter("r", right.shape, "float32", lambda: right)
    signs = np.where(np.arange(right.size).reshape(right.shape) % 2, 1.0, -1.0)
    given = stored(right + off * signs * float(np.sqrt(np.mean(right**2))))

    def node(**parameters: Parameter) -> Node:
        return Node("n", "n", "Conv", "Conv", (), (), {}, parameters)

    plain = layouts((2, 3), (2, 3))[0]
    item = Judged(Cut(Pair("s", "t", plain, 1.0, "")), introduced, introduced, 0.02, guilty=False)
    cases = [
        ([[(None, node(kernel=given)), (node(kernel=real), None), (node(kernel=real), node(kernel=given))]], found),
        ([[(node(kernel=real), node(kernel=given))], [(node(kernel=real), node(kernel=stored(right)))]], False),
        ([[(node(other=real), node(kernel=given))]], False),
        ([[(node(kernel=real), node(kernel=replace(given, bits=None)))]], False),
        ([[(node(kernel=real), node(kernel=replace(given, bits=32)))]], False),
        ([[(node(kernel=real), node(kernel=replace(given, bits=16)))]], found or off == 0.01),
    ]
    for readings, expected in cases:
        monkeypatch.setattr(doubtful, "pairings_of", lambda *_, readings=readings: readings)
        assert doubtful._has_wrong_weight(cast(Any, Sides()), item) is expected
