"""Multi-head attention, and the products with constant matrices in front of it and behind it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir

from conrepair.ground.equations.expression import parse
from conrepair.ground.equations.matching import matched
from conrepair.ground.equations.writing import model_of
from conrepair.ground.onnx_graphs.building import only_use
from conrepair.ground.onnx_graphs.initializers import constant_of, new_initializer
from conrepair_onnx_keras.importer.constants import run
from conrepair_onnx_keras.importer.patterns.rewriting import agree, compute, graph_of, replace_value, scalar_steps
from conrepair_onnx_keras.importer.values import Array

_LAYOUT = {"Reshape", "Transpose", "Squeeze", "Unsqueeze", "Identity", "Slice", "Split", "Gather"}
SCALING = {"Mul", "Div"}


@dataclass(frozen=True)
class Projection:
    """A product with a constant matrix.

    Attributes:
        source: What is multiplied.
        result: The product, with the bias added.
        kernel: The matrix, [in, out].
        bias: The row, [out].
    """

    source: onnx_ir.Value
    result: onnx_ir.Value
    kernel: Array
    bias: Array | None

    @property
    def row(self) -> Array:
        """The bias, or zeros."""
        return np.zeros(self.kernel.shape[1], self.kernel.dtype) if self.bias is None else self.bias


def projection_behind(value: onnx_ir.Value | None, opset: int) -> Projection | None:
    """The projection that a value is a rearrangement of, but for factors."""
    for _ in range(24):
        producer = None if value is None else value.producer()
        if value is None or producer is None:
            return None
        found = _projection(value, opset)
        if found is not None:
            return found
        if producer.op_type in SCALING:
            # The factor may be computed from sizes.
            rest = [item for item in producer.inputs if item is not None and not _is_scalar(item)]
            value = rest[0] if len(rest) == 1 else None
        elif producer.op_type in _LAYOUT:
            value = producer.inputs[0]
        else:
            return None
    return None


def _is_scalar(value: onnx_ir.Value) -> bool:
    if value.shape is not None and all(size == 1 for size in value.shape):
        return True
    producer = value.producer()
    return producer is not None and producer.op_type in {"Constant", "Sqrt"}


_PRODUCTS = ("MatMul(x, kernel) + bias", "MatMul(x, kernel)", "Gemm(x, kernel, bias, {})", "Gemm(x, kernel, {})")
_PLAIN = "alpha=1.0, beta=1.0, transA=0, transB=transB"


def _projection(value: onnx_ir.Value, opset: int) -> Projection | None:
    """The product with a constant matrix that a value is, with or without a bias."""
    producer = value.producer()
    ways = [parse(text.format(_PLAIN)) for text in _PRODUCTS]
    found = [] if producer is None else [matched(way, producer, opset) for way in ways]
    match = next(filter(None, found), None)
    kernel = None if match is None else constant_of(match.values["kernel"])
    if match is None or kernel is None or kernel.ndim != 2:
        return None
    kernel, bias = kernel.T if match.numbers.get("transB") else kernel, constant_of(match.values.get("bias"))
    if "bias" in match.values and (bias is None or bias.shape != kernel.shape[1:]):
        return None
    return Projection(match.values["x"], value, kernel, bias)


def projection_after(value: onnx_ir.Value, opset: int) -> Projection | None:
    """The projection that rearrangements of a value go into."""
    for _ in range(6):
        user = _only_use_of_data(value)
        if user is None:
            return None
        if user.op_type in {"MatMul", "Gemm"} and user.inputs[0] is value:
            following = only_use(user.outputs[0])
            added = following.outputs[0] if following is not None and following.op_type == "Add" else user.outputs[0]
            return _projection(added, opset) or _projection(user.outputs[0], opset)
        if user.op_type not in _LAYOUT or user.inputs[0] is not value:
            return None
        value = user.outputs[0]
    return None


def _only_use_of_data(value: onnx_ir.Value) -> onnx_ir.Node | None:
    """The only node that uses a value, those apart that ask for its shape."""
    users = [use.node for use in value.uses() if use.node.op_type != "Shape"]
    return users[0] if len(users) == 1 and not value.is_graph_output() else None


def rank_three(value: onnx_ir.Value) -> onnx_ir.Value | None:
    """A projection's result, once its axes are apart again."""
    product = value.producer()
    flat = product is not None and product.op_type == "Gemm"
    if value.shape is not None:
        flat = len(value.shape) != 3
    if not flat:
        return value
    user = _only_use_of_data(value)
    return user.outputs[0] if user is not None and user.op_type == "Reshape" and user.inputs[0] is value else None


def with_three_axes(value: onnx_ir.Value) -> onnx_ir.Value | None:
    """What a projection is made of, before its axes were joined for a matrix product."""
    for _ in range(3):
        if value.shape is None or len(value.shape) == 3:
            return value
        producer = value.producer()
        if producer is None or producer.op_type != "Reshape" or producer.inputs[0] is None:
            return None
        value = producer.inputs[0]
    return None


def separated(found: Sequence[Projection]) -> list[Projection] | None:
    """Query, key and value apart, where one product computes two or all of them."""
    query, key, value = found
    groups: dict[onnx_ir.Value, list[int]] = {}
    for index, item in enumerate(found):
        groups.setdefault(item.result, []).append(index)
    result: list[Projection] = [query, key, value]
    for indices in groups.values():
        whole = found[indices[0]]
        if whole.kernel.shape[1] % len(indices):
            return None
        kernels = np.split(whole.kernel, len(indices), axis=1)
        biases = [None] * len(indices) if whole.bias is None else np.split(whole.bias, len(indices))
        for index, kernel, bias in zip(indices, kernels, biases, strict=True):
            result[index] = Projection(whole.source, whole.result, kernel, bias)
    return result


def join_attention(softmax: onnx_ir.Node, opsets: Mapping[str, int]) -> None:
    """softmax(q k) v between projections, as torch.nn.MultiheadAttention is exported."""
    product, context = softmax.inputs[0], only_use(softmax.outputs[0])
    scores = _made_by(product, "MatMul")
    if scores is None or context is None or context.op_type != "MatMul" or product is None:
        return
    values = context.inputs[1]
    if context.inputs[0] is not softmax.outputs[0] or values is None:
        return
    sides = [*scores.inputs, values]
    projections = [projection_behind(value, opsets[""]) for value in sides]
    after = projection_after(context.outputs[0], opsets[""])
    if after is None or any(item is None for item in projections):
        return
    found = separated([item for item in projections if item is not None])
    if found is None or found[0].source.dtype != onnx_ir.DataType.FLOAT:
        return
    sources = [with_three_axes(item.source) for item in found]
    target = rank_three(after.result)
    if target is None or any(source is None for source in sources):
        return
    block = _Block([source for source in sources if source is not None], found, after, values, opsets)
    for batch_axis in (0, 1):
        heads = block.heads(batch_axis)
        if heads is not None and block.computes(target, batch_axis, heads):
            replace_value(target, block.node(softmax, target, batch_axis, heads))
            return


@dataclass(frozen=True)
class _Block:
    """A multi-head attention that is supposed: sources and projections of query, key, value; the last projection."""

    sources: list[onnx_ir.Value]
    projections: list[Projection]
    last: Projection
    value: onnx_ir.Value
    opsets: Mapping[str, int]

    def heads(self, batch_axis: int) -> int | None:
        """How many heads the values are divided into."""
        array = compute(self.value, *self._probe(batch_axis, 0))
        width = None if array is None else array.shape[-1]
        total = self.projections[2].kernel.shape[1]
        return total // width if width and total % width == 0 else None

    def computes(self, target: onnx_ir.Value, batch_axis: int, heads: int) -> bool:
        """Whether the graph says so, too, on random arrays."""
        for attempt in (0, 1):
            feeds, opsets, sizes = self._probe(batch_axis, attempt)
            arrays = [feeds[source] for source in self.sources]
            expected = _multi_head_attention(arrays, self.projections, self.last, batch_axis, heads)
            if not agree(expected, compute(target, feeds, opsets, sizes)):
                return False
        return True

    def _probe(
        self, batch_axis: int, attempt: int
    ) -> tuple[dict[onnx_ir.Value, Array], Mapping[str, int], dict[str, int]]:
        """Random arrays, opsets, and sizes by name: open ones are others in each attempt, the same for one name."""
        generator, sizes = np.random.default_rng(attempt), {}
        choices = iter([(2, 5, 7, 3, 4, 6), (3, 4, 6, 5, 2, 7)][attempt])
        feeds: dict[onnx_ir.Value, Array] = {}
        for index, (source, projection) in enumerate(zip(self.sources, self.projections, strict=True)):
            if source in feeds:
                continue
            shape = [projection.kernel.shape[0]] * 3
            for axis in (0, 1):
                size = None if source.shape is None else source.shape[axis]
                # What has no name is the batch, or the length of queries or of keys.
                name = "the batch" if axis == batch_axis else f"the length of {'keys' if index else 'queries'}"
                if isinstance(size, onnx_ir.SymbolicDim) and size.value is not None:
                    name = str(size.value)
                if not isinstance(size, int) and name not in sizes:
                    sizes[name] = next(choices)
                shape[axis] = size if isinstance(size, int) else sizes[name]
            feeds[source] = generator.normal(size=shape).astype(np.float32)
        return feeds, self.opsets, sizes

    def node(self, softmax: onnx_ir.Node, target: onnx_ir.Value, batch_axis: int, heads: int) -> onnx_ir.Node:
        """The node that takes the block's place."""
        inputs = list(self.sources)
        for name, item in zip(_NAMES, [*self.projections, self.last], strict=True):
            inputs += [
                new_initializer(graph_of(softmax), f"{target.name}_{name}_{part}", array)
                for part, array in (("kernel", item.kernel), ("bias", item.row))
            ]
        attributes = [onnx_ir.AttrInt64("heads", heads), onnx_ir.AttrInt64("batch_axis", batch_axis)]
        return onnx_ir.Node("conrepair", "MultiHeadAttention", inputs, attributes, name=softmax.name)


def _heads(name: str, order: Sequence[int]) -> str:
    """What is multiplied and parted into heads, whose axes get an order."""
    return f"Transpose(Reshape(MatMul({name}, {name}_kernel) + {name}_bias, apart), perm={order})"


_SCORES = f"MatMul({_heads('query', (0, 2, 1, 3))}, {_heads('key', (0, 2, 3, 1))}) * scale"
_CONTEXT = f"MatMul(Softmax({_SCORES}, axis=-1), {_heads('value', (0, 2, 1, 3))})"
_ATTENTION = f"MatMul(Reshape(Transpose({_CONTEXT}, perm=(0, 2, 1, 3)), joined), output_kernel) + output_bias"
_NAMES = ("query", "key", "value", "output")
_OPSET = 17


def _multi_head_attention(
    arrays: Sequence[Array], projections: Sequence[Projection], last: Projection, batch_axis: int, heads: int
) -> Array | None:
    """What the block should compute; None where the sizes don't go together."""
    width = projections[0].kernel.shape[1] // heads
    feeds: dict[str, Array] = {
        name: array if batch_axis == 0 else array.transpose(1, 0, 2)
        for name, array in zip(_NAMES, arrays, strict=False)
    }
    feeds |= {
        "apart": np.array([0, 0, heads, -1]),
        "joined": np.array([0, 0, -1]),
        "scale": np.asarray(1 / math.sqrt(width), np.float32),
    }
    for name, item in zip(_NAMES, [*projections, last], strict=True):
        feeds |= {f"{name}_kernel": item.kernel, f"{name}_bias": item.row}
    try:
        # By ONNX Runtime, which computes with one thread: numpy's threads wait for each other on a busy machine.
        y = np.asarray(run(model_of(_ATTENTION, feeds, {}, _OPSET), feeds)[0])
    # onnxruntime raises one class per status code, without a common base.
    except Exception:  # noqa: BLE001
        return None
    return y if batch_axis == 0 else y.transpose(1, 0, 2)


def _made_by(value: onnx_ir.Value | None, operator: str) -> onnx_ir.Node | None:
    """The node of a type that a value comes from, but for factors."""
    for item in [] if value is None else scalar_steps(value, SCALING):
        producer = item.producer()
        if producer is not None and producer.op_type == operator:
            return producer
    return None
