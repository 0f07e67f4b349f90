"""error.svg."""

from __future__ import annotations

import math
from itertools import pairwise
from xml.etree import ElementTree as ET

import localizations
import pytest

from conrepair.application.report.localization.plot import error_axis, error_plot, spread
from conrepair.diagnosis.localization.result import Localization

SVG = "{http://www.w3.org/2000/svg}"


def drawn(result: Localization) -> ET.Element:
    return ET.fromstring(error_plot(result))  # noqa: S314 (our own text)


def dots(root: ET.Element) -> list[ET.Element]:
    """Of layers: those that tell something when pointed at."""
    return [item for item in root.iter(f"{SVG}circle") if item.find(f"{SVG}title") is not None]


def texts(root: ET.Element) -> list[str]:
    return [item.text or "" for item in root.iter(f"{SVG}text")]


@pytest.mark.parametrize("count", [0, 1, 30, 500])
def test_every_layer_has_a_dot_inside_and_the_guilty_are_marked(count: int) -> None:
    result = localizations.made(count, dict.fromkeys(range(3, count, 100), 0.5))
    root = drawn(result)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    found = dots(root)
    assert len(found) == count
    assert sum(item.attrib["class"] == "guilty" for item in found) == len(result.faults)
    for item in root.iter(f"{SVG}circle"):
        radius = float(item.attrib["r"])
        assert radius <= float(item.attrib["cx"]) <= width - radius
        assert radius <= float(item.attrib["cy"]) <= height - radius
    for rank, fault in enumerate(result.faults, 1):
        assert any(text.startswith(f"{rank}. {fault.target_layers[0]}: hyperparameters") for text in texts(root))
    assert width <= 1600


def test_a_larger_error_is_drawn_higher() -> None:
    root = drawn(localizations.made(4, {1: 1e-3, 2: 1.0, 3: math.inf}))
    heights = {
        (item.find(f"{SVG}title").text or "").split("/conv")[0]: float(item.attrib["cy"])  # type: ignore[union-attr]
        for item in dots(root)
    }
    assert heights["block/3"] < heights["block/2"] < heights["block/1"] < heights["block/0"]
    assert "infinite" in texts(root)


def test_layers_stand_in_the_sources_order() -> None:
    result = localizations.made(12)
    assert [row.order for row in result.layers] != list(range(12))
    found = sorted(dots(drawn(result)), key=lambda item: float(item.attrib["cx"]))
    names = [(item.find(f"{SVG}title").text or "").split("/conv")[0] for item in found]  # type: ignore[union-attr]
    assert names == [f"block/{place}" for place in range(12)]


def test_names_that_are_markup() -> None:
    name = '<script>&"\x1b[31m</script>'
    root = drawn(localizations.with_names(localizations.made(3, {1: 0.5}), name, [1]))
    assert not list(root.iter(f"{SVG}script"))
    assert any('<script>&"\\x1b[31m</script>' in text for text in texts(root))


def test_names_of_layers_and_numbers_of_faults_do_not_overlap() -> None:
    root = drawn(localizations.made(500, dict.fromkeys(range(488, 500), 0.5)))
    names = sorted(float(item.attrib["x"]) for item in root.iter(f"{SVG}text") if "rotate(-60" in str(item.attrib))
    assert len(names) > 30
    assert min(right - left for left, right in pairwise(names)) >= 10
    marks = sorted(float(item.attrib["cx"]) for item in root.iter(f"{SVG}circle") if item.attrib["r"] == "8")
    assert len(marks) == 12
    assert min(right - left for left, right in pairwise(marks)) >= 16


def test_the_axis_has_places_for_zero_and_infinity() -> None:
    axis = error_axis([0.0, 1e-6, 0.02, math.inf, math.nan], 10.0, 110.0)
    assert [text for _, text in axis.labels()] == ["0", "1e-6", "1e-5", "1e-4", "1e-3", "1e-2", "1e-1", "infinite"]
    heights = [axis.at(error) for error in (0.0, 1e-6, 1e-3, 0.02, math.inf)]
    assert heights == sorted(heights, reverse=True)
    assert (heights[0], heights[-1], axis.at(math.nan)) == (110.0, 10.0, 10.0)
    plain = error_axis([1e-3, 1e-2], 0.0, 90.0)
    assert [text for _, text in plain.labels()] == ["1e-3", "1e-2", "1e-1", "1e0"]
    assert len(error_axis([1e-300, 1e300], 0.0, 90.0).labels()) <= 10


def test_marks_are_spread_within_the_edge() -> None:
    assert spread([10.0, 12.0, 50.0], 16.0, 100.0) == [10.0, 26.0, 50.0]
    assert spread([90.0, 95.0, 99.0], 16.0, 100.0) == [68.0, 84.0, 100.0]
    assert spread([], 16.0, 100.0) == []
