"""A compiled model on a device that TVM reaches over RPC."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from conrepair.formats.models.runnable import Array
from conrepair.formats.tvm.rpc.reach import RpcDevice
from conrepair.formats.tvm.rpc.session import LostDeviceError, RpcSession, open_session
from conrepair.formats.tvm.runnable import BuildRunnable, arrays_of
from conrepair.ground.runtime.errors import DeviceError, ModelLoadError
from conrepair.ground.runtime.words import lines_of

_MAIN = "main"
_ALL_CORES = -1


class RemoteRunnable(BuildRunnable):
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
        super().__init__(folder)
        self._library = folder / self.record["library"]
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
                self._place = session.remote.device(self.record["runs_on"], 0)
                module = session.remote.load_module(self._library.name)
                self._machine = relax.VirtualMachine(module, self._place)
                self._evaluate = self._machine.time_evaluator("invoke_stateful", self._place, number=1, repeat=1)
        except DeviceError:
            raise
        except Exception as error:
            raise ModelLoadError(
                f"{self._device} can't load the build: {lines_of(error)[-1]}. Is its TVM "
                f"{self.record['versions']['apache-tvm']} too, and its processor the one that `target` names?"
            ) from error

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        while True:
            try:
                with self._session.step("running the model"):
                    return self._once(feeds)
            except LostDeviceError as error:
                self._open_again(error)

    def _once(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        self._machine.set_input(_MAIN, *self._placed(feeds, self._place))
        self.device_seconds = float(self._evaluate(_MAIN).results[0])
        return self._named(list(self._results()))

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
