"""A TensorFlow or Keras model as one function that XLA compiles."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from conrepair.formats.models.arithmetic import settled
from conrepair.formats.models.model import Model
from conrepair.formats.models.runnable import Array, Runnable
from conrepair.formats.tensorflow.load.framework import TensorFlowRunnable, products
from conrepair.ground.runtime.errors import InferenceError
from conrepair.ground.runtime.words import shortened

_DUMPED = re.compile(r"\.\d{4}\.[^.]+\.after_(?!pipeline-start)(?P<pass>[^.]+)\.")
_DUMP = " --xla_dump_to="
_REASON = 600


def started_with(flags: str) -> bool:
    """Whether this process has these flags of XLA; where passes are to be listed, that's prepared.

    Args:
        flags: Of `XLA_FLAGS`.
    """
    there = os.environ.get("XLA_FLAGS", "").partition(_DUMP)[0]
    if there == flags and "xla_dump_hlo_pass_re" in flags:  # read when the first model is compiled
        os.environ["XLA_FLAGS"] = f"{flags}{_DUMP}{_dump()}"
    return there == flags


def _dump() -> Path:
    return Path(tempfile.gettempdir()) / f"xla-{os.getpid()}"


class XlaRunnable(Runnable):
    """Compiled anew for each size of its inputs.

    Attributes:
        ran: Passes that changed the model, in order, where the flags ask for that; known once it ran.
    """

    def __init__(self, model: Model) -> None:
        """Load a model.

        Args:
            model: A Keras or TensorFlow one.

        Raises:
            ModelLoadError: if it can't be loaded.
        """
        from conrepair.formats.models.registry import framework

        self._plain: Any = framework(model.framework).load(model)
        self.inputs, self.outputs = self._plain.inputs, self._plain.outputs
        self.ordered, self.states = self._plain.ordered, self._plain.states
        call = self._keras if model.framework == "keras" else self._tensorflow
        self._function = tf.function(call, jit_compile=True, autograph=False)
        self._products = tf.function(products, jit_compile=True, autograph=False)
        self._sizes: set[tuple[Any, ...]] = set()
        self.ran: list[str] = []

    def _keras(self, *arrays: Any) -> list[Any]:
        import keras

        return list(keras.tree.flatten(self._plain.network(self._plain.packed(list(arrays)), training=False)))

    def _tensorflow(self, *arrays: Any) -> list[Any]:
        names = [spec.name for spec in self.inputs]
        found = self._plain.function(**dict(zip(names, arrays, strict=True)))
        return [found[spec.name] for spec in self.outputs]

    def _reset(self) -> None:
        self._plain._reset()

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        arrays = [tf.constant(feeds[spec.name]) for spec in self.inputs]
        sizes = tuple(tuple(array.shape) for array in arrays)
        if sizes not in self._sizes and not self.states:
            self._called(arrays)
            self._sizes.add(sizes)
            self.ran += _listed()
        started = time.perf_counter()
        results = self._called(arrays)
        self.device_seconds = time.perf_counter() - started
        return {spec.name: result for spec, result in zip(self.outputs, results, strict=True)}

    def products(self, feeds: Mapping[str, Array], cotangents: Mapping[str, Array]) -> Mapping[str, Array]:
        """Forward and backward as one function, as a step of training is compiled."""
        if not isinstance(self._plain, TensorFlowRunnable):
            return super().products(feeds, cotangents)
        try:
            return self._plain.differentiated(self._products, feeds, cotangents)
        except tf.errors.OpError as error:
            raise _stopped(error) from error
        finally:
            settled()

    def _called(self, arrays: list[Any]) -> list[Array]:
        try:
            return [tensor.numpy() for tensor in self._function(*arrays)]
        except tf.errors.OpError as error:
            raise _stopped(error) from error
        finally:
            settled()


def _stopped(error: tf.errors.OpError) -> InferenceError:
    return InferenceError(f"XLA stops: {shortened(' '.join(error.message.split()), _REASON)}")


def _listed() -> list[str]:
    """The passes whose results XLA has written since the last time."""
    found = [match["pass"] for path in sorted(_dump().glob("*.txt")) if (match := _DUMPED.search(path.name))]
    shutil.rmtree(_dump(), ignore_errors=True)
    return found
