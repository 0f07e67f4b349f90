"""What is at fault, as much as a first screen has room for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from conrepair.application.report.localization.advice import about_step, fault_advice, names_of_fault
from conrepair.application.report.page.rendering import anchor_of, in_order, section_of
from conrepair.application.report.result import AuditResult, Row
from conrepair.application.report.told import Finding, findings_of
from conrepair.diagnosis.localization.result import LayerRow, Localization
from conrepair.ground.runtime.words import shortened

_MOST = 8
_NAME = 60


@dataclass(frozen=True, kw_only=True)
class GuiltyLayer:
    """A finding with its place on the page.

    Attributes:
        layer: Where, as a person should read it.
        title: The whole name.
        finding: What is wrong.
        advice: Where to look; "" where nothing is known.
        anchor: Of the layer's place on the page; "" where it has none.
    """

    layer: str
    title: str
    finding: Finding
    advice: str
    anchor: str


def guilty_of(row: Row, result: AuditResult) -> tuple[tuple[GuiltyLayer, ...], int]:
    """The first faults of a target, and how many there are besides.

    Args:
        row: Of the run.
        result: The run.
    """
    found = row.localized.result
    if found is None:
        return (), 0
    listed = tuple(islice(_of_row(row, result, found), _MOST))
    return listed, len(found.rules) + len(found.alone) - len(listed)


def _of_row(row: Row, result: AuditResult, found: Localization) -> Iterator[GuiltyLayer]:
    about, layers = about_step(row, result, row.localized.explaining), in_order(found)
    for finding in findings_of(found):
        fault, title = finding.fault, ", ".join(finding.layers)
        layer, advice = f"{len(finding.layers)} layers", ""
        if fault is not None:
            title, advice = fault.places[0], fault_advice(fault, about)
            layer = shortened(names_of_fault(fault).get(title, title), _NAME)
        anchor = anchor_of(section_of(row, result), _place(finding, layers))
        yield GuiltyLayer(layer=layer, title=title, finding=finding, advice=advice, anchor=anchor)


def _place(finding: Finding, layers: Sequence[LayerRow]) -> int | None:
    """Place of the first pair of a finding; None where there's none."""
    named, fault = frozenset(finding.layers), finding.fault
    known = [layer.target_layer in named for layer in layers]
    if fault is not None:
        ends = fault.source_tensor, fault.target_tensor
        known = [(layer.source_tensor, layer.target_tensor) == ends for layer in layers]
    return known.index(True) if True in known else None
