"""PyTorch to Relax by TVM's importer of exported programs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.formats.models.model import Model
from conrepair.formats.tvm.calls import ModelOperator
from conrepair.formats.tvm.imported import Imported, definite, import_error
from conrepair.formats.tvm.naming import named
from conrepair.formats.tvm.options import TvmOptions
from conrepair.ground.data.symbolic_sizes import with_declared_sizes

_FILE = "imported.pt2"


def import_model(model: Model, batch: int, options: TvmOptions) -> Imported:
    """Export a module for the batch, and import the program.

    Args:
        model: A PyTorch model that `torch.export` takes: not TorchScript.
        batch: In place of a symbolic one.
        options: Not used.

    Raises:
        ConversionError: if it can't be exported or imported; names the operator.
        ModelLoadError: if it can't be read.
    """
    import torch
    from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter

    from conrepair.formats.torch.load.framework import TorchRunnable, example_inputs

    runnable = TorchRunnable(model)
    inputs = definite(with_declared_sizes(runnable.inputs, model.inputs), batch)
    try:
        with torch.no_grad():
            program = torch.export.export(runnable.module, example_inputs(inputs))
    # torch.export runs the network's own code, and raises types of its own.
    except Exception as error:
        raise import_error("PyTorch", model.path, error) from error
    importer = ExportedProgramImporter()
    try:
        if not _has_sparse(program):
            program = program.run_decompositions()
        # As TVM's `from_exported_program`, without losing the importer, which alone knows what it made of each node.
        module = importer.from_exported_program(program, False, False, False, None)
    except Exception as error:
        raise import_error("PyTorch", model.path, error) from error
    module, names = named(module, _tensors(importer.env))
    given = dict(zip(program.graph_signature.user_inputs, (spec.name for spec in inputs), strict=False))
    operators = tuple(_operator(node, given) for node in program.graph.nodes if node.op == "call_function")

    def save(folder: Path) -> str:
        torch.export.save(program, folder / _FILE)
        return _FILE

    return Imported(module, "relax.frontend.torch", inputs, runnable.outputs, names, operators, save)


def _has_sparse(program: Any) -> bool:
    """Whether it holds sparse tensors, which PyTorch's decompositions don't take."""
    import torch

    held = (program.state_dict.values(), program.constants.values())
    return any(isinstance(item, torch.Tensor) and item.layout != torch.strided for values in held for item in values)


def _tensors(environment: Mapping[Any, Any]) -> dict[str, Any]:
    """What the importer has for each node; of one with several results, the nodes behind it have one each."""
    return {node.name: made for node, made in environment.items() if node.op == "call_function" and _is_one(made)}


def _is_one(made: Any) -> bool:
    from tvm import relax

    return isinstance(made, relax.Expr) and not isinstance(made, relax.Tuple)


def _operator(node: Any, given: Mapping[str, str]) -> ModelOperator:
    reads = tuple(given.get(item.name, item.name) for item in node.all_input_nodes)
    return ModelOperator(node.name, str(node.target), reads, (node.name,))
