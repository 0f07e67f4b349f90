"""Segments of networks that are TensorFlow graphs inside."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from conrepair.formats.networks.network import Network, Segment
from conrepair.formats.tensorflow.read.pieces import GraphPieces
from conrepair.ground.data.stored_values import as_text
from conrepair.ground.graph.layer_graph import Array, LayerGraph
from conrepair.ground.runtime.errors import InferenceError


class PieceNetwork(Network):
    """A network whose tensors are found in one TensorFlow graph."""

    def __init__(self, graph: LayerGraph, pieces: GraphPieces, places: Mapping[str, str]) -> None:
        """Take the graph, its parts and places.

        Args:
            graph: The network's.
            pieces: The TensorFlow graph.
            places: Where in it each observable tensor is.
        """
        self.graph = graph
        self._pieces = pieces
        self._places = places

    def segment(self, fed: Collection[str], wanted: Sequence[str]) -> Segment:
        """See the base class."""
        places, pieces = self._places, self._pieces
        self.check_cuts(fed, wanted)
        inputs = {places[name]: name for name in self.graph.inputs}
        known = {places[name]: name for name in fed}
        reached = pieces.needed({**inputs, **known}, [places[name] for name in wanted]).fed
        missing = [inputs[place] for place in reached if place not in known]
        if missing:
            raise ValueError(f"the input {missing[0]} is needed and not fed")
        specs = {known[place]: (place, self._spec(known[place])) for place in reached}
        return TensorFlowSegment(pieces, specs, {name: places[name] for name in wanted})

    def _spec(self, name: str) -> Any:
        tensor = self.graph.tensors[name]
        return tf.TensorSpec(tensor.shape, tf.string if tensor.dtype == "object" else tensor.dtype)


class TensorFlowSegment(Segment):
    """A piece of a graph as one function of TensorFlow."""

    def __init__(self, pieces: GraphPieces, fed: Mapping[str, tuple[str, Any]], wanted: Mapping[str, str]) -> None:
        """Build the function.

        Args:
            pieces: The graph.
            fed: What is read: tensor in the pieces and its `tf.TensorSpec`, by the network's name for it.
            wanted: What is computed: tensor in the pieces, by the network's name for it.

        Raises:
            InferenceError: if TensorFlow can't build it.
        """
        self.needs, self.wanted = tuple(fed), tuple(wanted)
        self._specs = [spec for _, spec in fed.values()]
        try:
            self._function = pieces.function(dict(fed.values()), tuple(wanted.values()))
        # TensorFlow raises errors of any type.
        except Exception as error:
            raise InferenceError(f"TensorFlow can't build a segment of the network: {error}") from error

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """See the base class."""
        for name, spec in zip(self.needs, self._specs, strict=True):
            if not spec.shape.is_compatible_with(feeds[name].shape):
                raise InferenceError(f"{name} is {list(spec.shape)}, the values are {list(feeds[name].shape)}.")
        try:
            tensors = [
                tf.constant(np.asarray(feeds[name], dtype=spec.dtype.as_numpy_dtype))
                for name, spec in zip(self.needs, self._specs, strict=True)
            ]
            with _as_written():
                results = self._function(*tensors)
            arrays = {name: np.asarray(result) for name, result in zip(self.wanted, results, strict=True)}
            return {name: as_text(array) if array.dtype.kind == "O" else array for name, array in arrays.items()}
        # The same.
        except Exception as error:
            reason = f"{type(error).__name__}: {str(error)[:600]}"
            raise InferenceError(f"running a segment of the network failed: {reason}") from error


@contextlib.contextmanager
def _as_written() -> Iterator[None]:
    """Let TensorFlow run a function without rewriting it: most run once, which takes less time than that."""
    name = "disable_meta_optimizer"
    before = tf.config.optimizer.get_experimental_options().get(name, False)
    tf.config.optimizer.set_experimental_options({name: True})
    try:
        yield
    finally:
        tf.config.optimizer.set_experimental_options({name: before})
