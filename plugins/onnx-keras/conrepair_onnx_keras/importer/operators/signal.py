"""Fourier transforms, as products with the matrix of the transform; windows and filter banks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import onnx
from keras import ops

from conrepair_onnx_keras.importer.node import ImportedNode, operator
from conrepair_onnx_keras.importer.operators.shape import reshaped_array
from conrepair_onnx_keras.importer.values import Array

_LONGEST = 4096


@operator(constant=("dft_length", "axis"), refuses=f"unknown lengths, lengths above {_LONGEST}")
def dft(node: ImportedNode) -> Any:
    rank = node.rank(0)
    axis = int(np.asarray(node.constant(2, -2))) if node.opset >= 20 else int(node.attribute("axis", 1))
    axis %= rank
    size, parts = node.known_shape(0, [axis, rank - 1])
    matrix = _matrix(size, parts, _transform(node, size))  # [size, parts, length, 1 or 2]
    moved = [*(place for place in range(rank - 1) if place != axis), axis, rank - 1]
    front = [node.shape(0)[place] for place in moved[:-2]]
    x = reshaped_array(node, node.tensor(0, np.argsort(moved).tolist()), [*front, size * parts])
    y = _product(node, x, matrix.reshape(size * parts, -1))
    y = reshaped_array(node, y, [*front, *matrix.shape[2:]])
    order = np.argsort(moved).tolist()
    sizes = [*front, *matrix.shape[2:]]
    return node.output(y, order, [sizes[place] for place in order])


@operator(constant=("frame_step", "frame_length"), refuses=f"frames longer than {_LONGEST}")
def stft(node: ImportedNode) -> Any:
    """A convolution: each frame times the window times the matrix of the transform."""
    step = int(np.asarray(node.constant(1)))
    length = int(np.asarray(node.constant(3))) if node.has(3) else node.known_shape(2)[0]
    if node.has(2) and node.known_shape(2)[0] != length:
        node.refuse(f"the window has {node.known_shape(2)[0]} values for frames of {length}")
    one_sided, parts = node.attribute("onesided", 1), node.known_shape(0, [2])[0] if node.rank(0) == 3 else 1
    matrix = _matrix(length, parts, _forward(_checked(node, length), bool(one_sided)))
    shape, kernel = matrix.shape[2:], matrix.reshape(length, parts, -1)
    x = node.stored(node.computed(node.value(0)))
    x = x if node.rank(0) == 3 else ops.expand_dims(x, -1)
    if node.has(2) and not node.is_constant(2):
        kernel = kernel.astype(node.dtype(2))
        y = ops.conv(
            x, ops.multiply(kernel, ops.reshape(node.tensor(2), [-1, 1, 1])), step, data_format="channels_last"
        )
    else:
        kernel = kernel * node.constant(2).reshape(-1, 1, 1) if node.has(2) else kernel
        y = node.layer(
            keras.layers.Conv1D, x, weights=[kernel], filters=kernel.shape[-1], kernel_size=length, strides=step,
            use_bias=False, trainable=False,
        )  # fmt: skip
    frames = y.shape[1] if y.shape[1] is not None else -1
    return node.layer(keras.layers.Reshape, y, target_shape=(frames, *shape))


@operator("HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix", refuses="sizes that aren't constant")
def constants(node: ImportedNode) -> Any:
    """With constant inputs they are computed before any rule is asked."""
    for index in range(len(node.inputs)):
        node.constant(index)
    node.refuse("its inputs must be constant")


@operator(refuses="types of another size")
def bit_cast(node: ImportedNode) -> Any:
    target = onnx.helper.tensor_dtype_to_np_dtype(node.attribute("to"))
    if node.dtype(0) == "bool" and target.itemsize == 1:
        return node.elementwise(lambda x: ops.cast(x, target.name), [0])
    if target.itemsize != np.dtype(node.dtype(0)).itemsize or target.name == "bool":
        node.refuse(f"the bits of {node.dtype(0)} can't be read as {target.name}")
    return node.elementwise(lambda x: ops.view(x, target.name), [0])


def _transform(node: ImportedNode, size: int) -> Callable[[Array], Array]:
    """What is done to rows of `size` complex numbers."""
    inverse, one_sided = node.attribute("inverse", 0), bool(node.attribute("onesided", 0))
    default = 2 * (size - 1) if inverse and one_sided else size
    length = _checked(node, int(np.asarray(node.constant(1, default))))
    if not inverse:
        return _forward(length, one_sided)
    if one_sided:
        return lambda rows: np.fft.irfft(rows, length)
    return lambda rows: np.fft.ifft(rows, length)


def _forward(length: int, one_sided: bool) -> Callable[[Array], Array]:
    count = length // 2 + 1 if one_sided else length
    return lambda rows: np.fft.fft(rows, length)[:, :count]


def _matrix(size: int, parts: int, transform: Callable[[Array], Array]) -> Array:
    """A transform as float64 [size, parts, length, parts of the result]; parts are real and imaginary."""
    rows = [transform(np.eye(size) * unit) for unit in (1, 1j)[:parts]]
    stacked = np.stack(rows, axis=1)
    return np.stack([stacked.real, stacked.imag], axis=-1) if np.iscomplexobj(stacked) else stacked[..., None]


def _product(node: ImportedNode, x: Any, matrix: Array) -> Any:
    return node.layer(keras.layers.Dense, x, weights=[matrix], units=matrix.shape[1], use_bias=False, trainable=False)


def _checked(node: ImportedNode, length: int) -> int:
    if length > _LONGEST:
        node.refuse(f"a transform of length {length} would need a matrix of that size; up to {_LONGEST} are done")
    return length
