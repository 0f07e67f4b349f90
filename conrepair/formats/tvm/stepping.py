"""Run a compiled model kernel by kernel: see what each computes, leave some out, give them other values to read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from conrepair.formats.models.runnable import Array
from conrepair.formats.tvm.calls import Calls, KernelCall
from conrepair.formats.tvm.runnable import TvmRunnable
from conrepair.ground.data.tensor_spec import numpy_dtype
from conrepair.ground.runtime.errors import InferenceError

Visit = Callable[[KernelCall, Sequence[Array]], None]
"""Gets each call that ran, and copies of what it wrote."""

_RUN, _SKIP = 0, 1  # of TVM's VMInstrumentReturnKind


class Stepping:
    """The virtual machine of a build, with a hand on every kernel.

    The kernels are those that run without it: the machine calls back before and after each. What one reads is
    overwritten in place, right before it runs; kernels that nobody needs are skipped. What one is to write holds NaN
    before (the lowest whole number): else an element that it doesn't write has whatever the memory had, which may be
    the right value by chance.
    """

    def __init__(self, runnable: TvmRunnable, calls: Calls) -> None:
        """Take the machine over; `runnable` isn't for other runs as long as this is used.

        Args:
            runnable: A loaded build.
            calls: What it does.
        """
        self._runnable, self._calls = runnable, calls
        self._functions = {call.function for call in calls.calls}
        self._shapes = dict(calls.shapes)
        for value, spec in zip(calls.inputs, runnable.inputs, strict=True):
            self._shapes[value] = tuple(int(size) for size in spec.shape), spec.dtype
        self._writer = {value: call for call in calls.calls for value in call.writes}
        self._viewed = {call.writes[0]: call.reads[0] for call in calls.calls if call.view}

    def run(self, given: Mapping[str, Array], wanted: Collection[str], visit: Visit) -> None:
        """Compute some values from others.

        Args:
            given: Values that are read instead of what computes them; those of the inputs among them, where they
                are needed.
            wanted: Values to compute, also where they are given.
            visit: Called after each kernel that writes one of them.

        Raises:
            InferenceError: if a kernel fails, or the build does something else than its record says.
        """
        needed = self._needed(given, wanted)
        run = _Run(self._calls.calls, needed, dict(given), self._viewed, frozenset(wanted), visit)
        feeds = {
            spec.name: np.asarray(given[value], spec.dtype) if value in given else self._zeros(value)
            for value, spec in zip(self._calls.inputs, self._runnable.inputs, strict=True)
        }
        self._runnable.observe(run.called(self._functions))
        try:
            self._runnable.run(feeds)
        except InferenceError as error:
            # What was raised in a callback comes back as an error of TVM's.
            raise (run.error or error) from None
        finally:
            self._runnable.observe(lambda *_: _RUN)
        if run.place != len(self._calls.calls):
            raise InferenceError(f"the build calls {run.place} of {len(self._calls.calls)} kernels. Build it again.")

    def _needed(self, given: Mapping[str, Array], wanted: Collection[str]) -> frozenset[str]:
        """Values that must be computed."""
        needed = set(wanted)
        for call in reversed(self._calls.calls):
            if needed.intersection(call.writes):
                needed.update(value for value in call.reads if value is not None and value not in given)
        return frozenset(needed)

    def _zeros(self, value: str) -> Array:
        shape, dtype = self._shapes[value]
        return np.zeros(shape, dtype)


def _unwritten(shape: tuple[int, ...], dtype: str) -> Array:
    kind = numpy_dtype(dtype)
    if kind.kind == "b":
        return np.zeros(shape, kind)
    return np.full(shape, np.iinfo(kind).min if kind.kind in "iu" else np.nan, kind)


@dataclass
class _Run:
    """One run, from the outside.

    Attributes:
        place: Of the call that comes next.
        error: What went wrong in a callback.
    """

    _calls: Sequence[KernelCall]
    _needed: frozenset[str]
    _given: dict[str, Array]
    _viewed: Mapping[str, str | None]
    _wanted: frozenset[str]
    _visit: Visit
    place: int = 0
    error: InferenceError | None = None

    def __post_init__(self) -> None:
        # Writing into a view changes what it's a view of, so what was computed there is kept.
        self._shared = {origin for view, origin in self._viewed.items() if view in self._given and origin}

    def called(self, functions: Collection[str]) -> Callable[..., int]:
        """What the virtual machine is to call."""

        def instrument(_: Any, symbol: str, before: bool, result: Any, *arguments: Any) -> int:
            if symbol not in functions:
                return _RUN
            try:
                return self._before(symbol, arguments) if before else self._after(result, arguments)
            except InferenceError as error:
                self.error = error
                raise

        return instrument

    def _before(self, symbol: str, arguments: Sequence[Any]) -> int:
        call = self._calls[self.place] if self.place < len(self._calls) else None
        if call is None or call.function != symbol:
            expected = "the end" if call is None else call.function
            raise InferenceError(f"the build calls {symbol} where its record has {expected}. Build it again.")
        if not call.view and not self._needed.intersection(call.writes):
            self.place += 1
            return _SKIP
        for value, argument in zip(call.reads, arguments, strict=False):
            array = None if value is None else self._value(value)
            if array is not None:
                argument.copyfrom(np.asarray(array.reshape(argument.shape), order="C"))  # a scalar stays one
        if not call.view:
            for argument in arguments[len(call.reads) : len(call.reads) + len(call.writes)]:
                argument.copyfrom(_unwritten(tuple(argument.shape), str(argument.dtype)))
        return _RUN

    def _after(self, result: Any, arguments: Sequence[Any]) -> int:
        call = self._calls[self.place]
        self.place += 1
        written = [result] if call.view else arguments[len(call.reads) : len(call.reads) + len(call.writes)]
        wanted = not self._wanted.isdisjoint(call.writes)
        if wanted or not self._shared.isdisjoint(call.writes):
            arrays = [tensor.numpy() for tensor in written]
            for value, array in zip(call.writes, arrays, strict=True):
                if value in self._shared and value not in self._given:
                    self._given[value] = array
            if wanted:
                self._visit(call, arrays)
        return _RUN

    def _value(self, value: str) -> Array | None:
        """The array to read for a value, where it isn't that in memory; None elsewhere."""
        found: str | None = value
        while found is not None:
            if found in self._given:
                return self._given[found]
            found = self._viewed.get(found)
        return None
