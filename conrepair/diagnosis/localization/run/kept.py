"""What is kept of a pair of tensors for reports: pictures, histograms, a scatter, the elements that differ most."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Histogram:
    """How often values occur on both sides; of many values, of a million that lie evenly among them.

    Attributes:
        low: Where the first bin begins: the smallest value of both sides.
        high: Where the last one ends: the largest.
        source: Values in each bin; all are of one width.
        target: The same of the target.
        odd: How many of the source's values, and of the target's, are no finite numbers.
    """

    low: float
    high: float
    source: tuple[int, ...]
    target: tuple[int, ...]
    odd: tuple[int, int] = (0, 0)


@dataclass(frozen=True, kw_only=True)
class Element:
    """A value that differs.

    Attributes:
        index: In the source's layout.
        source: The value that is right.
        target: What the target has there.
    """

    index: tuple[int, ...]
    source: float
    target: float


@dataclass(frozen=True, kw_only=True)
class Picture:
    """One channel of one sample, at most 48 x 48 points: of several elements, a point is the one that differs most.

    Points are signed bytes as base64, row by row, in 127ths of a scale of the layer; -128 is no finite number. What
    the target has is the sum of both.

    Attributes:
        channel: Which; None where the tensor has no axis of channels.
        error: Root mean square of the differences of all its elements.
        height: Rows.
        width: Points in a row.
        source: What the source has, by `KeptLayer.scale`.
        difference: What the target has more, by `KeptLayer.difference_scale`.
    """

    channel: int | None
    error: float
    height: int
    width: int
    source: str
    difference: str


@dataclass(frozen=True, kw_only=True)
class Scatter:
    """Values of both sides at the same places, 512 at most, and a line that is fitted to all (of a million, evenly).

    Attributes:
        source: Of the original model, ascending.
        target: Of the converted model, at the same places.
        factor: Of the line of least squares: what the converted model has is `factor * original + offset`; no number
            where all values of a side are equal.
        offset: Of the line.
        correlation: Of both sides' values (Pearson).
        same: Share of the values that are the same on both sides within 1 %.
    """

    source: tuple[float, ...]
    target: tuple[float, ...]
    factor: float
    offset: float
    correlation: float
    same: float


@dataclass(frozen=True, kw_only=True)
class KeptParameter:
    """Numbers that the same operator has on both sides.

    Attributes:
        role: "weight", "bias" and so on.
        source_node: Whose they are, by its name in the graph.
        target_node: The same of the target.
        values: Of both.
    """

    role: str
    source_node: str
    target_node: str
    values: Histogram


@dataclass(frozen=True, kw_only=True)
class KeptLayer:
    """A pair of tensors on the first batch.

    Attributes:
        source_tensor: Name.
        target_tensor: Name.
        full_run: Whether both ran from their inputs on, as outputs are shown; otherwise the target was fed the
            source's activations in front.
        dtype: numpy's name of the type of the source's values.
        target_dtype: The same of the target's.
        shape: Of the source's.
        target_shape: Of the target's, in the source's layout; where it's another one, nothing is compared but values.
        values: Of both.
        sample: Which one of the batch the pictures are of: the one that differs most; None where they are of all.
        scale: The largest value of the source in a picture, regardless of its sign.
        difference_scale: The largest difference in one, likewise.
        pictures: The channels that differ most, the worst first.
        worst: The elements that differ most of all samples, the worst first.
        scatter: Values of both sides at the same places; None where shapes differ, or few values are numbers.
        parameters: Of the operators of a layer at fault, those that differ first; of eight at most.
    """

    source_tensor: str
    target_tensor: str
    full_run: bool
    dtype: str
    target_dtype: str
    shape: tuple[int, ...]
    target_shape: tuple[int, ...]
    values: Histogram
    sample: int | None = None
    scale: float = 0.0
    difference_scale: float = 0.0
    pictures: tuple[Picture, ...] = ()
    worst: tuple[Element, ...] = ()
    scatter: Scatter | None = None
    parameters: tuple[KeptParameter, ...] = ()
