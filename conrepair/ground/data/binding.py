"""Fit samples to a model's inputs: which array feeds which input, transposed how."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from conrepair.ground.data.tensor_spec import Dimension, TensorSpec
from conrepair.ground.runtime.errors import DataError

_CHANNELS = {1, 3, 4}


@dataclass(frozen=True)
class Binding:
    """One input's feed.

    Attributes:
        sample: Name of the array in the data.
        input: Name of the model's input.
        permutation: Axes for numpy.transpose, or None when the array fits as it is.
        stored: How the source stores the sample, where the input takes the same integers and its format can't say
            what they stand for; else None.
    """

    sample: str
    input: str
    permutation: tuple[int, ...] | None = None
    stored: TensorSpec | None = None


def bind_inputs(samples: Sequence[TensorSpec], inputs: Sequence[TensorSpec]) -> tuple[Binding, ...]:
    """Pair the data's arrays with a model's inputs, by name, then by shape and type in order.

    Args:
        samples: Names, shapes and types of the data's arrays (as the source model takes them).
        inputs: The inputs of the model to feed.

    Raises:
        DataError: if an input finds no array that fits.
    """
    free = {spec.name: spec for spec in samples}
    pairs: dict[str, Binding] = {}
    for spec in inputs:
        if spec.name in free and (binding := _try(free[spec.name], spec)):
            pairs[spec.name] = binding
            del free[spec.name]
    for spec in inputs:
        if spec.name in pairs:
            continue
        for sample in free.values():
            if binding := _try(sample, spec):
                pairs[spec.name] = binding
                del free[sample.name]
                break
        else:
            reasons = "; ".join(_misfit(sample, spec, taken=sample.name not in free) for sample in samples)
            raise DataError(f"no array of the data fits input {spec}. Of the data, {reasons}.")
    return tuple(pairs[spec.name] for spec in inputs)


def _misfit(sample: TensorSpec, spec: TensorSpec, *, taken: bool) -> str:
    """Why an array doesn't feed an input, and what to change."""
    if taken:
        return f"{sample} feeds another input; store an array called {spec.name} beside it"
    if sample.stands_for_reals != spec.stands_for_reals and not takes_stored(sample, spec):
        return f"{sample} has another type; store it as {spec.dtype} (`array.astype({spec.dtype!r})`)"
    given, wanted = sample.shape, spec.shape
    if len(given) == len(wanted) - 1:
        return (
            f"{sample} lacks an axis; the first one counts samples, which a single sample needs, too (`array[None]`)"
        )
    if len(given) == len(wanted) + 1 and len(given) > 1:
        return (
            f"{sample} has an axis too many; the first one counts samples, and there's no other batch (`array[:, 0]`)"
        )
    if len(given) != len(wanted):
        return f"{sample} has {len(given)} axes, and the input has {len(wanted)}"
    axes = [axis for axis, size in enumerate(wanted) if not _compatible(given[axis], size)]
    differ = ", ".join(f"axis {axis} has {given[axis]} and not {wanted[axis]}" for axis in axes)
    return f"{sample} has another shape ({differ}); change it, or the recipe's size and layout"


def takes_stored(sample: TensorSpec, spec: TensorSpec) -> bool:
    """Whether an input takes the integers that a quantized one stores, in a format that has no place for their scale.

    Keras and PyTorch have none, and in ONNX only the nodes behind an input may tell.
    """
    return sample.quantization is not None and spec.quantization is None and sample.dtype == spec.dtype


def layout_permutation(given: Sequence[Dimension], wanted: Sequence[Dimension]) -> tuple[int, ...] | None:
    """The move of the channel axis that makes one shape fit another.

    Args:
        given: A shape with batch first.
        wanted: The shape to reach.

    Returns:
        The identity when the shapes fit, the axes for numpy.transpose when moving channels to the end or to
        the front makes them fit (or fit better, where sizes are open), None otherwise.
    """
    rank = len(given)
    if rank != len(wanted):
        return None
    identity = tuple(range(rank))
    candidates = [identity]
    if rank >= 3:
        candidates += [(0, *range(2, rank), 1), (0, rank - 1, *range(1, rank - 1))]
    fitting = [
        permutation
        for permutation in candidates
        if all(_compatible(given[axis], size) for axis, size in zip(permutation, wanted, strict=True))
    ]
    # An open size fits everything, so that sizes which agree say more: [N, 3, h, w] for [N, ?, ?, 3].
    return max(fitting, key=lambda item: _agreeing(given, wanted, item), default=None)


def image_layout(spec: TensorSpec) -> str | None:
    """The layout of an input that takes images: "NCHW", "NHWC", or None when it takes none or can't be told.

    A declared layout wins; else the axis with 1, 3 or 4 elements is the channel axis, if only one is.
    """
    if len(spec.shape) != 4:
        return None
    if spec.layout is not None:
        return spec.layout
    first, last = spec.shape[1] in _CHANNELS, spec.shape[3] in _CHANNELS
    if first and last:
        # [N, 3, 224, 3] can't be told; [N, 3, 4, 4] (a toy) and [N, 1, 28, 28] can by their square.
        first, last = spec.shape[2] == spec.shape[3], spec.shape[1] == spec.shape[2]
    if first == last:
        return None
    return "NCHW" if first else "NHWC"


@lru_cache(256)  # the same models are asked for wherever they're fed
def _try(sample: TensorSpec, spec: TensorSpec) -> Binding | None:
    stored = sample if takes_stored(sample, spec) else None
    if stored is None and sample.stands_for_reals != spec.stands_for_reals:
        return None
    permutation = _declared(sample, spec) or layout_permutation(sample.shape, spec.shape)
    if permutation is None:
        return None
    identity = permutation == tuple(range(len(permutation)))
    return Binding(sample.name, spec.name, None if identity else permutation, stored)


def _declared(sample: TensorSpec, spec: TensorSpec) -> tuple[int, ...] | None:
    """The permutation between declared layouts, which shapes of equal sizes can't tell."""
    return {("NCHW", "NHWC"): (0, 2, 3, 1), ("NHWC", "NCHW"): (0, 3, 1, 2)}.get(
        (str(sample.layout), str(spec.layout))
    )


def _agreeing(given: Sequence[Dimension], wanted: Sequence[Dimension], permutation: tuple[int, ...]) -> int:
    pairs = zip(permutation, wanted, strict=True)
    return sum(isinstance(size, int) and given[axis] == size for axis, size in pairs)


def _compatible(given: Dimension, wanted: Dimension) -> bool:
    return isinstance(given, str) or isinstance(wanted, str) or given == wanted


# What is said of data that fit a model's inputs by something else than their names.


@dataclass(frozen=True)
class Matching:
    """How a file's arrays were fitted to inputs, in words.

    Attributes:
        guesses: Arrays that feed an input of another name where another array would have fitted, too.
        others: What else a person who made the file for this model should know: other names, axes that were
            moved, arrays that feed nothing.
    """

    guesses: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


def matching(
    bindings: Sequence[Binding], samples: Sequence[TensorSpec], inputs: Sequence[TensorSpec], *, named: bool
) -> Matching:
    """Note how data was bound to inputs.

    Args:
        bindings: From `bind_inputs`.
        samples: The data's arrays.
        inputs: Of the model.
        named: Whether the data name their arrays; a lone array has no name.
    """
    known = {spec.name: spec for spec in samples}
    wanted = {spec.name: spec for spec in inputs}
    guesses, others = [], []
    for binding in bindings:
        if named and binding.sample != binding.input:
            words = (
                f"no array of the data is called {binding.input}; that input is fed {known[binding.sample]}, "
                "which fits by its shape"
            )
            rivals = [name for name in known if name not in wanted and name != binding.sample]
            if any(_fits(known[name], wanted[binding.input]) for name in rivals):
                guesses.append(f"{words}, as others do")
            else:
                others.append(words)
        if binding.permutation is not None:
            others.append(
                f"the data's array {known[binding.sample]} is transposed by {list(binding.permutation)} for the "
                f"input {wanted[binding.input]}"
            )
    fed = {(known[binding.sample].shape, known[binding.sample].dtype) for binding in bindings}
    for name in _unused(bindings, samples):
        alike = (known[name].shape, known[name].dtype) in fed
        stack = "; samples of one input stand in one array, one behind the other (numpy.concatenate)" if alike else ""
        others.append(f"the data's array {known[name]} feeds no input{stack}")
    return Matching(tuple(guesses), tuple(others))


def _unused(bindings: Sequence[Binding], samples: Sequence[TensorSpec]) -> Iterator[str]:
    taken = {binding.sample for binding in bindings}
    yield from (spec.name for spec in samples if spec.name not in taken)


def _fits(sample: TensorSpec, spec: TensorSpec) -> bool:
    try:
        return bool(bind_inputs([sample], [spec]))
    except DataError:
        return False
