"""What isn't weights is told as what it is: masks, bounds, single numbers."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_networks import drawn

from conrepair.diagnosis.localization.faces.numbers.parameters import compare_parameters, mask_words
from conrepair.ground.graph.layer_graph import Array, Parameter

KEEP, LATER = np.tril(np.ones((8, 8), bool)), np.tril(np.ones((8, 8), bool), 1)
FORMS = {
    "truth values": lambda keep: keep,
    "ones": lambda keep: keep.astype(np.float32),
    "added": lambda keep: np.where(keep, 0, -1e9).astype(np.float32),
    "added, endless": lambda keep: np.where(keep, 0, -np.inf).astype(np.float32),
    "of half precision": lambda keep: np.where(keep, 0, -65504).astype(np.float16),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shift", [1, -1, 2])
def test_a_mask_that_is_some_diagonals_off(form: str, shift: int) -> None:
    one, two = (FORMS[form](np.tril(np.ones((8, 8), bool), by)) for by in (0, shift))
    other = int((np.tril(np.ones((8, 8), bool), shift) != KEEP).sum())
    plural = "diagonals" if abs(shift) > 1 else "diagonal"
    wanted = f"a mask that differs in {other} of 64 places: shifted by {abs(shift)} {plural}"
    assert mask_words(one, two) == wanted
    assert mask_words(one[None, None], two[None, None]) == wanted


def test_other_masks() -> None:
    holes = KEEP.copy()
    holes[5, 2] = holes[7, 0] = False
    assert mask_words(KEEP, holes) == "a mask that differs in 2 of 64 places"
    assert mask_words(KEEP, ~KEEP) == "a mask, inverted"
    assert (
        mask_words(KEEP, np.ones_like(KEEP)) == "a mask that differs in 28 of 64 places: all its values are the same"
    )
    assert mask_words(FORMS["added"](KEEP), FORMS["added, endless"](KEEP)) is None


@pytest.mark.parametrize("array", [drawn(8, 8, seed=1), np.full((8, 8), 0.5, np.float32), np.float32(1)])
def test_what_is_no_mask(array: Array) -> None:
    assert mask_words(array, array + 1) is None


def test_what_has_two_levels_already_isnt_rounded_to_them() -> None:
    one, two = (
        Parameter("", array.shape, "float32", array.astype(np.float32).copy) for array in (KEEP * 3, LATER * 3)
    )
    found = compare_parameters(one, two)
    assert found is not None
    assert "rounded" not in found.words
