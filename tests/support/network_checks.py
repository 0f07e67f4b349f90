"""What every network must do, whichever framework it is of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import node_functions
import numpy as np
import numpy.typing as npt

from conrepair.formats.models.runnable import Runnable
from conrepair.formats.networks.network import Network
from conrepair.ground.graph.operators import OPERATORS

Array = npt.NDArray[Any]
Feeds = Mapping[str, Array]


def named(network: Network, feeds: Feeds) -> dict[str, Array]:
    """A runnable's feeds by the graph's names."""
    return {network.input_names[name]: value for name, value in feeds.items()}


def observable(network: Network, *, real: bool = False) -> list[str]:
    graph = network.graph
    computed = {name for node in graph.nodes for name in node.outputs}
    return [
        name
        for name, tensor in graph.tensors.items()
        if tensor.observable and name in computed and (tensor.is_real or not real)
    ]


def captured(network: Network, feeds: Feeds) -> dict[str, Array]:
    """Every observable tensor, the inputs too."""
    given = named(network, feeds)
    segment = network.segment(list(given), observable(network))
    assert set(segment.needs) <= set(given)
    return {**given, **segment.run(given)}


def distance(reference: Array, candidate: Array) -> float:
    """Of the largest difference, relative to the largest number."""
    assert reference.shape == candidate.shape, (reference.shape, candidate.shape)
    if not reference.size:
        return 0.0
    one, two = np.asarray(reference, np.float64), np.asarray(candidate, np.float64)
    if not np.array_equal(np.isfinite(one), np.isfinite(two)):
        return float("inf")
    one, two = one[np.isfinite(one)], two[np.isfinite(two)]
    return float(np.abs(one - two).max(initial=0) / max(np.abs(one).max(initial=0), 1e-30))


def check_outputs(network: Network, runnable: Runnable, feeds: Feeds, tolerance: float = 1e-5) -> None:
    """What is captured at the outputs is what the framework gives; shapes and types are those that were said."""
    values = captured(network, feeds)
    expected = runnable.run(feeds)
    assert list(expected) == list(network.output_names)
    assert tuple(network.output_names[name] for name in expected) == network.graph.outputs
    for name, array in expected.items():
        assert distance(array, values[network.output_names[name]]) <= tolerance, name
    for name, tensor in network.graph.tensors.items():
        if name in values and tensor.shape is not None:
            assert (values[name].shape, values[name].dtype.name) == (tensor.shape, tensor.dtype), name


def check_cuts(network: Network, feeds: Feeds, tolerance: float = 1e-5) -> None:
    """Every piece alone gives what the whole does."""
    values = captured(network, feeds)
    wanted, cuts = observable(network), observable(network, real=True)
    again = network.segment([*network.graph.inputs, *cuts], wanted).run(values)
    assert list(again) == wanted
    for name in wanted:
        assert distance(values[name], again[name]) <= tolerance, name


def check_readers_get_what_is_fed(network: Network, feeds: Feeds) -> None:
    """A changed value changes what reads it directly, and neither itself nor what lies behind the next cut."""
    values = captured(network, feeds)
    wanted, cuts = observable(network), observable(network, real=True)
    graph, changes, read = network.graph, 0, 0
    segment = network.segment([*graph.inputs, *cuts], wanted)
    unchanged = segment.run(values)
    for changed in cuts:
        with np.errstate(over="ignore"):  # what's masked is as low as a number can be
            fed = {**values, changed: values[changed] * np.array(1.5, values[changed].dtype) + 1}
        result = segment.run({name: fed[name] for name in segment.needs})
        readers = _fed_by(network, changed, set(cuts))
        different = {name for name in wanted if distance(unchanged[name], result[name]) > 1e-6}
        assert different <= readers, (changed, different - readers)
        changes += bool(different)
        read += bool(readers)
    assert changes >= 0.7 * read


def _fed_by(network: Network, changed: str, cuts: set[str]) -> set[str]:
    reached, found = {changed}, set()
    for node in network.graph.nodes:
        if reached & set(node.inputs):
            found.update(node.outputs)
            reached.update(set(node.outputs) - cuts)
    return found


def check_random_cuts(network: Network, feeds: Feeds, seed: int, tolerance: float = 1e-5) -> None:
    generator = np.random.default_rng(seed)
    values = captured(network, feeds)
    cuts, wanted = observable(network, real=True), observable(network)
    fed = [name for name in cuts if generator.random() < 0.4]
    some = [name for name in wanted if generator.random() < 0.4] or wanted[-1:]
    segment = network.segment([*network.graph.inputs, *fed], some)
    assert segment.wanted == tuple(some)
    assert set(segment.needs) <= {*network.graph.inputs, *fed}
    result = segment.run({name: values[name] for name in segment.needs})
    for name in some:
        assert distance(values[name], result[name]) <= tolerance, name


def check_vocabulary(network: Network) -> None:
    """Attributes and parameters are those of the vocabulary; each tensor comes from one node, in order."""
    known = set(network.graph.inputs)
    names = [node.name for node in network.graph.nodes]
    assert len(names) == len(set(names))
    for node in network.graph.nodes:
        assert set(filter(None, node.inputs)) <= known, node
        assert not known & set(node.outputs), node
        known.update(node.outputs)
        for parameter in node.parameters.values():
            numbers = parameter.numpy()
            assert numbers.shape == parameter.shape, (node, parameter)
            assert not isinstance(numbers.dtype, np.dtypes.ObjectDType)
        for value in node.attributes.values():
            assert value is None or isinstance(value, (bool, int, float, str, tuple)), (node, value)
        if node.op in OPERATORS:
            operator = OPERATORS[node.op]
            assert set(node.attributes) == set(operator.attributes), node
            assert set(node.parameters) <= set(operator.parameters), node
    assert known == set(network.graph.tensors)


def check_functions(network: Network, feeds: Feeds, tolerance: float = 2e-5) -> set[str]:
    """Nodes compute what the vocabulary says of their attributes and parameters.

    Returns:
        The operators that were computed.
    """
    values = captured(network, feeds)
    checked = set()
    for node in network.graph.nodes:
        if any(name and name not in values for name in node.inputs):
            continue
        result = node_functions.compute(node, [values[name] for name in node.inputs if name])
        if result is None:
            continue
        name, result = node.outputs[0], result[0]
        if name in values:
            assert distance(values[name], result) <= tolerance, node
            checked.add(node.op)
        else:
            shape = network.graph.tensors[name].shape
            assert shape is None or shape == result.shape, node
            values[name] = result.astype(network.graph.tensors[name].dtype)
            checked.add(node.op)
    return checked
