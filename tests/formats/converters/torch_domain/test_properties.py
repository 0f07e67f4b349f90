"""Slices, pads and resizes with whatever numbers, against ONNX Runtime."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import parser

from conrepair.formats.converters.torch_domain.integer_operators import OPERATORS as INTEGERS
from conrepair.formats.converters.torch_domain.tensor_operators import OPERATORS as TENSORS
from conrepair.ground.runtime.onnx_session import open_session

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
BOUND = st.one_of(st.integers(-8, 8), st.sampled_from([2**62, -(2**62)]))
STEP = st.sampled_from([-3, -2, -1, 1, 2, 3])


@functools.cache
def session(inputs: str, operator: str) -> Any:
    proto = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> g ({inputs}) => (y) {{ y = {operator} }}',
    )
    return open_session(proto.SerializeToString())


def integers(numbers: list[int]) -> Any:
    return np.array(numbers, dtype=object)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(BOUND, BOUND, STEP), min_size=1, max_size=3),
    st.permutations([0, 1, 2]),
    st.lists(st.booleans(), min_size=3, max_size=3),
)
def test_slices(parts: list[tuple[int, int, int]], axes: list[int], negative: list[bool]) -> None:
    places = [axis - 3 * below for axis, below in zip(axes[: len(parts)], negative, strict=False)]
    columns = [*map(list, zip(*parts, strict=True))]
    starts, ends, steps = columns
    runtime = session("float[3,4,5] x, int64[k] s, int64[k] e, int64[k] a, int64[k] t", "Slice(x, s, e, a, t)")
    feeds = dict(zip("seat", (np.array(item, np.int64) for item in (starts, ends, places, steps)), strict=True))
    (expected,) = runtime.run(None, {"x": X, **feeds})
    operands = [integers(item) for item in (starts, ends, places, steps)]
    np.testing.assert_array_equal(TENSORS["Slice"][0](torch.from_numpy(X), *operands).numpy(), expected)
    np.testing.assert_array_equal(INTEGERS["Slice"](X.astype(object), *operands).astype(np.float32), expected)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 2), min_size=6, max_size=6), st.sampled_from(["constant", "reflect", "edge"]))
def test_pads(pads: list[int], mode: str) -> None:
    runtime = session("float[3,4,5] x, int64[k] p", f'Pad<mode = "{mode}">(x, p)')
    (expected,) = runtime.run(None, {"x": X, "p": np.array(pads, np.int64)})
    result = TENSORS["Pad"][0](torch.from_numpy(X), integers(pads), mode=mode)
    np.testing.assert_array_equal(result.numpy(), expected)


@settings(max_examples=100, deadline=None)
@given(
    st.integers(1, 9),
    st.integers(1, 9),
    st.sampled_from(["nearest", "linear", "cubic"]),
    st.sampled_from(["half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"]),
    st.sampled_from(["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"]),
)
def test_resizes(height: int, width: int, mode: str, system: str, rounding: str) -> None:
    attributes = f'mode = "{mode}", coordinate_transformation_mode = "{system}", nearest_mode = "{rounding}"'
    runtime = session("float[1,3,4,5] x, int64[4] s", f"Resize<{attributes}>(x, , , s)")
    sizes = [1, 3, height, width]
    (expected,) = runtime.run(None, {"x": X[None], "s": np.array(sizes, np.int64)})
    result = TENSORS["Resize"][0](
        torch.from_numpy(X[None]),
        None,
        None,
        integers(sizes),
        mode=mode,
        coordinate_transformation_mode=system,
        nearest_mode=rounding,
    )
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-4, atol=1e-4)
