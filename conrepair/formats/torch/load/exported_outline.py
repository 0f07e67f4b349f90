"""Exported PyTorch programs, loaded by PyTorch and not run: shapes stand in their graph."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch
from torch.utils import _pytree as pytree

from conrepair.formats.models.admission import admitted
from conrepair.formats.models.model import Description, Model
from conrepair.formats.models.outline import Outline
from conrepair.formats.models.runnable import loading
from conrepair.formats.torch.load.exported import load_exported
from conrepair.formats.torch.load.framework import (
    aten_calls,
    exported_inputs,
    flatten,
    lookups,
    output_specs,
    weights_of,
)
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import ModelLoadError

_CAST = "aten._to_copy.default"


def read(model: Model) -> Outline:
    """Read a program.

    Args:
        model: A .pt2 file.

    Raises:
        ModelLoadError: if it can't be read, or isn't admitted.
    """
    with loading(model, "an exported PyTorch program", passing=ModelLoadError):
        with admitted(model) as path:
            program = load_exported(path, trust=model.trust)
        inputs = exported_inputs(program)
        outputs = _outputs(program, inputs)
    signature = program.graph_signature
    parameters = _tensors(program, signature.parameters)
    sizes = _table_sizes(program)
    description = Description(
        format="exported PyTorch program",
        inputs=tuple(spec if spec.is_float else replace(spec, high=sizes.get(spec.name)) for spec in inputs),
        outputs=outputs,
        operators=dict(sorted(aten_calls(program.graph).items())),
        parameters=sum(tensor.numel() for tensor in parameters),
        weights=weights_of(_tensors(program, [*signature.parameters, *signature.buffers])),
        producer=f"torch {torch.__version__}",
    )
    return Outline(description)


def _tensors(program: torch.export.ExportedProgram, names: Iterable[str]) -> list[torch.Tensor]:
    """The tensors of these names, each once."""
    stored = {**program.constants, **program.state_dict}
    found = {id(stored[name]): stored[name] for name in names if isinstance(stored.get(name), torch.Tensor)}
    return list(found.values())


def _outputs(program: torch.export.ExportedProgram, inputs: tuple[TensorSpec, ...]) -> tuple[TensorSpec, ...]:
    values = {str(node.name): node.meta.get("val") for node in program.graph.nodes}
    leaves = [values.get(str(name)) for name in program.graph_signature.user_outputs]
    results = flatten(pytree.tree_unflatten(leaves, program.call_spec.out_spec))
    return output_specs(inputs, results, results)


def _table_sizes(program: torch.export.ExportedProgram) -> dict[str, int]:
    """The smallest table that each input is looked up in."""
    origin: dict[Any, str] = {node: str(node.name) for node in program.graph.nodes if node.op == "placeholder"}
    sizes: dict[str, int] = {}
    for node in program.graph.nodes:
        if str(node.target) == _CAST and node.args[0] in origin:
            origin[node] = origin[node.args[0]]
        for axis, indices in lookups(node.target, node.args):
            size = node.args[0].meta["val"].shape[axis]
            if indices in origin and isinstance(size, int):
                sizes[origin[indices]] = min(size, sizes.get(origin[indices], size))
    return sizes
