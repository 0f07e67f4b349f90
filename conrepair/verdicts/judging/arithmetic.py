"""What a device computes in: which numbers it has, and which of them it rounds.

A device that computes in few bits rounds results, weights and what's multiplied to its own numbers; sums of products
are mostly kept in float32 (tensor cores, AMX, most NPUs), or in the narrow type itself (float16 on GPUs of phones).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from conrepair.ground.metrics.ulps import grid_of
from conrepair.ground.operators.record import Array
from conrepair.verdicts.judging import numbers

Rounding = Callable[[Array], Array]
_TF32_LOST = 13  # bits of float32's fraction that TF32 doesn't have
_STEPS = 255  # of eight bits
_CONVOLUTION = 3  # axes of a weight from which on its first one is that of its results; else it's the last
_SMALLEST = 2.0**-126


def unchanged(array: Array) -> Array:
    """A rounding that changes no number."""
    return array


@dataclass(frozen=True)
class Arithmetic:
    """The arithmetic that a network is computed in.

    Attributes:
        name: As options and reports call it.
        unit: What rounding to its nearest number may change, relatively.
        results: Rounds what an operator gives; arrays keep their type.
        operands: Rounds what products are computed of.
        weights: Rounds a weight; of products alone where results are unchanged.
        least: Relative L2 that a result may always be off by, and what it's computed of, as they're stored.
        own_sums: Whether sums of products are rounded to its numbers at each step.
    """

    name: str
    unit: float
    results: Rounding = unchanged
    operands: Rounding = unchanged
    weights: Rounding = unchanged
    least: float = 0.0
    own_sums: bool = False

    @property
    def kind(self) -> str:
        """Its name, however sums are kept."""
        return self.name.removesuffix("-accumulated")

    @property
    def proof(self) -> str:
        """What shows that a device computes in it, in words; "" where nothing does."""
        return _PROOFS.get(self.kind, "")

    @property
    def words(self) -> str:
        """For a person."""
        return f"{self.kind}, accumulated in it too" if self.own_sums else _WORDS.get(self.kind, self.kind)


_WORDS = {
    "flushed": "float32 without subnormal numbers",
    "int32": "int32 in place of int64",
    "tf32": "TF32",
    "int8": "eight bits",
}
_PROOFS = {
    "flushed": "let it keep subnormal numbers (PyTorch: set_flush_denormal(False))",
    "tf32": "NVIDIA_TF32_OVERRIDE=0 (PyTorch: set_float32_matmul_precision('highest'); ONNX Runtime: use_tf32=0)",
    "float16": "let it compute in float32 (OpenVINO: INFERENCE_PRECISION_HINT=f32; TFLite's GPU delegate: without "
    "precision loss; Core ML: compute_precision=FLOAT32; TensorRT: without its FP16 flag)",
    "bfloat16": "let it compute in float32 (OpenVINO: INFERENCE_PRECISION_HINT=f32; oneDNN: "
    "ONEDNN_DEFAULT_FPMATH_MODE=STRICT; XLA: precision HIGHEST)",
}


def _as(kind: Any) -> Rounding:
    """Round real numbers to those of a type."""

    def rounded(array: Array) -> Array:
        if array.dtype.kind != "f" or array.dtype.itemsize <= np.dtype(kind).itemsize:
            return array
        with np.errstate(all="ignore"):
            return array.astype(kind).astype(array.dtype)

    return rounded


def _flushed(array: Array) -> Array:
    if array.dtype != np.float32:
        return array
    return np.where(np.abs(array) < _SMALLEST, np.copysign(np.float32(0), array), array)


def _narrowed(array: Array) -> Array:
    narrow = {"int64": np.int32, "uint64": np.uint32}.get(array.dtype.name)
    return array if narrow is None else array.astype(narrow).astype(array.dtype)


def _tf32(array: Array) -> Array:
    """To the nearest number with ten bits of a fraction, the even one of two."""
    if array.dtype != np.float32:
        return array
    bits = np.ascontiguousarray(array).view(np.uint32)
    half = np.uint32((1 << (_TF32_LOST - 1)) - 1) + ((bits >> _TF32_LOST) & np.uint32(1))
    rounded = ((bits + half) & ~np.uint32((1 << _TF32_LOST) - 1)).view(np.float32)
    return np.where(np.isfinite(array), rounded, array)


def _on_grid(array: Array) -> Array:
    """In 255 equal steps from the smallest to the largest number, zero among them."""
    if array.dtype.kind != "f" or not array.size or not np.isfinite(array).all():
        return array
    low, high = min(float(array.min()), 0.0), max(float(array.max()), 0.0)
    step = (high - low) / _STEPS
    if step < np.finfo(array.dtype).tiny:  # which the type rounds, or doesn't hold
        return array
    zero = np.rint(-low / step)
    return np.asarray((np.clip(np.rint(array / step) + zero, 0, _STEPS) - zero) * step, array.dtype)


def _weights_on_grid(array: Array) -> Array:
    """Each channel of results in steps of its own, as many below zero as above; biases have enough bits."""
    if array.dtype.kind != "f" or array.ndim < 2:
        return array
    kept = 0 if array.ndim >= _CONVOLUTION else array.ndim - 1
    rest = tuple(axis for axis in range(array.ndim) if axis != kept)
    step = np.abs(array).max(axis=rest, keepdims=True) / (_STEPS // 2)
    return np.asarray(np.rint(array / np.where(step > 0, step, 1)) * step, array.dtype)


def _of_type(name: str, kind: Any) -> tuple[Arithmetic, Arithmetic]:
    """A floating-point type, with sums of products in float32, or in itself."""
    unit, rounds = grid_of(name).unit, _as(kind)
    return (
        Arithmetic(name, unit, rounds, rounds, rounds, unit),
        Arithmetic(f"{name}-accumulated", unit, rounds, rounds, rounds, unit, own_sums=True),
    )


FLOAT32 = Arithmetic("float32", grid_of("float32").unit)
LADDER = (
    Arithmetic("flushed", FLOAT32.unit, _flushed, _flushed, _flushed),
    Arithmetic("int32", FLOAT32.unit, _narrowed, _narrowed),
    Arithmetic("tf32", 2.0**-11, operands=_tf32, weights=_tf32),
    *_of_type("float16", np.float16),
    *_of_type("bfloat16", ml_dtypes.bfloat16),
    Arithmetic("int8", 0.5 / _STEPS, _on_grid, _on_grid, _weights_on_grid),
)
"""Those that a device may have in place of float32, the finest first."""

ARITHMETICS = {item.name: item for item in (FLOAT32, *LADDER)}


def arithmetic_of(name: str) -> Arithmetic:
    """An arithmetic by its name.

    Args:
        name: One of `ARITHMETICS`, or any other type that is computed as float32 is.
    """
    return ARITHMETICS.get(name, FLOAT32)


def tried(name: str) -> tuple[str, ...]:
    """The arithmetics that may explain what float32 doesn't.

    Args:
        name: Of the one that a device is known to have; "" where nobody says.
    """
    return tuple(item.name for item in LADDER if name in {item.name, ""})


# Numbers disturbed as by rounding, in their last places: what a network makes of that is its conditioning.


_SEED = 20261120
_CHUNK = 1 << 18  # elements at a time: what's computed on the way takes no memory worth the name


def shaken(array: Array) -> Array:
    """An array, each real number changed in its last places up or down, the same way every time.

    Whole numbers stay as they are: no rounding made a mask's ones, an index or a class, and a network may ask whether
    they are equal to others, or multiply what's left of them with the lowest number that there is.

    Args:
        array: Any shape.
    """
    if array.dtype.kind != "f":
        return array
    generator, one = np.random.default_rng(_SEED), array.dtype.type(1)
    every = 2.0 ** (np.finfo(array.dtype).nmant + 1)  # below it the type holds every whole number
    result = np.array(array, order="C")
    flat = result.reshape(-1)
    for start in range(0, flat.size, _CHUNK):
        part = flat[start : start + _CHUNK]
        signs = 2 * generator.integers(0, 2, part.shape, dtype=np.int8) - 1
        signs *= (np.rint(part) != part) | (np.abs(part) >= every)
        with np.errstate(over="ignore"):  # the lowest number of a mask, which becomes infinite
            part *= one + signs * array.dtype.type(numbers.DISTURBANCE)
    return result


def as_rounding(expected: Array, disturbed: Array) -> Array:
    """What is left of a disturbance where it's as small as rounding; integers are the same or they aren't.

    Args:
        expected: As it is.
        disturbed: As it is where what it's computed of was disturbed.
    """
    if expected.dtype.kind != "f" or expected.shape != disturbed.shape:
        return disturbed
    with np.errstate(invalid="ignore", over="ignore"):
        part = expected + (disturbed - expected) * expected.dtype.type(numbers.ROUNDED)
    return np.where(np.isfinite(part), part, expected)


DISTURBED = Arithmetic("disturbed", numbers.DISTURBANCE, shaken)
"""In which each result is off by more than rounding makes it."""
