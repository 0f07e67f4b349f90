"""Cases on which installed releases are wrong, and right ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from conrepair_lab.cases.case import Case

HEAD = '<ir_version: 10, opset_import: ["" : 20]> '


def case(text: str, **inputs: Any) -> Case:
    """A case of a network's text and its inputs."""
    return Case.of(onnx.parser.parse_model(HEAD + text), {name: np.asarray(value) for name, value in inputs.items()})


def right(values: Any = (0.5, -2.0)) -> Case:
    """A network that everybody computes."""
    x = np.asarray(values, np.float32)
    return case(f"g (float[{len(x)}] x) => (float[{len(x)}] y) {{ a = Relu (x) y = Add (a, x) }}", x=x)


def compared_by_halves() -> Case:
    """Whole numbers of 64 bits, of which ONNX Runtime compares the lower half."""
    text = "g (int64[2] x) => (int64[2] y) <int64 c = {-2147483649}> { y = Min (x, c) }"
    return case(text, x=np.array([-1, 0], np.int64))


def compared_by_halves_of_any() -> Case:
    """The same, wrong on whatever real numbers it's fed."""
    text = """g (float[4] x) => (float[4] y) { a = Cast <to = 7> (x) b = Constant <value_int = 2147483648> ()
    c = Max (a, b) y = Cast <to = 1> (c) }"""
    return case(text, x=np.zeros(4, np.float32))


def padded_pool() -> Case:
    """Zeros in front of a pool of negative numbers, which optimizations take for the pool's own padding."""
    text = """g (float[1, 1, 4, 4] x) => (float[1, 1, 5, 5] y) <int64[8] pads = {0, 0, 1, 1, 0, 0, 1, 1}>
    { a = Abs (x) b = Neg (a) c = Pad (b, pads) d = MaxPool <kernel_shape = [2, 2]> (c) y = Tanh (d) }"""
    return case(text, x=np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4) / 10)
