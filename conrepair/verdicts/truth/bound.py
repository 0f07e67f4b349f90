"""How far a right computation of a network in its own types may be from the exact one: running error analysis.

Beside the exact value of every tensor (ONNX's reference in float64) goes a bound of each element's absolute error,
from the inputs on: what the operands' bounds may become by the operator, and what the operator's own rounding adds.
Sums of n products may be made in any order, with fused operations or without: n half ulps of all terms' magnitudes.
Functions are taken within their accuracy, which is given. Where a bound reaches a step (Floor, Greater, ArgMax), the
step belongs to it; where it reaches a pole, the end of a domain or the type's largest number, it's infinite.

The bounds hold for all roundings, not to first order only (`conrepair.verdicts.truth.approximate`), with two
exceptions: operators without a rule have estimates, which are said to be; and bounds forget that two operands come
from one tensor, so that x - x may be wide.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from conrepair.formats.onnx.load.proto_file import read_within
from conrepair.ground.metrics.ulps import Grid, grid_of
from conrepair.ground.operators.all_operators import ROUNDED
from conrepair.ground.operators.record import Array
from conrepair.verdicts.truth.approximate import Machine
from conrepair.verdicts.truth.left_open import opened
from conrepair.verdicts.truth.referees import reference_of
from conrepair.verdicts.truth.rules import MADE_WHOLE, Call, Step, estimate, full, is_real, lost, rule_of
from conrepair.verdicts.truth.widening import REAL, types_of, widened_feeds

Accuracy = Mapping[str, float | Callable[[Array], Array]]
"""Units in the last place that an operator may be off by itself, by its name; or a function of its first operand."""

ACCURACY: Accuracy = dict.fromkeys(ROUNDED, 16.0)
"""Units in the last place that a right kernel of a function may be off; what's further off is a fault of its own."""


@dataclass(frozen=True)
class Bounded:
    """A network's tensors on one set of inputs.

    Attributes:
        truth: The exact values, by name.
        bound: The largest error of a right computation, element by element; zero of what is exact.
        estimated: Tensors whose bound rests on an estimate, with the first operator that has no rule.
    """

    truth: Mapping[str, Array]
    bound: Mapping[str, Any]
    estimated: Mapping[str, str]


class Analysis:
    """A network opened for it.

    Args:
        model: In its own types, which are those that the bounds are for.
        dtype: A type that is meant in place of float32.

    Raises:
        Exception: as `conrepair.verdicts.truth.referees.reference_of` does, which is what computes the exact values.
    """

    def __init__(self, model: onnx.ModelProto, dtype: str = "float32") -> None:
        self._evaluator = reference_of(model)
        self._grids = {
            name: grid_of(dtype if kind == onnx.TensorProto.FLOAT else onnx.helper.tensor_dtype_to_np_dtype(kind))
            for name, kind in types_of(model).items()
            if kind in REAL
        }
        self._default = grid_of(dtype)
        self.inputs, self.outputs = tuple(self._evaluator.input_names), tuple(self._evaluator.output_names)

    def at(self, feeds: Mapping[str, Array], accuracy: Accuracy | None = None) -> Bounded:
        """The exact values of all tensors, and their bounds.

        Args:
            feeds: In the network's own types.
            accuracy: Of operators that are off by more than one unit in the last place. It's that of functions, and
                of every step that a composed operator (Softmax, a normalization) is made of; sums are bounded by
                their terms.
        """
        values = self.given(feeds)
        bounds: dict[str, Any] = {name: np.zeros(np.shape(value)) for name, value in values.items()}
        bounds[""] = None
        estimated: dict[str, str] = {}
        for step in self.steps(values):
            operands = [bounds[name] for name in step.names]
            found, guessed = self._bounded(step, operands, accuracy or {})
            bounds.update(zip(step.written, found, strict=False))
            first = next((estimated[name] for name in step.names if name in estimated), "")
            if first or guessed:
                estimated.update(dict.fromkeys(step.written, first or step.operator))
        del values[""], bounds[""]
        return Bounded(values, bounds, estimated)

    def given(self, feeds: Mapping[str, Array]) -> dict[str, Any]:
        """Tensors in float64 before anything is computed: weights and inputs; None by the name of no tensor.

        Args:
            feeds: In the network's own types.
        """
        return {**self._evaluator.rt_inits_, **widened_feeds(feeds), "": None}

    def steps(self, values: dict[str, Any]) -> Iterator[Step]:
        """Compute node by node.

        Args:
            values: From `given`. Receives what a node computes when the next one is asked for, so that a reader may
                put something else into `Step.outputs` before.
        """
        for node in self._evaluator.rt_nodes_:
            proto = node.onnx_node
            outer = [name for name in read_within(proto) if name in values] if node.need_context() else []
            names = [*proto.input, *outer]
            run = functools.partial(_run_within, node, values, outer) if node.need_context() else node.run
            given = [values[name] for name in names]
            with np.errstate(all="ignore"):
                outputs = list(run(*given))[: len(proto.output)]
            yield Step(proto.op_type, node, run, names, given, tuple(proto.output), outputs)
            values.update(zip(proto.output, outputs, strict=False))

    def truth(self, feeds: Mapping[str, Array]) -> dict[str, Any]:
        """The exact values of all tensors alone.

        Args:
            feeds: In the network's own types.
        """
        values = self.given(feeds)
        for _ in self.steps(values):
            pass  # they fill the values
        del values[""]
        return values

    def rounding(self, step: Step, accuracy: Accuracy, times: float = 1.0) -> list[Any]:
        """What a node's own rounding likely comes to at the most: of its results, as its operands are.

        Args:
            step: The node.
            accuracy: As of `at`.
            times: Of that, as far as the node's bound and as many roundings of its results go.
        """
        exact = [None if value is None else full(value, 0.0) for value in step.values]
        likely = self._bounded(step, exact, accuracy, likely=True)[0]
        bounds = self._bounded(step, exact, accuracy)[0]
        found = []
        for name, output, low, high in zip(step.written, step.outputs, likely, bounds, strict=False):
            if not is_real(output):
                found.append(low)
                continue
            least = times * self._grid(name, output).ulp(output) / 2
            found.append(np.minimum(times * np.asarray(low), np.maximum(high, least)))
        return found

    def _grid(self, name: str, output: Array) -> Grid:
        """Of a real result; the reference may be coarser than the network is."""
        return max(self._grids.get(name, self._default), grid_of(output.dtype), key=lambda grid: grid.unit)

    def _bounded(
        self, step: Step, operands: Sequence[Any], accuracy: Accuracy, *, likely: bool = False
    ) -> tuple[list[Any], bool]:
        """The bounds of a node's results, and whether they are estimates."""
        rule, own = rule_of("" if step.node.onnx_node.domain else step.operator)
        ulps: Any = accuracy.get(step.operator, own)
        ulps = ulps(step.values[0]) if callable(ulps) else ulps
        pairs = zip(step.written, step.outputs, strict=False)
        grids = [self._grid(*pair) if is_real(pair[1]) else None for pair in pairs]
        machines = [Machine(grid, ulps, likely) for grid in grids]
        call = Call(**vars(step), bounds=operands, machines=machines)
        known = call.certain() and step.operator not in MADE_WHOLE and not any(grids)
        with np.errstate(all="ignore"):
            found = lost(call, call.all(0.0) if known else rule(call))
            return opened(call, found), rule is estimate and not known


def _run_within(node: Any, values: Mapping[str, Any], outer: Sequence[str], *operands: Any) -> Any:
    """Run a node with graphs inside, which read tensors outside of it: the last operands."""
    own = operands[: len(operands) - len(outer)]
    return node.run(*own, context={**values, **dict(zip(outer, operands[len(own) :], strict=True))})
