"""Programs of torch.export that are lowered to ExecuTorch when they're loaded."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings import portable_lib

from conrepair.plugins import Array, Model, Runnable, describe, loading
from conrepair_executorch.runtime import KINDS, forward

_GAP = re.compile(r"Missing out variants|error: 0x1[014]\b|not in Core ATen opset")  # 0x14: no such kernel


@contextlib.contextmanager
def _gaps() -> Iterator[None]:
    """Tell an operator that isn't there from one that fails."""
    try:
        yield
    except Exception as error:
        if _GAP.search(str(error)):
            raise NotImplementedError(str(error)) from error
        raise


class Lowered(Runnable):
    """A program, and the file that ExecuTorch made of it in memory."""

    def __init__(self, model: Model, options: Mapping[str, Any]) -> None:
        """Lower the model.

        Args:
            model: A program of torch.export.
            options: Of the backend.
        """
        found = describe(model)
        self.inputs, self.outputs = found.inputs, found.outputs
        with loading(model, "a program that ExecuTorch lowers"), _gaps():
            for spec in self.inputs:
                if spec.dtype not in KINDS:
                    raise NotImplementedError(f"input {spec.name}: arrays of {spec.dtype} aren't fed here")
            partitioner = [XnnpackPartitioner()] if options.get("delegate") == "xnnpack" else []
            lowered = to_edge_transform_and_lower(torch.export.load(model.path), partitioner=partitioner)
            self._buffer = lowered.to_executorch().buffer
            self._module = portable_lib._load_for_executorch_from_buffer(self._buffer)

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        with _gaps():
            found = forward(self._module, [feeds[spec.name] for spec in self.inputs])
        return {spec.name: array for spec, array in zip(self.outputs, found, strict=True)}
