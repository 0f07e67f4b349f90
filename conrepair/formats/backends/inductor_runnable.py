"""A PyTorch program that torch.compile has compiled, with what took part in that."""

from __future__ import annotations

import contextlib
import re
import sysconfig
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch.export.passes import move_to_device_pass

from conrepair.formats.backends.base import CUDA, named_rightly, no_device
from conrepair.formats.backends.inductor import DISABLED, STAGES
from conrepair.formats.models.arithmetic import settled
from conrepair.formats.models.model import Model
from conrepair.formats.models.runnable import Array
from conrepair.formats.torch.load.framework import (
    TorchRunnable,
    array_from_tensor,
    exported_program,
    flatten,
    tensor_from_array,
)
from conrepair.ground.runtime.errors import ModelLoadError
from conrepair.ground.runtime.words import shortened

_OPERATOR = re.compile(r"op='(.+?)', overload='(.+?)'")
_REASON = 600
# Results of other options must not be taken; and a confined process has no use for others that compile beside it.
_OURS = {"fx_graph_cache": False, "compile_threads": 1}


class InductorRunnable(TorchRunnable):
    """Compiled anew for each size of its inputs, as those who deploy for one size do, or once for all of them.

    Attributes:
        ran: Passes, decompositions and lowerings that took part, in order; of some again and again.
    """

    def __init__(self, model: Model, options: Mapping[str, Any]) -> None:
        """Load, and compile if the sizes of its inputs are definite, or it's compiled for all sizes.

        Args:
            model: A PyTorch program.
            options: Of the backend, checked. What's differentiated (`trains`) is compiled when it's called first.

        Raises:
            ModelLoadError: if it can't be loaded or compiled.
            DeviceError: if it should run on a GPU, and there's none.
        """
        super().__init__(model)
        stage, dynamic = str(options.get("backend", STAGES[-1])), bool(options.get("dynamic"))
        on_cuda = options.get("device") == CUDA
        self._path, self._tf32 = model.path, bool(options.get("tf32", True))
        self._off = {kind: frozenset(options.get(key, ())) for kind, key in DISABLED.items()}
        self._device = cuda_device() if on_cuda else torch.device("cpu")
        self.ran: list[tuple[str, str]] = []
        self._sizes: set[tuple[torch.Size, ...]] = set()
        if stage == STAGES[-1]:
            _check_compiler()
        self._fallbacks = _fallbacks(self._off)
        program = self._placed(on_cuda=on_cuda)
        self._compiled = torch.compile(
            program,
            fullgraph=True,  # else it goes on in Python where it doesn't understand something
            dynamic=dynamic,
            backend=stage,
            options={**_OURS, **options.get("inductor_options", {})} if stage == STAGES[-1] else None,
            recompile_limit=64,
            isolate_recompiles=True,
        )
        definite = dynamic or all(isinstance(size, int) for spec in self.inputs for size in spec.shape)
        if definite and not options.get("trains"):
            self._ready(self.examples)

    def _placed(self, *, on_cuda: bool) -> Any:
        """The program on its device."""
        exported = exported_program(self.module)
        if exported is None:
            return self.module.to(self._device)
        if on_cuda:
            self.module.program = move_to_device_pass(exported, str(self._device)).module()
        return self.module.program if self.module.is_flat else self.module

    @contextlib.contextmanager
    def _computing(self) -> Iterator[None]:
        """As PyTorch is set while it runs."""
        before = torch.backends.cudnn.allow_tf32
        torch.backends.cudnn.allow_tf32 = self._tf32
        try:
            with torch.inference_mode():
                yield
        finally:
            settled()
            torch.backends.cudnn.allow_tf32 = before

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        arguments = tuple(tensor_from_array(feeds[spec.name]) for spec in self.inputs)
        self._ready(arguments)
        started = time.perf_counter()
        with self._computing():
            placed = (tensor.to(self._device) for tensor in arguments)
            outputs = [(name, tensor.cpu()) for name, tensor in flatten(self._compiled(*placed))]
        self.device_seconds = time.perf_counter() - started
        return {spec.name: array_from_tensor(tensor) for spec, (_, tensor) in zip(self.outputs, outputs, strict=True)}

    def products(self, feeds: Mapping[str, Array], cotangents: Mapping[str, Array]) -> Mapping[str, Array]:
        """The compiled graphs: forward, and backward when it's asked for."""
        with self._computing(), self._left_out():
            return self._differentiated(
                lambda *tensors: self._compiled(*(tensor.to(self._device) for tensor in tensors)), feeds, cotangents
            )

    @contextlib.contextmanager
    def _left_out(self) -> Iterator[None]:
        """While it's compiled: all three sorts ask this, before they do something, whether it's to be left out."""
        from torch._inductor.compiler_bisector import CompilerBisector
        from torch._inductor.lowering import lowerings

        with (
            mock.patch.object(CompilerBisector, "disable_subsystem", self._is_off),
            mock.patch.dict(lowerings, self._fallbacks),
        ):
            yield

    def _ready(self, arguments: tuple[torch.Tensor, ...]) -> None:
        """Compile for the sizes of these; states stay as they are."""
        sizes = tuple(tensor.shape for tensor in arguments)
        if sizes in self._sizes:
            return
        before = [(buffer, buffer.clone()) for _, buffer in self._buffers()]
        try:
            with self._computing(), self._left_out():
                self._compiled(*(tensor.to(self._device) for tensor in arguments))
        # torch.compile raises types of its own, and what its C++ compiler says.
        except Exception as error:
            reason = shortened(" ".join(str(error).split()), _REASON)
            raise ModelLoadError(f"torch.compile stops at {self._path}: {type(error).__name__}: {reason}") from error
        for buffer, value in before:
            buffer.copy_(value)
        self._sizes.add(sizes)

    def _is_off(self, _: str, subsystem: str, told: Any = None) -> bool:
        """What stands in the place of `CompilerBisector.disable_subsystem`."""
        from torch._inductor.virtualized import V

        if subsystem == "lowerings" and V.current_node.target in self._fallbacks:
            return False  # it's left out already
        if subsystem == "lowerings":
            kind, name = "lowering", str(V.current_node.target)
        elif subsystem == "decomposition":
            found = _OPERATOR.search(told())
            kind, name = subsystem, ".".join(found.groups()) if found else told()
        elif subsystem.endswith("_passes"):
            kind, name = "pass", told()
        else:
            return False
        self.ran.append((kind, name))
        return name in self._off[kind]


def cuda_device() -> torch.device:
    """The GPU as PyTorch's device.

    Raises:
        DeviceError: if there's none that PyTorch reaches.
    """
    try:
        return torch.zeros(1, device=CUDA).device
    except (RuntimeError, AssertionError) as error:
        raise no_device("CUDA", "PyTorch", str(error)) from error


def _fallbacks(off: Mapping[str, Collection[str]]) -> dict[Any, Any]:
    """How operators that aren't decomposed are computed, where there's no other way: by PyTorch's own kernels.

    Args:
        off: Names of what is left out, by "pass", "decomposition" and "lowering".

    Raises:
        ConfigError: if there's no such decomposition, or lowering.
    """
    from torch._inductor.decomposition import decompositions
    from torch._inductor.lowering import fallback_handler, lowerings

    for kind, table in (("decomposition", decompositions), ("lowering", lowerings)):
        known = [str(operator) for operator in table if isinstance(operator, torch._ops.OpOverload)]
        named_rightly(f"disabled_{kind}s", off[kind], known)
    whole = [operator for operator in decompositions if str(operator) in off["decomposition"]]
    return {
        operator: fallback_handler(operator, add_to_fallback_set=False)
        for operator in whole
        if operator not in lowerings
    }


def _check_compiler() -> None:
    """Make sure that C++ can be compiled here.

    Raises:
        ModelLoadError: if it can't be.
    """
    from torch._inductor.cpp_builder import get_cpp_compiler

    try:
        get_cpp_compiler()
    except Exception as error:
        raise ModelLoadError(
            "torch.compile makes C++ code, and there's no compiler for it on the path. Install g++."
        ) from error
    headers = Path(sysconfig.get_path("include"))
    if not (headers / "Python.h").is_file():
        raise ModelLoadError(
            f"torch.compile makes modules of Python, and {headers} has no Python.h. Install python3-dev, or what "
            "your system calls that package."
        )
