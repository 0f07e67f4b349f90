"""Attributes of two networks that lie in different layouts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx_networks
import pytest

from conrepair.diagnosis.localization.align.layout import Layout, layouts
from conrepair.diagnosis.localization.faces.attributes import attribute_differences
from conrepair.diagnosis.localization.faces.region import side
from conrepair.diagnosis.localization.faces.steps.readings import as_written
from conrepair.diagnosis.localization.faces.steps.steps import Step
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Attribute

PLAIN = Layout((2, 4, 4, 4), (2, 4, 4, 4), (0, 1, 2, 3), (2, 4, 4, 4))
LAST = next(item for item in layouts((2, 4, 4, 4), (2, 4, 4, 4)) if item.axes == (0, 2, 3, 1))


def step(op: str, attributes: Mapping[str, Attribute], *, channels_last: bool = False) -> Step:
    return Step(op, attributes, {}, (), (), (), channels_last)


def written(lines: str, folder: Path) -> Step:
    """The only node of an ONNX graph."""
    text = f"small (float[2, 4, 4, 4] x) => (float[a, b, c, d] y) {{ {lines} }}"
    weights = {"w": np.ones((4, 4, 3, 3), np.float32), "axes": np.array([2, 3]), "around": np.array([0, 0, 1, 1] * 2)}
    used = {name: array for name, array in weights.items() if name in lines}
    model = onnx_networks.model_of("onnx", onnx_networks.written(folder / f"{abs(hash(lines))}.onnx", text, used, 18))
    graph = onnx_networks.open_network(
        model, onnx_networks.specs(model, {"x": np.ones((2, 4, 4, 4), np.float32)})
    ).graph
    [found] = as_written(side(graph, {"x"}, "y"))
    return found


@pytest.mark.parametrize(
    ("ours", "theirs", "words"),
    [
        ("y = Conv <pads = [1, 1, 1, 1]> (x, w)", "y = Conv <pads = [0, 1, 2, 1]> (x, w)",
         "pads [0, 1, 2, 1] in the converted model, [1, 1, 1, 1] in the original"),
        ("y = Conv <strides = [2, 2]> (x, w)", "y = Conv <strides = [2, 1]> (x, w)",
         "strides [2, 1] in the converted model, [2, 2] in the original"),
        ("y = Conv <pads = [2, 2, 2, 2], dilations = [2, 2]> (x, w)", "y = Conv <pads = [2, 2, 2, 2]> (x, w)",
         "dilations [1, 1] in the converted model, [2, 2] in the original"),
        ("y = LeakyRelu <alpha = 0.3> (x)", "y = LeakyRelu (x)", ("alpha 0.01 in the converted model, 0.3 in the "
                                                                  "original")),
        ("y = Softmax <axis = 1> (x)", "y = Softmax <axis = -1> (x)", ("axis 3 in the converted model, 1 in the "
                                                                       "original")),
        ("y = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = 1> (x)",
         "y = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x)",
         "count_include_pad False in the converted model, True in the original"),
        ('y = Pad <mode = "reflect"> (x, around)', "y = Pad (x, around)",
         "mode constant in the converted model, reflect in the original"),
    ],
)  # fmt: skip
def test_attributes_of_files_in_one_layout(ours: str, theirs: str, words: str, tmp_path: Path) -> None:
    one, two = written(ours, tmp_path), written(theirs, tmp_path)
    [found] = attribute_differences(one, two, {4: PLAIN})
    assert (found.name, found.kind, found.words) == (words.split()[0], Kind.HYPERPARAMETERS, words)
    assert found.wanted == one.attributes[found.name]
    assert list(attribute_differences(one, one, {4: PLAIN})) == []
    assert list(attribute_differences(two, two, {4: PLAIN})) == []


@pytest.mark.parametrize(
    ("name", "ours", "right", "wrong"),
    [
        ("axis", 1, 3, 1),
        ("axis", 3, 2, 3),
        ("axis", 0, 0, 1),
        ("axes", (2, 3), (1, 2), (2, 3)),
        ("axes", (1,), (3,), (1,)),
        ("axes", (1, 2, 3), (1, 2, 3), (0, 1, 2)),
    ],
)
def test_axes_move_with_the_channels_even_where_all_sizes_are_equal(
    name: str, ours: Attribute, right: Attribute, wrong: Attribute
) -> None:
    source = step("ReduceMean", {name: ours})
    for value, count in ((right, 0), (wrong, 1)):
        target = step("ReduceMean", {name: value}, channels_last=True)
        assert len(list(attribute_differences(source, target, {4: LAST}))) == count


def test_axes_are_read_by_the_layout_that_has_them() -> None:
    """An axis of a picture isn't one of a vector that lies behind it."""
    vector = Layout((2, 4), (2, 4), (0, 1), (2, 4))
    one, right, wrong = (step("Concat", {"axis": axis}) for axis in (3, 2, 3))
    assert list(attribute_differences(one, right, {2: vector, 4: LAST})) == []
    assert len(list(attribute_differences(one, wrong, {2: vector, 4: LAST}))) == 1


def test_what_a_layout_moves_is_not_compared_literally() -> None:
    source = step("Pad", {"pads": (0, 0, 1, 1, 0, 0, 1, 1), "mode": "constant"})
    target = step("Pad", {"pads": (0, 1, 1, 0, 0, 1, 1, 0), "mode": "constant"}, channels_last=True)
    assert list(attribute_differences(source, target, {4: LAST})) == []
    assert len(list(attribute_differences(source, target, {4: PLAIN}))) == 0  # channels_last says that they differ
    same = step("Pad", {"pads": (0, 1, 1, 0, 0, 1, 1, 0), "mode": "constant"})
    assert len(list(attribute_differences(source, same, {4: PLAIN}))) == 1


def test_pads_of_windows_are_the_spatial_ones_in_every_layout() -> None:
    source = step("Conv", {"pads": (0, 0, 1, 1), "strides": (2, 2)})
    right = step("Conv", {"pads": (0, 0, 1, 1), "strides": (2, 2)}, channels_last=True)
    wrong = step("Conv", {"pads": (1, 1, 0, 0), "strides": (2, 2)}, channels_last=True)
    assert list(attribute_differences(source, right, {4: LAST})) == []
    assert len(list(attribute_differences(source, wrong, {4: LAST}))) == 1


@pytest.mark.parametrize(
    ("op", "name", "ours", "theirs", "kind"),
    [
        ("BatchNormalization", "training_mode", False, True, Kind.GRAPH),
        ("Gelu", "approximate", "none", "tanh", Kind.GRAPH),
        ("BatchNormalization", "epsilon", 1e-5, 1e-3, Kind.HYPERPARAMETERS),
        ("Clip", "max", None, 6.0, Kind.HYPERPARAMETERS),
        ("ReduceMean", "keepdims", True, False, Kind.HYPERPARAMETERS),
        ("LSTM", "direction", "forward", "reverse", Kind.HYPERPARAMETERS),
    ],
)
def test_kinds(op: str, name: str, ours: Attribute, theirs: Attribute, kind: Kind) -> None:
    [found] = attribute_differences(step(op, {name: ours}), step(op, {name: theirs}), {})
    assert found.kind is kind
    assert found.words.startswith(name)


@pytest.mark.parametrize(("ours", "theirs"), [(1e-5, 9.9999997e-06), (0.1, 0.10000000149), (1, 1.0), (None, 3)])
def test_the_same_numbers_in_other_words(ours: Attribute, theirs: Attribute) -> None:
    assert list(attribute_differences(step("X", {"alpha": ours}), step("X", {"alpha": theirs}), {})) == []


@pytest.mark.parametrize(("mode", "differing"), [("linear", []), ("nearest", ["nearest_mode"])])
def test_what_a_mode_does_not_read_is_no_difference(mode: str, differing: list[str]) -> None:
    ours, theirs = (
        step("Resize", {"mode": mode, "nearest_mode": nearest, "cubic_coeff_a": cubic, "scales": None})
        for nearest, cubic in (("floor", -0.5), ("round_prefer_floor", -0.75))
    )
    assert [item.name for item in attribute_differences(ours, theirs, {4: PLAIN})] == differing
