"""Which precision a model was meant to have: asked for, its source's own, or what its file shows."""

from __future__ import annotations

from dataclasses import dataclass

from conrepair.judging.floor import HALF_PRECISIONS

_PLAIN = {"float32", "float64"}


@dataclass(frozen=True)
class Intent:
    """The precision that a model is judged by.

    Attributes:
        found: Of the weights in the file, in words (`Description.precision`).
        asked: What the options of its converters asked for; None when nobody asked.
        origin: Precision of the source that the audit's converters made it from; None for a model that they
            didn't make, whose intent nobody but its file tells.
    """

    found: str = "float32"
    asked: str | None = None
    origin: str | None = None

    @property
    def meant(self) -> str:
        """What was asked for, else what the file shows if the source is as narrow or nobody knows better."""
        return self.asked or (self.found if self.silent is None else str(self.origin))

    @property
    def quantized(self) -> bool:
        """Whether eight bits are meant, so that a budget takes the place of rounding errors."""
        return _kind(self.meant) == "int8"

    @property
    def precision(self) -> str:
        """Whose rounding errors to expect: float16, bfloat16, or float32."""
        computes = self.meant.removeprefix("mixed ")
        return computes if computes in HALF_PRECISIONS else "float32"

    @property
    def silent(self) -> str | None:
        """What a converter did to the weights though nobody asked for it; None when all is as meant."""
        if self.asked is not None or self.origin is None or self.found in _PLAIN:
            return None
        return None if _kind(self.found) == _kind(self.origin) else self.found

    @property
    def complaint(self) -> str | None:
        """What isn't as it was asked for, in words."""
        if self.silent is not None:
            return f"most of its weights are {_in_words(self.silent)}, and nobody asked for that"
        if self.asked is not None and self.found in _PLAIN:
            return f"asked for: {self.asked}; but most of its weights are {self.found}"
        return None

    @property
    def text(self) -> str:
        """For a person: "int8 (asked for)", "float16 (nobody asked for it)"."""
        if self.asked is not None:
            missed = self.found in _PLAIN
            return f"{self.asked} (asked for{f'; most weights are {self.found}' if missed else ''})"
        if self.found in _PLAIN:
            return self.found
        if self.silent is not None:
            return f"{self.found} (nobody asked for it)"
        return f"{self.found} ({'as the source' if self.origin is not None else 'found in file'})"


def _in_words(precision: str) -> str:
    return "quantized" if _kind(precision) == "int8" else precision


def _kind(precision: str) -> str:
    """Quantized weights, full-integer and int8 are of one kind; weights that are cast, and those that were."""
    return "int8" if "quantized" in precision or precision.startswith("int8") else precision.removeprefix("mixed ")
