"""From a guilty region to a fault: its kind, its layers with the guiltiest first, its evidence."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from conrepair.diagnosis.localization.faces.composites import composite_findings
from conrepair.diagnosis.localization.faces.differences import static_findings
from conrepair.diagnosis.localization.faces.exchanged_tensors import (
    crossed_findings,
    exchange_findings,
    exchanged_layer_findings,
)
from conrepair.diagnosis.localization.faces.numbers.values import relation
from conrepair.diagnosis.localization.faces.numbers.vanished import vanished_findings
from conrepair.diagnosis.localization.faces.numbers.zero_points import zero_point_findings
from conrepair.diagnosis.localization.faces.recurrent.recurrent import recurrent_findings
from conrepair.diagnosis.localization.faces.recurrent.rotary import rotary_findings
from conrepair.diagnosis.localization.faces.region import Finding, Region, Side
from conrepair.diagnosis.localization.faces.shuffled import (
    is_mixed,
    origin_findings,
    shuffled_findings,
    turned_findings,
)
from conrepair.diagnosis.localization.faces.sizing import mask_findings, size_findings
from conrepair.diagnosis.localization.faces.steps.steps import MOVES
from conrepair.diagnosis.localization.judge.judgement import Judged
from conrepair.diagnosis.localization.numbers import naming
from conrepair.diagnosis.localization.result import MEASURED, OPERAND, LocatedFault
from conrepair.ground.graph.kinds import OF_INPUTS, Kind
from conrepair.ground.graph.layer_graph import Array, Node
from conrepair.ground.runtime.plugins import Registry
from conrepair.ground.runtime.words import percent

DIAGNOSES: Registry[Callable[[Region], Iterable[Finding]]] = Registry(
    "diagnoses",
    {
        "vanished": vanished_findings,
        "zero-points": zero_point_findings,
        "exchanged": exchange_findings,
        "rotary": rotary_findings,
        "recurrent": recurrent_findings,
    },
    Callable,
)
"""What says that it explains a region by itself."""

_ENOUGH = 1 << 18  # numbers that show how values are related


@dataclass(frozen=True)
class Diagnosis:
    """A fault of a region, of which it may have several.

    Attributes:
        fault: For a report.
        cause: The same for all regions that one thing makes guilty.
        disturbed: Largest relative L2 of its numbers, where these alone are off, without a rule; 0 else.
        alone: Whether it's all that's wrong in the region.
    """

    fault: LocatedFault
    cause: str
    disturbed: float
    alone: bool = True


def diagnose(region: Region, judged: Judged) -> LocatedFault:
    """Diagnose a region, as one fault.

    Args:
        region: What lies between the cuts.
        judged: Its measurement.
    """
    return _diagnosis(_certain(region), region, judged).fault


def diagnose_each(region: Region, judged: Judged) -> list[Diagnosis]:
    """The same, where several layers in a row are wrong, each by itself: no cut lies between them then.

    Returns:
        What's likeliest first.
    """
    certain = _certain(region)
    groups = _apart(certain, region)
    if len(groups) < 2:
        return [_diagnosis(certain, region, judged)]
    return [replace(_diagnosis(group, region, judged, several=True), alone=False) for group in groups]


def _apart(findings: Sequence[Finding], region: Region) -> list[list[Finding]]:
    """Findings by the layers that they're of; all together where one of them may be another way to write the other.

    Layers that stand for one another differ by themselves, and so does an operator without numbers that's lost. What
    only the target has may be how it writes what it seems to lack; fewer bits are of all that's computed in them.
    """
    groups: dict[str, list[Finding]] = {}
    gone = {name for item in findings if item.cause.startswith("missing ") for name in item.source_layers[:1]}
    missing = [node for node in region.source.nodes if node.layer in gone]
    for item in findings:
        if item.cause.startswith("extra ") or item.kind is Kind.PRECISION:
            return [list(findings)]
        if item.weight >= naming.SOLE and (item.cause.startswith("at ") or _is_lost_function(item, region, missing)):
            groups.setdefault(item.cause, []).append(item)
    rest = [item for item in findings if not any(item in group for group in groups.values())]
    return [[*group, *(rest if place == 0 else ())] for place, group in enumerate(groups.values())]


def _is_lost_function(finding: Finding, region: Region, missing: Sequence[Node]) -> bool:
    """Whether an activation or pooling is missing in the target, without the branch that it belongs to."""
    lost = [node for node in missing if node.layer in finding.source_layers]
    functions = all(not node.parameters and node.op not in MOVES for node in lost)
    return bool(lost) and functions and not any(_is_of_lost_branch(node, region, missing) for node in lost)


def _is_of_lost_branch(node: Node, region: Region, missing: Sequence[Node]) -> bool:
    """Whether a node is missing with all that's before it, and with what adds this to a tensor that's still read."""
    read = {region.partners.get(name) for name in region.target.begins}
    joins = [other for other in missing if other is not node and len({*other.inputs}) > 1 and read & {*other.inputs}]
    begins, graph = {*region.source.begins}, region.source.graph
    before, *whole = (graph.between(begins, [item.outputs[0]]) for item in (node, *joins))
    return all(item in missing for item in before) and any(node in nodes for nodes in whole)


def _told(name: str, region: Region) -> list[Finding]:
    """What a diagnosis says; nothing where a plug-in's fails, which must not cost what all others have found."""
    try:
        return list(DIAGNOSES[name](region))
    except Exception:
        if name in DIAGNOSES.own:
            raise
        logging.getLogger("conrepair").exception("the diagnosis %s of a plug-in fails", name)
        return []


def _certain(region: Region) -> list[Finding]:
    """The findings that are certain; the likeliest one where none is."""
    findings = [*mask_findings(region), *static_findings(region)] or _exchanged(region)
    proven = [finding for name in DIAGNOSES for finding in _told(name, region)]
    if not proven and not any(crossed_findings(region)):
        proven = list(exchanged_layer_findings(region))
    findings = proven or composite_findings(region, findings) or findings
    if not proven:
        sized = list(size_findings(region))
        if sized and is_mixed(region):  # which axis is which behind them, no layout tells
            findings = sized
        elif not any(item.is_certain and item.kind is not Kind.STRUCTURE for item in findings):
            origins = list(origin_findings(region))
            moved = [*sized, *crossed_findings(region), *turned_findings(region)]
            findings = moved or [*(shuffled_findings(region) if origins else ()), *origins] or findings
    return [item for item in findings if item.is_certain] or findings[:1]


def _diagnosis(certain: Sequence[Finding], region: Region, judged: Judged, *, several: bool = False) -> Diagnosis:
    """Findings as a fault; of several that share a region, values say nothing."""
    pair = judged.cut.pair
    values = _few(region.expected, region.computed)
    # Where the graphs explain it, values only add words, which large ones take long to find.
    known = any(item.is_certain for item in certain) and values[0].size > _ENOUGH
    seen = None if known or several else relation(*values)
    if seen is not None and seen[0] is Kind.PRECISION and region.target.graph.tensors[pair.target].quantization:
        seen = None  # its steps are no news
    kind = _kind(certain, seen, region)
    evidence = [item.words for item in certain]
    if seen is not None:
        evidence.append(f"the result is {seen[1]}")
    evidence.append(
        f"{MEASURED}: {percent(judged.introduced)} (rounding error: {percent(judged.floor)}), "
        f"{percent(judged.full)} in the full run"
    )
    if judged.effect is not None:
        evidence.append(
            "large values hide this error until they are subtracted: it changes the outputs by "
            f"{percent(judged.effect)}"
        )
    layers = _ordered([name for item in certain for name in item.target_layers], region.target)
    fault = LocatedFault(
        kind=kind,
        source_layers=_ordered([name for item in certain for name in item.source_layers], region.source),
        target_layers=layers,
        introduced_error=judged.introduced,
        full_run_error=judged.full,
        noise_floor=judged.floor,
        confidence=_confidence(pair.confidence, certain),
        evidence=tuple(dict.fromkeys(evidence)),
        source_tensor=pair.source,
        target_tensor=pair.target,
        differences=_differences(certain),
        at_input=kind in OF_INPUTS and layers[0] in region.target.graph.inputs,
        holds=_roles(layers[0], region.target),
    )
    explained = bool(certain) and certain[0].is_certain
    cause = certain[0].cause if explained else f"unexplained {_ordered([], region.target)[0]}"
    disturbed = [item.disturbed for item in certain]
    return Diagnosis(fault, cause, max(disturbed) if disturbed and all(disturbed) else 0.0)


def _differences(findings: Sequence[Finding]) -> tuple[tuple[str, str], ...]:
    """What explains a fault, without names, each with its layer."""
    named = ((item.rule, item.target_layers[0]) for item in findings if item.rule and item.target_layers)
    return tuple(dict.fromkeys(named))


def _roles(layer: str, side: Side) -> tuple[str, ...]:
    """What the numbers are for that a layer holds."""
    return tuple(dict.fromkeys(role for node in side.nodes if node.layer == layer for role in node.parameters))


def _few(expected: Array, computed: Array) -> tuple[Array, Array]:
    """As many samples as it takes to see how values are related."""
    if expected.shape != computed.shape or not expected.ndim or expected.size <= _ENOUGH:
        return expected, computed
    rows = max(1, _ENOUGH * len(expected) // expected.size)
    return expected[:rows], computed[:rows]


def _exchanged(region: Region) -> list[Finding]:
    """Nothing lies between the cuts: the outputs of the target are other tensors."""
    if region.source.nodes or region.target.nodes:
        return []
    given = region.partners.get(region.target.end)
    words = f"output `{region.target.end}` gives `{given or 'nothing'}` of the original, not `{region.source.end}`"
    sides = (_ordered([], region.source), _ordered([], region.target))
    return [Finding(Kind.STRUCTURE, words, *sides, "outputs")]


def _kind(findings: Sequence[Finding], seen: tuple[Kind | None, str] | None, region: Region) -> Kind:
    if findings and findings[0].is_certain:
        return findings[0].kind
    if seen is not None and seen[0] is not None:
        return seen[0]
    if findings:
        return findings[0].kind
    weighted = any(set(node.parameters) - {OPERAND} for node in region.target.nodes)
    return Kind.PARAMETERS if weighted else Kind.GRAPH


def _confidence(alignment: float, findings: Sequence[Finding]) -> float:
    explained = max((item.weight for item in findings), default=0.0)
    return round(min(1.0, alignment) * (0.5 + 0.5 * min(explained, 1.0)), 3)


def _ordered(first: Sequence[str], side: Side) -> tuple[str, ...]:
    """The layers at fault, then the rest of the region: weights first, moves last."""
    rest = sorted(side.nodes, key=lambda node: 2 if node.op in MOVES else 0 if node.parameters else 1)
    layers = dict.fromkeys([*first, *(node.layer for node in rest)])
    return tuple(layers) or (side.graph.layer_of(side.end),)
