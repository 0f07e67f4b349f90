"""The measured errors of one operator in one system."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from conrepair.ground.runtime.errors import UsageError
from conrepair.ground.runtime.files.json_file import read_json_text, value_of
from conrepair.ground.runtime.typed import typed

WRONG = 16.0  # units in the last place: above that, digits are lost for which there's a cause
_MOST = 2.0**24  # units in the last place: all digits of float32


@dataclass(frozen=True)
class Measured:
    """The errors of an operator in one system and element type.

    Attributes:
        system: Which, with its setting.
        dtype: Element type.
        operator: ONNX's name, with the attribute that matters.
        family: "unary", "binary", "reductions", "normalizations", "products" or "windows".
        values: Numbers that were compared: those whose right value is an ordinary number of the element type.
        ulps: The largest error in units in the last place of the right value; where terms are summed, of the sum of
            their magnitudes, so that cancelling isn't held against the system.
        relative: The largest by that magnitude.
        of_bound: The same by what sums of so many terms may be off, one after another: above 1 is wrong. None where
            nothing is summed.
        at: An input where that is, or half of it, in words.
        above: How many values are off by more than 16 units.
        region: Where those are, in words; "" if there are none.
        missing: For how many others infinity or NaN came.
        missing_region: Where those are.
        form: What unstable form explains them, in words; "" if there are none.
        specials: What becomes of infinities, NaN, the sign of zero and subnormal numbers, where it isn't right.
        refused: Why the system doesn't take the operator; "" if it does. Then nothing was measured.
    """

    system: str
    dtype: str
    operator: str
    family: str
    values: int = 0
    ulps: float = 0.0
    relative: float = 0.0
    of_bound: float | None = None
    at: str = ""
    above: int = 0
    region: str = ""
    missing: int = 0
    missing_region: str = ""
    form: str = ""
    specials: tuple[str, ...] = ()
    refused: str = ""

    @property
    def faulty(self) -> bool:
        """Whether an error is above 16 units in the last place, or NaN or infinity came instead of a number."""
        return self.above + self.missing > 0


def known_errors(path: Path, systems: Collection[str]) -> dict[str, float]:
    """The largest measured errors of operators, of those that don't sum.

    Args:
        path: Of accuracy.json.
        systems: Which, with their settings.

    Returns:
        By operator, units in the last place, the largest of these systems.

    Raises:
        UsageError: if it isn't such a file, or has none of these systems.
    """
    try:
        measured = typed(tuple[Measured, ...], value_of(read_json_text(path)))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} isn't what `conrepair accuracy -o` writes as accuracy.json: {error}") from error
    there = {item.system for item in measured}
    if not there.intersection(systems):
        raise UsageError(
            f"{path} has no errors of {' or '.join(systems)}, but of {', '.join(sorted(there)) or 'none'}. "
            f"`conrepair accuracy {' '.join(systems)} -o FOLDER` measures them."
        )
    found: dict[str, float] = {}
    for item in measured:
        if item.system in systems and not item.refused and item.of_bound is None:
            name = item.operator.split()[0]
            found[name] = min(max(item.ulps, found.get(name, 0.0)), _MOST)
    return found
