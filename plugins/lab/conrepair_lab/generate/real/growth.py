"""Networks grown from a model of somebody: a piece of it, changed step by step, each step checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import onnx

from conrepair_lab.generate.graph import Draft
from conrepair_lab.generate.growing import Growing
from conrepair_lab.generate.onnx_form import model_of
from conrepair_lab.generate.real.changes import CHANGES, Changing
from conrepair_lab.generate.real.drafting import Base, drafted
from conrepair_lab.generate.real.opened import OpenedFile, Unit, cut, units_of
from conrepair_lab.generate.settings.ports import NotAllowedError, Support
from conrepair_lab.generate.values.search import Settled, Settling

Array = np.ndarray[Any, Any]

_CUTS = 8
"""Pieces of a model that are tried."""

_REFUSED = 6
"""Changes that are tried for each that is made."""


@dataclass(frozen=True, eq=False)
class GrowingModel:
    """A model that networks are grown from.

    Attributes:
        model: As it was opened.
    """

    model: OpenedFile

    @cached_property
    def units(self) -> list[Unit]:
        """What it consists of."""
        return units_of(self.model)


@dataclass
class Grown:
    """A network grown from a model.

    Attributes:
        draft: The network.
        values: Of all its tensors.
        weights: Names of the model's own that are still there.
        changes: Names of those that were made, in order.
        model: Name of the model.
    """

    draft: Draft
    values: Settled
    weights: set[str]
    changes: tuple[str, ...]
    model: str


def grown_from(
    reals: Sequence[GrowingModel],
    growing: Growing,
    support: Support,
    nodes: int,
    changes: int,
    generator: np.random.Generator,
) -> Grown | None:
    """Grow a network from a piece of a model.

    Args:
        reals: Models, of which one is drawn.
        growing: Adds operators; to tensors that are as large as those of the piece, too.
        support: Element types of the runtime; those of `growing` are for what's added.
        nodes: Of the piece, at most.
        changes: How many are made.
        generator: Values are drawn from here.

    Returns:
        The network; None if no piece of the model was valid, and finite, by itself.
    """
    random = growing.random
    real = random.choice(reals)
    for _ in range(_CUTS if real.units else 0):
        base = drafted(real.model, cut(real.units, nodes, random), random, support)
        found = _checked(base.draft, base.values, generator)
        if found is not None:
            return _changed(real, base, found, Changing(growing, support), changes, generator)
    return None


def _changed(
    real: GrowingModel, base: Base, found: Settled, changing: Changing, changes: int, generator: np.random.Generator
) -> Grown:
    random, draft = changing.random, base.draft
    changing.growing.most = max(changing.most, *(tensor.type.elements for tensor in draft.tensors.values()))
    names: list[str] = []
    for _ in range(_REFUSED * changes):
        if len(names) == changes:
            break
        name, new = random.choice(list(CHANGES)), draft.copy()
        try:
            CHANGES[name](changing, new)
        except NotAllowedError:
            continue
        again = _checked(new, found.sources, generator)
        if again is not None:
            draft, found = new, again
            names.append(name)
    weights = base.weights & draft.sources.keys()
    return Grown(draft, found, weights, tuple(names), real.model.name)


def _checked(draft: Draft, kept: dict[str, Array], generator: np.random.Generator) -> Settled | None:
    """Values of a network; None if it isn't valid, finite, and as predicted."""
    if not draft.nodes or not draft.sources or not draft.outputs():
        return None
    fitting = {name: array for name, array in kept.items() if name in draft.sources and _is(draft, name, array)}
    found = Settling(draft, generator).settled(fitting)
    if found is None or not all(_is(draft, name, array) for name, array in found.computed.items()):
        return None
    try:
        onnx.checker.check_model(model_of(draft, {}), full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return None
    return found


def _is(draft: Draft, name: str, array: Array) -> bool:
    return draft.tensors[name].type.describes(array.dtype.name, array.shape)
