"""All depthwise kernels transposed: what's behind the first of them stands transposed, and that's said."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import localizations
import numpy as np
from localizing import localize_networks
from onnx_networks import drawn, written
from small_models import model_of

from conrepair.diagnosis.localization.align.layout import Layout
from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.located import exchanged_behind
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.result import LocatedFault
from conrepair.formats.onnx.read.network import open_network
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.graph.kinds import Kind

_TEXT = """depthwise (float[4, 3, 12, 12] image) => (float[4, 5] y) {
    a = Conv <pads = [1, 1, 1, 1]> (image, first)
    b = Relu (a)
    c = Conv <pads = [1, 1, 1, 1], group = 6> (b, d1)
    d = Relu (c)
    e = Conv (d, p1)
    f = Conv <pads = [1, 1, 1, 1], group = 6> (e, d2)
    g = Relu (f)
    h = Conv (g, p2)
    i = GlobalAveragePool (h)
    j = Flatten (i)
    y = MatMul (j, dense)
}"""


def test_layouts_that_exchange_axes_of_a_picture() -> None:
    shape = (4, 6, 8, 8)
    for axes, expected in [
        ((0, 1, 2, 3), False), ((0, 2, 3, 1), False), ((0, 3, 1, 2), False),
        ((0, 1, 3, 2), True), ((0, 3, 2, 1), True), ((0, 2, 1), False),
    ]:  # fmt: skip
        view = tuple(shape[axis] for axis in sorted(axes))
        layout = Layout(view, view, axes, tuple(view[axis] for axis in axes))
        assert layout.exchanges is expected, axes


def test_what_stands_exchanged_behind_changed_weights_is_said() -> None:
    shape = (4, 6, 8, 8)
    exchanged, plain = (Layout(shape, shape, axes, shape) for axes in ((0, 1, 3, 2), (0, 1, 2, 3)))
    (fault,) = localizations.made(3, {1: 0.5}).faults
    changed = dataclasses.replace(fault, kind=Kind.PARAMETERS)

    def told(layout: Layout, *faults: LocatedFault) -> list[str]:
        return list(exchanged_behind([Pair(fault.source_tensor, fault.target_tensor, layout, 1.0, "")], faults))

    (words,) = told(exchanged, changed)
    assert words.startswith(f"from `{fault.target_tensor}` on all tensors have their axes exchanged")
    assert "[4, 6, 8, 8] transposed by [0, 1, 3, 2]" in words
    assert not told(plain, changed)
    assert not told(exchanged, dataclasses.replace(changed, kind=Kind.STRUCTURE))  # a Transpose says so itself


def test_kernels_that_are_all_named_need_no_more_words(tmp_path: Path) -> None:
    weights = {
        "first": drawn(6, 3, 3, 3, seed=1), "d1": drawn(6, 1, 3, 3, seed=2), "p1": drawn(6, 6, 1, 1, seed=3),
        "d2": drawn(6, 1, 3, 3, seed=4), "p2": drawn(6, 6, 1, 1, seed=5), "dense": drawn(6, 5, seed=6),
    }  # fmt: skip
    wrong = weights | {name: weights[name].swapaxes(2, 3).copy() for name in ("d1", "d2")}
    inputs = [TensorSpec("image", (4, 3, 12, 12), "float32")]
    sides = [
        open_network(model_of("onnx", written(tmp_path / f"{place}.onnx", _TEXT, given)), inputs)
        for place, given in enumerate((weights, wrong))
    ]
    feeds = {"image": np.random.default_rng(0).normal(size=(4, 3, 12, 12)).astype(np.float32)}
    (tmp_path / "work").mkdir()
    result = localize_networks(*sides, [(feeds, feeds)], tmp_path / "work", Options()).result
    assert {fault.kind for fault in result.faults} == {Kind.PARAMETERS}
    assert len({layer for fault in result.faults for _, layer in fault.differences}) == 2
    assert not result.notes
