"""Networks of attention as graphs: a spec says what is computed, a writing how it's written.

Nodes are called by what they do, in every writing: `/layers.0/attn/softmax`. Weights are drawn by name, so that two
writings of a spec have the same.
"""

from __future__ import annotations

import zlib

import numpy as np

from benchmarks.attention import masks, parts
from benchmarks.attention.rotation import rotated, tables
from benchmarks.attention.spec import Spec, Writing
from benchmarks.common.plain_graph import FLOAT, INT64, Array, PlainGraph

__all__ = ["Builder", "build"]

_SHARP = 1.6  # how far queries and keys spread scores, so that attention isn't the same everywhere
_SPREAD = 0.3  # of biases, and of norms' weights around 1


class Builder:
    """A graph that is being written.

    Attributes:
        spec: What it computes.
        writing: How.
        graph: So far.
    """

    def __init__(self, spec: Spec, writing: Writing) -> None:
        self.spec, self.writing = spec, writing
        self.graph = PlainGraph(writing.opset)

    def drawn(self, name: str, *shape: int, spread: float = 1.0, middle: float = 0.0) -> Array:
        """Random numbers that depend on the network and a name only."""
        generator = np.random.default_rng([self.spec.seed, zlib.crc32(name.encode())])
        return (middle + spread * generator.standard_normal(shape)).astype(np.float32)

    def weight(self, name: str, rows: int, columns: int, gain: float = 1.0) -> Array:
        """Of a product with rows to the left."""
        return self.drawn(name, rows, columns, spread=gain / np.sqrt(rows))

    def linear(self, name: str, value: str, weight: Array, bias: Array | None) -> str:
        """A product and a sum, as a dense layer over tokens is exported."""
        result = self.graph.add(name, "MatMul", value, self.graph.constant(f"{name}/weight", weight))
        if bias is None:
            return result
        return self.graph.add(f"{name}/bias_add", "Add", self.graph.constant(f"{name}/bias", bias), result)

    def dense(self, name: str, value: str, rows: int, columns: int, *, bias: bool | None = None) -> str:
        """The same with drawn weights."""
        wanted = self.spec.bias if bias is None else bias
        numbers = self.drawn(f"{name}/bias", columns, spread=_SPREAD) if wanted else None
        return self.linear(name, value, self.weight(name, rows, columns), numbers)

    def norm(self, name: str, value: str) -> str:
        """A LayerNorm, or one by the root of the mean square."""
        spec, size = self.spec, self.spec.hidden
        scale = self.drawn(f"{name}/scale", size, spread=_SPREAD, middle=1.0)
        if spec.norm == "rms":
            return parts.rms_norm(self, name, value, scale)
        return parts.layer_norm(self, name, value, scale, self.drawn(f"{name}/shift", size, spread=_SPREAD))


def build(spec: Spec, writing: Writing) -> PlainGraph:
    """The graph of a network."""
    builder = Builder(spec, writing)
    graph = builder.graph
    graph.inputs["input_ids"] = INT64, ("batch", spec.tokens)
    table = builder.drawn("embedding", spec.words, spec.hidden, spread=spec.embedding)
    value = graph.add("/embed", "Gather", graph.constant("embed.weight", table), "input_ids", axis=0)
    if spec.position == "learned":
        places = builder.drawn("places", 1, spec.tokens, spec.hidden, spread=spec.embedding)
        value = graph.add("/places", "Add", value, graph.constant("places.weight", places))
    if not spec.before:
        value = builder.norm("/embed_norm", value)
    if spec.padded:
        graph.inputs["attention_mask"] = INT64, ("batch", spec.tokens)
    rotations = tables(builder) if spec.position.startswith("rope") else None
    masking = masks.mask(builder, "/mask") if writing.shared else None
    for block in range(spec.blocks):
        scope = f"/layers.{block}"
        own = masks.mask(builder, f"{scope}/mask") if masking is None else masking
        value = _block(builder, scope, value, own, rotations)
        if block == 0 and spec.massive == "token":
            value = graph.add("/massive_on", "Add", value, graph.constant("/massive", parts.massive_token(spec)))
    if spec.massive == "token":
        value = graph.add("/massive_off", "Sub", value, graph.constant("/massive", parts.massive_token(spec)))
    if spec.before:
        value = builder.norm("/final_norm", value)
    builder.dense("/head", value, spec.hidden, spec.words, bias=False)
    # The output is called by what it is, as exporters are told.
    graph.nodes["/head"].output[0] = "logits"
    graph.outputs["logits"] = FLOAT, ("batch", spec.tokens, spec.words)
    return graph


def _block(
    builder: Builder, scope: str, value: str, masking: masks.Masking | None, rotations: tuple[str, str] | None
) -> str:
    spec, graph = builder.spec, builder.graph
    read = builder.norm(f"{scope}/attn_norm", value) if spec.before else value
    given = _massive(builder, f"{scope}/attn", _attention(builder, f"{scope}/attn", read, masking, rotations))
    value = graph.add(f"{scope}/attn_add", "Add", value, given)
    value = _massive_off(builder, f"{scope}/attn", value)
    if not spec.before:
        value = builder.norm(f"{scope}/attn_norm", value)
    read = builder.norm(f"{scope}/mlp_norm", value) if spec.before else value
    value = graph.add(f"{scope}/mlp_add", "Add", value, parts.mlp(builder, f"{scope}/mlp", read))
    return value if spec.before else builder.norm(f"{scope}/mlp_norm", value)


def _massive(builder: Builder, scope: str, value: str) -> str:
    spec, graph = builder.spec, builder.graph
    if spec.massive != "channel":
        return value
    return graph.add(f"{scope}/massive_on", "Add", value, graph.constant("/massive", parts.massive_channel(spec)))


def _massive_off(builder: Builder, scope: str, value: str) -> str:
    spec, graph = builder.spec, builder.graph
    if spec.massive != "channel":
        return value
    return graph.add(f"{scope}/massive_off", "Sub", value, graph.constant("/massive", parts.massive_channel(spec)))


def _attention(
    builder: Builder, scope: str, value: str, masking: masks.Masking | None, rotations: tuple[str, str] | None
) -> str:
    spec, writing, graph = builder.spec, builder.writing, builder.graph
    split = _projections(builder, scope, value)
    heads = {name: _heads(builder, f"{scope}/{name}", split[name]) for name in "qkv"}
    if rotations is not None:
        heads |= {name: rotated(builder, f"{scope}/{name}", heads[name], rotations) for name in "qk"}
    if spec.past:
        heads |= {name: _cached(builder, scope, name, heads[name]) for name in "kv"}
    if spec.kv_heads != spec.heads:
        heads |= {name: _repeated(builder, f"{scope}/{name}", heads[name]) for name in "kv"}
    keys = graph.add(f"{scope}/k_turned", "Transpose", heads["k"], perm=[0, 1, 3, 2])
    queries = heads["q"]
    factor, halves = 1 / np.sqrt(spec.width), spec.width**-0.25
    if writing.scale in {"q", "both"}:
        number = factor if writing.scale == "q" else halves
        queries = graph.add(f"{scope}/q_scale", "Mul", queries, graph.constant(f"{scope}/q_factor", float(number)))
    if writing.scale == "both":
        keys = graph.add(f"{scope}/k_scale", "Mul", keys, graph.constant(f"{scope}/k_factor", float(halves)))
    scores = graph.add(f"{scope}/scores", "MatMul", queries, keys)
    if writing.scale in {"div", "mul"}:
        operator, number = ("Div", 1 / factor) if writing.scale == "div" else ("Mul", factor)
        scores = graph.add(f"{scope}/scale", operator, scores, graph.constant(f"{scope}/factor", float(number)))
    scores = masks.masked(builder, scope, scores, masking)
    shares = graph.add(f"{scope}/softmax", "Softmax", scores, axis=-1 if writing.constant else 3)
    found = graph.add(f"{scope}/context", "MatMul", shares, heads["v"])
    found = graph.add(f"{scope}/merge", "Transpose", found, perm=[0, 2, 1, 3])
    flat = graph.constant(f"{scope}/merged", [0, 0, spec.hidden])
    found = graph.add(f"{scope}/flat", "Reshape", found, flat)
    return builder.dense(f"{scope}/o_proj", found, spec.hidden, spec.hidden)


def _projections(builder: Builder, scope: str, value: str) -> dict[str, str]:
    spec, writing, graph = builder.spec, builder.writing, builder.graph
    sizes = {"q": spec.heads * spec.width, "k": spec.kv_heads * spec.width, "v": spec.kv_heads * spec.width}
    gains = {"q": _SHARP, "k": _SHARP, "v": 1.0}
    weights = {name: builder.weight(f"{scope}/{name}_proj", spec.hidden, sizes[name], gains[name]) for name in sizes}
    biases = {name: builder.drawn(f"{scope}/{name}_proj/bias", sizes[name], spread=_SPREAD) for name in sizes}
    if writing.scale == "folded":
        factor = np.float32(1 / np.sqrt(spec.width))
        weights["q"], biases["q"] = weights["q"] * factor, biases["q"] * factor
    if not writing.fused:
        return {
            name: builder.linear(f"{scope}/{name}_proj", value, weights[name], biases[name] if spec.bias else None)
            for name in sizes
        }
    whole = np.concatenate(list(weights.values()), axis=1)
    bias = np.concatenate(list(biases.values())) if spec.bias else None
    together = builder.linear(f"{scope}/qkv_proj", value, whole, bias)
    lengths = graph.constant(f"{scope}/qkv_sizes", list(sizes.values()))
    graph.add(f"{scope}/qkv_split", "Split", together, lengths, outputs=3, axis=-1)
    return dict(zip(sizes, graph.nodes[f"{scope}/qkv_split"].output, strict=True))


def _heads(builder: Builder, name: str, value: str) -> str:
    graph = builder.graph
    shape = graph.constant(f"{name}_shape", [0, 0, -1, builder.spec.width])
    return graph.add(
        f"{name}_heads", "Transpose", graph.add(f"{name}_split", "Reshape", value, shape), perm=[0, 2, 1, 3]
    )


def _cached(builder: Builder, scope: str, name: str, value: str) -> str:
    spec, graph = builder.spec, builder.graph
    layer = scope.split("/")[1].removeprefix("layers.")
    before, after = f"past.{layer}.{name}", f"present.{layer}.{name}"
    graph.inputs[before] = FLOAT, ("batch", spec.kv_heads, spec.past, spec.width)
    joined = graph.add(f"{scope}/{name}_cache", "Concat", before, value, axis=2)
    graph.nodes[f"{scope}/{name}_cache"].output[0] = after
    graph.outputs[after] = FLOAT, ("batch", spec.kv_heads, spec.past + spec.tokens, spec.width)
    del joined
    return after


def _repeated(builder: Builder, name: str, value: str) -> str:
    """Each head of keys for several of queries, side by side: repeat_interleave by Expand."""
    spec, graph = builder.spec, builder.graph
    groups, length = spec.heads // spec.kv_heads, spec.past + spec.tokens
    wide = graph.add(f"{name}_unsqueeze", "Unsqueeze", value, axes=[2])
    shape = graph.constant(f"{name}_expanded", [1, spec.kv_heads, groups, length, spec.width])
    wide = graph.add(f"{name}_expand", "Expand", wide, shape)
    shape = graph.constant(f"{name}_repeated", [0, spec.heads, length, spec.width])
    return graph.add(f"{name}_repeat", "Reshape", wide, shape)
