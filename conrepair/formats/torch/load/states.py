"""Buffers that an exported program changes when it's called, and that the next call goes on from."""

from __future__ import annotations

from typing import Any

import torch


def states_of(program: torch.export.ExportedProgram) -> tuple[str, ...]:
    """Names of the buffers.

    Args:
        program: Of either form: that writes in place, or gives buffers' new values as results.
    """
    signature = program.graph_signature
    held = {
        name: str(buffer)
        for name, buffer in {**signature.inputs_to_buffers, **signature.inputs_to_parameters}.items()
    }
    changed = {str(name) for name in signature.buffers_to_mutate.values()}
    for node in program.graph.nodes:
        changed |= {held[origin.name] for origin in map(_origin, _written(node)) if origin.name in held}
    return tuple(sorted(changed))


def _written(node: torch.fx.Node) -> list[torch.fx.Node]:
    """The tensors that a call writes into."""
    return [value for value, argument in _arguments(node) if argument.alias_info and argument.alias_info.is_write]


def _origin(node: torch.fx.Node) -> torch.fx.Node:
    """The tensor whose memory another one shows."""
    shown = [value for value, argument in _arguments(node) if argument.alias_info]
    return _origin(shown[0]) if shown else node


def _arguments(node: torch.fx.Node) -> list[tuple[torch.fx.Node, Any]]:
    """Tensors that an operator is given, each with what its schema says of it."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return []
    named = {argument.name: argument for argument in schema.arguments}
    given = [
        *zip(node.args, schema.arguments, strict=False),
        *((node.kwargs[name], named[name]) for name in node.kwargs),
    ]
    return [(value, argument) for value, argument in given if isinstance(value, torch.fx.Node)]
