"""A target whose inputs are declared with other sizes than its source's: nothing behind them can be compared."""

from __future__ import annotations

import math
from collections.abc import Sequence

from conrepair.data.declared_sizes import Sizes, sizes_in_words
from conrepair.data.tensor_spec import TensorSpec
from conrepair.evaluate.verdict import Verdict
from conrepair.faults.fault import Kind
from conrepair.localize.options import Options
from conrepair.localize.result import Localization, LocatedFault

__all__ = ["of_other_sizes"]


def of_other_sizes(
    source: Sequence[TensorSpec], inputs: Sequence[TensorSpec], wanted: Sizes, options: Options
) -> Localization:
    """What is said of such a target.

    Args:
        source: The source's inputs.
        inputs: The target's own.
        wanted: Sizes that it would have to declare, from `sizes_wanted`.
        options: Of the localization.
    """
    words = sizes_in_words(source, inputs, wanted)
    theirs = [
        spec.name for spec, shape in zip(inputs, wanted, strict=True) if any(size is not None for size in shape)
    ]
    named = {spec.name for spec in source}
    places = {spec.name: place for place, spec in enumerate(inputs)}
    ours = [name if name in named else source[places[name]].name for name in theirs]
    fault = LocatedFault(
        Kind.INPUT, tuple(ours), tuple(theirs), "", math.inf, math.inf, 0.0, 1.0, (words,), ours[0], theirs[0]
    )
    return Localization(Verdict.FAULTY, words, (fault,), (), (), (), 0, math.inf, (), options)
