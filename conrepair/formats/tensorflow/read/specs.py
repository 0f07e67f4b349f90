"""Shapes and types of a TensorFlow graph's tensors when its inputs have concrete sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np
import tensorflow as tf

from conrepair.formats.tensorflow.read.pieces import GraphPieces, data_inputs, operator_of
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import ModelLoadError

Specs = Mapping[str, tuple[Any, Any]]
"""`tf.TensorShape` and `tf.DType` by tensor."""

_ASKED: Mapping[str, Callable[[list[int]], Any]] = {"Shape": list, "Size": np.prod, "Rank": len}
"""Operators that ask for sizes, and what they make of these."""

# What they give has as many rows as the values say.
_SIZED_BY_VALUES = (
    "Where",
    "Unique",
    "NonMaxSuppression",
    "DynamicPartition",
    "ListDiff",
    "CombinedNonMaxSuppression",
)


def known_specs(pieces: GraphPieces, inputs: Mapping[str, TensorSpec], results: Sequence[str]) -> Specs:
    """What TensorFlow says of every tensor; operators that ask for sizes become constants.

    Behind loops TensorFlow can't tell sizes, so the network is run once, on zeros.

    Args:
        pieces: The graph; operators are replaced.
        inputs: With concrete sizes, by the operators that stand for them.
        results: Tensors.

    Raises:
        ModelLoadError: for loops of TensorFlow 1.
    """
    given = {
        f"{name}:0": tf.TensorSpec(spec.shape, tf.as_dtype(pieces.operators[name].attr["dtype"].type))
        for name, spec in inputs.items()
    }
    order = in_order(pieces, results)
    found = declared_specs(pieces, given, results)
    _fold_sizes(pieces, found)
    unknown = _sized_by_sizes(order, given, found)
    if unknown:
        read = pieces.needed(given, unknown).fed
        zeros = [tf.zeros(given[name].shape, given[name].dtype) for name in read]
        # A network that takes no zeros keeps tensors of unknown sizes.
        try:
            sizes = pieces.function({name: given[name] for name in read}, unknown, sizes=True)(*zeros)
        except tf.errors.OpError:
            return found
        for name, size in zip(unknown, sizes, strict=True):
            found[name] = (tf.TensorShape(size.numpy()), found[name][1])
        _fold_sizes(pieces, found)
    return found


def declared_specs(
    pieces: GraphPieces, given: Mapping[str, Any], results: Sequence[str]
) -> dict[str, tuple[Any, Any]]:
    """What a graph says before it's run: shape and dtype by tensor, open where it leaves them open.

    Args:
        pieces: The graph.
        given: `tf.TensorSpec`s of its inputs, by the tensors that stand for them.
        results: Tensors.
    """
    wanted = [name for name in results if name not in given]
    read = pieces.needed(given, wanted).fed
    found = {f"{name}:0": (tensor.shape, tensor.dtype) for name, tensor in pieces.captures.items()}
    found |= {name: (spec.shape, spec.dtype) for name, spec in given.items()}
    graph = pieces.function({name: given[name] for name in read}, wanted).graph
    for operator in graph.get_operations():
        for tensor in operator.outputs:
            found.setdefault(tensor.name, (tensor.shape, tensor.dtype))
    return found


def _sized_by_sizes(order: Sequence[Any], given: Mapping[str, Any], specs: Specs) -> list[str]:
    """Tensors of unknown sizes that don't depend on values."""
    by_values: set[str] = set()
    unknown = []
    inputs = {operator_of(name) for name in given}
    numbers_only = all(not spec.dtype.is_compatible_with(tf.string) for spec in given.values())
    for item in order:
        sources = [operator_of(name) for name in data_inputs(item)]
        if item.op.startswith(_SIZED_BY_VALUES) or not by_values.isdisjoint(sources):
            by_values.add(item.name)
        elif item.name not in inputs and numbers_only:
            unknown += [name for name in _unknown(item.name, specs) if item.op != "Placeholder"]
    return unknown


def _unknown(operator: str, specs: Specs) -> list[str]:
    found, index = [], 0
    while f"{operator}:{index}" in specs:
        shape, dtype = specs[f"{operator}:{index}"]
        if not shape.is_fully_defined() and dtype not in (tf.variant, tf.resource):
            found.append(f"{operator}:{index}")
        index += 1
    return found


def in_order(pieces: GraphPieces, results: Sequence[str]) -> list[Any]:
    """The operators that the results need, each behind those that it reads from.

    Raises:
        ModelLoadError: for loops of TensorFlow 1, which are circles in the graph.
    """
    needed = pieces.needed({}, results).operators
    reads = {item.name: [operator_of(name) for name in data_inputs(item)] for item in needed}
    try:
        order = [name for name in TopologicalSorter(reads).static_order() if name in reads]
    except CycleError as error:
        raise ModelLoadError(
            "the graph has loops in the way of TensorFlow 1 (Enter, NextIteration), which can't be cut. "
            "Convert it to ONNX and look at that."
        ) from error
    return [pieces.operators[name] for name in order]


def _fold_sizes(pieces: GraphPieces, specs: Specs) -> None:
    """Make constants of sizes that are known: else everything that's reshaped would depend on the inputs twice.

    Args:
        pieces: Operators are replaced.
        specs: For inputs of concrete sizes.
    """
    for name, item in pieces.operators.items():
        if item.op not in _ASKED:
            continue
        shape = specs.get(data_inputs(item)[0], (None,))[0]
        if shape is None or not shape.is_fully_defined():
            continue
        value = _ASKED[item.op](shape.as_list())
        kind = np.int32 if item.op == "Rank" else tf.as_dtype(item.attr["out_type"].type).as_numpy_dtype
        constant = tf.compat.v1.NodeDef(name=name, op="Const")
        constant.attr["dtype"].type = tf.as_dtype(kind).as_datatype_enum
        constant.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(np.asarray(value, kind)))
        pieces.operators[name] = constant
