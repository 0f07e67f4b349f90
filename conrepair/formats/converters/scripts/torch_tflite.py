"""An exported PyTorch program to TFLite by litert-torch; runs in the environment `litert-torch`."""

from __future__ import annotations

from typing import Any


def main(arguments: dict[str, Any]) -> dict[str, Any]:
    """Convert a model.

    Args:
        arguments: "program" (a .pt2 file with fixed shapes) and "output" (the file to write).
    """
    import litert_torch
    import torch

    program = torch.export.load(arguments["program"])
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    examples = tuple(
        torch.zeros(tuple(values[name].shape), dtype=values[name].dtype)
        for name in program.graph_signature.user_inputs
    )
    litert_torch.convert(program.module(), examples).export(arguments["output"])
    return {}
