"""Exported PyTorch programs, loaded by PyTorch and not run: shapes stand in their graph."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from conrepair.data.tensor_spec import TensorSpec
from conrepair.frameworks.exported import load_exported
from conrepair.frameworks.model import Description, Model
from conrepair.frameworks.outlines.outline import Outline
from conrepair.frameworks.runnable import load_error
from conrepair.frameworks.screening.admission import admit
from conrepair.frameworks.torch import dtype_name, exported_inputs

__all__ = ["read"]

_EMBEDDING = "aten.embedding.default"
_CAST = "aten._to_copy.default"


def read(model: Model) -> Outline:
    """Read a program.

    Args:
        model: A .pt2 file.

    Raises:
        ModelLoadError: if it can't be read, or isn't admitted.
    """
    admit(model)
    try:
        program = load_exported(Path(model.path), trust=model.trust)
        inputs = exported_inputs(program)
        outputs = _outputs(program, inputs)
    except Exception as error:
        raise load_error(model, "an exported PyTorch program", error) from error
    weights: Counter[str] = Counter()
    for tensor in [*program.state_dict.values(), *program.constants.values()]:
        if isinstance(tensor, torch.Tensor):
            weights[dtype_name(tensor.dtype)] += tensor.numel()
    calls = [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
    sizes = _table_sizes(program)
    description = Description(
        format="exported PyTorch program",
        inputs=tuple(spec if spec.is_float else replace(spec, high=sizes.get(spec.name)) for spec in inputs),
        outputs=outputs,
        operators=dict(sorted(Counter(name.split(".")[1] for name in calls if name.startswith("aten.")).items())),
        parameters=sum(weights.values()),
        weights=dict(weights),
        producer=f"torch {torch.__version__}",
    )
    return Outline(description)


def _outputs(program: torch.export.ExportedProgram, inputs: tuple[TensorSpec, ...]) -> tuple[TensorSpec, ...]:
    batch = next((size for spec in inputs for size in spec.shape[:1] if isinstance(size, str)), "?")
    values = {node.name: node.meta.get("val") for node in program.graph.nodes}
    names = [str(name) for name in program.graph_signature.user_outputs]
    tensors = [value for name in names if isinstance(value := values.get(name), torch.Tensor)]
    single = len(tensors) == 1 and program.call_spec.out_spec.is_leaf()
    return tuple(
        TensorSpec(
            "output" if single else f"output_{index}",
            tuple(
                size if isinstance(size, int) else batch if not axis else "?"
                for axis, size in enumerate(tensor.shape)
            ),
            dtype_name(tensor.dtype),
        )
        for index, tensor in enumerate(tensors)
    )


def _table_sizes(program: torch.export.ExportedProgram) -> dict[str, int]:
    """The smallest table that each input is looked up in."""
    origin: dict[Any, str] = {node: str(node.name) for node in program.graph.nodes if node.op == "placeholder"}
    sizes: dict[str, int] = {}
    for node in program.graph.nodes:
        if str(node.target) == _CAST and node.args[0] in origin:
            origin[node] = origin[node.args[0]]
        elif str(node.target) == _EMBEDDING and node.args[1] in origin:
            name, size = origin[node.args[1]], node.args[0].meta["val"].shape[0]
            sizes[name] = min(int(size), sizes.get(name, int(size)))
    return sizes
