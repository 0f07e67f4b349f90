"""A decoder with a cache, as exporters write it, with its sizes called by one name or another, and with faults."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx.parser import parse_model

WORDS, PLACES = 31, 40
GRAPH = """<ir_version: 8, opset_import: ["" : 17]>
decoder (int64[batch_size, sequence_length] input_ids, int64[batch_size, total] attention_mask,
         int64[batch_size, sequence_length] position_ids,
         float[batch_size, 2, past_sequence_length, 4] past_key,
         float[batch_size, 2, past_sequence_length, 4] past_value)
    => (float[batch_size, sequence_length, 31] logits, float[batch_size, 2, total, 4] present_key,
        float[batch_size, 2, total, 4] present_value) {
  word = Gather(words, input_ids)
  place = Gather(places, position_ids)
  x = Add(word, place)
  q0 = MatMul(x, wq)
  k0 = MatMul(x, wk)
  v0 = MatMul(x, wv)
  q1 = Reshape(q0, heads)
  k1 = Reshape(k0, heads)
  v1 = Reshape(v0, heads)
  q = Transpose <perm = [0, 2, 1, 3]> (q1)
  k = Transpose <perm = [0, 2, 1, 3]> (k1)
  v = Transpose <perm = [0, 2, 1, 3]> (v1)
  present_key = Concat <axis = 2> (past_key, k)
  present_value = Concat <axis = 2> (past_value, v)
  turned = Transpose <perm = [0, 1, 3, 2]> (present_key)
  scores = MatMul(q, turned)
  scaled = Mul(scores, half)
  seen = Cast <to = 1> (attention_mask)
  unseen = Sub(one, seen)
  far = Mul(unseen, low)
  bias = Unsqueeze(far, heads_and_rows)
  masked = Add(scaled, bias)
  weights = Softmax <axis = -1> (masked)
  mixed = MatMul(weights, present_value)
  rows = Transpose <perm = [0, 2, 1, 3]> (mixed)
  joined = Reshape(rows, all)
  logits = MatMul(joined, wo)
}"""
TOTAL = "past_sequence_length + sequence_length"

Symbols = Callable[[str], str | int | None]
Change = Callable[[onnx.ModelProto], None]


def decoder(path: Path, symbols: Symbols = lambda name: name, change: Change | None = None) -> Path:
    """Write it; its open sizes are called what they're called in the standard, or otherwise."""
    model = parse_model(GRAPH)
    generator = np.random.default_rng(0)
    shapes = {"words": (WORDS, 8), "places": (PLACES, 8), "wq": (8, 8), "wk": (8, 8), "wv": (8, 8), "wo": (8, WORDS)}
    constants = {name: generator.normal(0, 0.6, shape).astype(np.float32) for name, shape in shapes.items()}
    constants |= {name: np.float32(number) for name, number in {"half": 0.5, "one": 1, "low": -1e4}.items()}
    integers = {"heads": [0, 0, 2, 4], "all": [0, 0, 8], "heads_and_rows": [1, 2]}
    constants |= {name: np.array(numbers, np.int64) for name, numbers in integers.items()}
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in constants.items())
    for value in [*model.graph.input, *model.graph.output]:
        for size in value.type.tensor_type.shape.dim:
            if size.dim_param:
                called = symbols(TOTAL if size.dim_param == "total" else size.dim_param)
                size.Clear()
                if isinstance(called, str):
                    size.dim_param = called
                elif called is not None:
                    size.dim_value = called
    if change is not None:
        change(model)
    onnx.save(model, path)
    return path


def swapped(model: onnx.ModelProto) -> None:
    """Put what's new in front of what's cached."""
    node = next(node for node in model.graph.node if node.output[0] == "present_value")
    node.input[:] = reversed(node.input)


def heavier(model: onnx.ModelProto) -> None:
    """Scale a column of the last weights."""
    weight = next(tensor for tensor in model.graph.initializer if tensor.name == "wo")
    array = onnx.numpy_helper.to_array(weight).copy()
    array[:, 3] *= 1.3
    weight.CopyFrom(onnx.numpy_helper.from_array(array, "wo"))


MERGED = """<ir_version: 8, opset_import: ["" : 17]>
merged (bool[1] use_cache_branch, float[batch, s] x, float[batch, past] cache, float[batch, total] mask)
    => (float[batch, t] y, float[e, 3] kept) {
  with_cache = Squeeze(use_cache_branch)
  y, kept = If (with_cache) <
    then_branch = cached () => (float[batch, total] a, float[n, 3] none) {
      joined = Concat <axis = 1> (cache, x)
      a = Mul(joined, mask)
      none = Identity(nothing)
    },
    else_branch = first () => (float[batch, s] b, float[n, 3] some) {
      doubled = Add(x, x)
      b = Mul(doubled, mask)
      some = Identity(something)
    }
  >
}"""


def merged(path: Path, *, rows: int = 2) -> Path:
    """As a merged decoder: without a cache, the mask is as long as the ids, and what's kept isn't empty."""
    model = parse_model(MERGED)
    for key, shape in {"nothing": (0, 3), "something": (rows, 3)}.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(shape, np.float32), key))
    onnx.save(model, path)
    return path
