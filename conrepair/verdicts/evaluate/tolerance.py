"""How much outputs may differ."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from conrepair.ground.runtime.errors import ConfigError
from conrepair.ground.runtime.words import meant

WITHOUT_BUDGET = {"quantized_top1": 1.0, "quantized_cosine": 0.0}
"""Where the accuracy on labelled data says what few bits may cost."""

if TYPE_CHECKING:
    from conrepair.ground.data.tensor_spec import (
        TensorSpec,  # NumPy takes a while to import, and a parser has no need of it
    )

ArithmeticName = Literal[
    "float32",
    "flushed",
    "int32",
    "tf32",
    "float16",
    "float16-accumulated",
    "bfloat16",
    "bfloat16-accumulated",
    "int8",
]
"""Those of `conrepair.verdicts.judging.arithmetic`."""

_REAL = ("float16", "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2")
_TYPES = (*_REAL, *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)))


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
        arithmetic: That targets are said to compute in (`conrepair.verdicts.judging.arithmetic`); "" where nobody
            says.
        given: Whether somebody chose what elements may differ by, so that it's meant for integers too.
        by_output: `rtol`, `atol` and `relative_l2` of some outputs in place of these: by the name of a source's
            output, or by the type that a target computes it in or gives it in. Where one of the first two is there,
            elements decide alone unless `relative_l2` is, too.
    """

    rtol: float = 1e-4
    atol: float = 1e-5
    relative_l2: float | None = 1e-4
    noise_margin: float = 10.0
    quantized_top1: float = 0.25
    quantized_cosine: float = 0.9
    strict_signature: bool = False
    arithmetic: str = ""
    given: bool = False
    by_output: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)

    @classmethod
    def of(cls, *, rtol: float | None = None, atol: float | None = None, **others: Any) -> Tolerance:
        """A tolerance that a user chose; None stands for the default.

        Where elements' tolerances are chosen, they decide alone unless `relative_l2` is, too.
        """
        given = {"rtol": rtol, "atol": atol}
        chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        alone = {"relative_l2": None} if chosen else {}
        return cls(**chosen, **alone | others, given=bool(chosen))

    def of_output(self, output: TensorSpec, given: TensorSpec, precision: str) -> Tolerance:
        """What holds for one output: what's said of its name, else of a type.

        Args:
            output: The source's.
            given: The target's.
            precision: That the target's real numbers are computed in.
        """
        real = {output.dtype, given.dtype} <= {*_REAL}
        known = (output.name, *([precision] if real else []), given.dtype, output.dtype)
        chosen = next((self.by_output[name] for name in known if name in self.by_output), {})
        alone: dict[str, Any] = {} if set(chosen) <= {"relative_l2"} else {"relative_l2": None, "given": True}
        return replace(self, **alone | dict(chosen), by_output={})


def check_names(what: str, names: Iterable[str], outputs: Collection[str], *, types: bool) -> None:
    """Refuse names that are no output's.

    Args:
        what: The names are of.
        names: Of outputs.
        outputs: Of all sources.
        types: Whether they may be of types of elements, too.

    Raises:
        ConfigError: naming it, and what there is.
    """
    more = _TYPES if types else ()
    for name in names:
        if name not in outputs and name not in more:
            hint = meant(name, [*outputs, *more]) or "."
            known = ", ".join(map(repr, dict.fromkeys(outputs))) or "none"
            told = f"; types of elements, as in float16:rtol=1e-2, are {', '.join(more)}" if types else ""
            raise ConfigError(f"{what}: the original has no output {name!r}{hint} Its outputs are {known}{told}.")
