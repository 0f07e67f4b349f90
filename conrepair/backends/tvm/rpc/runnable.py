"""A compiled model on a device that TVM reaches over RPC."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from conrepair.backends.tvm.rpc.reach import RpcDevice
from conrepair.backends.tvm.rpc.session import LostDeviceError, RpcSession, open_session
from conrepair.backends.tvm.runnable import arrays_of
from conrepair.data.tensor_spec import TensorSpec
from conrepair.frameworks.model import from_json
from conrepair.frameworks.runnable import Array, Runnable
from conrepair.runtime.errors import DeviceError, InferenceError, ModelLoadError
from conrepair.runtime.words import lines_of

_MAIN = "main"
_ALL_CORES = -1


class RemoteRunnable(Runnable):
    """A build, uploaded and loaded.

    Every batch is run twice: once to warm up, once timed by the device itself, which also gives the outputs.
    A batch whose connection ended is tried again on a new one, as often as the device's `attempts` say.

    Args:
        folder: Of the build.
        device: Where it runs.
        threads: That a kernel may use; None: TVM's default.

    Raises:
        DeviceError: if the device can't be reached, or is lost.
        ModelLoadError: if the device refuses the build.
    """

    def __init__(self, folder: Path, device: RpcDevice, threads: int | None = None) -> None:
        self._record = json.loads((folder / "build.json").read_text(encoding="utf-8"))
        self.inputs = tuple(from_json(TensorSpec, spec) for spec in self._record["inputs"])
        self.outputs = tuple(from_json(TensorSpec, spec) for spec in self._record["outputs"])
        self._library = folder / self._record["library"]
        self._device, self._threads = device, threads
        self._losses = 0
        self._open()

    def _open(self) -> None:
        from tvm import relax

        session = open_session(self._device)
        self._session: RpcSession = session
        with session.step("uploading the build"):
            session.remote.upload(str(self._library), self._library.name)
        try:
            with session.step("loading the build"):
                if self._threads is not None:
                    session.remote.get_function("runtime.config_threadpool")(_ALL_CORES, self._threads)
                self._place = session.remote.device(self._record["runs_on"], 0)
                module = session.remote.load_module(self._library.name)
                self._machine = relax.VirtualMachine(module, self._place)
                self._evaluate = self._machine.time_evaluator("invoke_stateful", self._place, number=1, repeat=1)
        except DeviceError:
            raise
        except Exception as error:
            raise ModelLoadError(
                f"{self._device} can't load the build: {lines_of(error)[-1]}. Is its TVM "
                f"{self._record['versions']['apache-tvm']} too, and its processor the one that `target` names?"
            ) from error

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        while True:
            try:
                with self._session.step("running the model"):
                    return self._once(feeds)
            except LostDeviceError as error:
                self._open_again(error)

    def _once(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        import tvm

        arrays = [np.asarray(feeds[spec.name], order="C") for spec in self.inputs]
        self._machine.set_input(_MAIN, *(tvm.runtime.tensor(array, device=self._place) for array in arrays))
        self.device_seconds = float(self._evaluate(_MAIN).results[0])
        results = list(self._results())
        if len(results) != len(self.outputs):
            raise InferenceError(f"the compiled model returns {len(results)} tensors instead of {len(self.outputs)}")
        return {spec.name: result for spec, result in zip(self.outputs, results, strict=True)}

    def _results(self, *path: int) -> Iterator[Array]:
        """The outputs, one by one: `VirtualMachine.get_outputs` would keep the session in a reference cycle."""
        module: Any = self._machine.module
        count = module["get_output_arity"](_MAIN, *path)
        if count < 0:
            yield from arrays_of(module["get_output"](_MAIN, *path))
        for index in range(count):
            yield from self._results(*path, index)

    def _open_again(self, lost: LostDeviceError) -> None:
        self._losses += 1
        if self._losses >= self._device.attempts:
            raise DeviceError(f"{lost} The connection ended {self._losses} times.") from lost
        try:
            self._open()
        except DeviceError as error:
            raise DeviceError(f"{lost} Then: {error}") from lost
