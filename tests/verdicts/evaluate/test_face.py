"""What callers of a model get otherwise, whatever the numbers are."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from conrepair.ground.data.tensor_spec import Quantization, TensorSpec
from conrepair.verdicts.evaluate.compare import ComparedOutputs, compare_outputs
from conrepair.verdicts.evaluate.run import HeldRun
from conrepair.verdicts.evaluate.tolerance import Tolerance
from conrepair.verdicts.evaluate.verdict import Verdict

A = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
B = np.round(3 * A)


def run(name: str = "", *, quantization: Quantization | None = None, **arrays: np.ndarray) -> HeldRun:
    specs = tuple(
        TensorSpec(key, ("batch", *array.shape[1:]), str(array.dtype), quantization) for key, array in arrays.items()
    )
    return HeldRun(name=name, outputs=specs, folder=Path(), count=len(A), held=arrays)


def compared(reference: HeldRun, candidate: HeldRun, *, strict: bool = False) -> ComparedOutputs:
    return compare_outputs(reference, candidate, Tolerance(strict_signature=strict))


def test_outputs_in_another_order() -> None:
    result = compared(run(a=A, b=B), run(b=B, a=A))
    assert (result.verdict, result.differs) == (Verdict.FAULTY, False)
    assert "order is `b`, `a`, in the original `a`, `b`" in result.reason


@pytest.mark.parametrize("change", [lambda run: dataclasses.replace(run, ordered=False), lambda run: run])
def test_order_is_not_asked_of_names_alone(change: Callable[[HeldRun], HeldRun]) -> None:
    other = run(b=B, a=A) if not change(run(a=A)).ordered else run(x=A, y=B)
    assert compared(run(a=A, b=B), change(other)).verdict is Verdict.EQUIVALENT


@pytest.mark.parametrize(("ours", "theirs"), [("float32", "int32"), ("int64", "float32"), ("float32", "bool")])
def test_real_numbers_that_became_whole_ones(ours: str, theirs: str) -> None:
    whole = (B > 0).astype(np.float32)
    result = compared(run(a=whole.astype(ours)), run(a=whole.astype(theirs)))
    assert result.verdict is Verdict.FAULTY
    assert f"output `a` is {theirs}, `a` of the original is {ours}" in result.reason


@pytest.mark.parametrize(("ours", "theirs"), [("float32", "float16"), ("int64", "int32"), ("int64", "bool")])
def test_widths_are_no_other_face(ours: str, theirs: str) -> None:
    whole = (B > 0).astype(np.float32)
    assert compared(run(a=whole.astype(ours)), run(a=whole.astype(theirs))).verdict is Verdict.EQUIVALENT


def test_stored_integers_stand_for_real_numbers() -> None:
    stored = B.astype(np.int8)
    result = compared(run(a=B), run(a=stored, quantization=Quantization(1.0, 0)))
    assert result.verdict is Verdict.EQUIVALENT


def test_another_number_of_axes() -> None:
    result = compared(run(a=A), run(y=A[:, :, None, None]))
    assert result.verdict is Verdict.FAULTY
    words = "output `y` has 4 axes ([batch, 4, 1, 1]), `a` of the original has 2 ([batch, 4])"
    assert result.reason.startswith(words)
    assert "(the numbers are equivalent" in result.reason


def test_wrong_numbers_come_first() -> None:
    result = compared(run(a=A), run(a=(2 * A)[:, :, None]))
    assert result.differs
    assert result.reason.startswith("relative error")
    assert list(result.face) == ["a"]


def of_format(array: np.ndarray, channels: str, *inputs: tuple[int | str, ...]) -> HeldRun:
    specs = tuple(TensorSpec(f"x{place}", shape, "float32") for place, shape in enumerate(inputs))
    return dataclasses.replace(run(a=array), channels=channels, inputs=specs)


ORDERS = [
    *((shape, (0, 2, 1)) for shape in ((9, 256), (4, 4), (1, 7), (7, 1), (85, 10))),
    *(
        (shape, (0, *order))
        for shape in ((3, 4, 5), (4, 4, 4))
        for order in permutations((1, 2, 3))
        if order != (1, 2, 3)
    ),
    ((2, 3, 4, 5), (0, 1, 2, 4, 3)),
]


@pytest.mark.parametrize("channels", ["first", "last"])
@pytest.mark.parametrize(("shape", "order"), ORDERS)
def test_another_order_of_axes_within_formats_that_have_one(
    shape: tuple[int, ...], order: tuple[int, ...], channels: str
) -> None:
    array = np.random.default_rng(1).normal(size=(6, *shape)).astype(np.float32)
    exchanged = np.ascontiguousarray(array.transpose(order))
    result = compared(of_format(array, channels), of_format(exchanged, channels))
    assert (result.verdict, result.differs) == (Verdict.FAULTY, False)
    assert "output `a` has its axes in another order than `a` of the original" in result.reason
    assert compared(of_format(array, channels), of_format(array, channels)).verdict is Verdict.EQUIVALENT


@pytest.mark.parametrize(("channels", "order"), [("first", (0, 2, 3, 1)), ("last", (0, 3, 1, 2))])
@pytest.mark.parametrize("shape", [(3, 4, 5), (4, 4, 4)])
def test_the_layouts_of_two_formats_are_theirs(channels: str, order: tuple[int, ...], shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(1).normal(size=(6, *shape)).astype(np.float32)
    other = "last" if channels == "first" else "first"
    for layout in (order, (0, 1, 2, 3)):  # moved, or kept by the converter
        assert compared(of_format(array, channels), of_format(array.transpose(layout), other)).verdict.is_right
    for layout in ((0, 1, 3, 2), (0, 3, 2, 1)):
        assert (
            compared(of_format(array, channels), of_format(array.transpose(layout), other)).verdict is Verdict.FAULTY
        )


def test_values_that_are_wrong_in_any_order_are_in_their_own() -> None:
    one, two = np.random.default_rng(1).normal(size=(2, 6, 4, 4)).astype(np.float32)
    result = compared(of_format(one, "first"), of_format(two, "first"))
    assert (result.verdict, result.face, result.differs) == (Verdict.FAULTY, {}, True)


def test_an_output_that_was_flattened() -> None:
    array = np.random.default_rng(1).normal(size=(6, 3, 4)).astype(np.float32)
    for other in (array.reshape(6, 12), array.reshape(6, 2, 6)):
        result = compared(of_format(array, "first"), of_format(other, "first"))
        assert (result.verdict, result.differs) == (Verdict.FAULTY, False)
        assert result.outputs[0].pair.flat


@pytest.mark.parametrize(
    ("ours", "theirs", "channels", "noted"),
    [
        (("N", 3, 8, 8), ("N", 8, 8, 3), "first", True),
        (("N", 3, 8, 8), ("N", 8, 8, 3), "last", False),
        (("N", 3, "h", "w"), ("N", "h", "w", 3), "first", False),
        (("N", 3, 8, 8), ("N", 3, 8, 8), "first", False),
        ((1, 3, 8), (4, 8, 3), "first", True),
    ],
)
def test_a_layout_that_a_network_undoes_is_noted(
    ours: tuple[int | str, ...], theirs: tuple[int | str, ...], channels: str, noted: bool
) -> None:
    """The numbers are right: what the input is given in another order, the network brings in order itself."""
    result = compared(of_format(A, "first", ours), of_format(A, channels, theirs))
    assert (result.verdict, result.face) == (Verdict.EQUIVALENT, {})
    assert (
        any("the signature differs, the numbers don't: input `x0` takes" in note for note in result.outputs[0].notes)
        is noted
    )
    assert bool(result.layouts) is noted
    strict = compared(of_format(A, "first", ours), of_format(A, channels, theirs), strict=True)
    assert strict.verdict is (Verdict.FAULTY if noted else Verdict.EQUIVALENT)
    assert ("input `x0` takes" in strict.reason) is noted


@pytest.mark.parametrize(
    ("shape", "order", "ours", "theirs", "right"),
    [
        ((4, 6, 7), (0, 2, 3, 1), ("N", 3, 8, 9), ("N", 8, 9, 3), True),  # channels last in all the network
        ((6, 7, 4), (0, 3, 1, 2), ("N", 8, 9, 3), ("N", 3, 8, 9), True),
        ((5, 6), (0, 2, 1), ("N", 3, 8, 9), ("N", 8, 9, 3), True),
        ((4, 6, 7), (0, 2, 3, 1), ("N", 10), ("N", 10), True),  # a picture that is made of a row of numbers
        ((4, 6, 7), (0, 2, 3, 1), ("N", 3, 8, 9), ("N", 3, 8, 9), False),
        ((4, 4, 4), (0, 2, 3, 1), ("N", 3, 3, 3), ("N", 3, 3, 3), False),
        ((4, 6, 7), (0, 1, 3, 2), ("N", 3, 8, 9), ("N", 8, 9, 3), False),
        ((4, 6, 7), (0, 3, 1, 2), ("N", 3, 8, 9), ("N", 8, 9, 3), False),
        ((5, 6), (0, 2, 1), ("N", 10), ("N", 10), False),
    ],
)
def test_outputs_go_along_with_the_layout_of_inputs(
    shape: tuple[int, ...],
    order: tuple[int, ...],
    ours: tuple[int | str, ...],
    theirs: tuple[int | str, ...],
    right: bool,
) -> None:
    array = np.random.default_rng(1).normal(size=(6, *shape)).astype(np.float32)
    sides = of_format(array, "first", ours), of_format(np.ascontiguousarray(array.transpose(order)), "first", theirs)
    result = compared(*sides)
    assert result.verdict is (Verdict.EQUIVALENT if right else Verdict.FAULTY)
    assert any("output `a` has its axes in another order" in note for note in result.outputs[0].notes) is right
    assert compared(*sides, strict=True).verdict is Verdict.FAULTY
