"""Try instances in ONNX Runtime: with which opsets they run, and which inputs may have other values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from conrepair.formats.onnx.load.proto_file import read_by
from conrepair_lab.generate.learned.closing import Closing
from conrepair_lab.generate.learned.instances import MOST, Instance, plain, range_of, spread
from conrepair_lab.generate.onnx_form import IR_VERSION, imports_of
from conrepair_lab.generate.pieces import Piece, operator_of
from conrepair_lab.generate.real.opened import OpenedFile, opened
from conrepair_lab.generate.real.units import units_of
from conrepair_lab.generate.running import ModelSession, RefusedError
from conrepair_lab.generate.settings.schemas import SpecificationError, schema_of
from conrepair_lab.generate.settings.tensors import BOOL, FLOATS, INTEGERS, REALS, Range, TensorType
from conrepair_lab.generate.values.drawn import drawn_values
from conrepair_lab.generate.values.search import flaw_of

Array = np.ndarray[Any, Any]

OPSETS = range(17, 27)
"""Opsets of the standard with which instances are tried."""

_OTHERS = 3
"""How often an input is given other values."""

_BEYOND = 3.0
"""How far beyond what was seen an input must bear, or it's kept to that.

Whole numbers always are: they're indices and counts as often as not.
"""


def tried(op: str, closing: Closing, source: str) -> Instance | None:
    """Make an instance of what was seen, if it can be computed as it stands.

    Args:
        op: The operator that it's about.
        closing: It, and what it was given.
        source: Where it was seen.

    Returns:
        The instance; None if no opset computes it, or it has large tensors or others than of our types, or what it
        makes isn't finite or not always the same.
    """
    if any(map(_unfit, closing.feeds.values())):
        return None
    trial = _Trial(closing)
    fitting: dict[int, dict[str, Array]] = {}
    done: dict[tuple[int, ...], dict[str, Array] | None] = {}
    for opset in OPSETS:
        versions = trial.versions(opset)
        if versions is None:
            continue
        if versions not in done:
            done[versions] = trial.computed(opset, {})
        made = done[versions]
        if made is not None and (not fitting or _types(made) == _types(next(iter(fitting.values())))):
            fitting[opset] = made
    if not fitting:
        return None
    first = next(iter(fitting))
    types = _types(fitting[first])
    held = {name: array for name, array in closing.feeds.items() if not trial.free(first, [name], types)}
    if not trial.free(first, closing.feeds.keys() - held.keys(), types):
        held = closing.feeds
    left = {name: array for name, array in closing.feeds.items() if name not in held}
    pinned = {
        name
        for name, array in left.items()
        if array.dtype.kind in "iu" or not trial.free(first, [name], types, beyond=_BEYOND)
    }
    if not trial.free(first, left.keys() - pinned, types, beyond=_BEYOND):
        pinned = set(left)
    return Instance(
        op,
        tuple(fitting),
        plain(trial.graph(held, types)),
        tuple(map(range_of, left.values())),
        tuple(name in pinned for name in left),
        source,
    )


@dataclass(frozen=True)
class _Trial:
    closing: Closing

    def graph(self, held: Mapping[str, Array], types: Mapping[str, TensorType] | None) -> onnx.GraphProto:
        """The graph with some inputs as constants, and what is known of its outputs."""
        closing = self.closing
        inputs = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in closing.feeds.items()
            if name not in held
        ]
        outputs = [
            onnx.ValueInfoProto(name=name)
            if types is None
            else helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(np.dtype(types[name].dtype)), types[name].shape
            )
            for name in closing.outputs
        ]
        constants = [*closing.constants, *(numpy_helper.from_array(array, name) for name, array in held.items())]
        return helper.make_graph(closing.nodes, "piece", inputs, outputs, constants)

    def versions(self, opset: int) -> tuple[int, ...] | None:
        """Since when its operators are as they are in an opset; None if they aren't there."""
        operators = sorted(Piece("", self.graph({}, None)).operators)
        try:
            return tuple(schema_of(op, opset).since_version for op in operators if not op.partition("::")[2])
        except SpecificationError:
            return None

    def computed(self, opset: int, held: Mapping[str, Array]) -> dict[str, Array] | None:
        """The outputs of the instance; None if they can't be used."""
        try:
            session = self._session(opset)
            made = session.run(self.closing.feeds)
            again = session.run(self.closing.feeds)
            onnx.checker.check_model(self._model(opset, _types(made)), full_check=True)
        except (RefusedError, onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
            return None
        if any(_unfit(array) or flaw_of(array) for array in made.values()):
            return None
        return made if all(np.array_equal(array, again[name]) for name, array in made.items()) else None

    def free(self, opset: int, names: Collection[str], types: Mapping[str, TensorType], beyond: float = 0.0) -> bool:
        """Whether some inputs may have any values of the range that was seen, or a bit beyond."""
        session, generator = self._session(opset), np.random.default_rng(0)
        for _ in range(_OTHERS):
            feeds = {
                name: _other(array, generator, beyond) if name in names else array
                for name, array in self.closing.feeds.items()
            }
            try:
                if _types(session.run(feeds)) != types:
                    return False
            except RefusedError:
                return False
        return True

    def _session(self, opset: int) -> ModelSession:
        return ModelSession(self._model(opset, None), self.closing.outputs)

    def _model(self, opset: int, types: Mapping[str, TensorType] | None) -> onnx.ModelProto:
        graph = self.graph({}, types)
        domains = {operator_of(node).rpartition("::")[0] for node in graph.node}
        return helper.make_model(graph, opset_imports=imports_of(domains, opset), ir_version=IR_VERSION)


def _unfit(array: Array) -> bool:
    """Whether it's large, or of another type than ours."""
    return array.size > MOST or array.dtype.name not in FLOATS + INTEGERS + BOOL


def _types(arrays: Mapping[str, Array]) -> dict[str, TensorType]:
    return {name: TensorType(array.dtype.name, array.shape) for name, array in arrays.items()}


def _other(array: Array, generator: np.random.Generator, beyond: float) -> Array:
    seen = range_of(array)
    made = TensorType(array.dtype.name, array.shape)
    return drawn_values(made, Range(seen[0] - beyond, seen[1] + beyond) if seen is not None else None, generator)


# What models of somebody have: each operator with the types and values that were seen when it was computed.


_FREE = 8
"""Elements that a constant of real numbers has at least to be tried with other values: it's a weight."""


def harvest(paths: Iterable[Path]) -> tuple[Instance, ...]:
    """Learn of models; a model that was generated is one as well.

    Args:
        paths: ONNX files.

    Raises:
        UsageError: if one can't be read or computed.
    """
    return spread(item for path in paths for item in _instances(opened(path)))


def _instances(model: OpenedFile) -> Iterator[Instance]:
    seen = set()
    for op, case in _cases(model):
        key = (op, tuple((array.dtype.name, array.shape) for array in case.feeds.values()), *map(str, case.nodes))
        if key not in seen:
            seen.add(key)
            item = tried(op, case, model.name)
            if item is not None:
                yield item


def _cases(model: OpenedFile) -> Iterator[tuple[str, Closing]]:
    for unit in units_of(model):
        feeds = {name: model.values[name] for name in unit.reads}
        held = []
        for name in dict.fromkeys(name for node in unit.nodes for name in read_by(node)):
            if name in model.constants:
                array = model.constant(name)
                if array.dtype.name in REALS and array.size > _FREE:
                    feeds[name] = array
                else:
                    held.append(model.constants[name])
        sizes = [array.size for array in feeds.values()] + [model.values[name].size for name in unit.makes]
        if max(sizes, default=0) <= MOST:
            yield unit.op, Closing(list(unit.nodes), held, feeds, list(unit.makes))
