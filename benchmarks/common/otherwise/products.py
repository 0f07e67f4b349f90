"""Products of matrices written otherwise."""

from __future__ import annotations

import numpy as np

from benchmarks.common.otherwise.work import Change, Work, attribute

__all__ = ["CHANGES"]


def _gemm_apart(work: Work) -> int:
    """A product and a sum."""
    count = 0
    for node in work.chosen(work.nodes("Gemm")):
        weight = work.constant_of(node, 1)
        plain = attribute(node, "alpha", 1.0) == attribute(node, "beta", 1.0) == 1.0
        if weight is None or not plain or attribute(node, "transA", 0):
            continue
        turned = np.ascontiguousarray(weight.T) if attribute(node, "transB", 0) else weight
        found = work.add("MatMul", node.input[0], turned)
        work.replace(node, work.add("Add", found, node.input[2]) if len(node.input) > 2 else found)
        count += 1
    return count


def _product_as_gemm(work: Work) -> int:
    """A product of rows with a constant as Gemm, flattened before and unflattened behind if need be."""
    count = 0
    for node in work.chosen(work.nodes("MatMul")):
        weight, sizes = work.constant_of(node, 1), work.shapes.get(node.input[0])
        if weight is None or weight.ndim != 2 or not sizes or len(sizes) not in {2, 3} or sizes[1:].count(None):
            continue
        if len(sizes) == 2:
            work.replace(node, work.add("Gemm", node.input[0], np.ascontiguousarray(weight.T), transB=1))
        else:
            flat = work.add("Reshape", node.input[0], np.array([-1, len(weight)], np.int64))
            found = work.add("Gemm", flat, weight)
            shape = np.array([-1, int(sizes[1] or 0), weight.shape[1]], np.int64)
            work.replace(node, work.add("Reshape", found, shape))
        count += 1
    return count


def _product_turned(work: Work) -> int:
    """(A B) as the transpose of (B' A'), of three axes."""
    count = 0
    for node in work.chosen(work.nodes("MatMul")):
        weight = work.constant_of(node, 1)
        if weight is None or weight.ndim != 2 or work.rank(node.input[0]) != 3:
            continue
        turned = work.add("Transpose", node.input[0], perm=[0, 2, 1])
        found = work.add("MatMul", np.ascontiguousarray(weight.T), turned)
        work.replace(node, work.add("Transpose", found, perm=[0, 2, 1]))
        count += 1
    return count


def _product_in_halves(work: Work) -> int:
    """The sum of two products, as tensor-parallel exports have it."""
    count = 0
    for node in work.chosen(work.nodes("MatMul")):
        weight = work.constant_of(node, 1)
        if weight is None or weight.ndim != 2 or len(weight) < 2:
            continue
        sizes = np.array([len(weight) // 2, len(weight) - len(weight) // 2], np.int64)
        first = work.add("Split", node.input[0], sizes, outputs=2, axis=-1)
        one = work.add("MatMul", first, weight[: sizes[0]])
        two = work.add("MatMul", f"{first.removesuffix('0')}1", weight[sizes[0] :])
        work.replace(node, work.add("Add", one, two))
        count += 1
    return count


CHANGES: dict[str, Change] = {
    "gemm-apart": _gemm_apart,
    "product-as-gemm": _product_as_gemm,
    "product-turned": _product_turned,
    "product-in-halves": _product_in_halves,
}
