"""Matrix products: constant matrices go into Dense layers."""

from __future__ import annotations

import string
from typing import Any

import keras
import numpy as np
from keras import ops

from conrepair_onnx_keras.importer.indexing import add
from conrepair_onnx_keras.importer.node import ImportedNode, broadcast_shape, operator
from conrepair_onnx_keras.importer.values import Size


@operator()
def gemm(node: ImportedNode) -> Any:
    alpha, beta = node.attribute("alpha", 1.0), node.attribute("beta", 1.0)
    a = node.tensor(0, (1, 0) if node.attribute("transA", 0) else None)
    b = node.tensor(1, (1, 0) if node.attribute("transB", 0) else None)
    if not node.is_constant(1) or node.is_constant(0) or "float" not in node.dtype(0):
        product = _scaled(_product(node, a, b), alpha)
        return add(product, _scaled(node.tensor(2), beta)) if node.has(2) else product
    kernel = (b * alpha).astype(b.dtype)
    if node.is_constant(2) and node.constant(2).size in {1, kernel.shape[1]} and node.constant(2).shape[:-1] in _ROW:
        bias = np.broadcast_to(node.constant(2).reshape(-1) * beta, kernel.shape[1:])
        return node.layer(keras.layers.Dense, a, weights=[kernel, bias], units=kernel.shape[1])
    product = node.layer(keras.layers.Dense, a, weights=[kernel], units=kernel.shape[1], use_bias=False)
    return add(product, _scaled(node.tensor(2), beta)) if node.has(2) else product


@operator()
def matmul(node: ImportedNode) -> Any:
    if _is_dense(node):
        kernel = node.constant(1)
        y = node.layer(keras.layers.Dense, node.tensor(0), weights=[kernel], units=kernel.shape[1], use_bias=False)
        return node.output(y, None, (*node.shape(0)[:-1], kernel.shape[1]))
    return node.output(_product(node, node.tensor(0), node.tensor(1)), None, _product_shape(node))


def _product(node: ImportedNode, one: Any, two: Any) -> Any:
    """A matrix product; Keras would compute that of integers in float32, so it's written out for them."""
    if "float" in node.dtype(0):
        return ops.matmul(one, two)
    left = one[None, :] if len(one.shape) == 1 else one
    right = two[:, None] if len(two.shape) == 1 else two
    product = ops.sum(ops.multiply(left[..., None], right[..., None, :, :]), axis=-2)
    gone = [axis for axis, factor in ((-2, one), (-1, two)) if len(factor.shape) == 1]
    return ops.cast(ops.squeeze(product, tuple(gone)) if gone else product, node.dtype(0))


def _product_shape(node: ImportedNode) -> list[Size]:
    one, two = node.shape(0), node.shape(1)
    rows, columns = one[-2:-1], two[-1:] if len(two) > 1 else ()
    return [*broadcast_shape([one[:-2], two[:-2]], node.new_size), *rows, *columns]


@operator("MatMulBias", domain="conrepair")
def matmul_bias(node: ImportedNode) -> Any:
    """A MatMul and the Add behind it, joined by `prepare`."""
    kernel, bias = node.constant(1), node.constant(2)
    if node.is_constant(0):
        return np.matmul(node.constant(0), kernel) + bias
    if not _is_dense(node):
        return add(_product(node, node.tensor(0), kernel), bias)
    y = node.layer(keras.layers.Dense, node.tensor(0), weights=[kernel, bias.reshape(-1)], units=kernel.shape[1])
    return node.output(y, None, (*node.shape(0)[:-1], kernel.shape[1]))


@operator()
def einsum(node: ImportedNode) -> Any:
    if "float" not in node.dtype(0):
        node.refuse(f"Keras computes it in float32 instead of {node.dtype(0)}")
    equation = str(node.attribute("equation")).replace(" ", "")
    # Keras looks for indices among the small letters.
    letters = "".join(sorted(set(filter(str.isalpha, equation))))
    equation = equation.translate(str.maketrans(letters, string.ascii_lowercase[: len(letters)]))
    y = ops.einsum(equation, *(node.tensor(index) for index in range(len(node.inputs))))
    terms, arrow, result = equation.partition("->")
    if not arrow or "." in equation:
        return y
    shapes = (node.shape(index) for index in range(len(node.inputs)))
    sizes = {
        letter: size
        for term, shape in zip(terms.split(","), shapes, strict=True)
        for letter, size in zip(term, shape, strict=True)
    }
    return node.output(y, None, [sizes[letter] for letter in result])


@operator()
def det(node: ImportedNode) -> Any:
    """TensorFlow has none of half precision."""
    x, dtype = node.tensor(0), node.dtype(0)
    wide = dtype if dtype in {"float32", "float64"} else "float32"
    return ops.cast(ops.det(ops.cast(x, wide)), dtype)


_ROW = {(), (1,)}


def _is_dense(node: ImportedNode) -> bool:
    matrix = node.is_constant(1) and node.rank(1) == 2
    return matrix and not node.is_constant(0) and node.rank(0) > 1 and "float" in node.dtype(0)


def _scaled(x: Any, factor: float) -> Any:
    if factor == 1:
        return x
    return (x * factor).astype(x.dtype) if isinstance(x, np.ndarray) else ops.multiply(x, factor)
