"""Recurrent layers that TFLite has as a loop: what became of them is told from their results, and repaired."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crossed import slower
from recurrent_networks import Weights, by_gate, keras_network, scaled, subjects, tflite_file

from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.repairs.options import RepairOptions
from conrepair.diagnosis.repairs.repair import repair_models
from conrepair.ground.graph.kinds import Kind
from conrepair.verdicts.evaluate.verdict import Verdict

Change = Callable[[Weights], Weights]


def noisy(held: Weights) -> Weights:
    generator = np.random.default_rng(9)
    return [held[0], *(array + 0.1 * generator.normal(size=array.shape) for array in held[1:2]), *held[2:]]


def recurrent_gates(held: Weights) -> Weights:
    return [held[0], by_gate(0, 2, 1, 3)(held)[1], *held[2:]]


def exchanged_directions(held: Weights) -> Weights:
    half = len(held) // 2
    return [*held[half:], *held[:half]]


IN_PLACE: dict[str, tuple[str, dict[str, Any], Change, str]] = {
    "gates of an LSTM": ("LSTM", {}, by_gate(1, 0, 2, 3), "the input gate and the forget gate are exchanged"),
    "gates of a GRU": ("GRU", {}, by_gate(1, 0, 2), "the update gate and the reset gate are exchanged"),
    "gates of a GRU that resets before": (
        "GRU", {"reset_after": False}, by_gate(1, 0, 2), "the update gate and the reset gate are exchanged",
    ),
    "gates of recurrent weights": (
        "LSTM", {}, recurrent_gates, "the forget gate and the cell gate are exchanged in the recurrent weights",
    ),
    "gates of the first of two": (
        "LSTM", {"stacked": True}, by_gate(0, 3, 1, 2),
        "the gates stand in another order (input, cell, output, forget in place of input, output, forget, cell)",
    ),
    "gates of both directions": (
        "LSTM", {"both": True, "sequences": True}, by_gate(0, 2, 1, 3),
        "the forget gate and the cell gate are exchanged",
    ),
    "one direction": ("GRU", {"both": True}, scaled(4, 1.2), "scaled by 1.2, in the backward direction"),
    "directions": (
        "LSTM", {"both": True}, exchanged_directions, "the numbers of both directions are exchanged",
    ),
    "scaled": ("GRU", {}, scaled(1, 1.1), "the recurrent weights are scaled by 1.1"),
    "disturbed": ("LSTM", {}, noisy, "as if random noise were added"),
}  # fmt: skip
_SLOWER = (
    "gates of a GRU that resets before",
    "gates of recurrent weights",
    "gates of both directions",
    "directions",
)
"""Others show gates in another order, and both directions."""

WRITTEN_ANEW: dict[str, tuple[str, dict[str, Any], str]] = {
    "an activation": ("LSTM", {"activation": "linear"}, "the activation of cell and output (Tanh) is lost"),
    "another activation": (
        "GRU", {"recurrent_activation": "hard_sigmoid"}, "the activation of gates is HardSigmoid in place of Sigmoid",
    ),
}  # fmt: skip


def repaired(source: Any, target: Any, folder: Path, *, eight_bits: bool = False) -> Any:
    source.save(folder / "source.keras")
    path = tflite_file(target, folder / "target.tflite", eight_bits=eight_bits)
    options = Options(samples=4, batch_size=1, quantized=eight_bits)
    return repair_models(
        *subjects(folder / "source.keras", path, folder), folder, RepairOptions(options, seconds=120, unseen=4)
    )


@pytest.mark.parametrize("name", [*(name for name in IN_PLACE if name not in _SLOWER), *slower(*_SLOWER)])
def test_numbers_of_a_loop_are_repaired_where_they_are(name: str, tmp_path: Path) -> None:
    kind, options, change, words = IN_PLACE[name]
    result = repaired(keras_network(kind, **options), keras_network(kind, change, **options), tmp_path)
    (fault,) = result.before.faults
    assert fault.kind is Kind.PARAMETERS
    assert words in fault.evidence[0]
    assert fault.target_layers[0].endswith("while")
    assert result.after.verdict is Verdict.EQUIVALENT
    assert all("in the body of" in edit for edit in result.edits)
    assert Path(result.model.path).stat().st_size <= (tmp_path / "target.tflite").stat().st_size


@pytest.mark.parametrize("name", ["another activation", *slower("an activation")])
def test_a_loop_that_does_something_else_is_written_as_steps(name: str, tmp_path: Path) -> None:
    kind, options, words = WRITTEN_ANEW[name]
    result = repaired(keras_network(kind), keras_network(kind, **options), tmp_path)
    (fault,) = result.before.faults
    assert fault.kind is Kind.HYPERPARAMETERS
    assert words in fault.evidence[0]
    assert fault.target_layers[0].endswith("while")
    assert result.after.verdict is Verdict.EQUIVALENT


def test_a_weight_in_eight_bits_of_a_loop_gets_scales_of_its_own(tmp_path: Path) -> None:
    sizes = {"width": 24, "hidden": 24}
    target = keras_network("GRU", scaled(1, 1.1), **sizes)
    result = repaired(keras_network("GRU", **sizes), target, tmp_path, eight_bits=True)
    assert "the recurrent weights" in result.before.faults[0].evidence[0]
    assert result.after.verdict is Verdict.QUANTIZED
    (edit,) = result.edits
    assert edit.endswith("is quantized anew, from the original's")
    assert result.after.output_error < result.before.output_error / 2
