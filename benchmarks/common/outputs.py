"""What comparing outputs alone says of a target, as `conrepair compare` does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx

from benchmarks.common.located import rounding_of
from benchmarks.common.target import Data
from conrepair.editors.registry import open_editor
from conrepair.evaluate.pairing import fit, pair_outputs
from conrepair.evaluate.tolerance import Tolerance
from conrepair.evaluate.verdict import Verdict, combine_floor, judge
from conrepair.frameworks.model import Model, from_json
from conrepair.frameworks.registry import framework
from conrepair.metrics.tensors import compare_tensors

__all__ = ["outputs_verdict"]

_SMALL = 2_000_000  # bytes of a source that's run in float64, too


def outputs_verdict(source: Mapping[str, Any], target: Mapping[str, Any], data: Data, samples: int) -> str:
    """The worst verdict of an output, on the samples that localization looks at.

    Args:
        source: The right side.
        target: Not meant to be in fewer bits.
        data: Samples.
        samples: How many.
    """
    ours, theirs = (from_json(Model, side["model"]) for side in (source, target))
    feeds = data.feeds(source, samples)
    expected = framework(ours.framework).load(ours).run(feeds)
    given = framework(theirs.framework).load(theirs).run(data.feeds(target, samples))
    pairs, unpaired = pair_outputs(expected, given)
    verdicts = [Verdict.FAULTY if unpaired else Verdict.EQUIVALENT]
    small = ours.framework == "onnx" and Path(ours.path).stat().st_size <= _SMALL
    measured = rounding_of(onnx.load(ours.path), feeds) if small else None
    floor = combine_floor(measured, len(open_editor(ours).graph.nodes), "float32", exact=True, rounded=measured)
    tolerance = Tolerance()
    for pair in pairs:
        one, two = fit(pair, expected[pair.reference], given[pair.candidate])
        count = min(len(one), len(two))  # one of them may have a batch of its own
        error = compare_tensors(one[:count], two[:count], rtol=tolerance.rtol, atol=tolerance.atol)
        verdicts.append(judge(error, floor, tolerance, quantized=False, top1_difference=None)[0])
    return str(max(verdicts, key=lambda item: item.severity))
