"""ONNX operators through the importer, against ONNX Runtime with optimizations disabled."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import onnx
import onnx_ir

from conrepair.ground.runtime.onnx_session import open_session
from conrepair_onnx_keras.importer.graph import import_model

SEED = 20261120


def random(*shape: int, dtype: str = "float32", low: float = -2.0, high: float = 2.0, seed: int = SEED) -> Any:
    """A reproducible array; integers are drawn from [low, high)."""
    generator = np.random.default_rng(seed)
    if dtype == "bool":
        return generator.integers(0, 2, shape).astype(bool)
    if "int" in dtype:
        return generator.integers(int(max(low, 0) if dtype.startswith("u") else low), int(high), shape).astype(dtype)
    return generator.uniform(low, high, shape).astype(dtype)


def node_model(
    operator: str,
    feeds: Mapping[str, Any],
    constants: Mapping[str, Any] | None = None,
    *,
    inputs: Sequence[str] | None = None,
    outputs: int = 1,
    opset: int = 21,
    domain: str = "",
    symbolic: Mapping[str, Sequence[int | str]] | None = None,
    **attributes: Any,
) -> onnx.ModelProto:
    """A model of one node.

    Args:
        operator: Its type.
        feeds: Example arrays of the graph's inputs.
        constants: Arrays of initializers.
        inputs: Order of the node's inputs ("" for one left out); default: feeds, then constants.
        outputs: Number of outputs.
        opset: Of ONNX's own domain.
        domain: Of the operator.
        symbolic: Shapes of inputs, where they aren't those of the arrays.
        attributes: Of the node.
    """
    constants = dict(constants or {})
    names = list(inputs) if inputs is not None else [*feeds, *constants]
    results = [f"output_{index}" for index in range(outputs)]
    node = onnx.helper.make_node(operator, names, results, name=f"the_{operator}", domain=domain, **attributes)
    return _model([node], feeds, constants, results, symbolic or {}, opset)


def text_model(
    body: str,
    feeds: Mapping[str, Any],
    constants: Mapping[str, Any] | None = None,
    *,
    outputs: Sequence[str] = ("y",),
    opset: int = 21,
    symbolic: Mapping[str, Sequence[int | str]] | None = None,
) -> onnx.ModelProto:
    """A model of several nodes.

    Args:
        body: The nodes as ONNX's parser reads them: "y = Relu (x)", one after the other.
        feeds: As `node_model` has it; so are `constants`, `opset` and `symbolic`.
        constants: Arrays of initializers.
        outputs: Names of the graph's outputs.
        opset: Of ONNX's own domain.
        symbolic: Shapes of inputs, where they aren't those of the arrays.
    """
    nodes = onnx.parser.parse_graph(f"case () => () {{ {body} }}").node
    return _model(nodes, feeds, constants or {}, outputs, symbolic or {}, opset)


def _model(
    nodes: Sequence[onnx.NodeProto],
    feeds: Mapping[str, Any],
    constants: Mapping[str, Any],
    outputs: Sequence[str],
    symbolic: Mapping[str, Sequence[int | str]],
    opset: int,
) -> onnx.ModelProto:
    given = {
        name: onnx.helper.make_tensor_value_info(
            name,
            onnx.helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype),
            symbolic.get(name, np.asarray(array).shape),
        )
        for name, array in feeds.items()
    }
    graph = onnx.helper.make_graph(
        nodes,
        "case",
        list(given.values()),
        [given.get(name, onnx.ValueInfoProto(name=name)) for name in outputs],
        [onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    domains = sorted({node.domain for node in nodes} - {""})
    imports = [onnx.helper.make_opsetid("", opset), *(onnx.helper.make_opsetid(domain, 1) for domain in domains)]
    model = onnx.helper.make_model(graph, opset_imports=imports, ir_version=10)
    return onnx.shape_inference.infer_shapes(model)


def run_onnx(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[Any]:
    """What ONNX Runtime says, with all optimizations disabled."""
    session = open_session(model.SerializeToString(), threads=1)
    return list(session.run(None, {name: np.asarray(array) for name, array in feeds.items()}))


def imported(model: onnx.ModelProto, **options: Any) -> keras.Model:
    """The Keras model, after a round through its serialized form if it holds what has made none in this process."""
    network = import_model(onnx_ir.from_proto(model), **options)
    kinds = {_kind(operation) for operation in network.operations}
    if kinds <= _SERIALIZED:
        return network
    again = keras.models.model_from_json(network.to_json())
    again.set_weights(network.get_weights())
    _SERIALIZED.update(kinds)
    return again


_SERIALIZED = set[Any]()
"""Kinds of operations that have been written and read again."""


def _kind(operation: Any) -> tuple[Any, ...]:
    """An operation's class, and of what type the values are that it's made again from."""
    return type(operation), *((name, _type(value)) for name, value in operation.get_config().items())


def _type(value: Any) -> Any:
    if isinstance(value, dict):
        return (*((name, _type(item)) for name, item in value.items()),)
    return tuple(dict.fromkeys(map(_type, value))) if isinstance(value, list | tuple) else type(value)


def run_keras(network: keras.Model, feeds: Mapping[str, Any], *, eagerly: bool = False) -> list[Any]:
    """All outputs, in order; computed by a graph, unless they're wanted without."""
    network.run_eagerly = eagerly
    arrays = [np.asarray(array) for array in feeds.values()]
    return [
        np.asarray(leaf)
        for leaf in keras.tree.flatten(network.predict_on_batch(arrays if len(arrays) > 1 else arrays[0]))
    ]


def check_model(
    model: onnx.ModelProto, feeds: Mapping[str, Any], *,
    rtol: float = 1e-4, atol: float = 1e-5, eagerly: bool = False, **options: Any,
) -> keras.Model:  # fmt: skip
    """Import a model and assert that it answers as ONNX Runtime does: shapes, element types, values."""
    network = imported(model, **options)
    expected, got = run_onnx(model, feeds), run_keras(network, feeds, eagerly=eagerly)
    assert len(expected) == len(got)
    for one, two in zip(expected, got, strict=True):
        assert (one.shape, one.dtype) == (two.shape, two.dtype)
        if one.dtype.kind == "f":
            np.testing.assert_allclose(two, one, rtol=rtol, atol=atol)
        else:
            np.testing.assert_array_equal(two, one)
    return network


def check(
    operator: str, feeds: Mapping[str, Any], constants: Mapping[str, Any] | None = None, *,
    rtol: float = 1e-4, atol: float = 1e-5, **settings: Any,
) -> keras.Model:  # fmt: skip
    """`check_model` of one node; see `node_model`.

    Its layers have been called on symbols when it was imported, so a graph of it tells nothing more.
    """
    return _checked(node_model(operator, feeds, constants, **settings), feeds, rtol, atol)


def check_text(
    body: str, feeds: Mapping[str, Any], constants: Mapping[str, Any] | None = None, *,
    rtol: float = 1e-4, atol: float = 1e-5, **settings: Any,
) -> keras.Model:  # fmt: skip
    """`check_model` of several nodes, as `check` does; see `text_model`."""
    return _checked(text_model(body, feeds, constants, **settings), feeds, rtol, atol)


# --- many cases as one network -------------------------------------------------------------------------------

_Case = tuple[onnx.ModelProto, Mapping[str, Any]]
_PARTS = 40  # of a network
_waiting: list[dict[tuple[Any, ...], list[_Case]]] = []


def together(names: str | Sequence[str], values: Iterable[Any]) -> Callable[..., Callable[..., None]]:
    """As `pytest.mark.parametrize`, but for one test: what `check` is given are parts of one network.

    They have nothing to do with one another, and all are imported, and run, at once. If they differ, each is
    looked at alone, so that the one that's wrong fails. A test of it can't look at the network itself.

    Args:
        names: Of the arguments that the values are of.
        values: For each case one, or as many as there are names.
    """
    keys = [names] if isinstance(names, str) else list(names)
    cases = [dict(zip(keys, (value,) if len(keys) == 1 else value, strict=True)) for value in values]

    def of_one(test: Callable[..., None]) -> Callable[..., None]:
        def all_cases(**others: Any) -> None:
            with _parts_of_one():
                for case in cases:
                    test(**case, **others)

        all_cases.__name__, all_cases.__doc__ = test.__name__, test.__doc__
        return all_cases

    return of_one


@contextlib.contextmanager
def _parts_of_one() -> Iterator[None]:
    """Let `check` wait; who began looks at all cases at the end."""
    if _waiting:
        yield
        return
    _waiting.append(defaultdict(list))
    try:
        yield
    finally:
        (groups,) = _waiting
        _waiting.clear()
    for (_, *tolerances), cases in groups.items():
        for begin in range(0, len(cases), _PARTS):
            _checked_together(cases[begin : begin + _PARTS], *tolerances)


def _checked_together(cases: Sequence[_Case], rtol: float, atol: float) -> None:
    try:
        check_model(*_joined(cases), rtol=rtol, atol=atol, eagerly=True)
    except Exception:
        for model, feeds in cases:
            check_model(model, feeds, rtol=rtol, atol=atol, eagerly=True)
        raise


def _checked(model: onnx.ModelProto, feeds: Mapping[str, Any], rtol: float, atol: float) -> keras.Model:
    if _waiting:
        versions = tuple((item.domain, item.version) for item in model.opset_import)
        _waiting[0][versions, rtol, atol].append((model, feeds))
        return None
    return check_model(model, feeds, rtol=rtol, atol=atol, eagerly=True)


def _joined(cases: Sequence[_Case]) -> _Case:
    """A network of which each case is a part, with names of its own."""
    whole, given = onnx.ModelProto(), dict[str, Any]()
    for place, (model, feeds) in enumerate(cases):
        part = onnx.compose.add_prefix(model, f"part{place}_")
        for value in (*part.graph.input, *part.graph.output, *part.graph.value_info):
            for size in value.type.tensor_type.shape.dim:
                if size.HasField("dim_param"):
                    size.dim_param = f"part{place}_{size.dim_param}"
        whole.MergeFrom(part)
        given.update((f"part{place}_{name}", array) for name, array in feeds.items())
    del whole.opset_import[len(cases[0][0].opset_import) :]
    return whole, given


def layers_of(network: keras.Model) -> list[str]:
    """Class names of the operations, inputs and the naming of outputs left out."""
    kinds = [type(operation).__name__ for operation in network.operations]
    return [kind for kind in kinds if kind not in {"InputLayer", "Identity"}]
