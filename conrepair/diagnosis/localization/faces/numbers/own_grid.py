"""Integers of a parameter in few bits, and whether they stand for what they should: their scales and zero points."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from conrepair.diagnosis.localization.faces.numbers.changed import Values, reordered, span
from conrepair.diagnosis.localization.judge.quantization import rounding_error
from conrepair.diagnosis.localization.numbers import naming
from conrepair.ground.graph.layer_graph import Parameter
from conrepair.ground.graph.slices import CUT_OFF, HALF_STEP, Slices, slices_of

_TINY = 1e-12


def within_steps(one: Values, two: Values, target: Parameter) -> bool:
    """Whether each value is the nearest that the target's scales can hold.

    Symmetric grids of b bits have an integer less on one side: what's largest there is cut off by up to a step (0.3
    to 1.1 % of the numbers of ONNX Runtime's four-bit blocks).

    Args:
        one: As they should be.
        two: As they are, of the same shape.
        target: Whose numbers these are.
    """
    return any(not _wrong(way.rows(one), way.rows(two), way).any() for way in slices_of(target, one.shape))


def beyond_integers(one: Values, two: Values, target: Parameter) -> str | None:
    """How numbers are cut off at the bounds of their integers, by scales that are too small for them.

    Args:
        one: Numbers as they should be.
        two: As they are, of the same shape.
        target: Whose numbers these are.

    Returns:
        In words, after "are": None where anything else is wrong, too, or nothing is.
    """
    most = 2 ** (target.bits or 0) / 2 - 1
    for way in slices_of(target, one.shape):
        first, second, steps = way.rows(one), way.rows(two), way.steps[:, None]
        counts = second / np.maximum(steps, np.finfo(np.float32).tiny)
        full = (np.abs(counts).max(axis=1) * (1 + naming.SINGLE) >= most) | (np.ptp(counts, axis=1) >= 2 * most - 1)
        off = np.abs(first - second)
        cut = _is_cut_off(first, second) & full[:, None] & (off > CUT_OFF * steps)
        near = off <= np.maximum(HALF_STEP * steps, naming.SINGLE * np.abs(first))
        if cut.any() and (cut | near).all():
            few, reach = (np.abs(rows[cut]).max() for rows in (second, first))
            scales = span(way.steps[cut.any(axis=1)])
            return (
                f"clipped at the bounds of {target.dtype} in {cut.sum()} of {one.size} places: the scale {scales} "
                f"holds values up to {few:.4g}, and they reach {reach:.4g}"
            )
    return None


def other_grid(one: Values, two: Values, target: Parameter) -> str | None:
    """What is wrong with a grid whose integers are right: no rounding explains that, and no folding.

    Args:
        one: Numbers as they should be.
        two: As they are, of the same shape.
        target: Whose numbers these are.

    Returns:
        In words, after "are": None where the integers aren't right, either.
    """
    for way in slices_of(target, one.shape):
        first, second = way.rows(one), way.rows(two)
        if one.size < naming.SEVERAL * way.steps.size or not way.steps.all():
            continue
        held = way.rows(np.ones(one.shape)) > 0  # the rest fills up a block
        found = (
            _other_scales(first, second, way)
            or _other_zero_points(first, second, way, held)
            or _without_scales(one, two, target, way)
        )
        if found is not None:
            return found
    return None


def _without_scales(one: Values, two: Values, target: Parameter, way: Slices) -> str | None:
    """Integers of whole slices in another order, whose scales and zero points stayed where they were."""
    if way.scales.size == 1:
        return None
    first, second = (way.put(_standardized(way.rows(array))) for array in (one, two))
    noise = 2 * rounding_error(target, one)
    if np.linalg.norm(first - second) <= noise * np.linalg.norm(first):
        return None  # a factor of all is no order
    found = reordered(first, second, noise)
    return None if found is None else f"{found[1]}, without their scales"


def _standardized(rows: Values) -> Values:
    """Slices without what a scale and a zero point make of them."""
    centred = rows - rows.mean(axis=1, keepdims=True)
    spread = centred.std(axis=1, keepdims=True)
    return np.asarray(centred / np.where(spread > 0, spread, 1.0))


def _wrong(one: Values, two: Values, way: Slices) -> npt.NDArray[np.bool_]:
    """The slices, [slices], of which a number isn't the nearest one."""
    off = np.abs(one - two) / np.maximum(way.steps, _TINY)[:, None]
    allowed = np.where(_is_cut_off(one, two), CUT_OFF, HALF_STEP)
    return np.asarray(((off > allowed) & (np.abs(one - two) > _TINY)).any(axis=1))


def _is_cut_off(one: Values, two: Values) -> npt.NDArray[np.bool_]:
    """Numbers beyond the largest or smallest integer of their slice."""
    above = (two >= two.max(axis=1, keepdims=True)) & (one > two)
    return np.asarray(above | ((two <= two.min(axis=1, keepdims=True)) & (one < two)))


def _other_scales(one: Values, two: Values, way: Slices) -> str | None:
    """Of some slices the scale is another one, or all have one another's."""
    wrong = _wrong(one, two, way)
    count, size = int(wrong.sum()), wrong.size
    if not count or size == 1:
        return None
    if _are_exchanged(one, two, way):
        return f"as if the scales of their {size} {way.words} were in another order"
    ends = _right_steps(one[wrong], two[wrong], way.steps[wrong]) if count <= size // 2 else None
    if ends is None:
        return None
    return f"scaled by {span(2 * way.steps[wrong] / (ends[0] + ends[1]))} in {count} of {size} {way.words}"


def _are_exchanged(one: Values, two: Values, way: Slices) -> bool:
    """Whether some order of the scales makes the integers of all slices the nearest ones."""
    some = one.any(axis=1)
    scales, first = way.scales[some], one[some]
    integers = two[some] / scales[:, None]
    turned = np.where(np.einsum("ij,ij->i", first, integers) < 0, -1.0, 1.0)  # by the sign of the scale that's theirs
    ends = _right_steps(first, integers * turned[:, None] * np.abs(scales)[:, None], np.abs(scales))
    if ends is None:
        return False
    more = 1 + naming.SINGLE  # scales are of single precision
    for sign in (-1, 1):
        steps = np.sort(np.abs(scales[np.sign(scales) == sign]))
        least, most = (np.sort(end[turned == sign]) for end in ends)
        if steps.size != least.size or np.any(least > steps * more) or np.any(steps > most * more):
            return False
    return True


def _right_steps(one: Values, two: Values, steps: Values) -> tuple[Values, Values] | None:
    """The smallest and the largest scale of each slice that makes its integers the nearest ones to what's right.

    Args:
        one: Slices as they should be.
        two: As they are.
        steps: Of each, as it is.

    Returns:
        None where of one of them no scale does.
    """
    counts = np.abs(two / steps[:, None])
    with np.errstate(divide="ignore"):
        # What's cut off may be so much further away.
        ends = (two >= two.max(axis=1, keepdims=True)) | (two <= two.min(axis=1, keepdims=True))
        least = (np.abs(one) / (counts + np.where(ends, CUT_OFF, HALF_STEP))).max(axis=1)
        most = np.where(counts > HALF_STEP, np.abs(one) / (counts - HALF_STEP), np.inf).min(axis=1)
    turned = (one * two < 0) & (counts > HALF_STEP)
    if turned.any() or (least > most).any() or not np.isfinite(most).all() or not least.all():
        return None
    return least, most


def _other_zero_points(one: Values, two: Values, way: Slices, held: npt.NDArray[np.bool_]) -> str | None:
    """All integers of a slice are off by the same number."""
    off = np.where(held, (two - one) / way.steps[:, None], np.nan)
    shifts = np.rint(np.nanmedian(off, axis=1, keepdims=True))
    if not shifts.any():
        return None
    moved = np.where(held, two - shifts * way.steps[:, None], 0.0)
    if _wrong(one, moved, way).any():
        return None
    ends = " to ".join(dict.fromkeys(f"{end:+.0f}" for end in (shifts.min(), shifts.max())))
    return f"shifted by {ends} quantization steps, as by another zero point"
