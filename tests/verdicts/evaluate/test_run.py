"""What a run says of itself: whether it's random, what was meant, what its integers stand for."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from conrepair.ground.data.tensor_spec import Quantization, TensorSpec
from conrepair.verdicts.evaluate.run import HeldRun, Intent, Run

VALUES = np.random.default_rng(0).normal(size=(8, 5)).astype(np.float32)


def run(folder: Path, array: np.ndarray, again: np.ndarray | None = None) -> Run:
    np.save(folder / "output_0.npy", array)
    np.save(folder / "seconds.npy", np.arange(1.0, 9.0))
    if again is not None:
        np.save(folder / "again_0.npy", again)
    return Run(
        name="m@r",
        outputs=(TensorSpec("y", array.shape, array.dtype.name),),
        folder=folder,
        count=len(array),
        repeats=again is None,
    )


@pytest.mark.parametrize(
    ("again", "difference"),
    [
        (VALUES[:4] * np.float32(1 + 1e-6), None),  # sums in another order
        (VALUES[:4] * np.float32(1 + 9e-4), None),
        (VALUES[:4] * np.float32(1.002), 0.002),
        (VALUES[:4] * 2, 1.0),
        (VALUES[:4, :3], math.inf),
        (np.where(np.arange(5) == 1, np.nan, VALUES[:4]).astype(np.float32), math.inf),
    ],
)
def test_an_output_that_is_another_one_each_time(again: np.ndarray, difference: float | None, tmp_path: Path) -> None:
    found = run(tmp_path, VALUES, again).unsteady
    assert found == ({} if difference is None else {"y": pytest.approx(difference, rel=1e-2)})
    assert run(tmp_path, VALUES).unsteady == {}


def test_integers_are_random_by_how_many_differ(tmp_path: Path) -> None:
    whole = np.arange(40).reshape(8, 5)
    again = whole[:4].copy()
    again[0, 0] += 1
    assert run(tmp_path, whole, again).unsteady == {"y": 1 / 20}
    assert run(tmp_path, whole, whole[:4]).unsteady == {}


def test_times_leave_the_first_batch_of_each_size_out(tmp_path: Path) -> None:
    """It's traced, or its memory is planned: 125 ms in place of 0.4."""
    one = run(tmp_path, VALUES)
    assert one.batch_seconds.tolist() == []
    for starts, expected in [((0, 3, 6), [4.0]), ((0, 2, 4, 6), [3.0, 5.0, 7.0]), ((0, 4), [5.0]), ((0, 5), [])]:
        some = Run(name=one.name, outputs=one.outputs, folder=one.folder, count=one.count, starts=starts)
        assert some.batch_seconds.tolist() == expected


@pytest.mark.parametrize(
    ("intent", "budgeted", "asked", "rounding"),
    [
        (None, True, False, "bfloat16"),
        (Intent("float16", asked="float16"), False, True, "float16"),
        (Intent("quantized weights", asked="int8"), True, True, "float32"),
        (Intent("quantized weights"), True, False, "float32"),
        (Intent("quantized weights", origin="float32"), False, False, "float32"),
    ],
)
def test_what_was_meant_counts_before_what_the_weights_show(
    intent: Intent | None, budgeted: bool, asked: bool, rounding: str
) -> None:
    found = Run(name="m", outputs=(), folder=Path(), count=1, quantized=True, precision="bfloat16", intent=intent)
    assert (found.budgeted, found.asked, found.rounding) == (budgeted, asked, rounding)


def held(*specs: tuple[str, str, float | None]) -> HeldRun:
    """Outputs as name, type and scale."""
    outputs = tuple(
        TensorSpec(name, (2, 3), dtype, None if scale is None else Quantization(scale, 1))
        for name, dtype, scale in specs
    )
    return HeldRun(
        name="m",
        outputs=outputs,
        folder=Path(),
        count=2,
        held={spec.name: np.full((2, 3), 3, spec.dtype) for spec in outputs},
    )


@pytest.mark.parametrize(
    ("ours", "theirs", "scales"),
    [
        ([("y", "int8", None)], [("y", "int8", 0.5)], [0.5]),
        ([("a", "int8", None), ("b", "int8", None)], [("b", "int8", 0.5), ("a", "int8", 2.0)], [2.0, 0.5]),
        ([("p", "int8", None), ("q", "int8", None)], [("b", "int8", 0.5), ("a", "int8", 2.0)], [0.5, 2.0]),
        ([("p", "int8", None)], [("b", "int8", 0.5), ("a", "int8", 2.0)], [None]),
        ([("y", "uint8", None)], [("y", "int8", 0.5)], [None]),
        ([("y", "float32", None)], [("y", "int8", 0.5)], [None]),
        ([("y", "int8", 0.25)], [("y", "int8", 0.5)], [0.25]),
        ([("y", "int8", None)], [("y", "int8", None)], [None]),
    ],
)
def test_integers_stand_for_what_those_of_the_same_output_do(
    ours: list[tuple[str, str, float | None]], theirs: list[tuple[str, str, float | None]], scales: list[float | None]
) -> None:
    mine = held(*ours)
    found = mine.with_quantization_of(held(*theirs))
    assert [spec.quantization and spec.quantization.scale for spec in found.outputs] == scales
    names = [spec.name for spec in found.outputs]
    assert found.assumed == {name for name, scale, old in zip(names, scales, ours, strict=True) if scale != old[2]}
    for name, scale in zip(names, scales, strict=True):
        assert np.all(found.arrays[name] == (3 if scale is None else (3 - 1) * scale))
