"""Try instances in ONNX Runtime: with which opsets they run, and which inputs may have other values.

Nodes are put around an operator so that only tensors of numbers go in and out. A sequence is made of tensors in
front of it and taken apart behind it, an optional likewise; strings are constants, of which an index chooses; numbers
of few bits are cast.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from conrepair.formats.onnx.load.proto_file import read_by
from conrepair_lab.generate.learned.instances import MOST, Instance, plain, range_of, spread
from conrepair_lab.generate.onnx_form import IR_VERSION, ModelSession, RefusedError, imports_of
from conrepair_lab.generate.pieces import Piece, operator_of
from conrepair_lab.generate.real.opened import OpenedFile, opened, units_of
from conrepair_lab.generate.settings.schemas import SpecificationError, schema_of
from conrepair_lab.generate.settings.tensors import BOOL, FLOATS, INTEGERS, REALS, Range, TensorType
from conrepair_lab.generate.values.drawn import drawn_values
from conrepair_lab.generate.values.search import flaw_of

Array = np.ndarray[Any, Any]


@dataclass
class Closing:
    """A graph under completion: nodes around an operator make its inputs and outputs tensors of numbers.

    Attributes:
        nodes: In order.
        constants: Of its own.
        feeds: What its inputs were, by name.
        outputs: Names of its outputs.
    """

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    feeds: dict[str, Array] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)

    def take(self, name: str, kind: onnx.TypeProto, value: Any) -> None:
        """Add an input, with the nodes that make the operator's own input of it.

        Args:
            name: That nodes know it by.
            kind: Its type.
            value: An array, a list of values, or None for nothing.
        """
        if kind.HasField("optional_type"):
            inner = kind.optional_type.elem_type
            if value is None:
                self.nodes.append(helper.make_node("Optional", [], [name], type=inner))
                return
            self.take(f"{name}_given", inner, value)
            self.nodes.append(helper.make_node("Optional", [f"{name}_given"], [name]))
        elif kind.HasField("sequence_type"):
            self._sequence(name, kind.sequence_type.elem_type, value)
        else:
            self._tensor(name, kind.tensor_type.elem_type, np.asarray(value))

    def give(self, name: str, value: Any) -> None:
        """Add outputs, with the nodes that make tensors of numbers of the operator's own outputs.

        Args:
            name: That the node makes it by.
            value: An array, a list of values, or None for nothing.
        """
        if isinstance(value, list):
            self._node("SequenceLength", [name], f"{name}_length")
            self.outputs.append(f"{name}_length")
            if value:
                self._node("SequenceAt", [name, self._constant(f"{name}_last", np.array(-1))], f"{name}_item")
                self.give(f"{name}_item", value[-1])
        elif value is None:
            self._node("OptionalHasElement", [name], f"{name}_is_there")
            self.outputs.append(f"{name}_is_there")
        elif value.dtype.kind in "OUST":
            known = self._constant(f"{name}_known", value.astype(object))
            self._node("Equal", [name, known], f"{name}_same")
            self.outputs.append(f"{name}_same")
        elif value.dtype.name in FLOATS + INTEGERS + BOOL:
            self.outputs.append(name)
        else:
            self._node("Cast", [name], f"{name}_wide", to=TensorProto.FLOAT)
            self.outputs.append(f"{name}_wide")

    def _sequence(self, name: str, kind: onnx.TypeProto, values: Sequence[Any]) -> None:
        names = [f"{name}_{place}" for place in range(len(values))]
        for own, value in zip(names, values, strict=True):
            self.take(own, kind, value)
        if names:
            self._node("SequenceConstruct", names, name)
        else:
            self._node("SequenceEmpty", [], name, dtype=kind.tensor_type.elem_type)

    def _tensor(self, name: str, number: int, value: Array) -> None:
        if number == TensorProto.STRING:
            every = self._constant(f"{name}_every", value.ravel().astype(object))
            self.feeds[f"{name}_which"] = np.arange(value.size).reshape(value.shape)
            self._node("Gather", [every, f"{name}_which"], name)
        elif value.dtype.name in FLOATS + INTEGERS + BOOL:
            self.feeds[name] = value
        else:
            self.feeds[f"{name}_wide"] = value.astype(np.float32)
            self._node("Cast", [f"{name}_wide"], name, to=number)

    def _constant(self, name: str, value: Array) -> str:
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def _node(self, op: str, inputs: Sequence[str], output: str, **attributes: Any) -> None:
        self.nodes.append(helper.make_node(op, inputs, [output], **attributes))


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
