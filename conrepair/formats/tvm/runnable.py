"""A compiled model in Relax's virtual machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from conrepair.formats.models.runnable import Array, Runnable
from conrepair.formats.tvm.opencl_run import register_kernels
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import DeviceError, InferenceError, ModelLoadError
from conrepair.ground.runtime.typed import typed
from conrepair.ground.runtime.words import lines_of

_ALL_CORES, _BIG_CORES = -1, 1  # the latter with 0 threads is TVM's default: as many as there are


class BuildRunnable(Runnable):
    """A build, with what its record says of it.

    Args:
        folder: That `conrepair.formats.tvm.build.build` wrote.

    Attributes:
        record: What `build.json` says.
    """

    def __init__(self, folder: Path) -> None:
        self.record = json.loads((folder / "build.json").read_text(encoding="utf-8"))
        self.inputs = tuple(typed(TensorSpec, spec) for spec in self.record["inputs"])
        self.outputs = tuple(typed(TensorSpec, spec) for spec in self.record["outputs"])

    def _placed(self, feeds: Mapping[str, Array], device: Any) -> list[Any]:
        """Inputs on a device, in order."""
        import tvm

        # Not ascontiguousarray, which gives a scalar an axis.
        arrays = [np.asarray(feeds[spec.name], order="C") for spec in self.inputs]
        return [tvm.runtime.tensor(array, device=device) for array in arrays]

    def _named(self, results: Sequence[Array]) -> Mapping[str, Array]:
        """Results by the names of the outputs."""
        if len(results) != len(self.outputs):
            raise InferenceError(f"the compiled model returns {len(results)} tensors instead of {len(self.outputs)}")
        return {spec.name: result for spec, result in zip(self.outputs, results, strict=True)}


class TvmRunnable(BuildRunnable):
    """A build, loaded.

    Args:
        folder: That `conrepair.formats.tvm.build.build` wrote.
        threads: That a kernel may use; None: TVM's default.

    Attributes:
        folder: Of the build.

    Raises:
        ModelLoadError: if the folder holds no build that TVM can load.
    """

    def __init__(self, folder: Path, threads: int | None = None) -> None:
        import tvm
        from tvm import relax

        self.folder = folder
        try:
            super().__init__(folder)
            # Also without a wish: the process may have run another build with one.
            mode, count = (_BIG_CORES, 0) if threads is None else (_ALL_CORES, threads)
            tvm.get_global_func("runtime.config_threadpool")(mode, count)
            if self.record["bridge"]:
                register_kernels(folder)
            self._device = tvm.device(self.record["runs_on"], 0)
            self._machine = relax.VirtualMachine(
                tvm.runtime.load_module(str(folder / self.record["library"])), self._device
            )
            self._main = self._machine["main"]
        except DeviceError:
            raise
        # TVM raises RuntimeError, ValueError or its own for a library of another version or processor.
        except Exception as error:
            raise ModelLoadError(
                f"{folder} can't be loaded as a build of TVM: {lines_of(error)[-1]}. Build it again."
            ) from error

    def observe(self, instrument: Callable[..., Any]) -> None:
        """Call a function before and after every kernel, with the kernel's name and arguments.

        Args:
            instrument: As `relax.VirtualMachine.set_instrument` takes it.
        """
        self._machine.set_instrument(instrument)

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        return self._named(arrays_of(self._main(*self._placed(feeds, self._device))))


def arrays_of(value: Any) -> list[Array]:
    """What a function of the virtual machine returns, as arrays: tensors, shapes, and tuples of them.

    Raises:
        InferenceError: if there's anything else in it.
    """
    import tvm

    if isinstance(value, tvm.runtime.Tensor):
        return [value.numpy()]
    if isinstance(value, tvm.runtime.ShapeTuple):
        return [np.array(list(value), np.int64)]
    if isinstance(value, Sequence) or hasattr(value, "__getitem__"):
        return [array for item in value for array in arrays_of(item)]
    raise InferenceError(f"the compiled model returns a {type(value).__name__}, which is no tensor")
