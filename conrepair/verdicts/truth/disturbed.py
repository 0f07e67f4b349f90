"""How far right computations of a network are from the exact one, by trying: runs disturbed at every operator.

A running bound (`conrepair.verdicts.truth.bound`) takes the worst of every rounding, and forgets what two operands
have in common: behind some twenty layers it's larger than the numbers themselves. Here every result of every node is
changed at random by as much as the node's own rounding likely comes to, and the network runs on with that: what the
outputs then do is what rounding does to them (Monte Carlo arithmetic: Parker, "Monte Carlo arithmetic: exploiting
round-off error in numerical software", UCLA CSD-970002, 1997). It's an estimate, no bound: it is to be said.

ONNX's reference is disturbed as it runs; a system, and its gradients, from outside, through factors that are inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from conrepair.ground.metrics.ulps import grid_of, is_number, is_real
from conrepair.ground.operators.record import Array
from conrepair.verdicts.truth.bound import Accuracy, Analysis
from conrepair.verdicts.truth.judging import furthest
from conrepair.verdicts.truth.widening import REAL, sizes_of, types_of

_RUNS = 16
_TIMES = 4.0  # a node's own rounding, or half an ulp of a factor: so that steps which are near are met, too
_MARGIN = 2.0  # for errors of one sign, which random ones aren't
_FACTOR, _FIRST = "zz_noise_", 100_000  # last by name and by number: converters order inputs by either


def disturbed(analysis: Analysis, feeds: Mapping[str, Array], accuracy: Accuracy) -> dict[str, Array]:
    """Estimate the largest error of a right computation, element by element.

    Args:
        analysis: Of the network.
        feeds: In its own types.
        accuracy: As of `Analysis.at`.

    Returns:
        By output of numbers; infinite where a node's own rounding may come to anything, or what isn't finite changes.
    """
    exact = analysis.given(feeds)
    own = [analysis.rounding(step, accuracy, _TIMES) for step in analysis.steps(exact)]

    def runs() -> Iterator[Mapping[str, Any]]:
        generator = np.random.default_rng(0)
        for _ in range(_RUNS):
            values = analysis.given(feeds)
            for step, bounds in zip(analysis.steps(values), own, strict=True):
                for place, bound in enumerate(bounds):
                    output = step.outputs[place]
                    numbers = isinstance(output, np.ndarray) and output.dtype.kind in "fiu"
                    if numbers and output.shape == np.shape(bound):
                        step.outputs[place] = _moved(output, bound, generator)
            yield values

    outputs = ((name, exact[name]) for name in analysis.outputs)
    right = {name: array for name, array in outputs if isinstance(array, np.ndarray) and is_number(array)}
    return {name: _MARGIN * found for name, found in furthest(runs(), right).items()}


def _moved(output: Array, bound: Array, generator: np.random.Generator) -> Array:
    """A result off by what its own rounding comes to; a whole number stays one, of its type."""
    if output.dtype.kind == "f":
        return np.asarray(output + generator.uniform(-1, 1, output.shape) * bound)
    if not bound.any():
        return output
    ends = np.iinfo(output.dtype)
    low, high = float(ends.min), np.nextafter(float(ends.max), 0)
    steps = np.rint(generator.uniform(-1, 1, output.shape) * np.minimum(bound, high - low))
    return np.where(bound > 0, np.clip(output + steps, low, high).astype(output.dtype), output)


def with_noise(model: onnx.ModelProto) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """The same network with a factor behind each real result that hangs on an input.

    Args:
        model: Any; results of unknown sizes, single numbers (which not every importer takes as an input), and what's
            in branches and loops stay without.

    Returns:
        The network, and its new inputs as ones, with which it's what it was.
    """
    noisy = onnx.ModelProto()
    noisy.CopyFrom(model)
    graph, types = noisy.graph, types_of(model)
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    shapes = {item.name: sizes_of(item) for item in (*inferred.value_info, *inferred.output)}
    fed = {item.name for item in graph.input} - {item.name for item in graph.initializer}
    factors = dict[str, Array]()
    del graph.node[:], graph.value_info[:]
    for node in model.graph.node:
        added = graph.node.add()
        added.CopyFrom(node)
        if not fed & set(node.input):  # constants stay what importers fold
            continue
        fed.update(filter(None, node.output))
        for place, name in enumerate(node.output):
            if name and (shape := shapes.get(name)) and types.get(name) in REAL:
                added.output[place] = own = f"{name}.own"
                factor = f"{_FACTOR}{_FIRST + len(factors)}"
                graph.node.extend(_product(own, factor, name, types[name]))
                graph.input.append(helper.make_tensor_value_info(factor, types[name], shape))
                factors[factor] = np.ones(shape, helper.tensor_dtype_to_np_dtype(types[name]))
    return noisy, factors


def _product(one: str, two: str, product: str, kind: int) -> list[onnx.NodeProto]:
    """Nodes that multiply; in float32 what hardly anybody multiplies in bfloat16."""
    if kind != TensorProto.BFLOAT16:
        return [helper.make_node("Mul", [one, two], [product])]
    wide = [f"{name}.wide" for name in (one, two, product)]
    return [
        *(helper.make_node("Cast", [name], [f"{name}.wide"], to=TensorProto.FLOAT) for name in (one, two)),
        helper.make_node("Mul", wide[:2], wide[2:]),
        helper.make_node("Cast", wide[2:], [product], to=kind),
    ]


def shaken(feeds: Mapping[str, Array]) -> Iterator[dict[str, Array]]:
    """Feeds as they are, then with each real number off by some of its last place; zeros by some of the largest's.

    Args:
        feeds: Of a network with factors (`with_noise`), and these.
    """
    yield dict(feeds)
    generator = np.random.default_rng(0)
    for _ in range(_RUNS):
        found = dict(feeds)
        for name, array in feeds.items():
            if is_real(array):
                size = np.abs(array.astype(np.float64))
                size = np.where(size == 0, size.max(initial=0, where=np.isfinite(size)) or 1, size)
                step = generator.uniform(-_TIMES, _TIMES, array.shape) * grid_of(array.dtype).unit * size
                found[name] = np.asarray(array + step, array.dtype)
        yield found
