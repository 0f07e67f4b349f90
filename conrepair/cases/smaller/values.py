"""Simpler inputs."""

from __future__ import annotations

from onnx import numpy_helper

from conrepair.cases.case import Array
from conrepair.cases.draft import Draft
from conrepair.cases.smaller.numbers import levels

__all__ = ["VALUES", "WEIGHTS", "put_weight", "weights"]


# Simpler weights; one number for all of them is among what's simpler.


def weights(draft: Draft) -> dict[str, Array]:
    """Arrays by name."""
    return {item.name: numpy_helper.to_array(item) for item in draft.model.graph.initializer}


def put_weight(draft: Draft, name: str, array: Array) -> None:
    """Put another array in the place of one.

    Args:
        draft: Changed in place.
        name: Of a weight.
        array: In its type.
    """
    item = next(item for item in draft.model.graph.initializer if item.name == name)
    item.CopyFrom(numpy_helper.from_array(array, name))


WEIGHTS = levels(weights, put_weight)


def _put(draft: Draft, name: str, array: Array) -> None:
    draft.inputs[name] = array


VALUES = levels(lambda draft: draft.inputs, _put)
