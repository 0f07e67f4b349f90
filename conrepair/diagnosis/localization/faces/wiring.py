"""Which tensors two regions read: branches that are lost, added, or exchanged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conrepair.diagnosis.localization.faces.region import Finding, Region, Side
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.operators import COMMUTATIVE


def wiring_findings(region: Region) -> Iterator[Finding]:
    """Differences in the tensors that both segments read, or in their order."""
    if not region.target.nodes or not region.source.nodes:
        return
    ours = list(region.source.begins)
    theirs = [region.partners.get(name, "") for name in region.target.begins]
    inputs = set(region.source.graph.inputs)
    if set(ours) == set(theirs):
        yield from _order(region, ours, theirs)
        return
    lost = [name for name in ours if name not in theirs]
    added = [place for name, place in zip(theirs, region.target.begins, strict=True) if name and name not in ours]
    names = (
        _reader_layers(region.source, lost) or region.source.layers,
        _reader_layers(region.target, added) or region.target.layers,
    )
    if lost and added and set(lost) <= inputs:
        words = f"reads {added} where the original reads {lost}"
        yield Finding(Kind.INPUT, f"`{names[1][0]}` {words}: the inputs are exchanged", *names, "inputs")
    elif lost or added:
        reader = names[1][0]
        if lost and added:
            words = f"`{reader}` reads {added} in the converted model, {lost} in the original"
            cause, weight, rule = f"other {lost}", 0.7, "reads another tensor than in the original"
        elif lost:
            words = f"{lost} isn't read by `{reader}` in the converted model: a branch is missing"
            cause, weight, rule = f"lost {lost}", 0.7, "doesn't read a tensor that it reads in the original"
        else:
            words = f"{added} is read by `{reader}` in the converted model only"
            cause, weight, rule = f"added {added}", 0.5, "reads a tensor that it doesn't read in the original"
        yield Finding(Kind.GRAPH, words, *names, cause, weight, _rule(region.target, reader, rule))


def _order(region: Region, ours: Sequence[str], theirs: Sequence[str]) -> Iterator[Finding]:
    """The same tensors, by operators that mind the order."""
    sides = [
        [node for node in side.nodes if len(set(filter(None, node.inputs))) > 1]
        for side in (region.source, region.target)
    ]
    for one, two in zip(*sides, strict=False):
        if one.op != two.op or one.op in COMMUTATIVE:
            continue
        translated = [region.partners.get(name) for name in two.inputs]
        if (
            None not in translated
            and list(one.inputs) != translated
            and sorted(one.inputs) == sorted(map(str, translated))
        ):
            at_input = all(name in region.source.graph.inputs for name in one.inputs)
            kind = Kind.INPUT if at_input else Kind.STRUCTURE if one.op in {"Concat", "Stack"} else Kind.GRAPH
            yield Finding(
                kind,
                f"the operands of `{two.layer}` are in another order",
                (one.layer,),
                (two.layer,),
                f"order {two.layer}",
                rule=f"the operands of {two.native} are in another order",
            )


def _rule(side: Side, layer: str, words: str) -> str:
    return next((f"{node.native} {words}" for node in side.nodes if node.layer == layer), "")


def _reader_layers(side: Side, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(node.layer for node in side.nodes if set(node.inputs) & set(names)))
