"""How the bounds of an operator's operands become the bound of its result: one rule for a sort of operators.

Most rules call the operator itself in float64: on bounds, where it only moves numbers; on magnitudes, where it adds
products; at both ends of what its operands may be, where it's monotone.
"""

from __future__ import annotations

import copy
import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from onnx.reference.op_run import RuntimeTypeError

from conrepair.ground.metrics.ulps import grid_of
from conrepair.ground.operators.all_operators import OPERATORS
from conrepair.ground.operators.record import Array
from conrepair.verdicts.truth.approximate import Approximate, Machine
from conrepair.verdicts.truth.corrected import window_sums
from conrepair.verdicts.truth.judging import furthest

Bounds = list[Any]  # an array for each output; a list of arrays for a sequence


@dataclass(frozen=True)
class Step:
    """A node that was computed.

    Attributes:
        operator: ONNX's name.
        node: Of ONNX's reference, with the attributes.
        run: The operator in float64.
        names: Of operands, with those that graphs inside it read.
        values: These; None for those left out.
        written: Names of results.
        outputs: These.
    """

    operator: str
    node: Any
    run: Callable[..., Sequence[Any]]
    names: Sequence[str]
    values: Sequence[Any]
    written: tuple[str, ...]
    outputs: list[Any]


@dataclass(frozen=True)
class Call(Step):
    """A node, what it's given and gives, and how good that is.

    Attributes:
        bounds: Of operands; None where there is no operand, or it isn't of numbers.
        machines: What each result is computed by.
    """

    bounds: Sequence[Any]
    machines: Sequence[Machine]

    @property
    def machine(self) -> Machine:
        """Of the first result."""
        return self.machines[0]

    @property
    def result(self) -> Array:
        """The first one."""
        return np.asarray(self.outputs[0])

    def attribute(self, name: str, default: Any = None) -> Any:
        """Of the node; the default where it says none."""
        found = getattr(self.node, name, None)
        return default if found is None else found

    def operand(self, place: int) -> Approximate:
        """With its bound."""
        return Approximate(np.asarray(self.values[place]), self.bounds[place], self.machine)

    @property
    def results(self) -> dict[int, Array]:
        """By place, in float64."""
        return {place: np.asarray(output).astype(np.float64) for place, output in enumerate(self.outputs)}

    def changed(self, place: Callable[[Array, Array], Array]) -> dict[int, Any]:
        """Results with operands replaced that are real, or whose bounds say that they aren't certain.

        Args:
            place: Of value and bound, in order.
        """
        given = list(self.values)
        for index, (value, bound) in enumerate(zip(self.values, self.bounds, strict=True)):
            if isinstance(value, np.ndarray) and bound is not None and (value.dtype.kind == "f" or bound.any()):
                given[index] = place(value, bound)
        try:
            return dict(enumerate(self.run(*given)))
        except RuntimeTypeError:  # whole numbers beside whole ones alone
            return dict(enumerate(self.run(*map(_typed_as, given, self.values))))

    def certain(self, *places: int) -> bool:
        """Whether these operands, or all, are known to the last bit."""
        return not any(map(_any, [self.bounds[place] for place in places] if places else self.bounds))

    def all(self, bound: float) -> Bounds:
        """One bound for everything."""
        return [full(output, bound) for output in self.outputs]


def _typed_as(value: Any, original: Any) -> Any:
    """Numbers of an operand's own type, where that's whole: the nearest that it holds."""
    if not isinstance(original, np.ndarray) or original.dtype.kind not in "iu":
        return value
    ends = np.iinfo(original.dtype)
    inside = (value > ends.min) & (value < ends.max)
    return np.where(
        inside, np.where(inside, value, 0).astype(original.dtype), np.where(value > 0, ends.max, ends.min)
    )


def lost(call: Call, found: Bounds) -> Bounds:
    """Bounds, which are 0 of NaN that no rounding makes another number.

    An operand has it there, or none of them is off.

    Args:
        call: Of an operator.
        found: Bounds of its results.
    """
    exact = call.certain()
    return [
        np.where(_lost(output, call, exact=exact), 0.0, bound) if is_real(output) else bound
        for output, bound in zip(call.outputs, found, strict=False)
    ]


def _lost(output: Array, call: Call, *, exact: bool) -> Array:
    sure = np.full(output.shape, exact)
    for value, bound in zip(call.values, call.bounds, strict=False):
        if is_real(value) and value.shape == output.shape[output.ndim - value.ndim :]:
            sure = sure | (np.isnan(value) & (bound == 0))
    found: Array = np.isnan(output) & sure
    return found


def is_real(value: Any) -> bool:
    """Whether a result is a tensor of real numbers, as ONNX's reference has them."""
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def full(output: Any, bound: float) -> Any:
    """One bound for each element of a tensor, or of a sequence of them."""
    return [full(item, bound) for item in output] if isinstance(output, list) else np.full(np.shape(output), bound)


def _any(bound: Any) -> bool:
    return any(map(_any, bound)) if isinstance(bound, list) else bound is not None and bool(np.any(bound))


Rule = Callable[[Call], Bounds]


def _exact(call: Call) -> Bounds:
    """What doesn't depend on operands' values, or on all their digits."""
    return call.all(0.0)


def _moved(*data: int) -> Rule:
    """Numbers put elsewhere, as the bounds are; anything where it isn't certain which."""

    def rule(call: Call) -> Bounds:
        others = [place for place in range(len(call.values)) if data and place not in data]
        if others and not call.certain(*others):
            return call.all(np.inf)
        given = [
            value if bound is None or place in others else bound
            for place, (value, bound) in enumerate(zip(call.values, call.bounds, strict=True))
        ]
        return list(call.run(*given))

    return rule


def _padded(call: Call) -> Bounds:
    """Moved, with a number that an attribute says around it."""
    found, around = (call.changed(function)[0] for function in (lambda _, bound: bound, lambda _, bound: 0 * bound))
    return [np.abs(np.asarray(found) - around)]


def _summed(count: Callable[[Call], Any], *signs: float) -> Rule:
    """Sums of products: the operator itself, of magnitudes, says how large all terms are together."""

    def rule(call: Call) -> Bounds:
        def run(more: float) -> Array:
            sign = itertools.chain(signs, itertools.repeat(1.0))
            return np.asarray(call.changed(lambda value, bound: next(sign) * (np.abs(value) + more * bound))[0])

        terms = run(1.0)
        moved = np.zeros(terms.shape) if call.certain() else np.abs(terms - run(0.0))
        return [call.machine.accumulated(call.result, moved, count(call), np.abs(terms))]

    return rule


def _nearest(at: float, value: Array, bound: Array) -> Array:
    return np.asarray(np.clip(at, value - bound, value + bound))


def _ends(call: Call, turns: Sequence[float] = ()) -> Bounds:
    """Monotone in all operands at once: what it gives at their ends, and where it turns or jumps within."""
    places = [] if call.certain() else [-np.inf, np.inf, *turns]
    values = call.results
    moved = furthest((call.changed(functools.partial(_nearest, at)) for at in places), values)
    return [machine.settled(values[place], moved[place]) for place, machine in enumerate(call.machines)]


_ROUNDED = 8  # roundings by which what cancels may be off where it ends


def _turning(call: Call) -> Bounds:
    """The same, where the operator's record says where; and what cancels on the way is rounded, too."""
    record = OPERATORS[call.operator]
    given = {name: call.attribute(name, usual) for name, usual in record.attributes.items()}
    turns = record.turns(**given) if callable(record.turns) else record.turns or ()
    found = _ends(call, [np.nextafter(at, way) for at in turns for way in (-np.inf, at, np.inf)])
    if record.terms is None:
        return found
    x = call.operand(0)
    reach = x.bound + _ROUNDED * call.machine.unit * np.abs(x.value)
    terms = np.fmax(*(record.terms(x.value + sign * reach, **given) for sign in (-1, 1)))
    own = call.machine.accumulated(call.result, np.zeros(terms.shape), 3, terms)  # a constant, a product, a sum
    return [found[0] + np.where(terms > 0, own, 0)]


def _periodic(call: Call) -> Bounds:
    x, slope = call.operand(0), OPERATORS[call.operator].derivative
    moved = np.minimum(np.abs(slope(x.value)) * x.bound + x.bound**2 / 2, 2)  # type: ignore[operator]
    return [call.machine.settled(call.result, np.where(np.isinf(x.bound), np.inf, moved))]


def _poles(branch: Callable[[Array], Array]) -> Rule:
    """Monotone between poles: anything where both ends aren't on the same branch."""

    def rule(call: Call) -> Bounds:
        x = call.operand(0)
        apart = (branch(x.value - x.bound) != branch(x.value + x.bound)) & (x.bound > 0)
        return [np.where(apart, np.inf, _ends(call)[0])]

    return rule


def _quotient(call: Call) -> Bounds:
    if call.machine.grid is None and np.asarray(call.values[0]).dtype.kind != "f":
        return call.all(0.0 if call.certain() else np.inf)
    return [(call.operand(0) / call.operand(1)).bound]


def _power(call: Call) -> Bounds:
    """Monotone in either operand on either side of a base of zero: all four corners, and zero if it's within."""
    base, exponent, value = call.operand(0), call.operand(1), call.result
    corners = itertools.product((-np.inf, 0, np.inf), (-1, 1))
    found = (
        dict(enumerate(call.run(_nearest(at, base.value, base.bound), exponent.value + sign * exponent.bound)))
        for at, sign in corners
    )
    exact = np.broadcast_to((base.bound == 0) & (exponent.bound == 0), value.shape)
    moved = np.where(exact | np.isnan(value), 0, furthest(found, {0: value})[0])
    return [call.machine.settled(value, moved)]


def _remainder(call: Call) -> Bounds:
    """The quotient's whole part must be certain."""
    one, two = call.operand(0), call.operand(1)
    whole = np.trunc if call.attribute("fmod", 0) else np.floor
    quotient = one / two
    parts = whole(quotient.value)
    same = (whole(quotient.value - quotient.bound) == parts) & (whole(quotient.value + quotient.bound) == parts)
    moved = np.where(same, one.bound + np.abs(parts) * two.bound, np.inf)
    return [call.machine.settled(call.result, np.where((one.bound == 0) & (two.bound == 0), 0, moved))]


def _compared(call: Call) -> Bounds:
    """1 where the comparison may come out otherwise."""
    one, two = call.operand(0), call.operand(1)
    reach = one.bound + two.bound
    return [np.where((reach > 0) & ~(np.abs(one.value.astype(np.float64) - two.value) > reach), 1.0, 0.0)]


def _logical(call: Call) -> Bounds:
    return [1.0 * functools.reduce(np.logical_or, (bound > 0 for bound in call.bounds))]


MADE_WHOLE = frozenset({"Resize", "Shrink"})
"""Operators that round what lies between whole numbers, which ONNX doesn't say how."""

_WHOLE_IN_FLOAT32 = 2.0**24


def _made_whole(rule: Rule, *, weighed: bool = False) -> Rule:
    """What's computed in real numbers and made whole then, where operands are.

    ONNX doesn't say which neighbour is taken of what lies between two, nor what's taken beyond the type's ends. A sum
    that is weighed by what is rounded may not be whole where it should be.
    """

    def whole(call: Call) -> Bounds:
        if call.result.dtype.kind not in "iu":
            return rule(call)
        real = np.asarray(call.run(np.asarray(call.values[0], np.float64), *call.values[1:])[0])
        single = replace(call, machines=[Machine(grid_of("float32"))], outputs=[real])
        ends = np.iinfo(call.result.dtype)
        sure = (real == np.rint(real)) & (np.abs(real) <= _WHOLE_IN_FLOAT32) & call.certain()
        sure &= not weighed
        inside = (real > ends.min - 1.0) & (real < ends.max + 1.0)
        return [np.where(inside, np.where(sure, 0.0, rule(single)[0] + 1), np.inf)]

    return whole


def _whole(call: Call) -> Bounds:
    """All or nothing: which elements there are, or which one is where."""
    return call.all(0.0 if call.certain() else np.inf)


def _chosen(call: Call) -> Bounds:
    """An index, or all shares of a row: anything where another element may be the extreme one."""
    x, axis = call.operand(0), int(call.attribute("axis", 0))
    if call.certain(0):
        return _exact(call)
    value = -x.value if call.operator == "ArgMin" else x.value
    best = np.take_along_axis(value - x.bound, value.argmax(axis, keepdims=True), axis)
    rivals = (value + x.bound >= best).sum(axis=axis, keepdims=True) > 1
    if call.operator == "Hardmax":
        return [np.broadcast_to(np.where(rivals, 1.0, 0.0), x.value.shape)]
    return [np.where(rivals, np.inf, 0.0).reshape(call.result.shape)]


def _top(call: Call) -> Bounds:
    """Sorted values move no farther than unsorted ones; their places are certain where all are apart."""
    x, axis = call.operand(0), int(call.attribute("axis", -1))
    order = np.argsort(x.value, axis)
    low, high = (np.take_along_axis(x.value + sign * x.bound, order, axis) for sign in (-1, 1))
    touching = np.maximum.accumulate(high, axis).take(range(order.shape[axis] - 1), axis)
    close = (touching >= low.take(range(1, order.shape[axis]), axis)).any(axis=axis, keepdims=True)
    moved = np.broadcast_to(x.bound.max(axis=axis, keepdims=True), x.value.shape)
    apart = not close.any() or call.certain(0)
    return [moved.take(range(call.result.shape[axis]), axis), np.full(call.result.shape, 0.0 if apart else np.inf)]


def _where(call: Call) -> Bounds:
    condition, one, two = (call.operand(place) for place in range(3))
    chosen = np.where(condition.value, one.bound, two.bound)
    apart = np.abs(one.value.astype(np.float64) - two.value)
    return [np.where(condition.bound > 0, apart + np.maximum(one.bound, two.bound), chosen)]


def _cast(call: Call) -> Bounds:
    value = np.asarray(call.values[0])
    if value.dtype.kind in "OUS" or call.result.dtype.kind in "OUS":
        return _whole(call)
    x, grid = call.operand(0), call.machine.grid
    if call.result.dtype == bool:
        return [np.where((x.bound > 0) & (np.abs(x.value) <= x.bound), 1.0, 0.0)]
    bound = _ends(replace(call, machines=[Machine(None)]))[0]
    if grid is None:
        return [bound]
    step = grid.ulp(x.value)
    kept = (np.remainder(x.value, step) == 0) & (x.bound == 0) & (np.abs(x.value) <= grid.largest)
    return [np.where(kept, 0.0, call.machine.settled(call.result, bound, 0.5))]


def _quantized(call: Call) -> Bounds:
    """Steps that a number may pass when it's divided by its scale."""
    x = call.operand(0)
    reach = x.bound + 2 * grid_of(np.dtype(np.float32)).unit * np.abs(x.value)
    return _ends(replace(call, bounds=[reach, *call.bounds[1:]]))


def _made(call: Call) -> Bounds:
    """Of a few numbers: Range; windows, of cosines of about 1."""
    if not call.certain():
        return call.all(np.inf)
    peak = np.asarray(np.max(np.abs(call.result), initial=1))
    return [call.machine.accumulated(call.result, np.zeros(call.result.shape), 8 + call.result.size, peak)]


def _scattered(call: Call) -> Bounds:
    if call.attribute("reduction", "none") in {"add", "mul"}:
        return _summed(lambda call: np.asarray(call.values[2]).size + 1)(call)
    return (_moved(0, 2) if call.attribute("reduction", "none") == "none" else _ends)(call)


def _axes(call: Call) -> tuple[int, ...]:
    """That a reduction is along."""
    given = call.values[1] if len(call.values) > 1 else call.attribute("axes")
    rank = np.ndim(call.values[0])
    if given is None or not np.size(given):
        return () if call.attribute("noop_with_empty_axes", 0) else tuple(range(rank))
    return tuple(int(axis) % rank for axis in np.ravel(given))


_NOTHING = -1e6  # e to that


def _shares(x: Approximate, axes: tuple[int, ...]) -> tuple[Approximate, Approximate, Approximate]:
    """X less its largest along axes, that one, and the sum of e to the former."""
    peak = Approximate(x.value.max(axis=axes, keepdims=True), np.zeros(()), x.machine)
    low = x - peak
    near = low.value >= _NOTHING
    kept = replace(low, value=np.where(near, low.value, _NOTHING), bound=np.where(near, low.bound, 0))
    return low, peak, kept.through(np.exp).sum(axes)


def _softmax(call: Call) -> Bounds:
    """A share p changes by p h / (1 - h) at the most, where h is what others' e^x, by p's, change by together."""
    x, shape = call.operand(0), call.result.shape
    axis = int(call.attribute("axis", -1))
    if call.node.run_params["opsets"].get("", 13) < 13:
        x, axis = x.reshaped((math.prod(shape[: axis % max(len(shape), 1)]), -1)), 1
    low, _, total = _shares(x, (axis,))
    if call.operator == "LogSoftmax":
        return [(low - total.through(np.log)).bound.reshape(shape)]
    machine, share = call.machine, call.result.reshape(low.value.shape)
    own = 2 * np.asarray(machine.ulps) * machine.unit
    factor = np.exp(np.where(low.value < _NOTHING, 0, low.bound) + own)
    others = factor * (share * factor).sum(axis=axis, keepdims=True) - 1 - share * (factor**2 - 1)
    moved = np.where(others < 1, share * np.maximum(others, 0) / (1 - others), np.inf)
    bound = machine.accumulated(share, moved, share.shape[axis] + 1, share)
    anything = np.isinf(x.bound).any(axis=axis, keepdims=True)
    return [np.where(anything, np.inf, np.minimum(bound, 1.0)).reshape(shape)]


def _log_sum_exp(call: Call) -> Bounds:
    _, peak, total = _shares(call.operand(0), _axes(call))
    return [(total.through(np.log) + peak).bound.reshape(call.result.shape)]


def _root_or_log(call: Call) -> Bounds:
    """Of a sum: of squares, or of the numbers themselves."""
    x, norm = call.operand(0), call.operator == "ReduceL2"
    total = (x * x if norm else x).sum(_axes(call))
    return [total.through(np.sqrt if norm else np.log).bound.reshape(call.result.shape)]


def _power_pool(call: Call) -> Bounds:
    """The root of a sum of powers, each of which may be flushed to zero."""
    x, p = call.operand(0), int(call.attribute("p", 2))
    powers = abs(x).through(lambda base: np.maximum(base, 0) ** p)
    value, moved = (call.run(part ** (1.0 / p))[0] ** p for part in (powers.value, powers.bound))
    count = math.prod(call.attribute("kernel_shape", np.shape(x.value)[2:]))
    total = Approximate(value, call.machine.accumulated(value, moved, count, value + moved), x.machine)
    root = total.through(lambda base: np.maximum(base, 0) ** (1.0 / p))
    exponent = np.abs(np.log(np.where(value > 0, value, 1.0))) / p * call.machine.unit  # 1 / p is rounded, too
    return [root.bound + root.value * exponent]


def _unit(call: Call) -> Bounds:
    x, axis = call.operand(0), (int(call.attribute("axis", -1)),)
    size = abs(x).sum(axis) if int(call.attribute("p", 2)) == 1 else (x * x).sum(axis).through(np.sqrt)
    return [(x / size).bound]


def _normalized(x: Approximate, axes: tuple[int, ...], epsilon: float, *, centred: bool = True) -> list[Approximate]:
    """With what it was divided by, and centred on."""
    mean = x.mean(axes)
    around = x - mean if centred else x
    deviation = ((around * around).mean(axes) + epsilon).through(np.sqrt)
    return [around / deviation, mean, deviation]


def _layer(call: Call) -> Bounds:
    x = call.operand(0)
    axes = tuple(range(int(call.attribute("axis", -1)) % x.value.ndim, x.value.ndim))
    centred = call.operator == "LayerNormalization"
    result, mean, deviation = _normalized(x, axes, float(call.attribute("epsilon", 1e-5)), centred=centred)
    result = result * call.operand(1)
    if centred and len(call.values) > 2 and call.values[2] is not None:
        result = result + call.operand(2)
    one = Approximate(np.ones(()), np.zeros(()), x.machine)
    return [result.bound, mean.bound, (one / deviation).bound][: len(call.outputs)]


def _whitened(call: Call) -> Bounds:
    """Mean-variance normalization, whose definition has the difference of two means."""
    x, axes = call.operand(0), tuple(call.attribute("axes", (0, 2, 3)))
    mean = x.mean(axes)
    return [((x - mean) / (((x * x).mean(axes) - mean * mean).through(np.sqrt) + 1e-9)).bound]


def _by_channel(call: Call) -> Bounds:
    """Instance and group normalization."""
    x, shape = call.operand(0), call.result.shape
    groups = int(call.attribute("num_groups", shape[1]))
    grouped = x.reshaped((shape[0], groups, -1))
    result = _normalized(grouped, (2,), float(call.attribute("epsilon", 1e-5)))[0]
    width = np.size(call.values[1])  # scales of channels, or of groups
    scaled = result.reshaped((shape[0], width, -1)) * call.operand(1).reshaped((1, width, 1))
    return [(scaled + call.operand(2).reshaped((1, width, 1))).bound.reshape(shape)]


def _batch(call: Call) -> Bounds:
    """Linear where it isn't trained: whichever way it's computed, folded into a factor and an offset or not."""
    if call.attribute("training_mode", 0):
        return estimate(call)
    x = call.operand(0)
    shape = (1, -1, *[1] * (x.value.ndim - 2))[: x.value.ndim]
    scale, bias, mean, variance = (call.operand(place).reshaped(shape) for place in range(1, 5))
    factor = scale / (variance + float(call.attribute("epsilon", 1e-5))).through(np.sqrt)
    product, offset = x * factor, mean * factor
    moved = product.bound + offset.bound + bias.bound
    terms = np.abs(product.value) + np.abs(offset.value) + np.abs(bias.value) + moved
    return [call.machine.accumulated(call.result, moved, 4, terms)]


def _response(call: Call) -> Bounds:
    """Local response normalization."""
    x, size = call.operand(0), int(call.attribute("size"))
    squares = x * x
    value, bound = (window_sums(array, size) for array in (squares.value, squares.bound))
    everything = (squares.value + squares.bound).sum(axis=1, keepdims=True)  # a window may be moved along channels
    total = Approximate(value, call.machine.accumulated(value, bound, 2 * x.value.shape[1], everything), x.machine)
    alpha, beta, bias = (float(call.attribute(*item)) for item in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0)))
    return [(x / (total * (alpha / size) + bias).through(lambda base: base**beta)).bound]


def _resized(call: Call) -> Bounds:
    """Bounds are weighed as values are; the weights are of coordinates that are rounded in the network's type."""
    if _cut_short(call):
        return call.all(np.inf)
    x, mode, rest = call.operand(0), call.attribute("mode", "nearest"), call.values[1:]
    off = 8 * call.machine.unit * max((*x.value.shape, *call.result.shape), default=1)
    if mode == "cubic":
        moved = estimate(replace(call, bounds=[call.bounds[0], *[None] * len(rest)]))[0]
    else:
        found, around = (np.asarray(call.run(part * x.bound, *rest)[0]) for part in (1.0, 0.0))
        moved = np.abs(found - around)
    if mode == "nearest":
        return [np.where(_between(call, off), np.inf, moved)]
    peak = np.asarray(np.max(np.abs(x.value) + x.bound, initial=0))
    return [call.machine.accumulated(call.result, moved + off * peak, 8, peak)]


def _cut_short(call: Call) -> bool:
    """Whether a resized length has a fraction that was cut off, where coordinates hang on it: cut off or not?"""
    if call.attribute("coordinate_transformation_mode", "half_pixel") not in {"align_corners", "tf_crop_and_resize"}:
        return False
    scales = call.values[2] if len(call.values) > 2 else None
    if scales is None or not np.size(scales):
        return bool(call.attribute("keep_aspect_ratio_policy", "stretch") != "stretch")
    axes = call.attribute("axes")
    sizes = np.asarray(np.shape(call.values[0]))[slice(None) if axes is None else list(axes)]
    lengths = np.asarray(scales, np.float64) * sizes
    return bool((lengths != np.floor(lengths)).any())


def _between(call: Call, off: float) -> Array:
    """Where a coordinate is so near to the middle of two elements that its rounding may choose the other one."""
    shape, uncertain = np.shape(call.values[0]), np.zeros(call.result.shape, dtype=bool)
    corners = call.attribute("coordinate_transformation_mode", "half_pixel") == "align_corners"
    half = 0.5 if "round" in call.attribute("nearest_mode", "round_prefer_floor") else 0.0
    linear = copy.copy(call.node)
    linear.mode = "linear"
    for axis, (before, after) in enumerate(zip(shape, call.result.shape, strict=True)):
        if before > 1 and after % before:
            ramp = np.arange(before, dtype=np.float64).reshape([-1, *[1] * (len(shape) - axis - 1)])
            at = np.asarray(linear.run(np.broadcast_to(ramp, shape), *call.values[1:])[0])
            close = np.abs(at - half - np.rint(at - half)) <= off
            uncertain |= close & (at > 0) & ((at < before - 1) | corners)  # beyond the ends it's the last one
    return uncertain


_DRAWS, _SCALE = 6, 16.0


def estimate(call: Call) -> Bounds:
    """Of an operator without a rule: operands are disturbed within their bounds, and by a rounding, in random signs.

    The largest change of some draws, times what worst signs may come to, and roundings of the largest result: no
    bound, and said to be an estimate.
    """
    if any(np.isinf(bound).any() for bound in call.bounds if isinstance(bound, np.ndarray)):
        return call.all(np.inf)
    generator, rounding = np.random.default_rng(0), call.machine.unit

    def shaken(value: Array, bound: Array) -> Array:
        reach = np.maximum(bound, rounding * np.abs(value))
        return np.asarray(value + reach * generator.choice((-1.0, 1.0), value.shape))

    results, draws = call.results, [call.changed(shaken) for _ in range(_DRAWS)]
    if any(np.shape(draw[place]) != output.shape for draw in draws for place, output in results.items()):
        return call.all(np.inf)
    worst, found = furthest(draws, results), []
    for place, output in results.items():
        peak = np.max(np.abs(output), initial=0, where=np.isfinite(output))
        change = np.where(np.isnan(output), 0, worst[place])
        found.append(call.machines[place].settled(output, _SCALE * (change + 2 * rounding * peak)))
    return found


def _window(call: Call) -> int:
    """Products that a convolution's result is the sum of, its bias and a folded factor."""
    shape = np.shape(call.values[1])
    channels = shape[0] // call.attribute("group", 1) if call.operator == "ConvTranspose" else shape[1]
    return int(math.prod(shape[2:]) * channels) + 3


def _reduced(call: Call) -> int:
    return int(np.size(call.values[0]) // max(call.result.size, 1)) + 2


def _gemm(call: Call) -> Bounds:
    signs = [np.copysign(1.0, call.attribute(name, 1.0)) for name in ("alpha", "beta")]
    depth = np.shape(call.values[0])[0 if call.attribute("transA", 0) else 1]
    return _summed(lambda _: depth + 4, signs[0], 1.0, signs[1])(call)


def _table(*pairs: tuple[str, Rule]) -> dict[str, Rule]:
    return {name: rule for names, rule in pairs for name in names.split()}


_EXACT: Mapping[str, Rule] = _table(
    ("Shape Size ConstantOfShape EyeLike Constant SequenceLength SequenceEmpty OptionalHasElement", _exact),
    ("RandomNormalLike RandomUniformLike", _exact),
    ("NonZero Unique NonMaxSuppression Bernoulli Multinomial StringNormalizer", _whole),
    ("Identity Reshape Transpose Squeeze Unsqueeze Flatten Slice Gather GatherElements GatherND", _moved(0)),
    ("Expand Tile Split DepthToSpace SpaceToDepth ReverseSequence Trilu Compress CenterCropPad", _moved(0)),
    ("SplitToSequence SequenceAt ConcatFromSequence Optional OptionalGetElement SequenceErase", _moved(0)),
    ("Concat SequenceConstruct", _moved()),
    ("SequenceInsert", _moved(0, 1)),
    ("Pad", _padded),
    ("ScatterElements Scatter ScatterND", _scattered),
    ("Dropout", lambda call: [*_moved(0)(call)[:1], *_exact(call)[1:]]),
    ("IsNaN IsInf", lambda call: [np.isinf(call.bounds[0]).astype(np.float64)]),
    ("MaxPool GlobalMaxPool ReduceMax ReduceMin", _ends),
    ("Equal Greater GreaterOrEqual Less LessOrEqual", _compared),
    ("And Or Xor Not", _logical),
    ("ArgMax ArgMin Hardmax", _chosen),
    ("OneHot", _moved(2)),
    ("TopK", _top),
    ("Where", _where),
    ("Cast CastLike", _cast),
)
_BOUNDED: Mapping[str, Rule] = _table(
    ("QuantizeLinear", _quantized),
    ("DequantizeLinear", _ends),
    ("Range HannWindow HammingWindow BlackmanWindow", _made),
    ("Shrink", _made_whole(_turning)),
    ("Sin Cos", _periodic),
    ("Tan", _poles(lambda x: np.floor(x / np.pi + 0.5))),
    ("Reciprocal", _poles(np.sign)),
    ("Div", _quotient),
    ("Pow", _power),
    ("Mod", _remainder),
    ("Add Mul", _summed(lambda _: 0)),
    ("Sub", _summed(lambda _: 0, 1.0, -1.0)),
    ("Sum Mean", _summed(lambda call: len(call.values) + 1)),
    ("MatMul", _summed(lambda call: int(np.shape(call.values[0])[-1]) + 1)),
    ("Gemm", _gemm),
    ("Conv ConvTranspose", _summed(_window)),
    ("Einsum", _summed(lambda call: call.run(*map(np.ones_like, call.values))[0] + len(call.values))),
    ("AveragePool", _summed(lambda call: math.prod(call.attribute("kernel_shape", [1])) + 2)),
    ("GlobalAveragePool ReduceSum ReduceMean ReduceL1 ReduceSumSquare ReduceProd", _summed(_reduced)),
    ("CumSum", _summed(lambda call: max(np.shape(call.values[0])))),
    ("Softmax LogSoftmax", _softmax),
    ("ReduceLogSumExp", _log_sum_exp),
    ("ReduceLogSum ReduceL2", _root_or_log),
    ("LpNormalization", _unit),
    ("LayerNormalization RMSNormalization", _layer),
    ("InstanceNormalization GroupNormalization", _by_channel),
    ("MeanVarianceNormalization", _whitened),
    ("BatchNormalization", _batch),
    ("LRN", _response),
    ("Resize", _made_whole(_resized, weighed=True)),
    ("LpPool GlobalLpPool", _power_pool),
)


def rule_of(operator: str) -> tuple[Rule, float]:
    """How an operator hands on bounds, and its accuracy where nobody says it: 0 where it rounds nothing, else 1.

    Args:
        operator: ONNX's name.
    """
    if operator in _EXACT:
        return _EXACT[operator], 0.0
    record = OPERATORS.get(operator)
    monotone = record is not None and record.turns is not None
    exact = record is not None and record.exact
    return _BOUNDED.get(operator, _turning if monotone else estimate), 0.0 if exact else 1.0
