"""Decoders with a cache, as exporters write them: looked at with no option and no data."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.parser import parse_model

from conrepair.application.cli import main

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


def decoder(
    path: str, symbols: Callable[[str], str | int | None] = lambda name: name, change: Change | None = None
) -> None:
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


def called_by_number(name: str) -> str:
    return re.sub(r"\w+", lambda found: f"s{len(found[0])}", name)


NAMES: dict[str, Symbols] = {
    "sums": lambda name: name,
    "total": lambda name: "total_sequence_length" if name == TOTAL else name,
    "numbered": called_by_number,
    "unnamed": lambda _: None,
    "minus": lambda _: -1,
}


def swapped(model: onnx.ModelProto) -> None:
    node = next(node for node in model.graph.node if node.output[0] == "present_value")
    node.input[:] = reversed(node.input)


def heavier(model: onnx.ModelProto) -> None:
    weight = next(tensor for tensor in model.graph.initializer if tensor.name == "wo")
    array = onnx.numpy_helper.to_array(weight).copy()
    array[:, 3] *= 1.3
    weight.CopyFrom(onnx.numpy_helper.from_array(array, "wo"))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    decoder("net.onnx")


@pytest.mark.parametrize("names", NAMES)
def test_sizes_fit_together(names: str, capsys: pytest.CaptureFixture[str]) -> None:
    decoder("other.onnx", NAMES[names])
    assert main(["compare", "other.onnx", "net.onnx", "-q"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"input_ids: whole numbers from 0 to {WORDS - 1} (Gather of {WORDS} rows)" in said
    assert "attention_mask: a mask of ones, then zeros, or otherwise (Sub and Mul)" in said
    first = {"sums": 8, "total": 8, "numbered": 17}.get(names, 16)
    assert f"position_ids: positions from {first} on (its name)" in said
    assert main(["localize", "other.onnx", "net.onnx", "-q"]) == 0


@pytest.mark.parametrize(("change", "layer"), [(swapped, "present_value"), (heavier, "logits")])
def test_a_fault_is_found_named_and_repaired(change: Change, layer: str, capsys: pytest.CaptureFixture[str]) -> None:
    decoder("wrong.onnx", change=change)
    assert main(["compare", "net.onnx", "wrong.onnx", "-q"]) == 1
    capsys.readouterr()
    assert main(["localize", "net.onnx", "wrong.onnx", "-q"]) == 1
    assert f"1. {'structure' if change is swapped else 'parameters'} at `{layer}`" in capsys.readouterr().out
    assert main(["repair", "net.onnx", "wrong.onnx", "-q", "-o", "out"]) == 0
    assert main(["compare", "net.onnx", "out/repaired.onnx", "-q"]) == 0


def test_sizes_that_no_choice_fits_are_told_with_what_to_declare(capsys: pytest.CaptureFixture[str]) -> None:
    def odd(model: onnx.ModelProto) -> None:
        node = next(node for node in model.graph.node if node.output[0] == "joined")
        node.input[1] = "seventeen"
        numbers = np.array([-1, 17 * 19, 8], np.int64)
        model.graph.initializer.append(onnx.numpy_helper.from_array(numbers, "seventeen"))

    decoder("odd.onnx", change=odd)
    assert main(["compare", "odd.onnx", "net.onnx", "-q"]) != 0
    said = " ".join(str(capsys.readouterr()).replace("\\n", " ").split())
    assert re.search(r"odd.onnx runs with none of \d+ choices of the sizes that it leaves open", said)
    assert "--input input_ids=" in said


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


def test_branches_need_not_fit_the_sizes_of_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    """As in a merged decoder: without a cache, the mask is as long as the ids, and what's kept isn't empty."""
    for name, rows in (("one", 2), ("other", 3)):
        model = parse_model(MERGED)
        for key, shape in {"nothing": (0, 3), "something": (rows, 3)}.items():
            model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(shape, np.float32), key))
        onnx.save(model, f"{name}.onnx")
    for verb in ("compare", "localize"):
        assert main([verb, "one.onnx", "other.onnx", "-q"]) == 0
