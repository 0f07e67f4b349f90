"""A network whose every real result may be disturbed from outside: what rounding does to it, and to its gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import onnx
from onnx import TensorProto, helper

from conrepair.metrics.ulps import grid_of, is_real
from conrepair.operators.record import Array
from conrepair.truth.judging import distances
from conrepair.truth.widening import types_of

__all__ = ["furthest", "with_noise"]

_FACTOR, _FIRST = "zz_noise_", 100_000  # last by name and by number: converters order inputs by either
_RUNS = 16
_TIMES = 4.0  # half an ulp: for functions that are off by some, and so that steps which are near are met
_REAL = {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16}


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
    graph, types, shapes = noisy.graph, types_of(model), _shapes(model)
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
            if name and shapes.get(name) and types.get(name) in _REAL:
                added.output[place] = own = f"{name}.own"
                factor = f"{_FACTOR}{_FIRST + len(factors)}"
                graph.node.extend(_product(own, factor, name, types[name]))
                graph.input.append(helper.make_tensor_value_info(factor, types[name], shapes[name]))
                factors[factor] = np.ones(shapes[name], helper.tensor_dtype_to_np_dtype(types[name]))
    return noisy, factors


def furthest(
    run: Callable[[Mapping[str, Array]], Mapping[str, Array]], feeds: Mapping[str, Array], right: Mapping[str, Array]
) -> dict[str, Array]:
    """How far answers get from what they should be, element by element, when everything is disturbed.

    Args:
        run: Gives answers of a network with factors (`with_noise`).
        feeds: Of it, and its factors.
        right: Numbers, by output.

    Returns:
        By output; infinite where an answer has another shape, or nobody can say how far it is.
    """
    found = {name: np.zeros(array.shape) for name, array in right.items()}
    for fed in _disturbed(feeds):
        answers = run(fed)
        for name, exact in right.items():
            with np.errstate(all="ignore"):
                far = distances(answers[name], exact) if answers[name].shape == exact.shape else np.inf
            found[name] = np.maximum(found[name], np.where(np.isnan(far), np.inf, far))
    return found


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


def _disturbed(feeds: Mapping[str, Array]) -> Iterator[dict[str, Array]]:
    """Feeds as they are, then with each real number off by some of its last place; zeros by some of the largest's."""
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


def _shapes(model: onnx.ModelProto) -> dict[str, list[int]]:
    """Sizes of tensors, where all of them are known."""
    graph, found = onnx.shape_inference.infer_shapes(model, data_prop=True).graph, {}
    for item in (*graph.value_info, *graph.output):
        kind = item.type.tensor_type
        sizes = [size.dim_value for size in kind.shape.dim if size.HasField("dim_value")]
        if kind.HasField("shape") and len(sizes) == len(kind.shape.dim):
            found[item.name] = sizes
    return found
