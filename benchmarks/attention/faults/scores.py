"""Faults of queries, keys, values, scores and what becomes of them."""

from __future__ import annotations

import numpy as np

from benchmarks.attention.faults.site import AttentionFault, Site
from conrepair.ground.graph.kinds import Kind

__all__ = ["FAULTS"]


def _queries_for_keys(site: Site) -> bool:
    nodes, scope = site.graph.nodes, site.attn
    if site.spec.heads != site.spec.kv_heads:
        return False
    one, two = nodes[f"{scope}/q_split"], nodes[f"{scope}/k_split"]
    one.input[0], two.input[0] = two.input[0], one.input[0]
    return True


def _keys_for_values(site: Site) -> bool:
    nodes, scope = site.graph.nodes, site.attn
    nodes[f"{scope}/v_split"].input[0] = nodes[f"{scope}/k_split"].input[0]
    return True


def _scaled(site: Site, factor: float) -> bool:
    """Scores get another factor."""
    scope = site.attn
    if site.writing.scale == "folded":
        return False
    if site.writing.scale in {"div", "mul"}:
        number = 1 / factor if site.writing.scale == "div" else factor
        site.graph.own(f"{scope}/scale", 1, float(number))
    elif site.writing.scale == "q":
        site.graph.own(f"{scope}/q_scale", 1, float(factor))
    else:
        for name in "qk":
            site.graph.own(f"{scope}/{name}_scale", 1, float(np.sqrt(factor)))
    return True


def _scale_missing(site: Site) -> bool:
    return _scaled(site, 1.0)


def _scale_without_root(site: Site) -> bool:
    return _scaled(site, 1 / site.spec.width)


def _scale_of_all_heads(site: Site) -> bool:
    return _scaled(site, site.spec.hidden**-0.5)


def _scale_after_mask(site: Site) -> bool:
    """Shows where what's added is finite and small: ALiBi."""
    nodes, scope = site.graph.nodes, site.attn
    if not site.has(f"{scope}/scale", f"{scope}/biased"):
        return False
    scale, biased = nodes[f"{scope}/scale"], nodes[f"{scope}/biased"]
    site.graph.redirect(biased.output[0], scale.output[0], but=[scale.name])
    biased.input[0], scale.input[0] = scale.input[0], biased.output[0]
    return True


def _softmax_axis(site: Site) -> bool:
    site.graph.add(f"{site.attn}/softmax", "Softmax", site.graph.nodes[f"{site.attn}/softmax"].input[0], axis=-2)
    return True


def _softmax_missing(site: Site) -> bool:
    site.graph.bypass(f"{site.attn}/softmax")
    return True


def _softmax_twice(site: Site) -> bool:
    name = f"{site.attn}/softmax"
    again = site.graph.add(f"{name}_again", "Softmax", f"{name}_output_0", axis=-1)
    site.graph.redirect(f"{name}_output_0", again, but=[f"{name}_again"])
    return True


def _heads_split_otherwise(site: Site) -> bool:
    """[tokens, width, heads] for [tokens, heads, width]."""
    name = f"{site.attn}/{site.chosen('q', 'k', 'v')}"
    graph, heads = site.graph, site.spec.heads if name.endswith("/q") else site.spec.kv_heads
    graph.own(f"{name}_split", 1, np.array([0, 0, site.spec.width, heads], np.int64))
    graph.add(f"{name}_heads", "Transpose", f"{name}_split_output_0", perm=[0, 3, 1, 2])
    return True


def _heads_not_transposed(site: Site) -> bool:
    """Results of heads are laid side by side without being turned back."""
    site.graph.bypass(f"{site.attn}/merge")
    shape = np.array([0, site.spec.tokens, site.spec.hidden], np.int64)
    site.graph.own(f"{site.attn}/flat", 1, shape)
    return True


def _heads_merged_otherwise(site: Site) -> bool:
    name = f"{site.attn}/merge"
    site.graph.add(name, "Transpose", site.graph.nodes[name].input[0], perm=[0, 2, 3, 1])
    return True


def _heads_tiled(site: Site) -> bool:
    """Heads of keys and values one after the other, for each one several times."""
    spec, graph = site.spec, site.graph
    if spec.heads == spec.kv_heads:
        return False
    groups, length = spec.heads // spec.kv_heads, spec.past + spec.tokens
    for name in (f"{site.attn}/k", f"{site.attn}/v"):
        graph.add(f"{name}_unsqueeze", "Unsqueeze", graph.nodes[f"{name}_unsqueeze"].input[0], axes=[1])
        shape = np.array([1, groups, spec.kv_heads, length, spec.width], np.int64)
        graph.own(f"{name}_expand", 1, shape)
    return True


def _cache_behind(site: Site) -> bool:
    """What's new comes before what's past."""
    if not site.spec.past:
        return False
    for name in site.chosen("k", "v", "kv"):
        node = site.graph.nodes[f"{site.attn}/{name}_cache"]
        node.input[0], node.input[1] = node.input[1], node.input[0]
    return True


def _caches_exchanged(site: Site) -> bool:
    if not site.spec.past:
        return False
    one, two = (site.graph.nodes[f"{site.attn}/{name}_cache"] for name in "kv")
    one.input[0], two.input[0] = two.input[0], one.input[0]
    return True


def _head_shifted(site: Site) -> bool:
    """Each head of values is its neighbour's."""
    spec, graph, name = site.spec, site.graph, f"{site.attn}/v"
    if spec.kv_heads == 1:
        return False
    order = graph.constant(f"{name}_order", np.roll(np.arange(spec.kv_heads), 1))
    wrong = graph.add(f"{name}_gather", "Gather", f"{name}_heads_output_0", order, axis=1)
    graph.redirect(f"{name}_heads_output_0", wrong, but=[f"{name}_gather"])
    return True


_GRAPH, _NUMBER = Kind.GRAPH, Kind.HYPERPARAMETERS

FAULTS = (
    AttentionFault("queries-and-keys-exchanged", _GRAPH, _queries_for_keys),
    AttentionFault("keys-for-values", _GRAPH, _keys_for_values),
    AttentionFault("scale-missing", Kind.PARAMETERS, _scale_missing),
    AttentionFault("scale-without-root", Kind.PARAMETERS, _scale_without_root),
    AttentionFault("scale-of-all-heads", Kind.PARAMETERS, _scale_of_all_heads),
    AttentionFault("scale-after-bias", _GRAPH, _scale_after_mask),
    AttentionFault("softmax-of-another-axis", _NUMBER, _softmax_axis),
    AttentionFault("softmax-missing", _GRAPH, _softmax_missing),
    AttentionFault("softmax-twice", _GRAPH, _softmax_twice),
    AttentionFault("heads-split-otherwise", Kind.STRUCTURE, _heads_split_otherwise),
    AttentionFault("heads-not-turned-back", Kind.STRUCTURE, _heads_not_transposed),
    AttentionFault("heads-merged-otherwise", Kind.STRUCTURE, _heads_merged_otherwise),
    AttentionFault("key-heads-tiled", Kind.STRUCTURE, _heads_tiled),
    AttentionFault("cache-behind", _GRAPH, _cache_behind),
    AttentionFault("caches-exchanged", _GRAPH, _caches_exchanged),
    AttentionFault("head-of-neighbour", _GRAPH, _head_shifted),
)
