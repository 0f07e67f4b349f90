"""Faults of masks and of ALiBi."""

from __future__ import annotations

import numpy as np

from benchmarks.attention.faults.site import AttentionFault, Site
from benchmarks.attention.masks import seen
from conrepair.ground.graph.kinds import Kind

__all__ = ["FAULTS"]


def _seen_otherwise(site: Site, ahead: int = 0, wider: int = 0) -> bool:
    """Other tokens are seen, wherever that's written."""
    graph, scope = site.graph, site.mask
    if not site.spec.causal:
        return False
    other = seen(site.spec, ahead=ahead, wider=wider)
    for name, array in (
        (f"{scope}/seen", other),
        (f"{scope}/added", np.where(other, 0, site.writing.fill).astype(np.float32)),
    ):
        if site.numbers(name) is not None:
            graph.constant(name, array[None, None])
            return True
    if ahead:
        graph.own(f"{scope}/shifted", 1, np.int64(site.spec.past + ahead))
    else:
        graph.own(f"{scope}/window", 1, np.int64(site.spec.window + wider))
    return True


def _ahead(site: Site) -> bool:
    return _seen_otherwise(site, ahead=1)


def _behind(site: Site) -> bool:
    """The token itself isn't seen; without a cache the first one sees nothing."""
    return _seen_otherwise(site, ahead=-1)


def _wider(site: Site) -> bool:
    return site.spec.mask == "window" and _seen_otherwise(site, wider=1)


def _narrower(site: Site) -> bool:
    return site.spec.mask == "window" and _seen_otherwise(site, wider=-1)


def _inverted(site: Site) -> bool:
    graph, scope = site.graph, site.mask
    added = site.numbers(f"{scope}/added")
    if added is not None:
        graph.constant(f"{scope}/added", np.where(added == 0, site.writing.fill, 0).astype(np.float32))
        return True
    if site.has(f"{scope}/drop"):
        graph.redirect(f"{scope}/drop_output_0", f"{scope}/keep_output_0")
        return True
    if site.has(f"{scope}/forbidden"):
        graph.bypass(f"{scope}/forbidden")
        return True
    if site.has(f"{scope}/added"):
        node = graph.nodes[f"{scope}/added"]
        node.input[1], node.input[2] = node.input[2], node.input[1]
        return True
    if site.has(f"{site.attn}/masked"):
        node = graph.nodes[f"{site.attn}/masked"]
        node.input[1], node.input[2] = node.input[2], node.input[1]
        return True
    return False


def _not_applied(site: Site) -> bool:
    graph, scope = site.graph, site.attn
    if site.spec.mask == "none":
        return False
    if site.has(f"{scope}/masked"):
        graph.bypass(f"{scope}/masked", 1 if site.writing.mask.startswith("where") else 2)
        return True
    if site.spec.position == "alibi":
        graph.nodes[f"{scope}/biased"].input[1] = _distances(site)
        return True
    graph.bypass(f"{scope}/biased")
    return True


def _distances(site: Site) -> str:
    name = f"{site.mask}/alibi"
    return name if site.numbers(name) is not None else f"{name}_output_0"


def _padding_not_applied(site: Site) -> bool:
    name = f"{site.mask}/allowed"
    if not site.has(name):
        return False
    site.graph.bypass(name, 0)
    return True


def _padding_of_queries(site: Site) -> bool:
    """The padding's mask stands along the wrong axis."""
    name = f"{site.mask}/wide"
    if not site.has(name) or site.spec.past:
        return False
    site.graph.add(name, "Unsqueeze", "attention_mask", axes=[1, 3])
    return True


def _too_small(site: Site) -> bool:
    """As -1 or -10, what isn't meant to be seen still is."""
    graph, scope = site.graph, site.mask
    number = np.float32(site.chosen("-1", "-10"))
    added = site.numbers(f"{scope}/added")
    if added is not None:
        graph.constant(f"{scope}/added", np.where(added == 0, 0, number).astype(np.float32))
        return True
    if site.numbers(f"{scope}/fill") is None:
        return False
    graph.constant(f"{scope}/fill", number)
    return True


def _after_softmax(site: Site) -> bool:
    nodes, scope = site.graph.nodes, site.attn
    if site.spec.mask == "none":
        return False
    name = f"{scope}/masked" if site.has(f"{scope}/masked") else f"{scope}/biased"
    place = 0 if name.endswith("biased") else 1 if site.writing.mask.startswith("where") else 2
    mask, softmax = nodes[name], nodes[f"{scope}/softmax"]
    softmax.input[0] = mask.input[place]
    site.graph.redirect(softmax.output[0], mask.output[0], but=[name])
    mask.input[place] = softmax.output[0]
    if place:
        site.graph.own(name, 3 - place, 0.0)  # shares are taken out, and no longer sum up to 1
    return True


def _slopes_reversed(site: Site) -> bool:
    if site.spec.position != "alibi":
        return False
    for name in (f"{site.mask}/slopes", f"{site.mask}/alibi"):
        numbers = site.numbers(name)
        if numbers is not None:
            site.graph.constant(name, numbers[:, ::-1])
            return True
    return False


def _slopes_of_another_base(site: Site) -> bool:
    """As for eight heads, whatever the number is."""
    if site.spec.position != "alibi":
        return False
    right = 2.0 ** (-4.0 * np.arange(1, site.spec.heads + 1) / site.spec.heads)
    ratio = (2.0 ** (-np.arange(1, site.spec.heads + 1)) / right).astype(np.float32)[None, :, None, None]
    for name in (f"{site.mask}/slopes", f"{site.mask}/alibi"):
        numbers = site.numbers(name)
        if numbers is not None:
            site.graph.constant(name, numbers * ratio)
            return True
    return False


_GRAPH, _NUMBERS = Kind.GRAPH, Kind.PARAMETERS

FAULTS = (
    AttentionFault("mask-one-ahead", _NUMBERS, _ahead, mask=True),
    AttentionFault("mask-one-behind", _NUMBERS, _behind, mask=True),
    AttentionFault("window-wider", _NUMBERS, _wider, mask=True),
    AttentionFault("window-narrower", _NUMBERS, _narrower, mask=True),
    AttentionFault("mask-inverted", _GRAPH, _inverted, mask=True),
    AttentionFault("mask-not-applied", _GRAPH, _not_applied),
    AttentionFault("padding-not-applied", _GRAPH, _padding_not_applied, mask=True),
    AttentionFault("padding-of-queries", Kind.HYPERPARAMETERS, _padding_of_queries, mask=True),
    AttentionFault("mask-too-small", _NUMBERS, _too_small, mask=True),
    AttentionFault("mask-after-softmax", _GRAPH, _after_softmax),
    AttentionFault("slopes-reversed", _NUMBERS, _slopes_reversed, mask=True),
    AttentionFault("slopes-of-another-base", _NUMBERS, _slopes_of_another_base, mask=True),
)
