"""Choose which inputs to draw for a model: those that it's made for, or others that its outputs depend on."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from conrepair.formats.models.model import LoadedModel
from conrepair.formats.models.registry import framework
from conrepair.formats.models.runnable import Runnable
from conrepair.formats.networks.network import open_network
from conrepair.ground.data.binding import bind_inputs
from conrepair.ground.data.feeds import DataReference, batches, open_feeds
from conrepair.ground.data.input_range import InputRange
from conrepair.ground.data.sample_axes import UNNAMED, OutputAxes
from conrepair.ground.data.symbolic_sizes import possible_sizes, with_sizes_of
from conrepair.ground.data.synthetic import SyntheticRange, in_words, may_be_picture
from conrepair.ground.data.tensor_spec import NARROW_INTEGERS, TensorSpec
from conrepair.ground.graph.input_ranges import input_ranges, weighs
from conrepair.ground.metrics.spread import HARDLY_ANY, spread_between_samples
from conrepair.ground.runtime.errors import ConrepairError
from conrepair.ground.runtime.words import percent

_SAMPLES = 8  # that a range is tried with
_SIZE = 2  # of the batch, where a file leaves it open
_TRIALS = 64  # of sizes that a file leaves open
# For logarithms and roots; for what overflows; for what needs more; for pictures.
_OTHERS = ((0.05, 1.0), (-0.05, 0.05), (1.0, 8.0), (0.0, 255.0))
_OTHER_DATA = "try your own data (--data), or another range of inputs (--low, --high)"


@dataclass(frozen=True)
class ChosenValues:
    """The ranges and sizes of inputs to draw.

    Attributes:
        limits: The ranges.
        notes: What a person should know.
    """

    limits: SyntheticRange
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Answers:
    """How a source's outputs depend on some samples.

    Attributes:
        numbers: Whether most of what it gives are numbers.
        finite: Share of what it gives that are numbers.
        spread: How much its outputs vary between samples, of their size; None for one sample.
    """

    numbers: bool
    finite: float
    spread: float | None

    @property
    def tell(self) -> bool:
        """Whether a difference of another model's would be seen."""
        return self.numbers and (self.spread is None or self.spread >= HARDLY_ANY)

    def __str__(self) -> str:
        """In words, why these outputs tell nothing."""
        if not self.numbers:
            return "outputs are mostly NaN or infinite"
        return f"all samples give nearly the same output ({percent(self.spread or 0)} apart)"


def choose_inputs(
    source: LoadedModel, targets: Sequence[LoadedModel], limits: SyntheticRange, count: int, *, batch: int = _SIZE
) -> ChosenValues:
    """Find out what inputs a source and its targets are made for, and whether its outputs depend on them.

    What the source's file says counts, then what a target's does. Where its outputs hardly depend on such inputs, or
    aren't numbers, pictures are tried where they may be some, and inputs of other ranges where no file says which.

    Args:
        source: That the inputs are drawn for.
        targets: That get the same ones.
        limits: What is asked for.
        count: Number of samples; 0: nothing is run, and sizes and ranges are the first that files allow.
        batch: Of models that leave it open, as they are opened with later; more than one.
    """
    runs = _Runs(source)
    sized, sizes_note = _with_sizes(runs, source, limits, count and _SIZE)
    shapes = tuple(spec.shape for spec in sized.inputs) if sized != source else ()
    source, targets = sized, [item.with_inputs(with_sizes_of(item.inputs, sized.inputs)) for item in targets]
    limits = replace(limits, shapes=shapes)
    said = [_said(reader, batch) for reader in (source, *targets)]
    ranges, notes = _agreed(source, targets, [item.ranges for item in said], limits)
    notes = (*sizes_note, *notes)
    has_pictures = any(map(may_be_picture, source.inputs))
    # What's in few bits was calibrated on photos; noise of the same range saturates tensors inside.
    few_bits = any(item.in_few_bits for item in said)
    wanted = replace(limits, inputs=ranges, pictures=has_pictures and few_bits)
    open_ends = not limits.given and any(
        spec.stands_for_reals and known is None for spec, known in zip(source.inputs, ranges, strict=True)
    )
    wanted, first = _unusual(lambda limits: runs.answers(source.inputs, limits, count), wanted, 1 if few_bits else 2)
    chosen = wanted
    if first is not None and not first.tell:
        others = [replace(wanted, pictures=True)] if has_pictures and not wanted.pictures else []
        others += [replace(wanted, low=low, high=high) for low, high in _OTHERS] if open_ends else []
        chosen = _telling(lambda limits: runs.answers(source.inputs, limits, count), wanted, others, first)
        tried = "; ".join(_in_short(limits) for limits in others)
        tried = f", also on inputs {tried}" if others else ""
        found = f", so inputs are drawn {_in_short(chosen)}" if chosen != wanted else tried
        notes += (f"on inputs {in_words(source.inputs, wanted)}, {first}{found}: {_OTHER_DATA}",)
    return ChosenValues(chosen, notes)


def _in_short(limits: SyntheticRange) -> str:
    return "as pictures that vary slowly" if limits.pictures else f"from {limits.low:g} to {limits.high:g}"


def _unusual(
    answers_to: Callable[[SyntheticRange], _Answers | None], wanted: SyntheticRange, most: int
) -> tuple[SyntheticRange, _Answers | None]:
    """What is wanted, with unusual samples as far as the source gives numbers for them where it does for others."""
    chosen, found = replace(wanted, unusual=most), answers_to(replace(wanted, unusual=most))
    for unusual in range(most - 1, -1, -1):
        if found is not None and found.finite == 1:
            break
        other = answers_to(replace(wanted, unusual=unusual))
        if other is not None and (found is None or other.finite > found.finite):
            chosen, found = replace(wanted, unusual=unusual), other
    return chosen, found


def _telling(
    answers_to: Callable[[SyntheticRange], _Answers | None],
    wanted: SyntheticRange,
    others: Sequence[SyntheticRange],
    first: _Answers,
) -> SyntheticRange:
    """The first range whose answers tell something; else the first that gives numbers, else what was wanted."""
    tried = [(wanted, first)]
    for limits in others:
        answers = answers_to(limits)
        if answers is not None and answers.tell:
            return limits
        if answers is not None:
            tried.append((limits, answers))
    return next((limits for limits, answers in tried if answers.numbers), wanted)


class _Runs:
    """A source, loaded once where it's run at all.

    Args:
        source: The model.
    """

    def __init__(self, source: LoadedModel) -> None:
        self._model = source.model
        self.failure = ""

    @cached_property
    def _runnable(self) -> Runnable:
        return framework(self._model.framework).load(self._model)

    def answers(self, inputs: Sequence[TensorSpec], limits: SyntheticRange, count: int) -> _Answers | None:
        """What it makes of a few samples; None where it can't run them, which is said when it's run.

        Args:
            inputs: With the sizes to draw.
            limits: The ranges.
            count: Of samples; 0: it isn't run, and taken for one whose answers tell.
        """
        if not count:
            return _Answers(numbers=True, finite=1.0, spread=None)
        data = DataReference("synthetic", min(count, _SAMPLES), samples=tuple(inputs), limits=limits)
        try:
            runnable = self._runnable
            outputs: dict[str, list[np.ndarray]] = {spec.name: [] for spec in runnable.outputs}
            feeds = open_feeds(data, runnable.inputs, None)
            axes = OutputAxes(runnable.inputs, runnable.outputs, feeds.axes)
            for batch in batches(feeds, runnable.inputs, _SAMPLES):
                for name, array in runnable.run(batch.feeds).items():
                    rows = axes.in_front(name, array, batch.size)
                    whole = not feeds.axes or rows.shape[:1] != (batch.size,)
                    outputs[name].append(rows[None] if whole else rows[: batch.valid])
        except ConrepairError as error:
            self.failure = self.failure or str(error)
            return None
        arrays = [_numbers(parts) for parts in outputs.values()]
        if not arrays:
            return None
        spreads = [spread_between_samples(array) for array in arrays]
        shares = [float(np.isfinite(array).mean()) if array.size else 1.0 for array in arrays]
        numbers = any(2 * share >= 1 for share in shares)
        known = [spread for spread in spreads if spread is not None]
        return _Answers(numbers, min(shares), max(known) if len(known) == len(spreads) else None)


def _with_sizes(
    runs: _Runs, source: LoadedModel, limits: SyntheticRange, count: int
) -> tuple[LoadedModel, tuple[str, ...]]:
    """The source with the first sizes that it takes, where its file leaves some open, and what to say of them."""
    name, tried = Path(source.model.path).name, 0
    for inputs in itertools.islice(possible_sizes(source.inputs), _TRIALS):
        if inputs == source.inputs:
            return source, ()
        if runs.answers(inputs, limits, count) is not None:
            chosen = ", ".join(_chosen(source.inputs, inputs))
            words = f"{name} has dynamic shapes, for which sizes were chosen: {chosen}; declare others (--input)"
            return source.with_inputs(inputs), (words,)
        tried += 1
    words = f"{name} has dynamic shapes, and runs with none of {tried} choices of sizes: {runs.failure}"
    return source, (words,)


def _chosen(inputs: Sequence[TensorSpec], sized: Sequence[TensorSpec]) -> list[str]:
    """The sizes, by symbol; by axis where they have none."""
    found = {}
    for spec, other in zip(inputs, sized, strict=True):
        for axis, (size, number) in enumerate(zip(spec.shape, other.shape, strict=True)):
            if size != number:
                found[f"axis {axis} of {spec.name}" if size == UNNAMED else str(size)] = number
    return [f"{symbol} {number}" for symbol, number in found.items()]


def _numbers(parts: Sequence[np.ndarray]) -> np.ndarray:
    """An output of several batches; of what varies in size that, and the sum."""
    if len({part.shape[1:] for part in parts}) > 1:
        parts = [np.array([[part.size, np.sum(_numbers([part]))]]) for part in parts]
    whole = np.concatenate(parts)
    return np.unique(whole, return_inverse=True)[1].reshape(whole.shape) if whole.dtype.kind == "U" else whole


def _agreed(
    source: LoadedModel, targets: Sequence[LoadedModel], said: Sequence[dict[str, InputRange]], limits: SyntheticRange
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
                whose = f"the input {spec.name} of {Path(target.model.path).name}"
                notes.append(f"{whose} is made for {other}, that of the original for {known}")
    return tuple(_unless_asked(spec, ours.get(spec.name), limits) for spec in source.inputs), tuple(notes)


def _unsaid(source: LoadedModel, target: LoadedModel, spec: TensorSpec, held: InputRange, drawn: InputRange) -> str:
    """What a person should know of inputs that only a calibration says something about."""
    one, two = (Path(reader.model.path).name for reader in (source, target))
    low, high, *ends = (f"{end:.4g}" for item in (held, drawn) for end in (min(item.low), max(item.high)))
    return (
        f"{one} doesn't say which values its input {spec.name} takes, and that of {two} was calibrated for {low} to "
        f"{high}: inputs are drawn from {' to '.join(ends)}. Try your own (--data)"
    )


def _unless_asked(spec: TensorSpec, known: InputRange | None, limits: SyntheticRange) -> InputRange | None:
    """What files say of an input, where no person said it."""
    asked = limits.given if spec.stands_for_reals else limits.integer_high is not None
    return None if asked and not (known is not None and known.mask) else known


def _bound(
    source: LoadedModel, target: LoadedModel, ours: Mapping[str, InputRange], theirs: Mapping[str, InputRange]
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


def _said(reader: LoadedModel, batch: int) -> _Said:
    found = {}
    try:
        network = open_network(reader.model, tuple(_of_some_size(spec, batch) for spec in reader.inputs))
    except ConrepairError:
        network = None
    ranges = {} if network is None else input_ranges(network.graph)
    held = _held(reader.inputs)
    for spec in reader.inputs:
        tensor = spec.name if network is None else network.input_names[spec.name]
        if "position" in spec.name.lower() and spec.shape and not spec.stands_for_reals:
            found[spec.name] = _positions(spec, held, ranges.get(tensor))
        elif spec.dtype in NARROW_INTEGERS:
            low, high = (-8.0, 7.0) if spec.dtype == "int4" else (0.0, 15.0)
            found[spec.name] = InputRange((low,), (high,), "four bits", whole=True)
        elif tensor in ranges:
            found[spec.name] = ranges[tensor]
        elif spec.high is not None:
            found[spec.name] = InputRange((0.0,), (spec.high - 1.0,), f"a table of {spec.high} rows", whole=True)
        elif "mask" in spec.name.lower() and not spec.stands_for_reals and spec.dtype != "string":
            blank = network is not None and not weighs(network.graph, tensor)
            found[spec.name] = InputRange((0.0,), (1.0,), "its name", whole=True, mask=True, blank=blank)
    tensors = () if network is None else network.graph.tensors.values()
    return _Said(found, any(tensor.quantization is not None for tensor in tensors))


def _held(inputs: Sequence[TensorSpec]) -> int:
    """How many steps come before those of the ids, for which a mask is longer by so many."""
    lengths = [spec.shape[1] for spec in inputs if len(spec.shape) == 2 and not spec.stands_for_reals]
    known = [size for size in lengths if isinstance(size, int)]
    return max(known, default=0) - min(known, default=0)


def _positions(spec: TensorSpec, held: int, table: InputRange | None) -> InputRange:
    """Positions of steps behind others, as far as a table of them reaches."""
    size = spec.shape[-1]
    last = held + (size if isinstance(size, int) else 1) - 1.0
    high = last if table is None else max(table.high)
    return InputRange((min(held, high),), (high,), "its name", whole=True, counts=True)


def _of_some_size(spec: TensorSpec, batch: int) -> TensorSpec:
    sizes = (batch, *[_SIZE] * len(spec.shape))
    known = [size if isinstance(size, int) else other for size, other in zip(spec.shape, sizes, strict=False)]
    return replace(spec, shape=tuple(known))
