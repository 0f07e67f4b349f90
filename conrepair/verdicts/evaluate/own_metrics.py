"""Metrics of a user's own: functions of what the source and the target give, shown, and with a limit decisive."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from conrepair.formats.models.admission import how_to_trust
from conrepair.ground.runtime.errors import ModelLoadError
from conrepair.ground.runtime.user_functions import user_function
from conrepair.verdicts.evaluate.verdict import Verdict

Array = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A function of two arrays that gives a number.

    Attributes:
        function: Of the reference's and the candidate's output, samples first, in one shape and layout.
        min: The number may be.
        max: The number may be.
        output: Name of the source's output that it's of; "" for all.
    """

    function: Callable[[Array, Array], Any]
    min: float = -math.inf
    max: float = math.inf
    output: str = ""


def loaded(named: Sequence[Mapping[str, Any]], base: Path, *, trust: bool) -> tuple[Metric, ...]:
    """Metrics with their functions.

    Args:
        named: Fields of each; a function may be a name, "FILE.py:FUNCTION" or "MODULE:FUNCTION".
        base: Folder that relative paths start from.
        trust: Whether the user says that those may run.

    Raises:
        ModelLoadError: if one may not run, or importing it fails.
        UsageError: if one isn't there.
    """
    programs = [item["function"] for item in named if isinstance(item["function"], str)]
    if programs and not trust:
        raise ModelLoadError(
            f"{', '.join(programs)}: metric functions weren't run. They are programs: they'd run with your rights, "
            "outside of the sandbox. "
            f"{how_to_trust('`trust: true` of `metrics`', 'trust=True')}."
        )
    functions = {name: user_function(name, base) for name in programs}
    return tuple(Metric(**{**item, "function": functions.get(item["function"], item["function"])}) for item in named)


def measured(
    metrics: Sequence[Metric], output: str, reference: Array, candidate: Array
) -> tuple[dict[str, float], Verdict, str]:
    """Measure an output.

    Args:
        metrics: Of which those of others are left out.
        output: The source's name of it.
        reference: Samples first.
        candidate: The same shape.

    Returns:
        Values by the metrics' names; the verdict that they make it at best; why, and which of them failed.
    """
    values, verdicts, words = {}, [Verdict.EQUIVALENT], []
    for metric in metrics:
        if metric.output not in {"", output}:
            continue
        name = getattr(metric.function, "__name__", type(metric.function).__name__)
        try:
            value = values[name] = float(metric.function(reference, candidate))
        # A function of the user's own may raise anything; what was run before isn't lost for it.
        except Exception as error:  # noqa: BLE001
            words.append(f"the metric {name} failed: {type(error).__name__}: {error}")
            verdicts += [Verdict.UNDECIDED] * (metric.min > -math.inf or metric.max < math.inf)
            continue
        if not metric.min <= value <= metric.max:
            limit = f"at most {metric.max:g}" if value > metric.max else f"at least {metric.min:g}"
            words.append(f"the metric {name} is {value:.4g}; {limit} is wanted")
            verdicts.append(Verdict.FAULTY)
    return values, max(verdicts, key=lambda item: item.severity), "; ".join(words)
