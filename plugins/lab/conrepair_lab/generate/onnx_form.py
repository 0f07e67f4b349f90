"""A draft as an ONNX model, and that in ONNX Runtime, in this process."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from conrepair.formats.onnx.load.border import plain_border
from conrepair.ground.runtime.onnx_session import open_session
from conrepair_lab.generate.bodies import Body
from conrepair_lab.generate.graph import Draft, Tensor
from conrepair_lab.generate.pieces import operator_of
from conrepair_lab.generate.settings.tensors import element_type, numpy_type
from conrepair_lab.generate.symbolic import Open
from conrepair_lab.generate.values.drawn import drawn_values

_NARROW = "tensor(bfloat16)"

Arrays = Mapping[str, np.ndarray[Any, Any]]


class RefusedError(Exception):
    """ONNX Runtime doesn't take a network, or doesn't compute it; the text is its own."""


class ModelSession:
    """A model that is loaded, to be run again and again; bfloat16 comes and goes as what NumPy has.

    Args:
        model: The network.
        names: Of its outputs, in order.
        optimized: Whether the runtime may rewrite the graph.

    Raises:
        RefusedError: if ONNX Runtime doesn't take it.
    """

    def __init__(self, model: onnx.ModelProto, names: Collection[str], *, optimized: bool = False) -> None:
        self._names = tuple(names)
        self._narrow: dict[str, np.dtype[Any]] = {}
        text = model.SerializeToString()
        self._session = _opened(text, optimized)
        ends = (*self._session.get_inputs(), *self._session.get_outputs())
        if narrow := {value.name for value in ends if value.type == _NARROW}:
            plain = onnx.ModelProto.FromString(text)
            for value in plain.graph.output:
                if value.name in narrow:
                    value.type.tensor_type.elem_type = onnx.TensorProto.BFLOAT16
            border = plain_border(plain)
            self._narrow = {name: numpy_type(dtype) for name, dtype in border.narrow.items()}
            self._session = _opened(plain.SerializeToString(), optimized)

    def run(self, feeds: Arrays) -> dict[str, np.ndarray[Any, Any]]:
        """Compute the outputs, by name.

        Args:
            feeds: By input.

        Raises:
            RefusedError: if ONNX Runtime doesn't compute it.
        """
        try:
            found = self._session.run(None, {name: self._fed(name, array) for name, array in feeds.items()})
        except Exception as error:  # the runtime's errors have no common class
            raise RefusedError(str(error)) from error
        narrow = self._narrow
        return {
            name: array.astype(narrow[name]) if name in narrow else array
            for name, array in zip(self._names, found, strict=True)
        }

    def _fed(self, name: str, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """A copy: there are operators that write into what they read."""
        narrow = name in self._narrow and array.dtype == self._narrow[name]
        return array.astype(np.float32) if narrow else np.array(array)


def run(
    model: onnx.ModelProto, feeds: Arrays, names: Collection[str], *, optimized: bool = False
) -> dict[str, np.ndarray[Any, Any]]:
    """Compute a model's outputs, by name, once: as with `ModelSession`."""
    return ModelSession(model, names, optimized=optimized).run(feeds)


def accepted(model: onnx.ModelProto, draft: Draft) -> bool:
    """Whether ONNX Runtime takes a model of one operator."""
    generator = np.random.default_rng(0)
    feeds = {name: drawn_values(tensor.type, tensor.values, generator) for name, tensor in draft.sources.items()}
    try:
        run(model, feeds, draft.outputs())
    except RefusedError:
        return False
    return True


def _opened(text: bytes, optimized: bool) -> Any:
    try:
        return open_session(text, threads=1, quiet=True, optimized=optimized)
    except Exception as error:  # the runtime's errors have no common class
        raise RefusedError(str(error)) from error


IR_VERSION = 10

_VERSIONS = {"ai.onnx.ml": 5}
"""Of domains; others have 1."""


_MANY = 10_000
"""Types of tensors that are kept as they're written."""


def model_of(
    draft: Draft,
    weights: Mapping[str, np.ndarray[Any, Any]],
    shown: Collection[str] | None = None,
    *,
    typed: bool = True,
    sizes: Open | None = None,
) -> onnx.ModelProto:
    """Write a draft as a model.

    Args:
        draft: The network.
        weights: By name, sources that are initializers; others are inputs.
        shown: Names of its outputs; those of the draft for None.
        typed: Whether outputs say their types; a runtime infers them.
        sizes: Those that are left open, by input and output.
    """
    nodes: list[onnx.NodeProto] = []
    constants: list[onnx.TensorProto] = []
    for place, node in enumerate(draft.nodes):
        if node.piece is None:
            nodes.append(_node(node.op, node.inputs, node.outputs, node.attributes, place))
        else:
            inner, own = node.piece.written(node.inputs, node.outputs, f"n{place}")
            nodes += inner
            constants += own
    inputs = [_value(tensor, sizes) for name, tensor in draft.sources.items() if name not in weights]
    names = draft.outputs() if shown is None else shown
    outputs = [_value(draft.tensors[name], sizes) if typed else onnx.ValueInfoProto(name=name) for name in names]
    arrays = {name: tensor.array for name, tensor in draft.tensors.items() if tensor.array is not None}
    kept = {**arrays, **weights}
    initializers = [numpy_helper.from_array(array, name) for name, array in kept.items() if array is not None]
    graph = helper.make_graph(nodes, "generated", inputs, outputs, [*initializers, *constants])
    imports = imports_of({operator_of(node).rpartition("::")[0] for node in nodes}, draft.opset)
    ir = min(IR_VERSION, helper.find_min_ir_version_for(imports, ignore_unknown=True))  # older releases read it, too
    return helper.make_model(graph, opset_imports=imports, ir_version=ir, producer_name="conrepair")


def imports_of(domains: Collection[str], opset: int) -> list[onnx.OperatorSetIdProto]:
    """The versions of domains that a model has: one of each, so that any operators can stand beside each other.

    Args:
        domains: Of its operators.
        opset: Of the standard's.
    """
    others = (helper.make_opsetid(name, _VERSIONS.get(name, 1)) for name in sorted(set(domains) - {""}))
    return [helper.make_opsetid("", opset), *others]


def _node(
    op: str, inputs: list[str], outputs: list[str], attributes: Mapping[str, Any], place: int
) -> onnx.NodeProto:
    domain, _, name = op.rpartition("::")
    bodies = {key: value for key, value in attributes.items() if isinstance(value, Body)}
    inside = len(inputs) - max((body.outer for body in bodies.values()), default=0)
    node = onnx.NodeProto(
        op_type=name, input=inputs[:inside], output=outputs, name=f"n{place}", domain=domain or None
    )
    for key, value in attributes.items():
        if key in bodies:
            node.attribute.append(helper.make_attribute(key, value.graph(f"n{place}_{key}", inputs[inside:])))
            continue
        kind = onnx.AttributeProto.INTS if isinstance(value, tuple) and not value else None
        node.attribute.append(helper.make_attribute(key, value, attr_type=kind))
    return node


def _value(tensor: Tensor, sizes: Open | None) -> onnx.ValueInfoProto:
    shape = (sizes or {}).get(tensor.name, tensor.type.shape)
    return onnx.ValueInfoProto(name=tensor.name, type=_type(tensor.type.dtype, tuple(shape)))


@lru_cache(_MANY)
def _type(dtype: str, shape: tuple[int | str | None, ...]) -> onnx.TypeProto:
    return helper.make_tensor_type_proto(element_type(dtype), shape)
