"""Which tensors are the outputs of both networks: what must be the same, whatever the values say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from conrepair.diagnosis.localization.align.layout import Layout, layouts
from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.formats.networks.network import Network
from conrepair.ground.runtime.words import are_numbered


def named_alike(source: Sequence[str], target: Sequence[str]) -> list[tuple[str, str]]:
    """Pair names by name where both have the same, in order otherwise."""
    if set(source) == set(target):
        return [(name, name) for name in source]
    return list(zip(source, target, strict=False))


def partners(source: Network, target: Network, paired: Mapping[str, str]) -> list[tuple[str, str]]:
    """Outputs of both that stand for one another: by name or order, or, where neither says it, by what's known.

    What's known is of real numbers; others that have no name in common are taken in order, by their number of axes.

    Args:
        source: The network that is right.
        target: The other one.
        paired: The source's tensor for each of the target's, from the alignment.
    """
    if len(source.output_names) == len(target.output_names) and _are_paired(source, target):
        return named_alike(list(source.output_names), list(target.output_names))
    by_tensor = {tensor: name for name, tensor in target.output_names.items()}
    partner = {one: by_tensor[two] for two, one in paired.items() if two in by_tensor}
    found = [(name, partner[tensor]) for name, tensor in source.output_names.items() if tensor in partner]
    left = [name for name in source.output_names if name in target.output_names and name not in dict(found)]
    free = set(target.output_names) - {two for _, two in found}
    found += [(name, name) for name in left if name in free]
    known = {one for one, _ in found}, {two for _, two in found}
    ours, theirs = (_of_whole_numbers(side, names) for side, names in zip((source, target), known, strict=True))
    for one, axes in ours.items():
        two = next((name for name, other in theirs.items() if other == axes), None)
        if two is not None:
            del theirs[two]
            found.append((one, two))
    if len(source.output_names) == len(target.output_names):
        taken = [{pair[side] for pair in found} for side in (0, 1)]
        rest = [name for name in source.output_names if name not in taken[0]]
        found += zip(rest, [name for name in target.output_names if name not in taken[1]], strict=True)
    return found


def _are_paired(source: Network, target: Network) -> bool:
    """Whether outputs of two networks with as many say which is which: by their names, or by an order of both."""
    ordered = all(side.ordered or are_numbered(side.output_names) for side in (source, target))
    return ordered or set(source.output_names) == set(target.output_names)


def _of_whole_numbers(network: Network, known: Set[str]) -> dict[str, int | None]:
    """The other outputs that aren't real numbers, which no alignment has, each with its number of axes."""
    tensors = {name: network.graph.tensors[item] for name, item in network.output_names.items() if name not in known}
    return {
        name: None if tensor.shape is None else len(tensor.shape)
        for name, tensor in tensors.items()
        if not tensor.is_real
    }


def vary(source: Network, target: Network, ours: str, theirs: str) -> bool:
    """Whether only running both networks tells how large a tensor of each is, so that rows may be more or fewer."""
    return source.graph.tensors[ours].shape is None and target.graph.tensors[theirs].shape is None


def output_pairs(
    source: Network,
    target: Network,
    pairs: Sequence[Pair],
    shapes: tuple[Mapping[str, tuple[int, ...]], Mapping[str, tuple[int, ...]]],
) -> list[Pair]:
    """The pairs of outputs that the alignment doesn't have: the target gives something else there.

    Args:
        source: The network that is right.
        target: The other one.
        pairs: The alignment's.
        shapes: Of both networks' tensors.
    """
    known = {(pair.source, pair.target) for pair in pairs}
    layouts_of = {pair.target: pair.layout for pair in pairs}
    result = []
    for one, two in partners(source, target, {pair.target: pair.source for pair in pairs}):
        ours, theirs = source.output_names[one], target.output_names[two]
        if (ours, theirs) in known or ours in source.graph.inputs or theirs in target.graph.inputs:
            continue
        choices = layouts(shapes[0][ours], shapes[1][theirs])
        if not choices and vary(source, target, ours, theirs):
            axes = tuple(range(len(shapes[0][ours])))
            choices = (Layout(shapes[0][ours], shapes[0][ours], axes, shapes[0][ours]),)
        if choices:
            layout = layouts_of.get(theirs)  # of another tensor of the source, which may be of another shape
            fits = layout is not None and layout.source == shapes[0][ours]
            result.append(
                Pair(ours, theirs, layout if layout and fits else choices[0], 1.0, "outputs of both models")
            )
    return result
