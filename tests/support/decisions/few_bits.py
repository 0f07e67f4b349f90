"""What few bits explain, and which tensors of a network in few bits are pairs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

import numpy as np

from conrepair.diagnosis.localization.align import quantized_pairs
from conrepair.diagnosis.localization.align.layout import layouts
from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.judge.doubtful import _unexplained
from conrepair.diagnosis.localization.judge.judgement import Judged
from conrepair.diagnosis.localization.judge.quantization import QuantizationErrors, beyond_drawn, has_right_scales
from conrepair.diagnosis.localization.judge.quantization_notes import quantization_notes
from conrepair.diagnosis.localization.run.measurement import Cut, CutOff
from conrepair.ground.graph.layer_graph import LayerGraph, Node, Parameter, Quantization, Tensor
from decisions.decision import Decision

__all__ = ["DECISIONS"]

_SHAPE = (4, 4)
_PLAIN = layouts(_SHAPE, _SHAPE)[0]
_DRAWN = np.random.default_rng(0).normal(size=(40, 50))


def _weight(bits: int, scale: float, values: np.ndarray = _DRAWN) -> Parameter:
    return Parameter("w", values.shape, "int8", lambda: values, bits, (scale,))


def _likeness(worst: float, share: float = 1.0, bits: int = 8) -> str:
    """The error below which tensors are the same, where outputs are off by some, and so many of them in few bits."""
    names = [f"t{place}" for place in range(100)]
    few = Quantization(0.1, 0)
    tensors = {
        name: Tensor(name, _SHAPE, "int8", few if place < 100 * share else None) for place, name in enumerate(names)
    }
    weight = {"weight": _weight(bits, np.abs(_DRAWN).max() / (2 ** (bits - 1) - 1))}
    graph = LayerGraph((), (), tensors, (Node("n", "n", "MatMul", "", (), (), {}, weight),))
    side: Any = SimpleNamespace(place={"t0": 0}, names=names, graph=graph, output_names={"t0": "t0"})
    with mock.patch.object(quantized_pairs, "partners", return_value=[("t0", "t0")]):
        found = quantized_pairs.likeness_of(side, side, cast("Any", _Told({(0, 0): worst})), (side, side))
    return f"{found.error:.3g}"


class _Told:
    """Errors of two tensors each, and of each the nearest."""

    def __init__(self, errors: dict[tuple[int, int], float], nearest: float | None = None) -> None:
        self.error = lambda row, column: errors[row, column]
        own = errors.get((1, 1), 0.0)
        near = own if nearest is None else nearest
        rows, columns = [errors[0, 0], near, 0.0], [errors[0, 0], own, near]
        self._nearest = (np.array([0, 2, -1]), np.array(rows)), (np.array([0, 1, 1]), np.array(columns))

    def possible(self, *_: int) -> bool:
        return True

    def layout(self, *_: int) -> Any:
        return _PLAIN

    def nearest(self) -> Any:
        return self._nearest


def _near(error: float, output: float | None = None, nearest: float | None = None) -> str:
    """What is paired with a tensor that's off by some, where the output, if it's a guess, is off by another."""
    names = ["t0", "t1", "t2"]
    graph = SimpleNamespace(outputs=("t0",), inputs=())
    side: Any = SimpleNamespace(place={name: place for place, name in enumerate(names)}, names=names, graph=graph)
    pairs = [Pair("t0", "t0", _PLAIN, 1.0 if output is None else 0.5, ""), Pair("t1", "t1", _PLAIN, 0.5, "")]
    told = {(0, 0): output or 0.0, (1, 1): error, (1, 2): nearest or error}
    found = quantized_pairs.near_pairs_of(pairs, cast("Any", _Told(told, nearest)), (side, side))
    return next((pair.target for pair in found if pair.source == "t1"), "none")


def _explained(beyond: float, *, drawn: bool = False, steps: float = 1.0) -> str:
    """What the bits of a tensor explain, of which a share of a half is beyond its range."""
    step = steps * 4 / 255
    tensors = {"q": Tensor("q", _SHAPE, "uint8", Quantization(step, 128)), "r": Tensor("r", _SHAPE, "float32")}
    graph = LayerGraph(("r",), ("q",), tensors, (Node("n", "n", "QuantizeLinear", "", ("r",), ("q",)),))
    cut_off = CutOff(-2.0, 2.0, beyond, _lost=1.0, _squares=4.0)
    cut = Cut(Pair("s", "q", _PLAIN, 1.0, ""), cut_off=cut_off if beyond else None)
    cut.introduced.add(values := np.full(_SHAPE, 2.0, np.float32), values)
    return f"{QuantizationErrors(graph, [cut], drawn=drawn).expected(cut, (), ('q',)):.2g}"


def _beyond(count: int, beyond: float) -> float:
    pair = Pair("s", "t", _PLAIN, 1.0, "")
    return beyond_drawn([Cut(pair, cut_off=CutOff(-1.0, 1.0, beyond)) for _ in range(count)])


def _right_scale(relative: float) -> bool:
    return has_right_scales(_DRAWN, _weight(8, (1 + relative) * np.abs(_DRAWN).max() / 127))


def _notes(graph: LayerGraph, *judged: Judged) -> bool:
    return bool(quantization_notes(graph, judged))


def _would_gain(times: float) -> bool:
    values = np.ones(_SHAPE)
    node = Node("n", "n", "MatMul", "", ("r",), ("y",), {}, {"weight": _weight(8, times / 127, values)})
    return _notes(LayerGraph((), (), {}, (node,)))


def _is_wide(times: float) -> bool:
    tensors = {"q": Tensor("q", _SHAPE, "int8", Quantization(times / 127, 0)), "r": Tensor("r", _SHAPE, "float32")}
    node = Node("n", "n", "QuantizeLinear", "", ("r",), ("q",))
    cut = Cut(Pair("s", "q", _PLAIN, 1.0, ""))
    cut.introduced.add(np.ones(_SHAPE), np.ones(_SHAPE))
    return _notes(LayerGraph(("r",), ("q",), tensors, (node,)), Judged(cut, 0.0, 0.0, 0.0, guilty=True))


def _wrong_weight(times: float) -> bool:
    limit = float(np.abs(_DRAWN).max()) / 127 / 12**0.5
    signs = np.where(np.arange(_DRAWN.size).reshape(_DRAWN.shape) % 2, 1.0, -1.0)
    return bool(_unexplained(_DRAWN, _weight(8, 0.1, _DRAWN + times * limit * signs)))


DECISIONS = [
    Decision("outputs off by {}, all in few bits: how near is the same", _likeness, (0.02, 0.2, 2.0)),
    Decision(
        "outputs off by {}, weights alone in few bits: how near", lambda x: _likeness(x, 0.0), (0.01, 0.06, 2.0)
    ),
    Decision("outputs off by 2, a share of {} in few bits: how near", lambda x: _likeness(2.0, x), (0.18, 0.35)),
    Decision("outputs off by 2, weights in {} bits: how near", lambda x: _likeness(2.0, bits=int(x)), (2, 3, 5)),
    Decision(
        "outputs off by 1e-3, weights in 3 bits, {} of activations: the same", lambda x: _likeness(1e-3, x, 3), (0,)
    ),
    Decision("a guess with a relative error of {} is kept as", _near, (0.07, 0.14)),
    Decision("a guess off by {}, where the output is by 0.05", lambda x: _near(x, 0.05), (0.14, 0.28)),
    Decision("a guess off by {}, where the output is by 1", lambda x: _near(x, 1.0), (0.6, 0.95)),
    Decision("a guess off by {}, where another is by 0.02", lambda x: _near(x, None, 0.02), (0.021, 0.035, 0.07)),
    Decision("explained of values {} times a range", _explained, (1.1, 1.8)),
    Decision("the same, of drawn inputs", lambda x: _explained(x, drawn=True), (1.4, 2.8)),
    Decision("explained by steps {} times as coarse as needed", lambda x: _explained(0.0, steps=x), (22.0, 45.0)),
    Decision(
        "times that drawn values may be beyond, {} tensors being 3 times", lambda x: _beyond(int(x), 3.0), (3, 5)
    ),
    Decision("times that drawn values may be beyond, 9 tensors being {} times", lambda x: _beyond(9, x), (0.5, 6.0)),
    Decision("a scale off by {} is right", _right_scale, (1.4e-3, 2.8e-3)),
    Decision("a scale for each channel would round {} times less: said", _would_gain, (1.4, 2.8)),
    Decision("a range {} times the values: said", _is_wide, (5.6, 11.0)),
    Decision("a weight off by {} times what its bits explain is wrong", _wrong_weight, (1.4, 2.8)),
]
