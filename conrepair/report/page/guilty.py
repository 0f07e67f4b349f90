"""What is at fault, as much as a first screen has room for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from conrepair.localization.result import LayerRow, Localization, LocatedFault, Rule
from conrepair.report.localization.about import about_step, names_of_fault
from conrepair.report.localization.advice import fault_advice
from conrepair.report.page.rendering import anchor_of, in_order, section_of
from conrepair.report.result import AuditResult, Row
from conrepair.report.row_paths import name_of
from conrepair.runtime.words import quoted, shortened

_MOST = 8
_NAME = 60


@dataclass(frozen=True, kw_only=True)
class GuiltyLayer:
    """A fault, or faults that are alike.

    Attributes:
        layer: Where, as a person should read it.
        title: The whole name.
        fault: What is wrong, in a sentence.
        kind: Of fault.
        advice: Where to look; "" where nothing is known.
        model: Whose it is; "" where there's only one.
        anchor: Of the layer's place on the page; "" where it has none.
    """

    layer: str
    title: str
    fault: str
    kind: str
    advice: str = ""
    model: str = ""
    anchor: str = ""


def guilty_of(rows: Sequence[Row], result: AuditResult) -> tuple[tuple[GuiltyLayer, ...], int]:
    """The first faults of some targets, and how many there are besides.

    Args:
        rows: Of the run.
        result: The run.
    """
    listed: list[GuiltyLayer] = []
    more = 0
    for row in rows:
        found = row.localized.result
        if found is None or not (found.rules or found.faults):
            continue
        room, alone = _MOST - len(listed), found.alone
        more += max(len(found.rules) + len(alone) - room, 0)
        if room:
            listed += _of_row(row, result, found, alone, alone_there=len(rows) == 1)[:room]
    return tuple(listed), more


def _of_row(
    row: Row, result: AuditResult, found: Localization, alone: Sequence[LocatedFault], *, alone_there: bool
) -> list[GuiltyLayer]:
    """Those of a target that there may be room for: rules, then faults that no rule stands for."""
    about, layers = about_step(row, result, row.localized.explaining), in_order(found)
    section, model = section_of(row, result), "" if alone_there else name_of(row, result)
    rules = [
        GuiltyLayer(
            layer=f"{len(rule.layers)} layers",
            title=", ".join(rule.layers),
            fault=quoted(rule.text),
            kind=str(rule.kind),
            model=model,
            anchor=anchor_of(section, _of_rule(layers, rule)),
        )
        for rule in found.rules[:_MOST]
    ]
    return rules + [
        _fault(fault, fault_advice(fault, about), model, anchor_of(section, _of_fault(layers, fault)))
        for fault in alone[:_MOST]
    ]


def _fault(fault: LocatedFault, advice: str, model: str, anchor: str) -> GuiltyLayer:
    names, layer = names_of_fault(fault), fault.places[0]
    return GuiltyLayer(
        layer=shortened(names.get(layer, layer), _NAME),
        title=layer,
        fault=quoted(fault.words, names=names),
        kind=str(fault.kind),
        advice=advice,
        model=model,
        anchor=anchor,
    )


def _of_rule(layers: Sequence[LayerRow], rule: Rule) -> int | None:
    known = frozenset(rule.layers)
    return _first(layers, lambda layer: layer.target_layer in known)


def _of_fault(layers: Sequence[LayerRow], fault: LocatedFault) -> int | None:
    ends = fault.source_tensor, fault.target_tensor
    return _first(layers, lambda layer: (layer.source_tensor, layer.target_tensor) == ends)


def _first(layers: Sequence[LayerRow], wanted: Callable[[LayerRow], bool]) -> int | None:
    """Place of the first pair of a sort; None where there's none."""
    return next((place for place, layer in enumerate(layers) if wanted(layer)), None)
