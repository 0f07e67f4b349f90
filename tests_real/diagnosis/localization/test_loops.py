"""Recurrent layers that a target has as loops: right ones aren't accused, and faults in their weights are seen."""

from __future__ import annotations

from pathlib import Path

import pytest
from crossed import crossed
from recurrent_networks import keras_network, scaled, subjects, tflite_file

from conrepair.diagnosis.localization.models import localize_models
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.result import Localization
from conrepair.verdicts.evaluate.verdict import Verdict

_SIZES = {"width": 24, "hidden": 24}  # smaller weights stay as they are
LOOPS: dict[str, tuple[str, dict[str, bool]]] = {
    "LSTM": ("LSTM", {}),
    "GRU": ("GRU", {}),
    "GRU that resets before": ("GRU", {"reset_after": False}),
    "LSTM both ways": ("LSTM", {"both": True}),
    "GRU both ways": ("GRU", {"both": True, "sequences": True}),
}


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


@pytest.mark.parametrize(
    ("name", "eight_bits"),
    crossed(
        LOOPS,
        [False, True],
        quick=[
            ("LSTM", True), ("GRU", False), ("GRU that resets before", True), ("LSTM both ways", False),
            ("GRU both ways", True),
        ],
    ),
)  # fmt: skip
def test_right_loops_are_not_accused(name: str, eight_bits: bool, tmp_path: Path) -> None:
    kind, options = LOOPS[name]
    result = located(kind, tmp_path, eight_bits=eight_bits, **options)
    assert result.verdict is (Verdict.QUANTIZED if eight_bits else Verdict.EQUIVALENT)
    weights = keras_network(kind, **_SIZES, **options).count_params()
    assert result.coverage is not None
    assert result.coverage.parameters == result.coverage.all_parameters >= weights  # and what sizes are


@pytest.mark.parametrize(
    ("kind", "eight_bits"), crossed(["LSTM", "GRU"], [False, True], quick=[("LSTM", False), ("GRU", True)])
)
def test_a_weight_of_a_loop_that_is_scaled_is_found(kind: str, eight_bits: bool, tmp_path: Path) -> None:
    result = located(kind, tmp_path, 1.1, eight_bits=eight_bits)
    assert result.verdict is Verdict.FAULTY
    assert result.faults[0].target_layers[0].endswith("while")
    assert "the recurrent weights are scaled by 1.1" in result.faults[0].evidence[0]
