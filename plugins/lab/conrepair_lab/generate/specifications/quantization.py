"""Casts, operators that make floats whole numbers of few bits and back, and those that compute with these."""

from __future__ import annotations

from collections.abc import Sequence

from conrepair_lab.generate.settings.expressions import Number, ceil_div, product
from conrepair_lab.generate.settings.setting import Setting
from conrepair_lab.generate.settings.tensors import INTEGERS, Range, TensorType
from conrepair_lab.generate.settings.windows import image
from conrepair_lab.generate.specifications.convolution import convolved
from conrepair_lab.generate.specifications.products import multiplied
from conrepair_lab.generate.specifications.specification import operator

_SCALES = Range(1e-6, 2.0)


@operator()
def cast(s: Setting) -> None:
    dtype = s.element_type("to")
    x = s.input("input", domain=_whole(dtype))
    s.output(x.shape)


@operator()
def cast_like(s: Setting) -> None:
    like = s.input("target_type")
    x = s.input("input", domain=_whole(like.dtype))
    s.output(x.shape)


def _whole(dtype: str) -> tuple[float, float] | None:
    """What every type of whole numbers has room for: others differ by the runtime."""
    if dtype not in INTEGERS:
        return None
    return (0.0 if dtype.startswith("u") else -127.0, 127.0)


@operator()
def quantize_linear(s: Setting) -> None:
    x = s.input("x")
    scale = _scale(s, "y_scale", x.shape)
    made = "uint8"
    if s.has("y_zero_point"):
        made = s.input("y_zero_point", scale.shape).dtype
    if s.has("output_dtype"):
        made = s.element_type("output_dtype", made)
    s.output(x.shape, made)


@operator()
def dequantize_linear(s: Setting) -> None:
    x = s.input("x")
    scale = _scale(s, "x_scale", x.shape)
    s.maybe(s.input, "x_zero_point", scale.shape, values=Range(0, 0) if x.dtype == "int32" else None)
    made = s.element_type("output_dtype", scale.dtype) if s.has("output_dtype") else scale.dtype
    s.output(x.shape, made)


@operator()
def dynamic_quantize_linear(s: Setting) -> None:
    x = s.input("x")
    s.require(product(x.shape) > 0, "no largest number")
    s.output(x.shape)
    s.output(())
    s.output(())


@operator()
def qlinear_conv(s: Setting) -> None:
    result = convolved(s, image(s, "x"), "w")
    _scaled(s, "x")
    _scaled(s, "w", [result[1]] if s.rank_of("w_scale", (0, 1)) else [])
    _scaled(s, "y")
    s.maybe(s.input, "B", [result[1]])
    s.output(result)


@operator()
def conv_integer(s: Setting) -> None:
    result = convolved(s, image(s, "x"), "w")
    for name in ("x_zero_point", "w_zero_point"):
        s.maybe(s.input, name, ())
    s.output(result)


@operator()
def qlinear_matmul(s: Setting) -> None:
    a = s.input("a", rank=range(1, 7))
    b, result = multiplied(s, a, "b")
    s.require(a.shape[-1] > 0, "ONNX Runtime leaves unwritten what's the sum of nothing")
    _scaled(s, "a")
    _scaled(s, "b", _of_columns(b, s.rank_of("b_scale", _ranks(b))))
    _scaled(s, "y")
    s.output(result)


@operator()
def matmul_integer(s: Setting) -> None:
    a = s.input("A", rank=range(1, 7))
    b, result = multiplied(s, a, "B")
    s.require(a.shape[-1] > 0, "ONNX Runtime leaves unwritten what's the sum of nothing")
    s.maybe(s.input, "a_zero_point", ())
    if s.has("b_zero_point"):
        s.input("b_zero_point", _of_columns(b, s.rank_of("b_zero_point", _ranks(b))))
    s.output(result)


def _ranks(b: TensorType) -> Sequence[int]:
    """Of a scale of what is multiplied from the right, for ONNX Runtime."""
    return (0,) if b.rank == 1 else (0, 1, 2) if b.rank == 2 else (0, b.rank)


def _of_columns(b: TensorType, rank: int) -> Sequence[Number]:
    """A scale for the whole of it, or one for each column."""
    return ([*b.shape[:-2], 1, b.shape[-1]] if rank else [])[-rank:]


def _scaled(s: Setting, name: str, shape: Sequence[Number] = ()) -> None:
    """The scale and the zero point of an operand."""
    s.input(f"{name}_scale", shape, values=_SCALES)
    s.input(f"{name}_zero_point", shape)


def _scale(s: Setting, name: str, shape: Sequence[Number]) -> TensorType:
    """A scale for a whole tensor, for each place of an axis, or for each block along an axis."""
    block = s.integer("block_size", 0) if s.has("block_size") else 0
    if block:
        s.require(len(shape) > 0, "a scalar has no axis")
        s.require(product(shape) > 0, "ONNX Runtime's process ends with blocks of nothing")
        axis = s.axis("axis", len(shape))
        sizes = [ceil_div(size, block) if place == axis else size for place, size in enumerate(shape)]
        s.require(len(shape) > 1 or sizes[0] > 1, "ONNX Runtime takes a single block for no blocks")
    else:
        ranks = (0, 1) if shape else (0,)
        sizes = [shape[s.axis("axis", len(shape))]] if s.rank_of(name, ranks) else []
    return s.input(name, sizes, values=_SCALES)
