"""Exact values in float64: of a whole network, as a side of a trace, and of each segment of it."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
import onnx

from conrepair.formats.models.arithmetic import settled
from conrepair.formats.models.runnable import Array, Runnable
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import InferenceError
from conrepair.verdicts.truth.bound import ACCURACY, Accuracy, Analysis
from conrepair.verdicts.truth.disturbed import disturbed
from conrepair.verdicts.truth.judging import LARGE, distances, in_bounds, stored
from conrepair.verdicts.truth.widening import types_of
from conrepair_lab.tracing.propagation import Pieces

_NUMBERS = "biuf"
_MOST = 1e300  # where nothing may differ
_LEAST = 1e-3  # bounds: errors below look alike
_OWN = "computed from what is given: "


class ExactSide(Runnable):
    """A network in float64.

    Attributes:
        bound: Of the last run, by output.
    """

    def __init__(
        self,
        model: onnx.ModelProto,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[TensorSpec],
        accuracy: Accuracy = ACCURACY,
    ) -> None:
        """Open a network.

        Args:
            model: The network.
            inputs: Its own.
            outputs: Its own.
            accuracy: As of `Analysis.at`.

        Raises:
            InferenceError: if ONNX's reference doesn't compute it.
        """
        with _refusing():
            self._analysis = Analysis(model)
        self._accuracy, self.inputs, self.outputs = accuracy, tuple(inputs), tuple(outputs)
        self.bound: Mapping[str, Array] = {}
        self._last: dict[str, Array] = {}

    def run(self, feeds: Mapping[str, Array], *, fresh: bool = True) -> dict[str, Array]:
        """See `Runnable.run`."""
        settled()  # the other side may have left it otherwise
        with _refusing():
            found = self._analysis.at(feeds, self._accuracy)
            names = [spec.name for spec in self.outputs]
            self.bound = {name: found.bound[name] for name in names}
            self._last = {name: found.truth[name] for name in names}
        return self._last

    @property
    def tells(self) -> bool:
        """Whether the bound of the last run is less than the numbers themselves, as behind many layers it isn't."""
        return all(np.median(self.bound[name]) < _size(array) for name, array in self._last.items() if array.size)

    def estimated(
        self, feeds: Mapping[str, Array], *answers: Mapping[str, Array], ulps: float | None = None
    ) -> dict[str, Array]:
        """Replace the last run's bound by an estimate, where the bound is too loose to show a large error.

        Args:
            feeds: Of the last run.
            answers: That are judged.
            ulps: What answers may be off by without one, in their type's last place; a relative `LARGE` if None.

        Returns:
            By output, for which elements `bound` is an estimate now: answers are off by much there, and less than
            the bound.
        """
        masks = {name: np.zeros(truth.shape, bool) for name, truth in self._last.items()}
        for name, truth in self._last.items():
            for given in (answer[name] for answer in answers):
                if truth.dtype.kind in _NUMBERS and given.shape == truth.shape:
                    error = distances(given, truth)
                    masks[name] |= (error > _usual(given, truth, ulps)) & (error <= self.bound[name])
        if any(mask.any() for mask in masks.values()):
            found = {**self.bound, **disturbed(self._analysis, feeds, self._accuracy)}
            masks = {name: mask & (found[name] < self.bound[name]) for name, mask in masks.items()}
            self.bound = {name: np.where(mask, found[name], self.bound[name]) for name, mask in masks.items()}
        return masks

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        return self.run(feeds)


@contextlib.contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    # ONNX's reference raises a dozen types of its own.
    except Exception as error:
        raise InferenceError(f"ONNX's reference can't run it in float64: {type(error).__name__}: {error}") from error


def _usual(given: Array, truth: Array, ulps: float | None) -> Array:
    """What no estimate is made for."""
    if ulps is None or given.dtype.kind != "f":
        return LARGE * np.abs(truth)
    return stored(given.dtype, truth, ulps)


def _size(array: Array) -> float:
    finite = array[np.isfinite(array)]
    return float(np.sqrt(np.mean(np.square(finite)))) if finite.size else 0.0


def over_bound(side: ExactSide, one: Sequence[Array], two: Sequence[Array], distance: float = 0.0) -> float:
    """The worst error as a multiple of its rounding error, as a power of ten; other functions judge infinities.

    Args:
        side: That gave the exact values just now.
        one: Answers.
        two: Exact ones.
        distance: As objectives are told it.
    """
    worst = _LEAST
    for given, exact, bound in zip(one, two, side.bound.values(), strict=True):
        if given.shape != exact.shape or given.dtype.kind not in _NUMBERS:
            continue
        errors = distances(given, exact)
        ratios = np.minimum(in_bounds(errors, bound), _MOST)
        worst = max(worst, float(ratios.max(initial=0, where=np.isfinite(errors))))
    return float(np.log10(worst))


def pieces_of(model: onnx.ModelProto, tensors: Collection[str], accuracy: Accuracy = ACCURACY) -> Pieces:
    """The exact values of each segment of a network between tensors, and its largest rounding error.

    Args:
        model: A network.
        tensors: Results of its nodes.
        accuracy: As of `Analysis.at`.

    Returns:
        Given values of the inputs and of all these tensors, what each of them is when it's computed from those in
        front of it, and the bounds.
    """
    analysis = Analysis(cut_at(model, tensors))

    def run(given: Mapping[str, Array]) -> tuple[dict[str, Array], dict[str, Array]]:
        found = analysis.at(given, accuracy)
        truth, bound = ({name: part[_OWN + name] for name in tensors} for part in (found.truth, found.bound))
        return truth, bound

    return run


def cut_at(model: onnx.ModelProto, tensors: Collection[str]) -> onnx.ModelProto:
    """The network with tensors as inputs, and what computed them as outputs under names of their own.

    Args:
        model: A network; graphs inside its nodes see what's given, too.
        tensors: Results of its nodes.
    """
    made = onnx.ModelProto()
    made.CopyFrom(model)
    types = types_of(model)
    del made.graph.output[:]
    for node in made.graph.node:
        for place, name in enumerate(node.output):
            if name in tensors:
                node.output[place] = _OWN + name
    for name in tensors:
        made.graph.input.append(onnx.helper.make_tensor_value_info(name, types[name], None))
        made.graph.output.append(onnx.helper.make_tensor_value_info(_OWN + name, types[name], None))
    return made
