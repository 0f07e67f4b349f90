"""Run a graph before and after a rewrite and compare."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx_ir

from conrepair.formats.models.builders import calibration_inputs
from conrepair.formats.onnx.load.file import table_sizes
from conrepair.formats.onnx.load.framework import spec_of_value
from conrepair.formats.onnx.passes.files import save
from conrepair.formats.onnx.passes.fold_constants import RANDOM
from conrepair.ground.data.symbolic_sizes import with_declared_sizes
from conrepair.ground.data.tensor_spec import TensorSpec, numpy_dtype
from conrepair.ground.runtime.onnx_session import open_session
from conrepair.ground.runtime.words import lines_of

Array = npt.NDArray[Any]

_BATCH = 2
_SIZE = 64  # of symbolic dimensions behind the batch
_ROUNDING = 1e-4  # relative L2 that reordered additions may make without further questions
_ROUNDING_HALF = 1e-2
_CHANGE = 1e-6  # of the inputs, relative, that shows how much a network amplifies rounding
_TIMES_FLOOR = 10.0
_WORST_FLOOR = 1e-2


class DrawnReference:
    """What a model gives on one drawn input: a smooth image, so that random networks aren't chaotic on it.

    Attributes:
        unknown: Why no outputs are compared: the model can't be run, gives other outputs every time, or amplifies
            rounding so much that nothing can be said. Empty otherwise.
    """

    def __init__(self, path: Path, declared: Sequence[TensorSpec], batch: int | None = None) -> None:
        self._feeds: dict[str, Array] = {}
        self._outputs: list[Any] = []
        self._path = path
        self._floor: float | None = None
        self.unknown = ""
        proto = onnx.load(path, load_external_data=False)
        if random := sorted({node.op_type for node in proto.graph.node} & RANDOM):
            self.unknown = f"it draws random numbers ({', '.join(random)})"
            return
        try:
            session = open_session(path)
            inputs = tuple(map(spec_of_value, session.get_inputs()))
            sizes = table_sizes(proto)
            self._feeds = {
                spec.name: _draw(replace(spec, high=sizes.get(spec.name)), position, batch or _BATCH)
                for position, spec in enumerate(with_declared_sizes(inputs, declared))
            }
            self._outputs = session.run(None, self._feeds)
        # onnxruntime raises one class per status code, without a common base of their own.
        except Exception as error:  # noqa: BLE001
            self.unknown = f"it doesn't run on drawn inputs: {lines_of(error)[0]}"

    def difference(self, model: onnx_ir.Model) -> str | None:
        """Say how the outputs of a rewritten model differ beyond rounding; None when they don't."""
        if self.unknown:
            return None
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            save(model, path)
            try:
                outputs = open_session(path).run(None, self._feeds)
            # As above.
            except Exception as error:  # noqa: BLE001
                return f"the result doesn't run: {lines_of(error)[0]}"
        if len(outputs) != len(self._outputs):
            return f"it has {len(outputs)} outputs instead of {len(self._outputs)}"
        names = [str(value.name) for value in model.graph.outputs]
        pairs = dict(zip(names, zip(self._outputs, outputs, strict=True), strict=True))
        difference = outputs_differ(pairs)
        if difference is None or outputs_differ(pairs, np.inf) is not None:
            return difference
        floor = self._measured_floor()
        if floor > _WORST_FLOOR:
            self.unknown = f"a change of its inputs by {_CHANGE:g} changes its outputs by {floor:.1g}"
            return None
        return outputs_differ(pairs, _TIMES_FLOOR * floor)

    def _measured_floor(self) -> float:
        """The largest relative change of an output that a tiny change of the inputs makes in the original."""
        if self._floor is None:
            generator = np.random.default_rng(0)
            feeds = {
                name: (array * (1 + generator.choice([-_CHANGE, _CHANGE], array.shape))).astype(array.dtype)
                if _is_real(array)
                else array
                for name, array in self._feeds.items()
            }
            outputs = open_session(self._path).run(None, feeds)
            pairs = zip(self._outputs, outputs, strict=True)
            self._floor = max((relative_error(one, two) for one, two in pairs if _is_real(one)), default=0.0)
        return self._floor


def _is_real(array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.dtype.kind == "f"


def outputs_differ(pairs: Mapping[str, tuple[Any, Any]], allowed: float = 0.0) -> str | None:
    """Say which output differs beyond rounding, and how; None when none does.

    Args:
        pairs: Reference and candidate by name; arrays, or sequences of them.
        allowed: Relative L2 of real numbers, if more than rounding may make in any network.
    """
    for name, (one, two) in pairs.items():
        if not isinstance(one, np.ndarray) or not isinstance(two, np.ndarray):
            if str(one) != str(two):
                return f"output {name} differs"
        elif one.shape != two.shape or one.dtype != two.dtype:
            return f"output {name} is {two.dtype}{list(two.shape)} instead of {one.dtype}{list(one.shape)}"
        elif one.dtype.kind != "f":
            if not np.array_equal(one, two):
                return f"output {name} differs in {int((one != two).sum())} of {one.size} elements"
        elif (error := relative_error(one, two)) > max(allowed, _ROUNDING_HALF if one.itemsize < 4 else _ROUNDING):
            return f"output {name} differs by {error:.2g} (relative L2)"
    return None


def relative_error(one: Array, two: Array) -> float:
    """Relative L2 over finite elements; infinite when others are elsewhere, or of another sign."""
    finite = np.isfinite(one)
    if not np.array_equal(one[~finite], two[~finite], equal_nan=True) or not np.isfinite(two[finite]).all():
        return np.inf
    a, b = one[finite].astype(np.float64), two[finite].astype(np.float64)
    norm = float(np.linalg.norm(a))
    error = float(np.linalg.norm(a - b))
    return error / norm if norm else error


def _draw(spec: TensorSpec, position: int, batch: int) -> Array:
    shape = tuple(size if isinstance(size, int) else _SIZE if axis else batch for axis, size in enumerate(spec.shape))
    return calibration_inputs(replace(spec, shape=shape), position).astype(numpy_dtype(spec.dtype))
