"""Build and time a candidate of MetaSchedule in this process."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

_REPEATS = 3
_LEAST_MILLISECONDS = 10
_SEED = 0
_LONGEST = 500  # characters of an error


class Tally:
    """Counts candidates that are done, in a file, for whoever waits for this process.

    Attributes:
        failures: Errors of those that don't compile or don't run.

    Args:
        file: One byte a candidate.
        done: How many are done already.
    """

    def __init__(self, file: Path, done: int) -> None:
        self._file = file
        self.failures: list[str] = []
        file.write_bytes(bytes(done))

    def add(self, error: Exception | None = None) -> str | None:
        """Count a candidate; returns what's said of one that failed."""
        with self._file.open("ab") as stream:
            stream.write(bytes(1))
        if error is None:
            return None
        self.failures.append(_words(error))
        return self.failures[-1]


def builder(tally: Tally, folder: Path) -> Any:
    """Compiles candidates one after the other; one that doesn't compile is an error of its own.

    Args:
        tally: Counts those.
        folder: For what's compiled.
    """
    import tvm
    from tvm.ir.utils import derived_object
    from tvm.s_tir.meta_schedule.builder import BuilderResult, PyBuilder

    @derived_object
    class Builder(PyBuilder):
        def build(self, build_inputs: Any) -> Any:
            return [self._one(item) for item in build_inputs]

        def _one(self, item: Any) -> Any:
            try:
                with item.target:
                    module = tvm.s_tir.transform.RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(item.mod)
                    path = Path(tempfile.mkdtemp(dir=folder)) / "candidate.so"
                    tvm.tirx.build(module, target=item.target).export_library(str(path))
            # Candidates are random: many break a rule of the target.
            except Exception as error:  # noqa: BLE001
                return BuilderResult(None, tally.add(error))
            return BuilderResult(str(path), None)

    return Builder()


def runner(tally: Tally) -> Any:
    """Times candidates one after the other, on random arguments.

    Args:
        tally: Counts them.
    """
    import tvm
    from tvm.ir.utils import derived_object
    from tvm.s_tir.meta_schedule.runner import PyRunner, PyRunnerFuture, RunnerResult

    @derived_object
    class Measured(PyRunnerFuture):
        def __init__(self, seconds: list[float] | None, message: str | None) -> None:
            super().__init__()
            self._result = seconds, message

        def done(self) -> bool:
            return True

        def result(self) -> Any:
            return RunnerResult(*self._result)

    @derived_object
    class Runner(PyRunner):
        def run(self, runner_inputs: Any) -> Any:
            return [self._one(item) for item in runner_inputs]

        def _one(self, item: Any) -> Any:
            try:
                device = tvm.device(item.device_type, 0)
                module = tvm.runtime.load_module(item.artifact_path)
                arguments = [_argument(info, device) for info in item.args_info]
                evaluate = module.time_evaluator(
                    "main", device, number=1, repeat=_REPEATS, min_repeat_ms=_LEAST_MILLISECONDS
                )
                seconds = [float(value) for value in evaluate(*arguments).results]
            # As above.
            except Exception as error:  # noqa: BLE001
                return Measured(None, tally.add(error))
            return Measured(seconds, tally.add())

    return Runner()


def _words(error: Exception) -> str:
    """The last line of an error: TVM's begin with a stack."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1] if lines else ''}"[:_LONGEST].rstrip(". ")


def _argument(info: Any, device: Any) -> Any:
    import numpy as np
    import tvm

    shape = [int(size) for size in info.shape]
    values = np.random.default_rng(_SEED).uniform(0, 1, shape).astype(str(info.dtype))
    return tvm.runtime.tensor(values, device=device)
