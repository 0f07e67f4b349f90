"""Generated networks in ONNX Runtime, in this process."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import onnx

from conrepair.formats.onnx.load.border import plain_border
from conrepair.ground.runtime.onnx_session import open_session
from conrepair_lab.generate.graph import Draft
from conrepair_lab.generate.settings.tensors import numpy_type
from conrepair_lab.generate.values.drawn import drawn_values

_NARROW = "tensor(bfloat16)"

Arrays = Mapping[str, np.ndarray[Any, Any]]


class RefusedError(Exception):
    """ONNX Runtime doesn't take a network, or doesn't compute it; the text is its own."""


class ModelSession:
    """A model that is loaded, to be run again and again; bfloat16 comes and goes as what NumPy has.

    Args:
        model: The network.
        names: Of its outputs, in order.
        optimized: Whether the runtime may rewrite the graph.

    Raises:
        RefusedError: if ONNX Runtime doesn't take it.
    """

    def __init__(self, model: onnx.ModelProto, names: Collection[str], *, optimized: bool = False) -> None:
        self._names = tuple(names)
        self._narrow: dict[str, np.dtype[Any]] = {}
        text = model.SerializeToString()
        self._session = _opened(text, optimized)
        ends = (*self._session.get_inputs(), *self._session.get_outputs())
        if narrow := {value.name for value in ends if value.type == _NARROW}:
            plain = onnx.ModelProto.FromString(text)
            for value in plain.graph.output:
                if value.name in narrow:
                    value.type.tensor_type.elem_type = onnx.TensorProto.BFLOAT16
            border = plain_border(plain)
            self._narrow = {name: numpy_type(dtype) for name, dtype in border.narrow.items()}
            self._session = _opened(plain.SerializeToString(), optimized)

    def run(self, feeds: Arrays) -> dict[str, np.ndarray[Any, Any]]:
        """Compute the outputs, by name.

        Args:
            feeds: By input.

        Raises:
            RefusedError: if ONNX Runtime doesn't compute it.
        """
        try:
            found = self._session.run(None, {name: self._fed(name, array) for name, array in feeds.items()})
        except Exception as error:  # the runtime's errors have no common class
            raise RefusedError(str(error)) from error
        narrow = self._narrow
        return {
            name: array.astype(narrow[name]) if name in narrow else array
            for name, array in zip(self._names, found, strict=True)
        }

    def _fed(self, name: str, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """A copy: there are operators that write into what they read."""
        narrow = name in self._narrow and array.dtype == self._narrow[name]
        return array.astype(np.float32) if narrow else np.array(array)


def run(
    model: onnx.ModelProto, feeds: Arrays, names: Collection[str], *, optimized: bool = False
) -> dict[str, np.ndarray[Any, Any]]:
    """Compute a model's outputs, by name, once: as with `ModelSession`."""
    return ModelSession(model, names, optimized=optimized).run(feeds)


def accepted(model: onnx.ModelProto, draft: Draft) -> bool:
    """Whether ONNX Runtime takes a model of one operator."""
    generator = np.random.default_rng(0)
    feeds = {name: drawn_values(tensor.type, tensor.values, generator) for name, tensor in draft.sources.items()}
    try:
        run(model, feeds, draft.outputs())
    except RefusedError:
        return False
    return True


def _opened(text: bytes, optimized: bool) -> Any:
    try:
        return open_session(text, threads=1, quiet=True, optimized=optimized)
    except Exception as error:  # the runtime's errors have no common class
        raise RefusedError(str(error)) from error
