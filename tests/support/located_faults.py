"""Faults as a localization has them, in few words."""

from __future__ import annotations

from conrepair.diagnosis.localization.result import Localization, LocatedFault
from conrepair.ground.graph.kinds import Kind
from conrepair.verdicts.evaluate.verdict import Verdict


def located(name: str, introduced: float, kind: Kind = Kind.PARAMETERS, layers: tuple[str, ...] = ()) -> LocatedFault:
    names = layers or (name,)
    return LocatedFault(
        kind=kind,
        source_layers=names,
        target_layers=names,
        step="",
        introduced_error=introduced,
        full_run_error=2 * introduced,
        noise_floor=1e-6,
        confidence=introduced,
        evidence=(f"of {name}",),
        source_tensor=name,
        target_tensor=name,
    )


def assert_clean(result: Localization, least: int) -> None:
    assert result.faults == ()
    assert result.verdict is Verdict.EQUIVALENT
    assert result.output_error < 1e-4
    assert len(result.layers) >= least
    assert not any(row.guilty for row in result.layers)
