"""Which layers differ more where two models disagree than where they agree.

For every element of a layer's activation the Kruskal-Wallis test compares the differences between target and source
on inputs with different answers with those on inputs with the same answer. The share of significant elements ranks
the layers, as ConRepAIr does. It ranks and doesn't convict: everything behind a fault differs too.

Unlike there, p-values are corrected for their number (Benjamini and Hochberg, within each layer: at 5 % each, 5 % of
the elements of every right layer would be significant), all layers take part and not convolutions alone, layers
whose shapes differ are listed, and draws have a seed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.diagnosis.localization.ranking.suspicion_draws import Draws, SuspicionSettings
from conrepair.ground.metrics.kruskal import kruskal_wallis

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class LayerDifferences:
    """A pair of layers, as captured.

    Attributes:
        source_layer: Name in the source.
        target_layer: Name in the target.
        differences: Target's activation less the source's, samples first; None where their shapes differ.
        source_shape: Of the source's activation, without the samples.
        target_shape: Of the target's.
        params_mean_diff: Mean absolute difference of the parameters, where it's known.
    """

    source_layer: str
    target_layer: str
    differences: Array | None
    source_shape: tuple[int, ...] = ()
    target_shape: tuple[int, ...] = ()
    params_mean_diff: float | None = None


@dataclass(frozen=True)
class ElementTest:
    """How many elements of a layer differ between the two sorts of inputs.

    Attributes:
        elements: How many there are.
        significant: How many differ after the correction, including `constant`.
        constant: Of these, those that are the same on all inputs with the same answer and something else on an input
            with another: no test is needed to call that a difference, and ConRepAIr counts them too.
        uncorrected: How many have a p-value below the significance, as ConRepAIr counts, including `constant`.
    """

    elements: int
    significant: int
    constant: int
    uncorrected: int

    @property
    def share(self) -> float:
        """Of significant elements."""
        return self.significant / self.elements if self.elements else 0.0


@dataclass(frozen=True)
class LayerSuspicion:
    """What the statistics say about a layer.

    Attributes:
        source_layer: Name in the source.
        target_layer: Name in the target.
        tests: One for each repetition; empty where nothing could be tested.
        ranks: Of its share in each repetition, 1 the most suspicious; equal shares have the mean of their ranks.
        params_mean_diff: As given.
        reason: Why it was not tested; None when it was.
    """

    source_layer: str
    target_layer: str
    tests: tuple[ElementTest, ...]
    ranks: tuple[float, ...]
    params_mean_diff: float | None = None
    reason: str | None = None

    @property
    def share(self) -> float:
        """Of significant elements, the mean over the repetitions."""
        return sum(test.share for test in self.tests) / len(self.tests) if self.tests else 0.0

    @property
    def rank_sum(self) -> float:
        """By which layers are ordered."""
        return sum(self.ranks)


@dataclass(frozen=True)
class Suspiciousness:
    """Layers by suspicion.

    Attributes:
        layers: The tested ones, the most suspicious first.
        incomparable: Those whose activations differ in shape, in the order of the network: no test applies to them,
            and they are the first to look at.
        similar: How many inputs the models agree on.
        dissimilar: How many they disagree on.
        settings: What was used.
        shortage: Why nothing was ranked; None when there were enough inputs.
    """

    layers: tuple[LayerSuspicion, ...]
    incomparable: tuple[LayerSuspicion, ...]
    similar: int
    dissimilar: int
    settings: SuspicionSettings
    shortage: str | None


def rank_layers(layers: Iterable[LayerDifferences], draws: Draws, settings: SuspicionSettings) -> Suspiciousness:
    """Test every layer and rank them.

    Layers are taken one after the other and not kept: memory holds one layer's differences and a chunk of ranks.

    Args:
        layers: In the order of the network; not read when there are too few inputs.
        draws: Of `draw_inputs`; the differences' samples are its `inputs`.
        settings: Those that the draws were made by.
    """
    tested: list[LayerSuspicion] = []
    incomparable: list[LayerSuspicion] = []
    inputs = draws.inputs
    drawn = [[np.searchsorted(inputs, rows) for rows in both] for both in draws.repetitions]
    for layer in layers if drawn else ():
        if layer.differences is None:
            incomparable.append(_untested(layer))
            continue
        tests = tuple(
            elements_that_differ(layer.differences[one], layer.differences[two], settings) for one, two in drawn
        )
        tested.append(LayerSuspicion(layer.source_layer, layer.target_layer, tests, (), layer.params_mean_diff))
    ranked = sorted(_with_ranks(tested), key=lambda layer: layer.rank_sum)
    return Suspiciousness(
        tuple(ranked), tuple(incomparable), draws.similar, draws.dissimilar, settings, draws.shortage
    )


def elements_that_differ(similar: Array, dissimilar: Array, settings: SuspicionSettings) -> ElementTest:
    """Test every element of a layer.

    Args:
        similar: Differences [samples, ...] on inputs with the same answer. NaN counts as larger than any number.
        dissimilar: The same on inputs with another answer.
        settings: For the significance.
    """
    similar, dissimilar = (_comparable(group) for group in (similar, dissimilar))
    elements = similar.shape[1]
    constant = (similar == similar[0]).all(axis=0) & (dissimilar != similar[0]).any(axis=0)
    p = kruskal_wallis([similar, dissimilar])[1]
    known = np.isfinite(p)  # NaN: all values of the element are the same
    corrected = np.ones(elements)
    if known.any():
        from scipy.stats import false_discovery_control  # takes half a second to import

        corrected[known] = false_discovery_control(p[known], method="bh")
    return ElementTest(
        elements,
        int(((corrected <= settings.significance) | constant).sum()),
        int(constant.sum()),
        int(((np.where(known, p, 1.0) < settings.significance) | constant).sum()),
    )


def _comparable(group: Array) -> Array:
    """[samples, elements] of a type that numpy sorts, without NaN."""
    flat = group.reshape(len(group), -1)
    flat = flat if flat.dtype in (np.float32, np.float64) else flat.astype(np.float64)
    return np.where(np.isnan(flat), np.inf, flat) if np.isnan(flat).any() else flat


def _untested(layer: LayerDifferences) -> LayerSuspicion:
    reason = f"the shape is {list(layer.target_shape)}, in the original {list(layer.source_shape)}"
    return LayerSuspicion(layer.source_layer, layer.target_layer, (), (), layer.params_mean_diff, reason)


def _with_ranks(layers: Sequence[LayerSuspicion]) -> list[LayerSuspicion]:
    if not layers:
        return []
    from scipy.stats import rankdata

    shares = np.array([[test.share for test in layer.tests] for layer in layers])
    ranks = np.stack([rankdata(-column) for column in shares.T], axis=1)
    return [replace(layer, ranks=tuple(map(float, row))) for layer, row in zip(layers, ranks, strict=True)]


# The layer analysis in the form that ConRepAIr writes it, as JSON that other programs can read.


def classic_layer_analysis(suspiciousness: Suspiciousness) -> list[dict[str, Any]]:
    """Layers as plain values for `json.dumps`, the most suspicious first, those that could not be tested last.

    ConRepAIr writes a JSON text that holds a Python text. `elems_percentage` is its share of elements with a p-value
    below the significance, the mean over the iterations; what is left after the correction stands beside it.

    Args:
        suspiciousness: Of `rank_layers`.

    Returns:
        For each layer: source_layer, target_layer, elems_percentage, elems_percentage_corrected, params_mean_diff
        (null where it isn't known), ranks by iteration ("1", "2", ...), rank (its place), and reason (null when it
        was tested).
    """
    tested = [_entry(layer, place) for place, layer in enumerate(suspiciousness.layers, 1)]
    return [*tested, *(_entry(layer, None) for layer in suspiciousness.incomparable)]


def _entry(layer: LayerSuspicion, place: int | None) -> dict[str, Any]:
    percentages: list[float | None] = [None, None]
    if layer.tests:
        counts = [(test.uncorrected, test.significant, max(test.elements, 1)) for test in layer.tests]
        percentages = [100 * sum(count[which] / count[2] for count in counts) / len(counts) for which in (0, 1)]
    return {
        "source_layer": layer.source_layer,
        "target_layer": layer.target_layer,
        "elems_percentage": percentages[0],
        "elems_percentage_corrected": percentages[1],
        "params_mean_diff": _finite(layer.params_mean_diff),
        "ranks": {str(iteration): _finite(rank) for iteration, rank in enumerate(layer.ranks, 1)},
        "rank": place,
        "reason": layer.reason,
    }


def _finite(value: float | None) -> float | None:
    """JSON has no NaN and no infinity."""
    return value if value is not None and math.isfinite(value) else None
