"""What differs between the two sides of a region, read off the graphs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from conrepair.diagnosis.localization.align.layout import Layout, lies_along
from conrepair.diagnosis.localization.faces.attributes import (
    AttributeDifference,
    attribute_differences,
    is_same_operator,
)
from conrepair.diagnosis.localization.faces.changes import fixing_mutation
from conrepair.diagnosis.localization.faces.numbers.biases import bias_lost_before, with_whole_biases
from conrepair.diagnosis.localization.faces.numbers.changed import portion_of
from conrepair.diagnosis.localization.faces.numbers.normalization import (
    explain_folding,
    lacks_normalization,
    lost_statistics,
    rounded_before_folding,
)
from conrepair.diagnosis.localization.faces.numbers.parameters import (
    ParameterDifference,
    compare_parameters,
    hide_alike,
    mask_words,
)
from conrepair.diagnosis.localization.faces.preparing import (
    before_weights,
    feeds_weights,
    lost_preparation,
    prepared_in_weights,
)
from conrepair.diagnosis.localization.faces.region import Finding, Region, Side
from conrepair.diagnosis.localization.faces.steps.functions import same_function
from conrepair.diagnosis.localization.faces.steps.readings import (
    as_written,
    fused,
    normalized,
    pair_steps,
    rearranged,
    together,
    with_functions,
)
from conrepair.diagnosis.localization.faces.steps.steps import CASTS, MOVES, Step
from conrepair.diagnosis.localization.faces.wiring import wiring_findings
from conrepair.diagnosis.localization.numbers import naming
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Node, Parameter
from conrepair.ground.graph.operators import QUANTIZING

_ROUNDINGS = {"Round", "Floor", "Ceil"}
_CLAMPS = {"Clip", "Min", "Max"}
_HALF = {"float16", "bfloat16"}
_PREPARING = {  # what's done to pixels before the first layer
    *("Mul", "Add", "Sub", "Div", "Gather", "Function", "BatchNormalization", "Split", "Concat", "Rescaling"),
    *("Normalization", "Stack", "Slice"),
}
_OPTIONAL = {"bias": 0.0, "scale": 1.0, "mean": 0.0, "B": 0.0, "initial_h": 0.0, "initial_c": 0.0}
_READINGS = (as_written, with_functions, fused, rearranged)
_PORTIONING = {"Gather", "Slice", "Split"}
_BIAS_LOST = "a bias is lost"  # the rule, whether there's none or one of zeros, and of whatever
_FACTORS = {"alpha", "beta"}
_BROADCAST = {"operand", "slope"}
_SCALING = {"Mul": "multiplied", "Div": "divided"}
_BOUNDS = {"Max": "lower bound", "Min": "upper bound"}


@dataclass(frozen=True)
class RegionReading:
    """Both sides of a region as steps, and what differs.

    Attributes:
        pairs: In order; None where only the other side has a step.
        findings: What differs between them.
    """

    pairs: tuple[tuple[Step | None, Step | None], ...]
    findings: tuple[Finding, ...]


def pairings_of(source: Side, target: Side) -> Iterator[Sequence[tuple[Step | None, Step | None]]]:
    """The steps of both sides that belong together, in each way to read them.

    Args:
        source: Of the network that is right.
        target: Of the other one.

    Yields:
        Pairs in order; None where only the other side has a step.
    """
    norms = [any(node.op == "BatchNormalization" for node in side.nodes) for side in (source, target)]
    for read in (*_READINGS, normalized) if norms[0] != norms[1] else _READINGS:
        yield with_whole_biases(pair_steps(read(source), read(target)), (source.graph, target.graph))


def readings_of(region: Region) -> list[RegionReading]:
    """Readings of both graphs, as written and fused more and more; that with the fewest differences first."""
    found = [
        RegionReading(tuple(pairs), tuple(_compare(pairs, region)))
        for pairs in pairings_of(region.source, region.target)
    ]
    return sorted(found, key=lambda reading: _length(reading.findings))


def static_findings(region: Region) -> list[Finding]:
    """Compare both graphs; the reading with the fewest differences is the right one.

    Returns:
        Differences, the likeliest first.
    """
    chosen = [*readings_of(region)[0].findings, *wiring_findings(region)]
    return sorted(_without_own_bits(chosen, region), key=lambda item: -item.weight)


def _without_own_bits(findings: Sequence[Finding], region: Region) -> list[Finding]:
    """Leave out that values pass through few bits beside what else differs, where they do so elsewhere, too.

    A network whose activations are in few bits has that in front of each of its layers.
    """
    graph, inside = region.target.graph, {node.name for node in region.target.nodes}
    bits = {f"extra {node.layer}" for node in region.target.nodes if node.op in QUANTIZING}
    others = [item for item in findings if item.cause not in bits]
    elsewhere = any(node.op == "QuantizeLinear" and node.name not in inside for node in graph.nodes)
    return others if elsewhere and any(item.is_certain for item in others) else list(findings)


def _length(findings: Sequence[Finding]) -> float:
    """How many differences there are; infinitely many where none explains anything."""
    return sum(item.is_certain for item in findings) or np.inf


def _compare(pairs: Iterable[tuple[Step | None, Step | None]], region: Region) -> Iterator[Finding]:
    layouts, pairs = layouts_of(region), list(pairs)
    prepared = prepared_in_weights(pairs, region.source.graph)
    in_portions = any(ours and theirs and _is_portion(ours, theirs) for ours, theirs in pairs)
    for ours, theirs in pairs:
        if ours is None and theirs is not None:
            yield _extra(theirs, region)
        elif theirs is None and ours is not None:
            if not (in_portions and ours.op in _PORTIONING):
                found = _missing(ours, region)
                by_weights = prepared is not None and lost_preparation(ours, region.source.graph) is not None
                words = f"{found.words}: {prepared}"
                yield replace(found, kind=Kind.PREPROCESSING, words=words) if by_weights else found
        elif ours is not None and theirs is not None:
            mutated = _mutated(ours, theirs, region)
            differing = [mutated] if mutated else _both(ours, theirs, layouts, region)
            for item in differing:
                # A factor of the inputs in the weights isn't one that these should lose.
                by_weights = prepared is not None and "scaled by" in item.words
                yield replace(item, weight=naming.WRITTEN) if by_weights else item


def _is_portion(source: Step, target: Step) -> bool:
    """Whether the target's layer computes a portion of what the source's does, which takes it from that later."""
    ours, theirs = source.parameters.get("weight"), target.parameters.get("weight")
    if source.op != target.op or ours is None or theirs is None or ours.shape == theirs.shape:
        return False
    return portion_of(ours.numpy(), theirs.numpy()) is not None


def _mutated(source: Step, target: Step, region: Region) -> Finding | None:
    """The one node of elementwise ones that makes another function of them."""
    one, two = source.values, target.values
    if one is None or two is None or len(source.nodes) + len(target.nodes) < 3 or same_function(one, two):
        return None
    found = fixing_mutation(target.nodes[::-1], target.inputs[0], target.outputs[0], one)
    if found is None:
        lost = fixing_mutation(source.nodes[::-1], source.inputs[0], source.outputs[0], two)
        if lost is None or lost.other is not None:
            return None
        return _missing(together(lost.nodes, region.source.graph)[-1], region)
    if found.other is None:
        return extra_finding(found.nodes, region)
    (node,), other = found.nodes, found.other
    right = f"is {other.op} instead of {node.op}" if node.op != other.op else "has its operands exchanged"
    words = f"`{target.layer}` would compute what `{source.layer}` does if `{node.layer}` {right}"
    return Finding(Kind.GRAPH, words, source.layers, (node.layer, *target.layers))


def extra_finding(nodes: Sequence[Node], region: Region) -> Finding:
    """Nodes of the target that are too many.

    Args:
        nodes: In order, each reading the one before.
        region: That they are in.
    """
    return _extra(together(nodes, region.target.graph)[-1], region)


def layouts_of(region: Region) -> Mapping[int, Layout]:
    """How tensors lie, by their number of axes in the source; the one at the end counts most."""
    found = {
        len(layout.source): layout
        for layout in (region.layouts[name] for name in region.target.begins if name in region.layouts)
    }
    return {**found, len(region.layout.source): region.layout}


def _extra(step: Step, region: Region) -> Finding:
    what = f"{called(step)} `{step.layer}` is only in the converted model"
    kind, words = kind_of_extra(step, region)
    cuts = filter(None, map(region.partners.get, step.inputs))
    around = (*map(region.source.graph.layer_of, cuts), *_neighbours(region.source))
    weight, rule = _weight(step, extra=True), f"{called(step)} is only in the converted model{words}"
    return Finding(kind, f"{what}{words}", around, step.layers, f"extra {step.layer}", weight, rule)


def _missing(step: Step, region: Region) -> Finding:
    what = f"{called(step)} `{step.layer}` of the original is missing in the converted model"
    kind = Kind.INPUT if step.op == "Transpose" and region.starts_at_input else Kind.GRAPH
    if step.op in {"Transpose", "Gather", "Reshape"} and not region.starts_at_input:
        kind = Kind.STRUCTURE
    rule = f"{called(step)} is missing in the converted model"
    factor = step.parameters.get("operand")
    if step.op in _SCALING and factor is not None and factor.shape in {(), (1,)}:
        what = f"{what}: values aren't {_SCALING[step.op]} by {factor.numpy().reshape(-1)[0]:.6g}"
    if bias_lost_before(step, region):
        kind, what = Kind.PARAMETERS, f"{what}: the layer before it has no bias, or one of zeros"
        rule = _BIAS_LOST
    if (lost := lost_preparation(step, region.source.graph)) is not None:
        what, rule = lost, f"the preprocessing of the inputs by {called(step)} is missing"
    theirs = {source: target for target, source in region.partners.items()}
    cuts = [theirs[name] for name in step.inputs if name in theirs]
    before = map(region.target.graph.layer_of, cuts)
    weight = naming.WRITTEN if _is_in_range(step, region) else _weight(step, extra=False)
    # Where others read the same, only who reads it here tells where something is missing.
    readers = [node.layer for node in region.target.nodes if set(node.inputs) & set(cuts)]
    consumers = region.target.graph.consumers
    shared = any(sum(node.inputs.count(cut) for node in consumers.get(cut, ())) > 1 for cut in cuts)
    nearest = [*(readers or _neighbours(region.target)), *before] if shared else before
    around = (*nearest, *_neighbours(region.target))
    return Finding(kind, what, step.layers, around, f"missing {step.layer}", weight, rule)


def _is_in_range(step: Step, region: Region) -> bool:
    """Whether the integers at the end hold no values that a clamp of the source would change."""
    end = region.target.graph.tensors[region.target.end]
    low, high = (0.0, None) if step.op == "Relu" else (step.attributes.get("min"), step.attributes.get("max"))
    if step.op not in {"Relu", "Clip"} or end.quantization is None or end.stored is None:
        return False
    (least, most), near = end.stored, end.quantization.scale
    above = not isinstance(low, int | float) or least >= low - near
    return above and (not isinstance(high, int | float) or most <= high + near)


def _weight(step: Step, *, extra: bool) -> float:
    if step.op in {"Identity", "Expand", "Cast"} and not _narrows(step):
        return 0.05
    if step.op == "Reshape":
        return 0.05
    if step.op == "Transpose":
        return 0.3 if extra else 0.1
    joins = len(dict.fromkeys(filter(None, step.inputs))) > 1
    return naming.ALONE_JOINING if joins else naming.ALONE


def kind_of_extra(step: Step, region: Region) -> tuple[Kind, str]:
    """The kind of fault that a step is which only the target has, and words for what it does to values."""
    if step.op == "Rounding":
        return Kind.PRECISION, f": values are rounded to steps of {step.attributes['step']:g}"
    if step.op in _ROUNDINGS:
        return Kind.PRECISION, ": values are rounded"
    if step.op in CASTS:
        return Kind.PRECISION, f": values pass through {step.attributes.get('to') or 'fewer bits'}"
    if step.op == "Transpose":
        reshaped = any(node.op == "Reshape" for node in region.target.nodes)
        if region.starts_at_input and not reshaped:
            return Kind.INPUT, f": axes {step.attributes.get('perm')} of the input are exchanged"
        return Kind.STRUCTURE, f": axes are exchanged by {step.attributes.get('perm')}"
    if step.op == "Reshape":
        return Kind.STRUCTURE, ": values are laid out in another order"
    at_output = region.target.end in region.target.graph.outputs
    if step.op in {"Gather", "Slice", "Concat", "Pad"} and at_output and not region.source.nodes:
        return Kind.STRUCTURE, ": outputs are at other indices"
    if step.op in _CLAMPS and any(_is_clamped(region.partners.get(name), region) for name in step.inputs):
        return Kind.HYPERPARAMETERS, ": values are clipped once more, at other bounds"
    graph = region.target.graph
    if step.op in _PREPARING and before_weights(step, graph) and feeds_weights(step, graph):
        return Kind.PREPROCESSING, ": the input is preprocessed in another way"
    low, high = step.attributes.get("min"), step.attributes.get("max")
    if step.op == "Clip" and isinstance(low, float) and isinstance(high, float) and low < 0 < high:
        return Kind.PRECISION, f": values saturate at {low:g} and {high:g}"
    return Kind.GRAPH, ""


def _is_clamped(name: str | None, region: Region) -> bool:
    """Whether a tensor of the source comes out of a clipping with bounds."""
    node = region.source.graph.producers.get(name or "")
    return node is not None and node.op in {"Clip", "Relu"}


def _both(source: Step, target: Step, layouts: Mapping[int, Layout], region: Region) -> Iterator[Finding]:
    where = (source.layers, target.layers)
    one, two = f"`{source.layer}`", f"`{target.layer}`"
    attributes = list(_attributes(source, target, layouts)) if is_same_operator(source, target) else []
    if source.op != target.op and not attributes:
        if source.values is not None and target.values is not None and same_function(source.values, target.values):
            return
        kind = Kind.HYPERPARAMETERS if {source.op, target.op} <= {"Clip"} else Kind.GRAPH
        theirs, ours = called(target), f"{called(source)}{_only(source, target)}"
        words, rule = f"{two} is {theirs}, {one} of the original is {ours}", f"{ours} became {theirs}"
        yield Finding(kind, words, *where, rule=rule)
        return
    if source.op == "Function" and source.values is not None and target.values is not None:
        if not same_function(source.values, target.values):
            words = f"{two} computes another function than {one} of the original"
            rule = f"{called(source)} computes another function"
            yield Finding(Kind.GRAPH, words, *where, rule=rule)
        return
    yield from attributes
    yield from _parameters(source, target, region)
    if target.nodes and _narrow(target.nodes[0]) and not _narrow(source.nodes[0]):
        yield Finding(Kind.PRECISION, f"{two} computes in half precision, {one} doesn't", *where, weight=0.8)
    if source.has_exchanged(target):
        yield Finding(Kind.GRAPH, f"the operands of {two} are exchanged", *where)


def _attributes(source: Step, target: Step, layouts: Mapping[int, Layout]) -> Iterator[Finding]:
    """Attributes that differ; those of one kind together, as dilations with the pads that go with them."""
    alike: dict[tuple[Kind, float], list[AttributeDifference]] = {}
    for differing in attribute_differences(source, target, layouts):
        alike.setdefault((differing.kind, _weight_of(differing, source.op)), []).append(differing)
    for (kind, weight), found in alike.items():
        padding = [node.layer for node in target.nodes if node.op == "Pad" and any(it.name == "pads" for it in found)]
        layers, words = (*padding, *target.layers), ", and ".join(it.words for it in found)
        named, rule = f"`{target.layer}` has {words}", f"{called(target)} has {words}"
        yield Finding(kind, named, source.layers, layers, f"at {target.layer}", weight, rule)


def _weight_of(differing: AttributeDifference, operator: str) -> float:
    if differing.name == "keepdims":
        return naming.WRITTEN  # axes of 1, which a layout has room for
    if operator in MOVES:
        return 0.3
    if not differing.is_said:
        return naming.UNSAID
    return naming.ALONG if differing.name in {"axis", "axes"} else 1.0


def _broadcast_elsewhere(ours: Parameter, theirs: Parameter, region: Region) -> ParameterDifference | None:
    """The same numbers along another axis of a tensor: a slope of [4] that should be one of [4, 1, 1]."""
    shape = region.layout.target
    if shape != region.layout.source or not region.layout.is_plain or ours.shape == theirs.shape:
        return None
    if len(region.source.nodes) != 1 or len(region.target.nodes) != 1 or math.prod(ours.shape) == 1:
        return None
    along = lies_along(ours.shape), lies_along(theirs.shape)
    if along[0] == along[1] or math.prod(ours.shape) != math.prod(theirs.shape):
        return None
    words = "of shape {} in the converted model, {} in the original: it lies along axis {}, not {}"
    told = words.format(list(theirs.shape), list(ours.shape), *(", ".join(map(str, axes)) for axes in along[::-1]))
    return ParameterDifference(Kind.PARAMETERS, told, 1.0)


def _parameters(source: Step, target: Step, region: Region) -> Iterator[Finding]:
    graph = region.target.graph
    where = (source.layers, target.layers)
    if source.op == target.op == "Where" and _chooses_otherwise(source, target):
        # By which condition or by its opposite is a matter of writing.
        words = "has the condition inverted: its branches are exchanged"
        rule = f"{called(target)} {words}"
        yield Finding(Kind.GRAPH, f"`{target.layer}` {words}", *where, weight=naming.WRITTEN, rule=rule)
        return
    explained: set[str] = set()
    for role in dict.fromkeys([*source.parameters, *target.parameters]):
        ours, theirs = source.parameters.get(role), target.parameters.get(role)
        if source.op != target.op and (ours is None or theirs is None):
            continue  # one of the two has it as an attribute
        if ours is None or theirs is None:
            held = ours if theirs is None else theirs
            usual = _OPTIONAL.get(role)
            if held is None or (usual is not None and np.allclose(held.numpy(), usual, atol=1e-12)):
                continue
            if any(node.sizes for node in (target if theirs is None else source).nodes):
                continue  # there it's computed from sizes
            side = "the original" if theirs is None else "the converted model"
            named = f" ({held.name})" if held.name else ""
            if held.shape in {(), (1,)} and held.dtype != "object":
                named += f" of {held.numpy().reshape(-1)[0]:.6g}"
            article = "an" if role[:1] in "aeiou" else "a"
            words = f"only {side} has {article} {role}{named} at `{target.layer}`"
            is_lost = role == "bias" and theirs is None
            rule = _BIAS_LOST if is_lost else f"only {side} has {article} {role} at {called(target)}"
            # So is what's chosen where.
            weight = naming.WRITTEN if source.op == target.op == "Where" else 1.0
            yield Finding(Kind.PARAMETERS, words, *where, weight=weight, rule=rule)
            continue
        elsewhere = _broadcast_elsewhere(ours, theirs, region) if role in _BROADCAST else None
        difference = elsewhere or _compared(ours, theirs, region)
        if difference is None:
            continue
        written = _written(source, target, difference)
        if written:
            rule = f"{called(target)} has {written}"
            yield Finding(Kind.HYPERPARAMETERS, f"`{target.layer}` has {written}", *where, rule=rule)
            continue
        if role == "bias" and difference.words.startswith("negated") and (taken := _taken_away(source, target)):
            words = f"`{taken.layer}` subtracts the bias that the original adds"
            layers = (taken.layer, *target.layers)
            yield Finding(Kind.GRAPH, words, source.layers, layers, f"at {target.layer}")
            continue
        if lacks_normalization(source, target, graph):
            words = f"no normalization follows `{target.layer}`, as it follows other {called(target)} layers"
            yield Finding(Kind.GRAPH, words, *where)
            return
        lost = lost_statistics(source, target, graph)
        if lost is not None:
            layers = (lost[0].layer, *target.layers)
            yield Finding(Kind.PARAMETERS, lost[1], source.layers, layers, f"at {target.layer}")
            return
        folding = explain_folding(source, target, role)
        if folding is not None:
            kind, words, rule = folding
            if words not in explained:
                yield Finding(kind, f"`{target.layer}`: {words}", *where, rule=rule)
            explained.add(words)
            continue
        difference = rounded_before_folding(difference, source, target, role)
        maker = f", which `{theirs.made_by}` computes" if theirs.made_by else ""
        named = f" ({theirs.name}{maker})" if theirs.name else ""
        plural = "are" if role in {"weight", "W", "R", "indices"} else "is"
        label = "weights" if role == "weight" else _BOUNDS.get(source.op, role) if role == "operand" else role
        difference = _as_it_is(difference, ours, theirs, role)
        if difference.disturbed and (other := region.source.graph.holder(theirs.numpy())):
            back = graph.holder(ours.numpy())
            words = f", and those of this layer are in `{back}`: they're exchanged" if back else ""
            difference = replace(difference, words=f"those of `{other}` of the original{words}", disturbed=False)
        told = difference.relative > 1e-4 and not hide_alike(ours.numpy(), theirs.numpy())
        weight = 1.0 if told else naming.WRITTEN
        rule = difference.rule or f"the {label} of {called(target)} {plural} {difference.words}"
        if role == "bias" and not theirs.numpy().any():
            rule = _BIAS_LOST
        made = [(item.made_by,) if item.made_by else () for item in (ours, theirs)]
        yield Finding(
            difference.kind,
            f"the {label}{named} of `{target.layer}` {plural} {difference.words}",
            (*made[0], *source.layers),
            (*made[1], *target.layers),
            weight=weight,
            rule=rule,
            disturbed=difference.relative if difference.disturbed else 0.0,
        )


def _compared(source: Parameter, target: Parameter, region: Region) -> ParameterDifference | None:
    """How one parameter differs; readings that have both in common ask for it once."""
    both = source.numpy, target.numpy
    if both not in region.differences:
        region.differences[both] = compare_parameters(source, target)
    return region.differences[both]


def _as_it_is(
    difference: ParameterDifference, source: Parameter, target: Parameter, role: str
) -> ParameterDifference:
    """What a difference is of: one number, or a mask, isn't scaled or rounded."""
    one, two = source.numpy(), target.numpy()
    if one.size == two.size == 1 and {one.dtype.kind, two.dtype.kind} <= set("fiu"):
        words = f"{two.reshape(-1)[0]:.6g} in the converted model, {one.reshape(-1)[0]:.6g} in the original"
        return replace(difference, kind=Kind.PARAMETERS, words=words)
    of_mask = mask_words(one, two) if role.startswith(("operand", "condition")) else None
    return difference if of_mask is None else replace(difference, kind=Kind.PARAMETERS, words=of_mask)


def _chooses_otherwise(source: Step, target: Step) -> bool:
    """Whether both choose between a tensor and the same numbers, the one where the other doesn't."""
    ours, theirs = source.parameters, target.parameters
    if sorted([*ours, *theirs]) != ["x", "y"]:
        return False
    [one], [two] = ours.values(), theirs.values()
    return compare_parameters(one, two) is None


def _taken_away(source: Step, target: Step) -> Node | None:
    """The node of the target that subtracts a constant, where the source adds one."""
    if any(node.op == "Sub" for node in source.nodes):
        return None
    return next((node for node in target.nodes if node.op == "Sub" and "operand" in node.parameters), None)


def _written(source: Step, target: Step, difference: ParameterDifference) -> str:
    """Attributes of the files that differ as the parameters do, where the graph has them in the parameters."""
    ours, theirs = source.nodes[0].written, target.nodes[0].written
    scaled = difference.words.startswith(("scaled", "negated", "zero"))
    differing = [
        name
        for name in ours
        if name in theirs
        and ours[name] != theirs[name]
        and (scaled if name in _FACTORS else difference.words.startswith("transposed"))
    ]
    return ", ".join(
        f"{name} {theirs[name]} in the converted model, {ours[name]} in the original" for name in differing
    )


def _only(source: Step, target: Step) -> str:
    """Attributes of the source that the target's operator doesn't have."""
    names = [name for name, value in source.attributes.items() if name not in target.attributes and value is not None]
    return f" with {', '.join(f'{name} {source.attributes[name]}' for name in names)}" if names else ""


def _neighbours(side: Side) -> list[str]:
    """Layers of a side, or what computes the cut where it has none."""
    return list(side.layers) or [side.graph.layer_of(side.end)]


def called(step: Step) -> str:
    """A step's operator, for a person."""
    return step.nodes[0].native if len(step.nodes) == 1 else step.op  # of several, what they are together


def _narrows(step: Step) -> bool:
    return step.op in QUANTIZING or str(step.attributes.get("to")) in {*_HALF, "int8", "uint8"}


def _narrow(node: Node) -> bool:
    return any(parameter.dtype in _HALF for parameter in node.parameters.values())
