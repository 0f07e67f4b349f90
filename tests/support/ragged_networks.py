"""Networks whose outputs have as many rows as their inputs' values make them have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx_networks import drawn, written

_ANCHORS = 24
_DETECTOR = """detector (float[1, 3, 8, 8] image) => (float[n, 4] boxes, float[n] scores, int64[n] labels) {
    features = Conv <pads = [1, 1, 1, 1]> (image, kernel, shift)
    active = Relu (features)
    flat = Flatten (active)
    raw = MatMul (flat, locations)
    shaped = Reshape (raw, shape_of_boxes)
    sizes = Sigmoid (shaped)
    corners = Add (anchors, sizes)
    all_boxes = Concat <axis = 2> (anchors, corners)
    logits = MatMul (flat, classes)
    rows = Reshape (logits, shape_of_scores)
    all_scores = Sigmoid (rows)
    [suppress] chosen = NonMaxSuppression <center_point_box = CENTER> (all_boxes, all_scores, most, overlap, least)
    which = Gather <axis = 1> (chosen, two)
    labels = Gather <axis = 1> (chosen, one)
    found = Gather <axis = 1> (all_boxes, which)
    boxes = Squeeze (found, zero)
    places = GatherND (all_scores, chosen)
    scores = Identity (places)
}"""


def detector(
    path: Path,
    *,
    overlap: float = 0.5,
    least: float = 0.5,
    most: int = 10,
    kernel: float = 1.0,
    later: float = 1.0,
    center: int = 0,
) -> Path:
    """Boxes with scores of two classes, of which some are suppressed."""
    grid = np.stack(np.meshgrid(np.arange(6), np.arange(4)), -1).reshape(1, _ANCHORS, 2) * 0.4
    weights = {
        "kernel": drawn(4, 3, 3, 3, seed=1, scale=0.6 * kernel),
        "shift": drawn(4, seed=2),
        "locations": drawn(256, 2 * _ANCHORS, seed=3, scale=0.1),
        "classes": drawn(256, 2 * _ANCHORS, seed=4, scale=0.1 * later),
        "anchors": grid.astype(np.float32),
        "shape_of_boxes": np.array([1, _ANCHORS, 2]),
        "shape_of_scores": np.array([1, 2, _ANCHORS]),
        "most": np.array([most]),
        "overlap": np.float32([overlap]),
        "least": np.float32([least]),
        "one": np.array(1),
        "two": np.array(2),
        "zero": np.array([0]),
    }
    return written(path, _DETECTOR.replace("CENTER", str(center)), weights)


def above_zero(path: Path, *, weight: float = 1.0) -> Path:
    """The places of positive numbers, and these numbers."""
    text = """places (float[batch, 6] x) => (int64[2, n] places, float[n] values) {
        y = Mul (x, weight)
        shifted = Add (y, shift)
        active = Relu (shifted)
        [choose] places = NonZero (active)
        turned = Transpose (places)
        values = GatherND (active, turned)
    }"""
    return written(path, text, {"weight": np.float32(weight), "shift": drawn(6, seed=5)})


def picked(path: Path, *, turned: bool = False, threshold: float = 0.0) -> Path:
    """Rows whose first number is above a threshold, from the first on or from the last."""
    step = -1 if turned else 1
    text = f"""rows (float[1, 9, 4] x) => (float[n, 4] y, float[n] first) {{
        rows = Squeeze (x, zero)
        lain = Slice (rows, {"last, before" if turned else "zero, nine"}, zero, step)
        column = Gather <axis = 1> (lain, place)
        [choose] above = Greater (column, threshold)
        y = Compress <axis = 0> (lain, above)
        first = Gather <axis = 1> (y, place)
    }}"""
    weights = {
        "zero": np.array([0]),
        "nine": np.array([9]),
        "last": np.array([8]),
        "before": np.array([-10]),
        "step": np.array([step]),
        "place": np.array(0),
        "threshold": np.float32(threshold),
    }
    used = {name: array for name, array in weights.items() if name in text}
    return written(path, text, used)
