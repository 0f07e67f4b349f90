"""Products of vectors and matrices, and equations of Einsum: drawn from usual and random ones, and taken apart."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import zip_longest
from random import Random
from typing import Any

from conrepair_lab.generate.settings.domains import Domain
from conrepair_lab.generate.settings.expressions import Number, known, product
from conrepair_lab.generate.settings.setting import Setting
from conrepair_lab.generate.settings.shapes import AnyShape, Broadcast, Dims, Either, Lettered, Size
from conrepair_lab.generate.settings.tensors import TensorType
from conrepair_lab.generate.specifications.specification import operator

_USUAL = (
    "ij,jk->ik",
    "bij,bjk->bik",
    "bhid,bhjd->bhij",
    "bhij,bhjd->bhid",
    "bihd,bjhd->bhij",
    "...ij,...jk->...ik",
    "ij,jk,kl->il",
    "ij->ji",
    "ij->",
    "ij->j",
    "ii->i",
    "ii",
    "bii->b",
    "i,j->ij",
    "i,i->",
    "ij,ij->",
    "ij,jk",
    "b...->...b",
)

_WRITTEN = re.compile(r"[a-z]*(\.\.\.)?[a-z]*(,[a-z]*(\.\.\.)?[a-z]*)*(->[a-z]*(\.\.\.)?[a-z]*)?")


@dataclass(frozen=True)
class Equation(Domain):
    """An equation that makes sense, with small letters."""

    def drawn(self, random: Random) -> str:
        return random.choice(_USUAL) if random.random() < 0.5 else _random(random)

    def allows(self, value: Any) -> bool:
        text = value.replace(" ", "")
        if not _WRITTEN.fullmatch(text):
            return False
        terms, result = terms_of(text)
        letters = [letter for letter in result if letter != "."]
        return (
            len(letters) == len(set(letters))
            and set(letters) <= set("".join(terms))
            and ("..." in result) == any("..." in term for term in terms)
        )


def terms_of(equation: str) -> tuple[list[str], str]:
    """What an equation says of each input, and of its output: without an arrow, what letters come once."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if arrow:
        return terms, right
    counts = Counter(left.replace(",", "").replace(".", ""))
    once = "".join(sorted(letter for letter, count in counts.items() if count == 1))
    return terms, ("..." if "..." in left else "") + once


def _random(random: Random) -> str:
    letters = "abcde"[: random.randint(1, 5)]
    dots = random.random() < 0.25
    terms = []
    for _ in range(random.choice((1, 1, 2, 2, 2, 3))):
        chosen = random.choices(letters, k=random.randint(0, 3)) if random.random() < 0.3 else None
        term = chosen or random.sample(letters, random.randint(0 if dots else 1, min(4, len(letters))))
        if dots:
            term.insert(random.randint(0, len(term)), "...")
        terms.append("".join(term))
    left = ",".join(terms)
    if random.random() < 0.25:
        return left
    there = sorted(set(left) - {",", "."})
    result = random.sample(there, random.randint(0, len(there)))
    if dots:
        result.insert(random.randint(0, len(result)), "...")
    return f"{left}->{''.join(result)}"


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
    s.maybe(s.input, "C", Broadcast(result, one_way=True))
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
