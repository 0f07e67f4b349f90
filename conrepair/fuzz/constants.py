"""The same network with inputs that are weights: what importers and optimizers compute when they read it."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from onnx import helper, numpy_helper

from conrepair.cases.case import Case
from conrepair.metrics.ulps import is_number, is_real

__all__ = ["drawn_constants", "with_constants", "with_fed_weights"]

_HALF = 0.5


def with_constants(case: Case, names: Collection[str]) -> Case:
    """A case with some inputs' values in its network.

    Args:
        case: Any.
        names: Of inputs.
    """
    model = case.model
    kept = [item for item in model.graph.input if item.name not in names]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    stored = {item.name for item in model.graph.initializer}
    for name in sorted(set(names) - stored):
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(case.inputs[name]), name))
    return Case.of(model, {name: array for name, array in case.inputs.items() if name not in names}, case.options)


def with_fed_weights(case: Case) -> Case:
    """A case whose real weights are inputs: what's differentiated is differentiated by these, too.

    Args:
        case: Any.
    """
    model = case.model
    graph, fed = model.graph, dict(case.inputs)
    stored = list(graph.initializer)
    del graph.initializer[:]
    for item in stored:
        array = numpy_helper.to_array(item)
        if item.name in fed or not is_real(array):
            graph.initializer.append(item)
            continue
        fed[item.name] = array
        if item.name not in {value.name for value in graph.input}:
            graph.input.append(helper.make_tensor_value_info(item.name, item.data_type, array.shape))
    return Case.of(model, fed, case.options) if len(fed) > len(case.inputs) else case


def drawn_constants(case: Case, generator: np.random.Generator) -> Case:
    """One with some inputs in its network, half of the time all of them.

    Args:
        case: Any.
        generator: By which they're drawn.
    """
    names = [name for name, array in sorted(case.inputs.items()) if is_number(array)]
    if names and generator.random() < _HALF:
        names = [name for name in names if generator.random() < _HALF] or names[:1]
    return with_constants(case, names)
