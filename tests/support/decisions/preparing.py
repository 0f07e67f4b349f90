"""Whether a target is fed with what its source is, and by which recipe."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from conrepair.diagnosis.localization.align.layout import layouts
from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.recipes import hunt as recipe_hunt
from conrepair.diagnosis.localization.recipes import search as recipes
from conrepair.diagnosis.localization.recipes.feeds import RecipeCandidate
from conrepair.diagnosis.localization.recipes.input_relation import Numbers, _in_words, explain_inputs
from conrepair.diagnosis.localization.recipes.preparation import _decided, _Different, _different
from conrepair.diagnosis.localization.recipes.preparation import _in_words as words_of
from conrepair.ground.data.pictures.recipe import Recipe
from conrepair.ground.graph.layer_graph import LayerGraph, Tensor
from decisions.decision import Decision

__all__ = ["DECISIONS"]

_SHAPE = (4, 3, 8, 8)
_PLAIN = layouts(_SHAPE, _SHAPE)[0]
_PAIR = Pair("x", "x", _PLAIN, 1.0, "")
_DRAWN = np.random.default_rng(0)
_RIGHT, _NOISE = _DRAWN.normal(size=_SHAPE), _DRAWN.normal(size=_SHAPE)
_UNEVEN = np.array([0.0, 1.0, 0.0]).reshape(1, 3, 1, 1) / 0.4714  # of which one factor for all leaves 1


def _words(given: np.ndarray) -> str:
    return words_of(_PAIR, ({"x": _RIGHT}, {"x": given}))[1]


def _resized(alike: float) -> bool:
    return "resizing" in _words(alike * _RIGHT + np.sqrt(1 - alike**2) * _NOISE)


def _explained(rest: float) -> bool:
    return "no formula" not in _words(2 * _RIGHT + 2 * rest * _NOISE)


def _one_factor(uneven: float, noise: float = 0.0) -> bool:
    found = explain_inputs(_RIGHT, _RIGHT * (1 + uneven * _UNEVEN) + noise * _NOISE)
    assert found is not None
    return len(found.numbers.matrix) == 1


def _differs(error: float, dtype: str) -> bool:
    graph = LayerGraph(("x",), (), {"x": Tensor("x", _SHAPE, dtype)}, ())
    network = SimpleNamespace(input_names={"x": "x"}, graph=graph, channels="")
    sides: Any = (SimpleNamespace(network=network, feeds={"x": given}) for given in (_RIGHT, _RIGHT * (1 + error)))
    return bool(_different(*sides, Options()))


def _prepared(own: float, sources: float) -> str:
    """How sure it is that another input than its own makes a target right, by the errors with both."""
    none: Any = SimpleNamespace(pairs=())
    different = [_Different(_PAIR, (_PLAIN,), 1.0, 1e-6)]
    found = _decided(({"x": _RIGHT}, {"x": 2 * _RIGHT}), different, (none, none), (own, sources))
    return ", ".join(f"{fault.confidence:g}" for fault in found.faults) or "can't be told"


def _recipe_found(best: float, other: float) -> bool:
    first = RecipeCandidate(Recipe("a", channels="bgr"), error=best)
    start = RecipeCandidate(Recipe("a"), error=other)
    hunt: Any = SimpleNamespace(best=lambda _: [], cut_off=False)
    return recipes._verdict(start, [first, start], hunt, 0, 1e-6).found


def _refined(error: float) -> bool:
    hunt: Any = SimpleNamespace(_feeds=SimpleNamespace(channels=3), _exact=1e-6, _try=lambda *_, **__: None)
    with mock.patch.object(recipe_hunt, "refine_numbers") as refine:
        recipe_hunt.RecipeHunt._refine(hunt, RecipeCandidate(Recipe("a"), error=error))
    return bool(refine.called)


def _ends(rounding: float) -> str:
    """The error at which a search ends."""
    feeds = SimpleNamespace(size=(8, 8), photos=("a", "b"), runs=0)
    with (
        mock.patch.multiple(recipes, PhotoFeeds=lambda *_: feeds, PhotoPixels=mock.DEFAULT),
        mock.patch.object(recipes, "RecipeHunt") as hunt,
    ):
        hunt.return_value.on.return_value = [RecipeCandidate(Recipe("a"), error=0.0)]
        hunt.return_value.best.return_value = []
        run: Any = None
        recipes.search_recipes(run, {"y": np.zeros((2, 1))}, ["a", "b"], run, start=Recipe("a"), rounding=rounding)
    return f"{hunt.call_args.args[3]:.2g}"


def _same(relative: float) -> bool:
    return not _in_words(Numbers((0,), np.array([[1 + relative]]), np.zeros(1), 0.0), 1.0)


DECISIONS = [
    Decision("pictures that correlate by {} are the same one", _resized, (0.35, 0.7)),
    Decision("a formula that leaves {} explains an input", _explained, (7e-3, 1.4e-2)),
    Decision("an input that differs by {} is another one", lambda x: _differs(x, "float32"), (7e-6, 1.4e-5)),
    Decision("one of float16 that differs by {} is another one", lambda x: _differs(x, "float16"), (1.4e-3, 2.8e-3)),
    Decision("one factor for all that leaves {}, where each channel's leave none", _one_factor, (7e-7, 1.4e-6)),
    Decision(
        "one factor for all that leaves {} times what each channel's do",
        lambda x: _one_factor(1e-4 * np.sqrt(x**2 - 1), 1e-4),
        (2.1, 4.2),
    ),
    Decision("a factor off from 1 by {} is none", _same, (7e-4, 1.4e-3)),
    Decision(
        "right with the source's input, {} times worse with its own",
        lambda x: _prepared(1e-4 * x, 1e-4),
        (7, 14),
    ),
    Decision("{} of the error left with the source's input", lambda x: _prepared(1.0, x), (0.35, 0.7)),
    Decision("a recipe that leaves 0.1, another {} times that", lambda x: _recipe_found(0.1, 0.1 * x), (2.1, 4.2)),
    Decision("a recipe that leaves {}, far less than the next one", lambda x: _recipe_found(x, 9.0), (0.18, 0.35)),
    Decision("the error at which a search ends, where rounding is by {}", _ends, (7e-5, 1.4e-4)),
    Decision("numbers that leave {} are varied", _refined, (0.7, 1.4)),
]
