"""What is kept for reports: the elements, channels and samples that differ most, as they are."""

from __future__ import annotations

import base64
import math
from pathlib import Path

import localizations
import numpy as np
import numpy.typing as npt
import small_models as small
from rewritten_networks import opened

from conrepair.diagnosis.localization.align.layout import layouts
from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.localize import Found, localize_target
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.run.keeping import kept_layer
from conrepair.diagnosis.localization.run.kept import KeptLayer, Picture
from conrepair.diagnosis.localization.run.reference import Reference

Values = npt.NDArray[np.float64]


def kept_of(one: npt.NDArray[np.float32], two: npt.NDArray[np.float32], *, axis: int = 1) -> KeptLayer:
    return kept_layer(Pair("s", "t", layouts(one.shape, one.shape)[0], 1.0, ""), one, two, axis=axis)


def points(text: str, scale: float, picture: Picture) -> Values:
    levels = np.frombuffer(base64.b64decode(text), np.int8).reshape(picture.height, picture.width)
    return np.where(levels == -128, np.nan, levels / 127 * scale)


def sides(kept: KeptLayer, place: int = 0) -> tuple[Values, Values]:
    picture = kept.pictures[place]
    return points(picture.source, kept.scale, picture), points(picture.difference, kept.difference_scale, picture)


def drawn(*shape: int) -> npt.NDArray[np.float32]:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def test_channels_that_differ_most_come_first_wherever_the_channels_are() -> None:
    one = drawn(3, 10, 20, 30)
    two = one.copy()
    two[1, 4] += 0.5
    two[1, 7, 3, 5] += 40
    two[2, 4] += 0.25
    for axis in (1, 3):
        kept = kept_of(np.moveaxis(one, 1, axis), np.moveaxis(two, 1, axis), axis=axis)
        assert kept.sample == 1
        assert [picture.channel for picture in kept.pictures[:2]] == [7, 4]
        assert len(kept.pictures) == 8
        assert math.isclose(kept.pictures[1].error, 0.5, rel_tol=1e-5)
        source, difference = sides(kept, 1)
        np.testing.assert_allclose(source, one[1, 4], atol=kept.scale / 200)
        np.testing.assert_allclose(difference, 0.5, atol=kept.difference_scale / 200)
        assert kept.worst[0].index == ((1, 7, 3, 5) if axis == 1 else (1, 3, 5, 7))
        assert math.isclose(kept.worst[0].target - kept.worst[0].source, 40, rel_tol=1e-5)
        assert len(kept.worst) == 20


def test_one_wrong_element_of_a_large_picture_is_seen() -> None:
    one = drawn(1, 2, 100, 500)
    two = one.copy()
    two[0, 1, 99, 499] = 7
    two[0, 1, 50, 3] = -7
    kept = kept_of(one, two)
    assert max(kept.pictures[0].height, kept.pictures[0].width) <= 48
    _, difference = sides(kept)
    assert np.count_nonzero(difference) == 2
    assert (difference[-1, -1] > 0, difference[50 // 3, 0] < 0) == (True, True)
    assert [item.target for item in kept.worst] in ([7, -7], [-7, 7])


def test_few_axes_are_one_picture() -> None:
    expected = {(5, 30): (5, 30, None), (2, 7, 16): (7, 16, 0), (9,): (1, 9, None), (): (1, 1, None)}
    for shape, (height, width, sample) in expected.items():
        one = drawn(*shape)
        kept = kept_of(one, one + np.float32(1))
        (picture,) = kept.pictures
        assert (picture.height, picture.width, picture.channel, kept.sample) == (height, width, None, sample)


def test_histograms_have_common_bins_and_count_what_is_no_number() -> None:
    one, two = drawn(2, 3, 8, 8), 10 * drawn(2, 3, 8, 8)
    two[0, 0, 0, :3] = np.nan, np.inf, -np.inf
    one[0, 0, 0, 2] = -np.inf
    kept = kept_of(one, two)
    values = kept.values
    assert (values.odd, sum(values.source), sum(values.target)) == ((1, 3), one.size - 1, two.size - 3)
    finite = two[np.isfinite(two)]
    expected, _ = np.histogram(finite, 48, (values.low, values.high))
    assert np.abs(expected - values.target).sum() <= 4, "but for values at an edge"
    assert [item.index for item in kept.worst[:2]] == [(0, 0, 0, 0), (0, 0, 0, 1)]
    assert all(item.index != (0, 0, 0, 2) for item in kept.worst), "infinite on both sides"
    _, difference = sides(kept)
    assert np.isnan(difference[0, :3]).tolist() == [True, True, False]


def test_equal_sides_have_no_worst_elements_and_other_sizes_only_values() -> None:
    one = np.zeros((1, 2, 3, 3), np.float32)
    same = kept_of(one, one)
    assert (same.worst, same.difference_scale, same.values.source[0]) == ((), 0.0, one.size)
    other = kept_of(one, drawn(1, 2, 3, 4))
    assert (other.pictures, other.worst, other.target_shape) == ((), (), (1, 2, 3, 4))
    assert sum(other.values.target) == 24


def test_layers_at_fault_are_kept_with_their_weights_and_outputs_as_they_came(tmp_path: Path) -> None:
    found = localized(tmp_path, keep=True)
    first, output = found.kept
    (piece,) = found.guilty
    assert (first.source_tensor, first.full_run) == (piece.judged.cut.pair.source, False)
    worst = np.abs(piece.region.expected - piece.region.computed)
    assert first.worst[0].index == np.unravel_index(np.argmax(worst), worst.shape)
    assert [item.role for item in first.parameters] == ["weight"]
    assert first.parameters[0].values.source == first.parameters[0].values.target, "pads differ, not weights"
    assert output.full_run
    assert output.worst, "it shows what the fault does to answers"
    (row,) = [row for row in found.result.layers if row.source_tensor == output.source_tensor]
    assert row.introduced_error < 1e-5


def test_nothing_is_kept_unasked(tmp_path: Path) -> None:
    assert localized(tmp_path, keep=False).kept == ()


def localized(folder: Path, *, keep: bool) -> Found:
    """A network against itself with other pads."""
    localizations.wrong_pads(folder)
    feeds = {"image": small.images()}
    networks_of = [opened(folder / f"{side}.onnx", feeds) for side in ("source", "target")]
    work = folder / "work"
    reference = Reference(networks_of[0], work / "source")
    return localize_target(reference, networks_of[1], [(feeds, feeds)], work, Options(), keep=keep)
