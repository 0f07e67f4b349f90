"""What can be measured of the rounding of a network's outputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from conrepair.graph.layer_graph import Array
from conrepair.judging.exact import first_wrong_kernel
from conrepair.localization.activations import Activations
from conrepair.localization.reference import Reference
from conrepair.truth.judging import beside


@dataclass(frozen=True)
class Measured:
    """Outputs of a network for its first batch by other means, by the model's names.

    Attributes:
        rounded: With each tensor on the way rounded a little more.
        exact: In float64; None where that's too much work.
        bounds: How far each element of a right computation may be from that.
        simulated: In arithmetics that a device may have, by their names.
        kernel: In words, which operator its runtime computes with a larger error than rounding explains.
    """

    rounded: Mapping[str, Array] | None = None
    exact: Mapping[str, Array] | None = None
    bounds: Mapping[str, Array] | None = None
    simulated: Mapping[str, Mapping[str, Array]] = field(default_factory=lambda: MappingProxyType({}))
    kernel: str = ""


def measured(reference: Reference, right: Activations, arithmetics: Collection[str] = ()) -> Measured:
    """Measure all.

    Args:
        reference: The network.
        right: The first batch through it.
        arithmetics: Names of those to simulate.
    """
    network = reference.network
    rounded = reference.rounded_outputs(right)
    simulated = {name: reference.simulated_outputs(right, name) for name in arithmetics}
    found = reference.exact_outputs(right)
    names = network.output_names
    if found is None or any(tensor in found.estimated or tensor not in found.values for tensor in names.values()):
        return Measured(rounded, simulated=simulated)
    right.compute([tensor for tensor in names.values() if tensor not in network.graph.inputs])
    off = any(
        beside(np.asarray(right[tensor]), found.values[tensor], found.bounds[tensor]).beyond
        for tensor in names.values()
    )
    kernel = first_wrong_kernel(network, found) if off else None
    exact, bounds = ({name: part[tensor] for name, tensor in names.items()} for part in (found.values, found.bounds))
    return Measured(rounded, exact, bounds, simulated, "" if kernel is None else str(kernel))
