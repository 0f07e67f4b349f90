"""Faults of what's around attention: norms, MLPs, sums, projections."""

from __future__ import annotations

import numpy as np

from benchmarks.attention import parts
from benchmarks.attention.faults.site import AttentionFault, Site
from benchmarks.attention.networks import Builder
from conrepair.ground.graph.kinds import Kind

__all__ = ["FAULTS"]


def _bias_dropped(site: Site) -> bool:
    names = ["o_proj", *(["qkv_proj"] if site.writing.fused else ["q_proj", "v_proj"])]
    name = f"{site.attn}/{site.chosen(*names)}/bias_add"
    if not site.has(name):
        return False
    site.graph.bypass(name, 1)
    return True


def _weight_transposed(site: Site) -> bool:
    """A square one, so that shapes still fit."""
    name = f"{site.attn}/{site.chosen('o_proj', 'o_proj' if site.writing.fused else 'q_proj')}/weight"
    site.graph.constant(name, np.ascontiguousarray(site.graph.constants[name].T))
    return True


def _norm(site: Site) -> str:
    return f"{site.layer}/{site.chosen('attn_norm', 'mlp_norm')}"


def _epsilon_outside(site: Site) -> bool:
    """Added to the root, not under it: shows where activations are small."""
    name, graph = f"{site.layer}/attn_norm", site.graph
    if not site.has(f"{name}/sqrt"):
        return False
    root, shifted = graph.nodes[f"{name}/sqrt"], graph.nodes[f"{name}/add"]
    graph.redirect(root.output[0], shifted.output[0])
    root.input[0], shifted.input[0] = shifted.input[0], root.output[0]
    return True


def _epsilon_larger(site: Site) -> bool:
    name, graph = f"{site.layer}/attn_norm", site.graph
    if site.has(f"{name}/add"):
        graph.own(f"{name}/add", 1, 1e-3)
        return True
    node = graph.nodes[f"{name}/norm"]
    graph.add(node.name, node.op_type, *node.input, axis=-1, epsilon=1e-3)
    return True


def _centred(site: Site) -> bool:
    """A LayerNorm where the mean isn't taken off."""
    name, graph = _norm(site), site.graph
    if site.spec.norm != "rms":
        return False
    value = graph.nodes[f"{name}/pow"].input[0]
    middle = graph.add(f"{name}/middle", "ReduceMean", value, axes=[-1], keepdims=1)
    centred = graph.add(f"{name}/sub", "Sub", value, middle)
    for part in ("pow", "div", "mul"):
        if site.has(f"{name}/{part}"):
            graph.nodes[f"{name}/{part}"].input[0] = centred
    return True


def _not_centred(site: Site) -> bool:
    """The mean is left in."""
    name, graph = _norm(site), site.graph
    if not site.has(f"{name}/sub"):
        return False
    graph.bypass(f"{name}/sub")
    return True


def _scale_from_zero(site: Site) -> bool:
    """Weights are meant to be added to one, as Gemma's are."""
    name = f"{_norm(site)}/weight"
    site.graph.constant(name, site.graph.constants[name] + np.float32(1))
    return True


def _gate_exchanged(site: Site) -> bool:
    nodes, scope = site.graph.nodes, f"{site.layer}/mlp"
    if not site.spec.gated:
        return False
    pair = [nodes[f"{scope}/{name}_proj"] for name in ("up", "gate")]
    pair[0].input[1], pair[1].input[1] = pair[1].input[1], pair[0].input[1]
    if site.spec.bias:
        one, two = (nodes[f"{scope}/{name}_proj/bias_add"] for name in ("up", "gate"))
        one.input[0], two.input[0] = two.input[0], one.input[0]
    return True


def _gelu_otherwise(site: Site) -> bool:
    scope = f"{site.layer}/mlp/act"
    if not site.spec.mlp.startswith("gelu"):
        return False
    exact = site.spec.mlp != "gelu-tanh"
    graph = site.graph
    if site.has(f"{scope}/gelu"):
        node = graph.nodes[f"{scope}/gelu"]
        graph.add(node.name, "Gelu", node.input[0], approximate="tanh" if exact else None)
        return True
    old = f"{scope}/half_output_0" if exact else f"{scope}/mul_output_0"
    value = graph.nodes[f"{scope}/mul" if exact else f"{scope}/half"].input[0]
    (reader, place), *_ = graph.readers(old)
    builder = Builder(site.spec, site.writing)
    builder.graph = graph
    for name in [name for name in graph.nodes if name.startswith(f"{scope}/")]:
        del graph.nodes[name]
    reader.input[place] = (parts.gelu_tanh if exact else parts.gelu)(builder, scope, value)
    return True


def _sigmoid_missing(site: Site) -> bool:
    """A gate that is only multiplied."""
    name = f"{site.layer}/mlp/act/sigmoid"
    if not site.has(name):
        return False
    site.graph.redirect(f"{site.layer}/mlp/act/mul_output_0", site.graph.nodes[name].input[0])
    return True


def _residual_elsewhere(site: Site) -> bool:
    """Of the norm's result for what it's given, or the other way round."""
    nodes, layer = site.graph.nodes, site.layer
    if site.spec.before:
        ends = {"rms": "scaled", "layer": "norm" if site.has(f"{layer}/attn_norm/norm") else "shifted"}
        nodes[f"{layer}/attn_add"].input[0] = f"{layer}/attn_norm/{ends[site.spec.norm]}_output_0"
    else:
        massive = site.has(f"{layer}/attn/massive_off")
        nodes[f"{layer}/mlp_add"].input[0] = f"{layer}/{'attn/massive_off' if massive else 'attn_add'}_output_0"
    return True


def _residual_missing(site: Site) -> bool:
    site.graph.bypass(f"{site.layer}/mlp_add", 1)
    return True


_GRAPH, _NUMBERS = Kind.GRAPH, Kind.PARAMETERS

FAULTS = (
    AttentionFault("projection-bias-dropped", _NUMBERS, _bias_dropped),
    AttentionFault("square-weight-transposed", _NUMBERS, _weight_transposed),
    AttentionFault("epsilon-outside-the-root", _GRAPH, _epsilon_outside),
    AttentionFault("epsilon-larger", Kind.HYPERPARAMETERS, _epsilon_larger),
    AttentionFault("layer-norm-for-rms-norm", _GRAPH, _centred),
    AttentionFault("mean-left-in", _GRAPH, _not_centred),
    AttentionFault("norm-weight-plus-one", _NUMBERS, _scale_from_zero),
    AttentionFault("gate-and-up-exchanged", _GRAPH, _gate_exchanged),
    AttentionFault("gelu-of-the-other-sort", _GRAPH, _gelu_otherwise),
    AttentionFault("sigmoid-missing", _GRAPH, _sigmoid_missing),
    AttentionFault("residual-from-elsewhere", _GRAPH, _residual_elsewhere),
    AttentionFault("residual-missing", _GRAPH, _residual_missing),
)
