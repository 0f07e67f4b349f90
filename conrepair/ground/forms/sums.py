"""Sums of products and of rows: their order, their element type, what is rounded between, who computes them."""

from __future__ import annotations

import re

import onnx_ir

from conrepair.ground.equations.matching import FLOATS, name_of
from conrepair.ground.forms.form import Form, Place, Writing
from conrepair.ground.onnx_graphs.initializers import constant_of
from conrepair.ground.operators.moves import MOVES


def _of_sizes(pattern: str, naive: str = "") -> Writing:
    """Terms of which the magnitudes are added up."""
    return Writing(pattern, "", naive, re.sub(r"\b([wxyz])\b", r"Abs(\1)", pattern).replace(" - ", " + "))


_PRODUCTS = (
    "MatMul(x, y)",
    *(f"{name}(x, y{z}, **given)" for name in ("Gemm", "Conv", "ConvTranspose") for z in ("", ", z")),
)
_ROWS = ("ReduceSum(x)", "ReduceMean(x)", "AveragePool(x, **given)", "GlobalAveragePool(x)")
_WRITINGS = tuple(map(_of_sizes, (*_PRODUCTS, *_ROWS)))
_MOVED = {*MOVES, *["Flatten", "Identity", "Squeeze", "Unsqueeze"]}  # what rounds nothing
_CONTRACTED = ("x * y - z * w", "x * y + z", "x * y - z", "z - x * y")


class _Folded(Form):
    """Found by what nodes read, not by what they are."""

    def found_in(self, graph: onnx_ir.Model) -> list[Place]:
        """Results of constants alone that somebody else reads."""
        behind: dict[onnx_ir.Node, list[onnx_ir.Node]] = {}  # each with those that it reads of, the last one first
        for node in graph.graph:
            read = [value for value in node.inputs if value is not None]
            makers = [value.producer() for value in read if constant_of(value) is None]
            if read and not node.domain and all(maker in behind for maker in makers):
                inner = [item for maker in makers if maker is not None for item in behind[maker]]
                behind[node] = [node, *dict.fromkeys(inner)]
        return [
            Place(self.name, 0, root.op_type, tuple(map(name_of, nodes)), (), str(root.outputs[0].name))
            for root, nodes in behind.items()
            if root.outputs[0].dtype in FLOATS
            and (root.outputs[0].is_graph_output() or any(user not in behind for user, _ in root.outputs[0].uses()))
            and any(node.op_type not in _MOVED for node in nodes)
        ]


SUMS: tuple[Form, ...] = (
    Form(
        "order of a sum",
        "Terms are added in another order, in blocks or several at once: each order rounds otherwise, by units in "
        "the last place of the terms' magnitudes, which shows where they cancel and the sum is much smaller.",
        "",
        _WRITINGS,
    ),
    Form(
        "half precision sums",
        "Terms of half precision are added in half precision: each addition rounds to 11 bits (bfloat16: 8), and a "
        "sum stops to grow where a term is below its last bit.",
        "the sum in float32, between casts",
        _WRITINGS,
        frozenset({onnx_ir.DataType.FLOAT16, onnx_ir.DataType.BFLOAT16}),
        onnx_ir.DataType.FLOAT,
    ),
    Form(
        "contraction",
        "A product and the sum behind it are rounded once (fused multiply-add) or twice. Where they cancel, what "
        "the product was rounded by is all that is left of the result, or wrongly there.",
        "",
        tuple(_of_sizes(text, text) for text in _CONTRACTED),
    ),
    _Folded(
        "folded constants",
        "The compiler computes what depends on constants alone, in its own kernels and element type: the rounding, "
        "or the fault, of that one computation is in every answer.",
        "the constant computed in float64 and rounded once",
        (),
        wider=onnx_ir.DataType.DOUBLE,
    ),
)
