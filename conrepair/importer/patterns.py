"""Find in a graph what exporters wrote out: LayerNormalization, GELU, multi-head attention.

A part of the graph that looks like one of them is run on random arrays (of several sizes, where sizes are open) and
compared with what it should compute; only then one node takes its place. So no attribute, constant, reshape or order
of axes has to be recognised one by one, and what differs in any of them stays as it is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
import onnx.parser
import onnx_ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from conrepair.importer.constants import run
from conrepair.importer.region import compute
from conrepair.importer.values import Array

__all__ = ["join_patterns"]

_TOLERANCE = 2e-5
_FLOATS = {onnx_ir.DataType.FLOAT, onnx_ir.DataType.DOUBLE}


def join_patterns(model: onnx_ir.Model) -> None:
    """Replace what exporters wrote out by single nodes, where that's the same."""
    kinds = {node.op_type for node in model.graph}
    before = len(model.graph)
    opsets = dict(model.opset_imports)
    _compute_constants(model.graph, opsets)
    for node in list(model.graph):
        if node.graph is not model.graph or node.domain not in {"", "ai.onnx"}:
            continue
        if node.op_type == "ReduceMean" and kinds & {"Sqrt", "Pow"}:
            _layer_normalization(node, opsets)
        elif node.op_type in {"Erf", "Tanh"}:
            _gelu(node, opsets)
        elif node.op_type == "Softmax":
            _attention(node, opsets)
    if len(model.graph) != before or "MultiHeadAttention" in {node.op_type for node in model.graph} - kinds:
        RemoveUnusedNodesPass()(model)


# --- the graph ------------------------------------------------------------------------------------------------


_CHEAP = {"Cast", "Concat", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"}


def _compute_constants(graph: onnx_ir.Graph, opsets: Mapping[str, int]) -> None:
    """Note the values of what's only a rearrangement of constants."""
    for node in graph:
        if node.op_type in _CHEAP and all(item is None or _constant(item) is not None for item in node.inputs):
            for value in node.outputs:
                array = compute(value, {}, opsets)
                if array is not None:
                    value.const_value = onnx_ir.tensor(array, name=value.name)


def _constant(value: onnx_ir.Value | None) -> Array | None:
    tensor = None if value is None else onnx_ir.convenience.get_const_tensor(value, propagate_shape_type=False)
    return None if tensor is None else tensor.numpy()


def _only_use(value: onnx_ir.Value) -> onnx_ir.Node | None:
    uses = list(value.uses())
    return uses[0].node if len(uses) == 1 and not value.is_graph_output() else None


def _replace(value: onnx_ir.Value, node: onnx_ir.Node) -> None:
    """Let a new node's output take a value's place; what led to it alone is removed later."""
    producer = value.producer()
    assert producer is not None  # noqa: S101 - it was reached from one
    new, name = node.outputs[0], value.name
    new.shape, new.type = value.shape, value.type
    _graph(producer).insert_after(producer, node)
    value.replace_all_uses_with(new, replace_graph_outputs=True)
    value.name, new.name = f"{name}_replaced", name


def _graph(node: onnx_ir.Node) -> onnx_ir.Graph:
    assert isinstance(node.graph, onnx_ir.Graph)  # noqa: S101 - only nodes of the model's graph are looked at
    return node.graph


def _initializer(graph: onnx_ir.Graph, name: str, array: Array) -> onnx_ir.Value:
    value = onnx_ir.Value(name=name, const_value=onnx_ir.tensor(np.ascontiguousarray(array), name=name))
    value.dtype, value.shape = onnx_ir.DataType.from_numpy(array.dtype), onnx_ir.Shape(array.shape)
    graph.register_initializer(value)
    return value


def _agree(expected: Array | None, got: Array | None) -> bool:
    if expected is None or got is None or expected.shape != got.shape:
        return False
    scale = max(float(np.max(np.abs(expected), initial=0)), 1e-3)
    return bool(np.all(np.isfinite(got)) and np.max(np.abs(expected - got), initial=0) <= _TOLERANCE * scale)


def _scalar_steps(value: onnx_ir.Value, operators: set[str]) -> Iterator[onnx_ir.Value]:
    """A value, and those it was made from by operators with constants."""
    while True:
        yield value
        producer = value.producer()
        if producer is None or producer.op_type not in operators:
            return
        rest = [item for item in producer.inputs if item is not None and _constant(item) is None]
        if len({id(item) for item in rest}) != 1:
            return
        value = rest[0]


# --- GELU -----------------------------------------------------------------------------------------------------


def _gelu(node: onnx_ir.Node, opsets: Mapping[str, int]) -> None:
    """Half of x * (1 + erf(x / sqrt(2))), or its approximation by tanh, however it is arranged."""
    exact = node.op_type == "Erf"
    origin = node.inputs[0]
    if origin is None or origin.dtype not in _FLOATS:
        return
    probe = np.linspace(-6, 6, 257).astype(origin.dtype.numpy())
    function = _exact_gelu if exact else _tanh_gelu
    expected = function(probe.astype(np.float64))
    sources = list(_scalar_steps(origin, {"Mul", "Div", "Cast"})) if exact else list(_ancestors(origin, 6))
    for target in _descendants(node.outputs[0], 4):
        for source in sources:
            if _agree(expected, compute(target, {source: probe}, opsets)):
                joined = onnx_ir.Node(
                    "conrepair", "Gelu", [source], name=node.name,
                    attributes=[onnx_ir.AttrInt64("approximate", int(not exact))],
                )  # fmt: skip
                _replace(target, joined)
                return


def _exact_gelu(x: Array) -> Array:
    result: Array = x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))
    return result


def _tanh_gelu(x: Array) -> Array:
    result: Array = x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return result


_ELEMENTWISE = {"Add", "Mul", "Div", "Pow", "Sub", "Cast"}


def _ancestors(value: onnx_ir.Value, depth: int) -> Iterator[onnx_ir.Value]:
    """Values that a value was made from, element by element, nearest first."""
    level, seen = [value], set()
    for _ in range(depth):
        following = []
        for item in level:
            if item in seen:
                continue
            seen.add(item)
            yield item
            producer = item.producer()
            if producer is not None and producer.op_type in _ELEMENTWISE:
                following += [one for one in producer.inputs if one is not None and _constant(one) is None]
        level = following


def _descendants(value: onnx_ir.Value, depth: int) -> list[onnx_ir.Value]:
    """Values that are made from a value alone, element by element, farthest first."""
    found: list[onnx_ir.Value] = []
    for _ in range(depth):
        user = _only_use(value)
        if user is None or user.op_type not in {"Add", "Mul", "Div"} or len(user.outputs) != 1:
            break
        value = user.outputs[0]
        found.append(value)
    return found[::-1]


# --- LayerNormalization ---------------------------------------------------------------------------------------


def _layer_normalization(node: onnx_ir.Node, opsets: Mapping[str, int]) -> None:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias, along the last axis."""
    x = node.inputs[0]
    if x is None or x.dtype not in _FLOATS or x.shape is None or not isinstance(x.shape[-1], int):
        return
    width, rank = x.shape[-1], len(x.shape)
    centred = _only_use(node.outputs[0])
    if centred is None or centred.op_type != "Sub" or centred.inputs[0] is not x:
        return
    divided = _normalized(centred.outputs[0])
    if divided is None:
        return
    factors = _row(divided, "Mul", width)
    if factors is None:
        return
    scaled, scale = factors
    final, bias = _row(scaled, "Add", width) or (scaled, None)
    for epsilon in _epsilons(divided):
        parts = (scale, np.zeros(width, scale.dtype) if bias is None else bias)
        if _is_layer_normalization(x, final, rank, width, epsilon, parts, opsets):
            graph = _graph(node)
            inputs = [x, _initializer(graph, f"{final.name}_scale", scale)]
            inputs += [] if bias is None else [_initializer(graph, f"{final.name}_bias", bias)]
            attributes = [onnx_ir.AttrInt64("axis", -1), onnx_ir.AttrFloat32("epsilon", epsilon)]
            name = final.producer().name if final.producer() else node.name  # type: ignore[union-attr]
            _replace(final, onnx_ir.Node("", "LayerNormalization", inputs, attributes, name=name))
            return


def _normalized(centred: onnx_ir.Value) -> onnx_ir.Value | None:
    """The quotient of a centred value and something that's made of it."""
    for use in centred.uses():
        if use.node.op_type == "Div" and use.idx == 0:
            return use.node.outputs[0]
        other = use.node.inputs[1 - use.idx] if use.node.op_type == "Mul" else None
        producer = None if other is None else other.producer()
        if producer is not None and producer.op_type in {"Reciprocal", "Div", "Pow"}:
            return use.node.outputs[0]
    return None


def _row(value: onnx_ir.Value, operator: str, width: int) -> tuple[onnx_ir.Value, Array] | None:
    """What a value becomes by an operator with a constant row, and the row."""
    user = _only_use(value)
    if user is None or user.op_type != operator:
        return None
    other = next((_constant(item) for item in user.inputs if item is not value), None)
    if other is None or other.size != width or other.shape[-1:] != (width,):
        return None
    return user.outputs[0], other.reshape(width)


def _epsilons(value: onnx_ir.Value) -> list[float]:
    """Small constants that are added on the way to a value."""
    found = []
    for ancestor in itertools.islice(_ways(value), 12):
        producer = ancestor.producer()
        if producer is not None and producer.op_type == "Add":
            constants = [_constant(item) for item in producer.inputs]
            found += [float(item.reshape(())) for item in constants if item is not None and item.size == 1]
    return found


def _ways(value: onnx_ir.Value) -> Iterator[onnx_ir.Value]:
    waiting = [value]
    while waiting:
        value = waiting.pop(0)
        yield value
        producer = value.producer()
        waiting += [] if producer is None else [item for item in producer.inputs if item is not None]


def _is_layer_normalization(
    x: onnx_ir.Value, final: onnx_ir.Value, rank: int, width: int, epsilon: float, parts: Sequence[Array],
    opsets: Mapping[str, int],
) -> bool:  # fmt: skip
    assert x.dtype is not None  # noqa: S101 - the caller looked
    generator = np.random.default_rng(width)
    shape = [size if isinstance(size, int) else 3 for size in x.shape or ()][:rank]
    # Small numbers, too: that's where epsilon shows.
    for size in (1.0, 10 * math.sqrt(epsilon), math.sqrt(epsilon) / 10):
        probe = (generator.normal(size=shape) * size + size).astype(x.dtype.numpy())
        wide = probe.astype(np.float64)
        deviation = wide - wide.mean(-1, keepdims=True)
        variance = np.mean(deviation**2, -1, keepdims=True)
        expected = deviation / np.sqrt(variance + epsilon) * parts[0] + parts[1]
        if not _agree(expected, compute(final, {x: probe}, opsets)):
            return False
    return True


# --- multi-head attention -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Projection:
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


_LAYOUT = {"Reshape", "Transpose", "Squeeze", "Unsqueeze", "Identity", "Slice", "Split", "Gather"}
_SCALING = {"Mul", "Div"}


def _attention(softmax: onnx_ir.Node, opsets: Mapping[str, int]) -> None:
    """softmax(q k) v between projections, as torch.nn.MultiheadAttention is exported."""
    product, context = softmax.inputs[0], _only_use(softmax.outputs[0])
    scores = _made_by(product, "MatMul")
    if scores is None or context is None or context.op_type != "MatMul" or product is None:
        return
    values = context.inputs[1]
    if context.inputs[0] is not softmax.outputs[0] or values is None:
        return
    sides = [*scores.inputs, values]
    projections = [_projection_behind(value) for value in sides]
    after = _projection_after(context.outputs[0])
    if after is None or any(item is None for item in projections):
        return
    found = _separated([item for item in projections if item is not None])
    if found is None or found[0].source.dtype != onnx_ir.DataType.FLOAT:
        return
    sources = [_with_three_axes(item.source) for item in found]
    target = _rank_three(after.result)
    if target is None or any(source is None for source in sources):
        return
    block = _Block([source for source in sources if source is not None], found, after, values, opsets)
    for batch_axis in (0, 1):
        heads = block.heads(batch_axis)
        if heads is not None and block.computes(target, batch_axis, heads):
            _replace(target, block.node(softmax, target, batch_axis, heads))
            return


@dataclass(frozen=True)
class _Block:
    """A multi-head attention that is supposed: sources and projections of query, key, value; the last projection."""

    sources: list[onnx_ir.Value]
    projections: list[_Projection]
    last: _Projection
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
            if not _agree(expected, compute(target, feeds, opsets, sizes)):
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
        names = ["query", "key", "value", "output"]
        inputs = list(self.sources)
        for name, item in zip(names, [*self.projections, self.last], strict=True):
            bias = np.zeros(item.kernel.shape[1], item.kernel.dtype) if item.bias is None else item.bias
            inputs += [
                _initializer(_graph(softmax), f"{target.name}_{name}_{part}", array)
                for part, array in (("kernel", item.kernel), ("bias", bias))
            ]
        attributes = [onnx_ir.AttrInt64("heads", heads), onnx_ir.AttrInt64("batch_axis", batch_axis)]
        return onnx_ir.Node("conrepair", "MultiHeadAttention", inputs, attributes, name=softmax.name)


# By ONNX Runtime, which computes with one thread: numpy's threads wait for each other on a busy machine.
_ATTENTION = """<ir_version: 10, opset_import: ["" : 17]>
attention (float[B, Q, I] query, float[B, K, J] key, float[B, K, L] value,
           float[I, E] query_kernel, float[E] query_bias, float[J, E] key_kernel, float[E] key_bias,
           float[L, V] value_kernel, float[V] value_bias,
           float[V, O] kernel, float[O] bias, int64[4] apart, int64[3] joined, float scale) => (float[B, Q, O] y) {
    query_product = MatMul(query, query_kernel)
    query_row = Add(query_product, query_bias)
    query_apart = Reshape(query_row, apart)
    query_heads = Transpose<perm = [0, 2, 1, 3]>(query_apart)
    key_product = MatMul(key, key_kernel)
    key_row = Add(key_product, key_bias)
    key_apart = Reshape(key_row, apart)
    key_heads = Transpose<perm = [0, 2, 3, 1]>(key_apart)
    value_product = MatMul(value, value_kernel)
    value_row = Add(value_product, value_bias)
    value_apart = Reshape(value_row, apart)
    value_heads = Transpose<perm = [0, 2, 1, 3]>(value_apart)
    product = MatMul(query_heads, key_heads)
    scores = Mul(product, scale)
    weights = Softmax<axis = -1>(scores)
    context = MatMul(weights, value_heads)
    context_apart = Transpose<perm = [0, 2, 1, 3]>(context)
    context_row = Reshape(context_apart, joined)
    last = MatMul(context_row, kernel)
    y = Add(last, bias)
}"""


def _multi_head_attention(
    arrays: Sequence[Array], projections: Sequence[_Projection], last: _Projection, batch_axis: int, heads: int
) -> Array | None:
    """What the block should compute; None where the sizes don't go together."""
    width = projections[0].kernel.shape[1] // heads
    feeds: dict[str, Array] = {
        "apart": np.array([0, 0, heads, -1]),
        "joined": np.array([0, 0, -1]),
        "scale": np.asarray(1 / math.sqrt(width), np.float32),
    }
    names = ["query_", "key_", "value_", ""]
    for name, item in zip(names, [*projections, last], strict=True):
        bias = np.zeros(item.kernel.shape[1], np.float32) if item.bias is None else item.bias
        feeds |= {f"{name}kernel": item.kernel, f"{name}bias": bias}
    for name, array in zip(names, arrays, strict=False):
        feeds[name.rstrip("_")] = array if batch_axis == 0 else array.transpose(1, 0, 2)
    try:
        y = np.asarray(run(onnx.parser.parse_model(_ATTENTION), feeds)[0])
    # onnxruntime raises one class per status code, without a common base.
    except Exception:  # noqa: BLE001
        return None
    return y if batch_axis == 0 else y.transpose(1, 0, 2)


def _made_by(value: onnx_ir.Value | None, operator: str) -> onnx_ir.Node | None:
    """The node of a type that a value comes from, but for factors."""
    for item in [] if value is None else _scalar_steps(value, _SCALING):
        producer = item.producer()
        if producer is not None and producer.op_type == operator:
            return producer
    return None


def _projection_behind(value: onnx_ir.Value | None) -> _Projection | None:
    """The projection that a value is a rearrangement of, but for factors."""
    for _ in range(24):
        producer = None if value is None else value.producer()
        if value is None or producer is None:
            return None
        found = _projection(value)
        if found is not None:
            return found
        if producer.op_type in _SCALING:
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


def _projection(value: onnx_ir.Value) -> _Projection | None:
    """The product with a constant matrix that a value is, with or without a bias."""
    producer, bias, result = value.producer(), None, value
    if producer is not None and producer.op_type == "Add":
        rows = [_constant(item) for item in producer.inputs]
        rest = [item for item, row in zip(producer.inputs, rows, strict=True) if row is None]
        bias = next((row for row in rows if row is not None and row.ndim == 1), None)
        if bias is None or len(rest) != 1 or rest[0] is None:
            return None
        producer = rest[0].producer()
    if producer is None or producer.op_type not in {"MatMul", "Gemm"} or producer.inputs[0] is None:
        return None
    kernel = _constant(producer.inputs[1])
    if kernel is None or kernel.ndim != 2:
        return None
    if producer.op_type == "Gemm":
        plain = {"alpha": 1.0, "beta": 1.0, "transA": 0}
        if bias is not None or any(
            name in producer.attributes and producer.attributes[name].value != usual for name, usual in plain.items()
        ):
            return None
        transposed = producer.attributes.get("transB")
        kernel = kernel.T if transposed is not None and transposed.value else kernel
        if len(producer.inputs) > 2:
            bias = _constant(producer.inputs[2])
            if bias is None or bias.ndim != 1:
                return None
    if bias is not None and bias.shape != kernel.shape[1:]:
        return None
    return _Projection(producer.inputs[0], result, kernel, bias)


def _projection_after(value: onnx_ir.Value) -> _Projection | None:
    """The projection that rearrangements of a value go into."""
    for _ in range(6):
        user = _only_use_of_data(value)
        if user is None:
            return None
        if user.op_type in {"MatMul", "Gemm"} and user.inputs[0] is value:
            following = _only_use(user.outputs[0])
            with_bias = (
                _projection(following.outputs[0]) if following is not None and following.op_type == "Add" else None
            )
            return with_bias or _projection(user.outputs[0])
        if user.op_type not in _LAYOUT or user.inputs[0] is not value:
            return None
        value = user.outputs[0]
    return None


def _only_use_of_data(value: onnx_ir.Value) -> onnx_ir.Node | None:
    """The only node that uses a value, those apart that ask for its shape."""
    users = [use.node for use in value.uses() if use.node.op_type != "Shape"]
    return users[0] if len(users) == 1 and not value.is_graph_output() else None


def _rank_three(value: onnx_ir.Value) -> onnx_ir.Value | None:
    """A projection's result, once its axes are apart again."""
    product = value.producer()
    flat = product is not None and product.op_type == "Gemm"
    if value.shape is not None:
        flat = len(value.shape) != 3
    if not flat:
        return value
    user = _only_use_of_data(value)
    return user.outputs[0] if user is not None and user.op_type == "Reshape" and user.inputs[0] is value else None


def _with_three_axes(value: onnx_ir.Value) -> onnx_ir.Value | None:
    """What a projection is made of, before its axes were joined for a matrix product."""
    for _ in range(3):
        if value.shape is None or len(value.shape) == 3:
            return value
        producer = value.producer()
        if producer is None or producer.op_type != "Reshape" or producer.inputs[0] is None:
            return None
        value = producer.inputs[0]
    return None


def _separated(found: Sequence[_Projection]) -> list[_Projection] | None:
    """Query, key and value apart, where one product computes two or all of them."""
    query, key, value = found
    groups: dict[onnx_ir.Value, list[int]] = {}
    for index, item in enumerate(found):
        groups.setdefault(item.result, []).append(index)
    result: list[_Projection] = [query, key, value]
    for indices in groups.values():
        whole = found[indices[0]]
        if whole.kernel.shape[1] % len(indices):
            return None
        kernels = np.split(whole.kernel, len(indices), axis=1)
        biases = [None] * len(indices) if whole.bias is None else np.split(whole.bias, len(indices))
        for index, kernel, bias in zip(indices, kernels, biases, strict=True):
            result[index] = _Projection(whole.source, whole.result, kernel, bias)
    return result
