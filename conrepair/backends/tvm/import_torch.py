"""PyTorch to Relax by TVM's importer of exported programs."""

from __future__ import annotations

from conrepair.backends.tvm.imported import Imported, definite, import_error
from conrepair.data.tensor_spec import with_declared_sizes
from conrepair.frameworks.model import Model

__all__ = ["import_torch"]


def import_torch(model: Model, batch: int) -> Imported:
    """Export a module for the batch, and import the program.

    Args:
        model: A PyTorch model that `torch.export` takes: not TorchScript.
        batch: In place of a symbolic one.

    Raises:
        ConversionError: if it can't be exported or imported; names the operator.
        ModelLoadError: if it can't be read.
    """
    import torch
    from tvm.relax.frontend.torch import from_exported_program

    from conrepair.frameworks.torch import TorchRunnable, example_inputs

    runnable = TorchRunnable(model)
    inputs = definite(with_declared_sizes(runnable.inputs, model.inputs), batch)
    try:
        with torch.no_grad():
            program = torch.export.export(runnable.module, example_inputs(inputs))
    # torch.export runs the network's own code, and raises types of its own.
    except Exception as error:
        raise import_error("PyTorch", model.path, error) from error
    try:
        module = from_exported_program(program)
    except Exception as error:
        raise import_error("PyTorch", model.path, error) from error
    return Imported(module, "relax.frontend.torch", inputs, runnable.outputs)
