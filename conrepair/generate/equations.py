"""Equations of Einsum: drawn from usual ones and from random ones, and taken apart."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Any

from conrepair.generate.domains import Domain

__all__ = ["Equation", "terms_of"]

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
