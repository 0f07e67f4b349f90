"""A model's signature, which its callers rely on: the order of its outputs, their types, ranks and axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conrepair.ground.data.pictures.byte_pictures import taken_apart
from conrepair.ground.data.tensor_spec import TensorSpec, numpy_dtype
from conrepair.verdicts.evaluate.pairing import OutputPair
from conrepair.verdicts.evaluate.run import Run

Sizes = tuple[int | str, ...]

_PICTURE = 4  # axes of an array that has samples, channels, rows and columns
_MOVABLE = 2  # axes of a sample that can be in another order


def changed_face(
    reference: Run, candidate: Run, pairs: Sequence[OutputPair], *, strict: bool
) -> tuple[dict[str, str], dict[str, str]]:
    """How the signatures of two models differ, though the numbers may be right.

    Names are the format's own, and conversions change them: only where both models have the same ones do they say
    that the order is another. Sizes of one that are added or lost count. So does another order of an output's axes,
    but for the move of the channels between formats that have them elsewhere. A network that takes an input in
    another layout and whose numbers are right undoes that layout itself, which is no fault; nor is an output whose
    channels are where those of the inputs are.

    Args:
        reference: The specification.
        candidate: The run to judge.
        pairs: Which outputs stand for one another.
        strict: Whether another layout is a fault, too.

    Returns:
        In words, by the reference's outputs and inputs, what is a fault, however right the numbers are; and likewise
        other layouts, which the network undoes or keeps to itself.
    """
    changed: dict[str, str] = {}
    layouts: dict[str, str] = {}
    for name, words, is_layout in _changes(reference, candidate, pairs):
        side = layouts if is_layout and not strict else changed
        side[name] = f"{side[name]}; {words}" if name in side else words
    return changed, layouts


def _changes(reference: Run, candidate: Run, pairs: Sequence[OutputPair]) -> Iterator[tuple[str, str, bool]]:
    """Differences of the signature by the reference's names, in words, and whether each is only another layout."""
    ours, theirs = ([spec.name for spec in run.outputs] for run in (reference, candidate))
    if reference.ordered and candidate.ordered and set(ours) == set(theirs) and ours != theirs:
        moved = next(one for one, two in zip(ours, theirs, strict=True) if one != two)
        words = f"the outputs' order is {_listing(theirs)}, in the original {_listing(ours)}"
        yield moved, f"{words}: code that reads outputs by index gets another one", False
    for pair in pairs:
        for words in _output(reference.spec(pair.reference), candidate.spec(pair.candidate), candidate):
            yield pair.reference, words, False
        if words := _axes(pair, reference, candidate):
            yield pair.reference, words, _goes_along(pair, reference, candidate)
    yield from _inputs(reference, candidate)


def _goes_along(pair: OutputPair, reference: Run, candidate: Run) -> bool:
    """Whether an output's channels went where those of an input did, or it's a picture that is made of no such."""
    order = pair.permutation or ()
    unmoved = tuple(range(1, len(order)))
    ways = [way for way in (0, 1) if _channels_moved(unmoved)[1 - way] == order[1:]]
    sizes = [(tuple(one.shape[1:]), tuple(two.shape[1:])) for one, two in _paired_inputs(reference, candidate)]
    if sizes and all(len(ours) < _MOVABLE for ours, _ in sizes):
        return bool(ways) and len(order) >= _PICTURE
    return any(ours != theirs == _channels_moved(ours)[way] for ours, theirs in sizes for way in ways)


def _channels_moved(sizes: Sizes) -> tuple[Sizes, Sizes]:
    """A sample's sizes with the channels brought to the end, and brought from there to the beginning."""
    return (*sizes[1:], *sizes[:1]), (*sizes[-1:], *sizes[:-1])


def _axes(pair: OutputPair, reference: Run, candidate: Run) -> str:
    """Axes in an order that isn't the formats'; "" where they aren't."""
    ours, theirs = (
        list(run.arrays[name].shape[1:]) for run, name in ((reference, pair.reference), (candidate, pair.candidate))
    )
    moved = sorted(ours) == sorted(theirs) and ours != theirs and bool(reference.channels)
    if pair.flat and len(ours) == len(theirs):
        words = f"output `{pair.candidate}` has the shape {theirs} for each sample"
        return f"{words}, `{pair.reference}` of the original {ours}"
    if not pair.exchanged and not (moved and reference.channels == candidate.channels):
        return ""
    order = f", in the order {[axis for axis in pair.permutation if axis]}" if pair.permutation else ""
    words = f"output `{pair.candidate}` has its axes in another order than `{pair.reference}` of the original"
    return f"{words}: {theirs} for each sample{order}, in the original {ours}"


def _inputs(reference: Run, candidate: Run) -> Iterator[tuple[str, str, bool]]:
    """Inputs whose keys or layout differ from the original's, as `_changes` has it."""
    if reference.channels != candidate.channels or not reference.channels:
        return  # formats that have another order
    for one, two in _paired_inputs(reference, candidate):
        for words in _keys(one, two, "input"):
            yield one.name, words, False
        sizes = [list(spec.shape[1:]) for spec in (one, two)]
        known = all(isinstance(size, int) for size in (*sizes[0], *sizes[1]))
        if known and sizes[0] != sizes[1] and sorted(map(str, sizes[0])) == sorted(map(str, sizes[1])):
            words = f"input `{two.name}` takes the shape {sizes[1]} for each sample, `{one.name}` of the original "
            words += f"{sizes[0]}"
            yield one.name, words, True


def _paired_inputs(reference: Run, candidate: Run) -> Iterator[tuple[TensorSpec, TensorSpec]]:
    """By their names, where both have the same, else by their places; without pictures that one side prepares."""
    ours, theirs = reference.inputs, candidate.inputs
    named = {spec.name: spec for spec in theirs}
    alike = set(named) == {spec.name for spec in ours}
    for place, one in enumerate(ours if len(ours) == len(theirs) else ()):
        two = named[one.name] if alike else theirs[place]
        if taken_apart([one], [two]) is None:  # else the order of axes belongs to how one side prepares pictures
            yield one, two


def _listing(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _output(one: TensorSpec, two: TensorSpec, candidate: Run) -> Iterator[str]:
    """How an output's type, keys and rank differ.

    Texts became numbers, real numbers whole ones, or the reverse, where stored integers stand for real numbers; a map
    has other keys; or it has another number of axes.
    """
    if "string" in {one.dtype, two.dtype}:
        same = one.dtype == two.dtype
    else:
        same = two.name in candidate.assumed or _is_real(one) == _is_real(two)
    if not same:
        yield f"output `{two.name}` is {two.dtype}, `{one.name}` of the original is {one.dtype}"
    yield from _keys(one, two)
    if len(one.shape) != len(two.shape):
        theirs, ours = (f"([{', '.join(map(str, spec.shape))}])" for spec in (two, one))
        words = f"output `{two.name}` has {len(two.shape)} axes {theirs}, `{one.name}` of the original has"
        yield f"{words} {len(one.shape)} {ours}"


def _is_real(spec: TensorSpec) -> bool:
    return spec.stands_for_reals or numpy_dtype(spec.dtype).kind == "c"


def _keys(one: TensorSpec, two: TensorSpec, what: str = "output") -> Iterator[str]:
    """Maps of other keys; what a model gives as a tensor has none."""
    theirs, ours = (", ".join(map(repr, spec.keys)) for spec in (two, one))
    if one.keys and two.keys and one.keys != two.keys:
        yield f"{what} `{two.name}` is a map with the keys {theirs}, `{one.name}` of the original has the keys {ours}"
