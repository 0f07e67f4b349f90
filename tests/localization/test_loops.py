"""Recurrent layers that a target has as loops: right ones aren't accused, and faults in their weights are seen."""

from __future__ import annotations

from pathlib import Path

import pytest
from recurrent_networks import keras_network, scaled, subjects, tflite_file

from conrepair.evaluate.verdict import Verdict
from conrepair.localization.models import localize_models
from conrepair.localization.options import Options
from conrepair.localization.result import Localization

_SIZES = {"width": 24, "hidden": 24}  # smaller weights stay as they are


def located(kind: str, folder: Path, factor: float = 1.0, *, eight_bits: bool, **options: bool) -> Localization:
    """With the recurrent weights of the target times a number."""
    keras_network(kind, **_SIZES, **options).save(folder / "source.keras")
    network = keras_network(kind, scaled(1, factor), **_SIZES, **options)
    target = tflite_file(network, folder / "target.tflite", eight_bits=eight_bits)
    (folder / "work").mkdir()
    sides = subjects(folder / "source.keras", target, folder, 32)
    result: Localization = localize_models(
        *sides, folder / "work", Options(samples=32, batch_size=1, quantized=eight_bits)
    )
    return result


@pytest.mark.parametrize("eight_bits", [False, True])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("LSTM", {}),
        ("GRU", {}),
        ("GRU", {"reset_after": False}),
        ("LSTM", {"both": True}),
        ("GRU", {"both": True, "sequences": True}),
    ],
)
def test_right_loops_are_not_accused(kind: str, options: dict[str, bool], eight_bits: bool, tmp_path: Path) -> None:
    result = located(kind, tmp_path, eight_bits=eight_bits, **options)
    assert result.verdict is (Verdict.QUANTIZED if eight_bits else Verdict.EQUIVALENT)
    weights = keras_network(kind, **_SIZES, **options).count_params()
    assert result.coverage is not None
    assert result.coverage.parameters == result.coverage.all_parameters >= weights  # and what sizes are


@pytest.mark.parametrize("eight_bits", [False, True])
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_a_weight_of_a_loop_that_is_scaled_is_found(kind: str, eight_bits: bool, tmp_path: Path) -> None:
    result = located(kind, tmp_path, 1.1, eight_bits=eight_bits)
    assert result.verdict is Verdict.FAULTY
    assert result.faults[0].target_layers[0].endswith("while")
    assert "the recurrent weights are scaled by 1.1" in result.faults[0].evidence[0]
