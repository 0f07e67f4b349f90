"""Choose which inputs to draw for a model: those that it's made for, or others that its outputs depend on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from conrepair.data.binding import bind_inputs
from conrepair.data.feeds import DataReference, batches, open_feeds
from conrepair.data.input_range import InputRange
from conrepair.data.synthetic import SyntheticRange, in_words, may_be_picture
from conrepair.data.tensor_spec import TensorSpec
from conrepair.frameworks.model import Model
from conrepair.frameworks.registry import framework
from conrepair.graph.input_ranges import input_ranges
from conrepair.metrics.spread import HARDLY_ANY, spread_between_samples
from conrepair.networks.open_network import open_network
from conrepair.runtime.errors import ConrepairError

__all__ = ["ChosenValues", "Reader", "choose_inputs"]

_SAMPLES = 8  # that a range is tried with
_SIZE = 2  # of what a file leaves open
# For logarithms and roots; for what overflows; for what needs more; for pictures.
_OTHERS = ((0.05, 1.0), (-0.05, 0.05), (1.0, 8.0), (0.0, 255.0))
_OTHER_DATA = "give data (--data), or a range (--low, --high)"


@dataclass(frozen=True)
class Reader:
    """A model that the inputs are for.

    Attributes:
        model: On disk.
        inputs: As its file says, with declared sizes filled in.
    """

    model: Model
    inputs: tuple[TensorSpec, ...]


@dataclass(frozen=True)
class ChosenValues:
    """What to draw.

    Attributes:
        limits: The ranges.
        notes: What a person should know.
    """

    limits: SyntheticRange
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Answers:
    """What a source makes of some samples.

    Attributes:
        numbers: Whether most of what it gives are numbers.
        spread: How much its outputs vary between samples, of their size; None for one sample.
    """

    numbers: bool
    spread: float | None

    @property
    def tell(self) -> bool:
        """Whether a difference of another model's would be seen."""
        return self.numbers and (self.spread is None or self.spread >= HARDLY_ANY)

    def __str__(self) -> str:
        """For a person: what's wrong with them."""
        if not self.numbers:
            return "outputs are NaN or infinite for the most part"
        return (
            f"outputs hardly depend on the inputs (they vary by {self.spread or 0:.1e} of their size between samples)"
        )


def choose_inputs(
    source: Reader, targets: Sequence[Reader], limits: SyntheticRange, count: int, *, batch: int = _SIZE
) -> ChosenValues:
    """Find out what inputs a source and its targets are made for, and whether its outputs depend on them.

    What the source's file says counts, then what a target's does. Where its outputs hardly depend on such inputs, or
    aren't numbers, pictures are tried where they may be some, and inputs of other ranges where no file says which.

    Args:
        source: That the inputs are drawn for.
        targets: That get the same ones.
        limits: What is asked for.
        count: Number of samples.
        batch: Of models that leave it open, as they are opened with later; more than one.
    """
    said = [_said(reader, batch) for reader in (source, *targets)]
    ranges, notes = _agreed(source, targets, [item.ranges for item in said], limits)
    has_pictures = any(map(may_be_picture, source.inputs))
    # What's in few bits was calibrated on photos; noise of the same range saturates tensors inside.
    wanted = replace(limits, inputs=ranges, pictures=has_pictures and any(item.in_few_bits for item in said))
    open_ends = not limits.given and any(
        spec.stands_for_reals and known is None for spec, known in zip(source.inputs, ranges, strict=True)
    )
    chosen, first = wanted, _answers(source, wanted, count)
    if first is not None and not first.tell:
        others = [replace(wanted, pictures=True)] if has_pictures and not wanted.pictures else []
        others += [replace(wanted, low=low, high=high) for low, high in _OTHERS] if open_ends else []
        chosen = _telling(source, wanted, others, first, count)
        tried = "; ".join(_in_short(limits) for limits in others)
        tried = f"; {tried}: tried too" if others else ""
        found = f", so they're drawn {_in_short(chosen)}" if chosen != wanted else tried
        notes += (f"on inputs {in_words(source.inputs, wanted)}, {first}{found}: {_OTHER_DATA}",)
    return ChosenValues(chosen, notes)


def _in_short(limits: SyntheticRange) -> str:
    return "as pictures that vary slowly" if limits.pictures else f"from {limits.low:g} to {limits.high:g}"


def _telling(
    source: Reader, wanted: SyntheticRange, others: Sequence[SyntheticRange], first: _Answers, count: int
) -> SyntheticRange:
    """The first range whose answers tell something; else the first that gives numbers, else what was wanted."""
    tried = [(wanted, first)]
    for limits in others:
        answers = _answers(source, limits, count)
        if answers is not None and answers.tell:
            return limits
        if answers is not None:
            tried.append((limits, answers))
    return next((limits for limits, answers in tried if answers.numbers), wanted)


def _answers(source: Reader, limits: SyntheticRange, count: int) -> _Answers | None:
    """What the source makes of a few samples; None where it can't run them, which is said when it's run."""
    data = DataReference("synthetic", min(count, _SAMPLES), samples=source.inputs, limits=limits)
    try:
        runnable = framework(source.model.framework).load(source.model)
        outputs: dict[str, list[np.ndarray]] = {spec.name: [] for spec in runnable.outputs}
        feeds = open_feeds(data, runnable.inputs, None)
        for batch in batches(feeds, runnable.inputs, _SAMPLES):
            for name, array in runnable.run(batch.feeds).items():
                whole = feeds.whole or array.shape[:1] != (batch.size,)
                outputs[name].append(array[None] if whole else array[: batch.valid])
    except ConrepairError:
        return None
    arrays = [np.concatenate([item.astype(np.float64) for item in parts]) for parts in outputs.values()]
    if not arrays:
        return None
    spreads = [spread_between_samples(array) for array in arrays]
    numbers = any(2 * np.isfinite(array).sum() >= array.size for array in arrays)
    return _Answers(bool(numbers), None if None in spreads else max(item for item in spreads if item is not None))


def _agreed(
    source: Reader, targets: Sequence[Reader], said: Sequence[dict[str, InputRange]], limits: SyntheticRange
) -> tuple[tuple[InputRange | None, ...], tuple[str, ...]]:
    """The range of each of the source's inputs, and where a target's file says another one."""
    # The source's own grid is what it is, however it was calibrated.
    ours = {name: replace(item, calibrated=False) for name, item in said[0].items()}
    notes = []
    for target, theirs in zip(targets, said[1:], strict=True):
        for spec, known, other in _bound(source, target, ours, theirs):
            if known is None:
                ours[spec.name] = other
                if other.calibrated and spec.stands_for_reals and not limits.given:
                    # Inputs drawn within a grid that's too small would hide that it is.
                    ours[spec.name] = drawn = other.ordinary(limits.low, limits.high)
                    notes.append(_unsaid(source, target, spec, other, drawn))
            elif known.differs(other):
                whose = f"{Path(target.model.path).name}'s input for {spec.name}"
                notes.append(f"{whose} is made for {other}, its source's for {known}")
    return tuple(_unless_asked(spec, ours.get(spec.name), limits) for spec in source.inputs), tuple(notes)


def _unsaid(source: Reader, target: Reader, spec: TensorSpec, held: InputRange, drawn: InputRange) -> str:
    """What a person should know of inputs that only a calibration says something about."""
    one, two = (Path(reader.model.path).name for reader in (source, target))
    low, high, *ends = (f"{end:.4g}" for item in (held, drawn) for end in (min(item.low), max(item.high)))
    return (
        f"{one} doesn't say which values {spec.name} has; the grid of {two}'s input covers {low} to {high}, what its "
        f"calibration met; they're drawn from {' to '.join(ends)}: give real ones (--data) to see whether it was "
        "calibrated on enough"
    )


def _unless_asked(spec: TensorSpec, known: InputRange | None, limits: SyntheticRange) -> InputRange | None:
    """What files say of an input, where no person said it."""
    asked = limits.given if spec.stands_for_reals else limits.integer_high is not None
    return None if asked and not (known is not None and known.mask) else known


def _bound(
    source: Reader, target: Reader, ours: Mapping[str, InputRange], theirs: Mapping[str, InputRange]
) -> Iterator[tuple[TensorSpec, InputRange | None, InputRange]]:
    """The source's inputs that a target says something about, each with what both say."""
    try:
        bindings = bind_inputs(source.inputs, target.inputs)
    except ConrepairError:  # that they don't fit is said when they're fed
        return
    specs = {spec.name: spec for spec in source.inputs}
    for binding in bindings:
        if binding.input in theirs:
            other = theirs[binding.input]
            placed = other if binding.permutation is None else other.for_all()
            yield specs[binding.sample], ours.get(binding.sample), placed


@dataclass(frozen=True)
class _Said:
    """What a model's file says; nothing where it has no graph to look at.

    Attributes:
        ranges: Of its inputs' values, by their names.
        in_few_bits: Whether it has activations that were calibrated.
    """

    ranges: dict[str, InputRange]
    in_few_bits: bool


def _said(reader: Reader, batch: int) -> _Said:
    found = {}
    try:
        network = open_network(reader.model, tuple(_of_some_size(spec, batch) for spec in reader.inputs))
    except ConrepairError:
        network = None
    ranges = {} if network is None else input_ranges(network.graph)
    for spec in reader.inputs:
        tensor = spec.name if network is None else network.input_names[spec.name]
        if tensor in ranges:
            found[spec.name] = ranges[tensor]
        elif spec.high is not None:
            found[spec.name] = InputRange((0.0,), (spec.high - 1.0,), f"a table of {spec.high} rows", whole=True)
        elif "mask" in spec.name.lower() and not spec.stands_for_reals and spec.dtype != "string":
            found[spec.name] = InputRange((0.0,), (1.0,), "its name", whole=True, mask=True)
    tensors = () if network is None else network.graph.tensors.values()
    return _Said(found, any(tensor.quantization is not None for tensor in tensors))


def _of_some_size(spec: TensorSpec, batch: int) -> TensorSpec:
    sizes = (batch, *[_SIZE] * len(spec.shape))
    known = [size if isinstance(size, int) else other for size, other in zip(spec.shape, sizes, strict=False)]
    return replace(spec, shape=tuple(known))
