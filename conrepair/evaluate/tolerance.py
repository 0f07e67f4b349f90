"""How much answers may differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Tolerance"]


@dataclass(frozen=True, kw_only=True)
class Tolerance:
    """|a-b| <= atol + rtol*|reference| for every element, and the whole's relative L2, is `equivalent`.

    Integers and truth values are equal or not, unless `rtol` or `atol` was given.

    Attributes:
        rtol: Relative, of each element.
        atol: Absolute, of each element.
        relative_l2: ||a-b|| / ||reference|| of an output; None: elements alone decide.
        noise_margin: `noise` up to so many times the source's own measured rounding error.
        quantized_top1: A quantized target may differ in so large a share of top-1 answers,
        quantized_cosine: and must keep at least this cosine with the source's outputs.
        strict_signature: Whether inputs and outputs in another layout are a fault, too, though numbers are right.
        given: Whether somebody chose what elements may differ by, so that it's meant for integers too.
    """

    rtol: float = 1e-4
    atol: float = 1e-5
    relative_l2: float | None = 1e-4
    noise_margin: float = 10.0
    quantized_top1: float = 0.25
    quantized_cosine: float = 0.9
    strict_signature: bool = False
    given: bool = False

    @classmethod
    def of(cls, *, rtol: float | None = None, atol: float | None = None, **others: Any) -> Tolerance:
        """What somebody chose; None stands for the usual."""
        chosen: dict[str, Any] = {
            name: value for name, value in (("rtol", rtol), ("atol", atol)) if value is not None
        }
        return cls(**chosen, **others, given=bool(chosen))
