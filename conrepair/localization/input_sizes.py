"""A target whose inputs are declared with other sizes than its source's: nothing behind them can be compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from conrepair.data.declared_sizes import Sizes, resized_inputs, sizes_in_words
from conrepair.data.tensor_spec import TensorSpec
from conrepair.evaluate.verdict import Verdict
from conrepair.graph.kinds import Kind
from conrepair.localization.options import Options
from conrepair.localization.result import Localization, LocatedFault

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
    names = [(one.name, two.name) for one, two in resized_inputs(source, inputs, wanted)]
    ours, theirs = zip(*names, strict=True)
    fault = LocatedFault.of_error(Kind.INPUT, (ours[0], ours), (theirs[0], theirs), (words,))
    return Localization(
        verdict=Verdict.FAULTY,
        reason=words,
        faults=(replace(fault, at_input=True),),
        output_error=math.inf,
        options=options,
    )
