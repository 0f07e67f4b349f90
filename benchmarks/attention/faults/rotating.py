"""Faults of rotary positions."""

from __future__ import annotations

import numpy as np

from benchmarks.attention.faults.site import AttentionFault, Site
from benchmarks.attention.rotation import turned
from conrepair.ground.graph.kinds import Kind

__all__ = ["FAULTS"]


def _rotary(site: Site) -> bool:
    return site.spec.position.startswith("rope")


def _rotation_of_the_other_sort(site: Site) -> bool:
    """Pairs for halves, or halves for pairs, with the angles of the right sort."""
    if not _rotary(site):
        return False
    halves = site.spec.position == "rope-half"
    graph = site.graph
    for name in (f"{site.attn}/q", f"{site.attn}/k"):
        value = graph.nodes[f"{name}_cos"].input[0]
        for old in ("first", "second", "neg", "even", "odd", "odd_last", "even_last", "stacked", "rotated"):
            graph.nodes.pop(f"{name}_{old}", None)
        turned(graph, name, value, site.spec.width, halves=not halves)
    return True


def _sine_negative(site: Site) -> bool:
    """All turn the other way."""
    if not _rotary(site):
        return False
    for name in (f"{site.attn}/q", f"{site.attn}/k"):
        old, graph = f"{name}_rope", site.graph
        graph.add(old, "Sub", *graph.nodes[old].input)
    return True


def _half_negated(site: Site) -> bool:
    """The minus stands before the other half, of queries only."""
    name = f"{site.attn}/q"
    if not site.has(f"{name}_first", f"{name}_second", f"{name}_neg"):
        return False
    graph = site.graph
    graph.nodes[f"{name}_neg"].input[0] = f"{name}_first_output_0"
    graph.add(f"{name}_rotated", "Concat", f"{name}_second_output_0", f"{name}_neg_output_0", axis=-1)
    return True


def _one_place_on(site: Site) -> bool:
    """Queries turn as if they stood one place further on."""
    if not _rotary(site):
        return False
    spec, graph, name = site.spec, site.graph, f"{site.attn}/q"
    cosines, sines = _tables(site, 1)
    graph.nodes[f"{name}_cos"].input[1] = graph.constant(f"{name}_cos.own", cosines)
    graph.nodes[f"{name}_sin"].input[1] = graph.constant(f"{name}_sin.own", sines)
    return spec.tokens > 1


def _past_forgotten(site: Site) -> bool:
    """With a cache, places of what's new begin at none."""
    if not _rotary(site) or not site.spec.past:
        return False
    graph, tables = site.graph, _tables(site, -site.spec.past)
    for name in (f"{site.attn}/q", f"{site.attn}/k"):
        for what, table in zip(("cos", "sin"), tables, strict=True):
            graph.nodes[f"{name}_{what}"].input[1] = graph.constant(f"{name}_{what}.own", table)
    return True


def _keys_not_turned(site: Site) -> bool:
    name = f"{site.attn}/k"
    if not _rotary(site):
        return False
    site.graph.redirect(f"{name}_rope_output_0", site.graph.nodes[f"{name}_cos"].input[0])
    return True


def _angles_of_the_other_sort(site: Site) -> bool:
    """The tables repeat angles in pairs for halves, or the other way round."""
    if not _rotary(site):
        return False
    order = np.arange(site.spec.width).reshape(2, -1).T.ravel()
    order = order if site.spec.position == "rope-interleaved" else np.argsort(order)
    return _on_tables(site, lambda table: table[:, order])


def _angles_of_another_base(site: Site) -> bool:
    if not _rotary(site):
        return False
    other = _tables(site, 0, power=0.5)
    if site.numbers("/rotary/cos") is not None:
        for name, table in zip(("cos", "sin"), other, strict=True):
            site.graph.constant(f"/rotary/{name}", table)
        return True
    return _on_tables(site, np.sqrt)


def _on_tables(site: Site, change: object) -> bool:
    for name in ("/rotary/frequencies", "/rotary/cos", "/rotary/sin"):
        numbers = site.numbers(name)
        if numbers is not None:
            site.graph.constant(name, change(numbers))  # type: ignore[operator]
    return True


def _tables(site: Site, shift: int, power: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    spec = site.spec
    frequencies = (100.0 ** -(np.arange(0, spec.width, 2) / spec.width)) ** power
    halves = spec.position == "rope-half"
    spread = np.concatenate([frequencies, frequencies]) if halves else np.repeat(frequencies, 2)
    places = np.arange(spec.past, spec.past + spec.tokens) + shift
    angles = np.outer(places, spread)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


_GRAPH, _NUMBERS = Kind.GRAPH, Kind.PARAMETERS

FAULTS = (
    AttentionFault("rotation-of-the-other-sort", _GRAPH, _rotation_of_the_other_sort),
    AttentionFault("rotation-backwards", _GRAPH, _sine_negative),
    AttentionFault("rotation-negates-the-other-half", _GRAPH, _half_negated),
    AttentionFault("rotation-one-place-on", _NUMBERS, _one_place_on),
    AttentionFault("rotation-forgets-the-past", _NUMBERS, _past_forgotten),
    AttentionFault("keys-not-rotated", _GRAPH, _keys_not_turned),
    AttentionFault("angles-of-the-other-sort", _NUMBERS, _angles_of_the_other_sort, shared=True),
    AttentionFault("angles-of-another-base", _NUMBERS, _angles_of_another_base, shared=True),
)
