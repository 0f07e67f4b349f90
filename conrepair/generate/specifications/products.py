"""Products of vectors and matrices."""

from __future__ import annotations

from itertools import zip_longest

from conrepair.generate.equations import Equation, terms_of
from conrepair.generate.expressions import Number, known, product
from conrepair.generate.setting import Setting
from conrepair.generate.shapes import AnyShape, Broadcast, Dims, Either, Lettered, Size
from conrepair.generate.specifications.specification import operator
from conrepair.generate.tensors import TensorType

_MOST_TOGETHER = 2**16
"""Elements that all of an equation's letters may have together: a runtime may hold as many."""


@operator()
def matmul(s: Setting) -> None:
    s.output(multiplied(s, s.input("A", rank=range(1, 7)), "B")[1])


def multiplied(s: Setting, a: TensorType, name: str) -> tuple[TensorType, list[Number]]:
    """Draw what a tensor is multiplied by, and give it with the result's shape."""
    batch, depth = a.shape[:-2], a.shape[-1]
    b = s.input(name, Either((Dims((depth,)), Lettered("...dc", {"d": depth}, Broadcast(batch)))))
    if not (2 <= b.rank <= a.rank and all(known(size) and size == 1 for size in b.shape[:-2])):
        many = a.shape[:-1] if b.rank == 1 else batch
        for one, other in zip_longest(reversed(many), reversed(b.shape[:-2]), fillvalue=1):
            s.require((one == other) | (one * other > 0), "ONNX Runtime broadcasts no batches without elements")
    rows = a.shape[-2:-1]
    columns = b.shape[-1:] if b.rank > 1 else ()
    return b, [*s.broadcast(batch, b.shape[:-2]), *rows, *columns]


@operator()
def gemm(s: Setting) -> None:
    a = s.input("A", rank=2)
    rows, depth = reversed(a.shape) if s.flag("transA") else a.shape
    turned = s.flag("transB")
    b = s.input("B", [Size(0), depth] if turned else [depth, Size(0)])
    result = (rows, b.shape[0 if turned else 1])
    s.real("alpha", -1e6, 1e6, usual=(1.0, 0.5))
    s.real("beta", -1e6, 1e6, usual=(1.0, 0.0))
    if s.has("C"):
        s.input("C", Broadcast(result, one_way=True))
    s.output(result)


@operator()
def einsum(s: Setting) -> None:
    terms, result = terms_of(s.value("equation", Equation()))
    sizes: dict[str, Number] = {}
    others: tuple[Number, ...] | None = None
    for term in terms:
        pattern = AnyShape(range(7)) if others is None else Broadcast(others)
        x = s.input("Inputs", Lettered(term, sizes, pattern))
        named, rest = Lettered(term).split(x.shape)
        sizes.update(named)
        if "..." in term:
            s.require(others is None or len(rest) == len(others), "ONNX Runtime ends the process")
            others = rest if others is None else s.broadcast(others, rest)
    elements = product((*sizes.values(), *(others or ())))
    s.require(elements <= _MOST_TOGETHER, "too many elements")
    s.require(others is None or elements > 0, "ONNX Runtime ends the process")
    front, _, back = result.partition("...")
    s.output([*(sizes[letter] for letter in front), *(others or ()), *(sizes[letter] for letter in back)])


@operator()
def det(s: Setting) -> None:
    x = s.input("X", Lettered("...mm"))
    s.output(x.shape[:-2])
