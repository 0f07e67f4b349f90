"""What a network gives by other means than its runtime's: disturbed as by rounding, exactly, in other arithmetics."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from conrepair.formats.networks.network import Network
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.runtime.errors import InferenceError
from conrepair.verdicts.judging import numbers
from conrepair.verdicts.judging.arithmetic import DISTURBED, arithmetic_of, as_rounding
from conrepair.verdicts.judging.exact import exact_values, first_wrong_kernel, work_of
from conrepair.verdicts.judging.simulation import Simulated
from conrepair.verdicts.truth.judging import beside

Outputs = Mapping[str, Array]
"""Of a batch, by the model's names."""

Computing = Callable[[Mapping[str, Array]], Outputs]
"""From a batch's feeds, by tensor."""


@dataclass(frozen=True)
class Measured:
    """Outputs of a network by other means.

    Attributes:
        runs: Of the first batches, as many as that's done for, by what they are: "rounded" (each tensor on the way
            rounded a little more), "exact" (in float64), "bounds" (how far each element of a right computation may be
            from that), "own" (by its runtime, where exact values are known), and arithmetics of devices.
        kernel: In words, which operator its runtime computes with a larger error than rounding explains.
    """

    runs: Mapping[str, Sequence[Outputs]] = field(default_factory=dict)
    kernel: str = ""


def measured(network: Network, batches: Iterable[Mapping[str, Array]], arithmetics: Collection[str] = ()) -> Measured:
    """Measure what rounding does to a network's outputs, and what they are exactly, and in other arithmetics.

    Other kernels of one library are often nearly the same: they don't show how badly conditioned a network is. Here
    its tensors are disturbed, some after the other, and what that does is carried to the outputs.

    Args:
        network: As its own runtime computes it.
        batches: Feeds by tensor; of the first one all is measured, of others what isn't too much work.
        arithmetics: Names of those to simulate.
    """
    ends = [end for end in dict.fromkeys(network.output_names.values()) if end not in network.graph.inputs]
    if not ends:
        return Measured()
    one, two = itertools.tee(batches)
    first, *_ = given = list(itertools.islice(one, 1))
    if arithmetics:
        cost = len(arithmetics) * (work_of(network, first, ends, slow=1.0) + numbers.STEP * len(network.graph.nodes))
        given += itertools.islice(one, max(0, min(numbers.BATCHES, int(numbers.SIMULATED / cost)) - 1))
    whole = _outputs(network, ends)
    disturbed = _outputs(Simulated(network, DISTURBED, most=numbers.STEPS), ends)(first)
    rounded = {name: as_rounding(own, disturbed[name]) for name, own in whole(first).items()}
    runs: dict[str, list[Outputs]] = {"rounded": [rounded]}
    for name in arithmetics:
        runs[name] = []
        with contextlib.suppress(InferenceError):  # what it makes of a number may be no index
            outputs = _outputs(Simulated(network, arithmetic_of(name)), ends)
            for feeds in given:
                runs[name].append(outputs(feeds))
    exact, kernel = _exact(network, whole, two, ends)
    return Measured({name: parts for name, parts in (runs | exact).items() if parts}, kernel)


def _outputs(network: Network, ends: Sequence[str]) -> Computing:
    """Computes a model's outputs, by its names for them."""
    segment = network.segment(network.graph.inputs, ends)

    def outputs(feeds: Mapping[str, Array]) -> Outputs:
        given = {**feeds, **segment.run(feeds)}
        return {name: given[end] for name, end in network.output_names.items()}

    return outputs


def _exact(
    network: Network, whole: Computing, batches: Iterable[Mapping[str, Array]], ends: Sequence[str]
) -> tuple[dict[str, list[Outputs]], str]:
    """Exact values of all batches with their bounds, and what the runtime computes wrong; {} where nobody knows."""
    runs: dict[str, list[Outputs]] = {"exact": [], "bounds": [], "own": []}
    kernel, left = "", numbers.WORK
    for feeds in batches:
        found = exact_values(network, feeds, ends, most=left)
        if found is None or any(end in found.estimated or end not in found.values for end in ends):
            return {}, ""
        left -= found.work
        own, computed = whole(feeds), {name: end for name, end in network.output_names.items() if end in ends}
        sides = (beside(own[name], found.values[end], found.bounds[end]) for name, end in computed.items())
        if not kernel and any(side.beyond for side in sides):
            wrong = first_wrong_kernel(network, found)
            if wrong is None:
                return {}, ""
            kernel = str(wrong)
        for part, values in ((runs["exact"], found.values), (runs["bounds"], found.bounds)):
            part.append({name: values[end] for name, end in network.output_names.items() if end in values})
        runs["own"].append(own)
    return runs, kernel
