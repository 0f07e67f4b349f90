"""What every framework gives: something that takes named feeds and returns named outputs."""

from __future__ import annotations

import abc
import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy.typing as npt

from conrepair.formats.models.model import Model
from conrepair.ground.data.stored_values import to_real, to_stored
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import ConrepairError, DataError, DeviceError, InferenceError, ModelLoadError
from conrepair.ground.runtime.words import shortened

_REASON = 500
# Of a C++ library's message: file, line and signature of the function that complains.
_PLACE = re.compile(r"/\S+\.(?:cc|cpp|h|hpp):\d+ [^()]*\((?:[^()]|\([^()]*\))*\)(?: const)?:?\s*")

Array = npt.NDArray[Any]


class Runnable(abc.ABC):
    """A loaded model. `run` checks and converts; `_run` computes.

    Attributes:
        inputs: In the model's order.
        outputs: In the model's order.
        ordered: Whether its outputs have an order, and not names alone.
        states: Names of what a call leaves behind for the next; none for models whose answers depend on inputs alone.
        device_seconds: What the last batch took on a device that measures that itself; else None.
    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    ordered: bool = True
    states: tuple[str, ...] = ()
    device_seconds: float | None = None

    def run(self, feeds: Mapping[str, Array], *, fresh: bool = True) -> dict[str, Array]:
        """Compute one batch.

        Args:
            feeds: An array for every input, by name. Real numbers are quantized for an input that stores
                quantized ones.
            fresh: Begin anew; otherwise a state goes on from where the last call left it.

        Returns:
            An array for every output, by name; quantized outputs as the real numbers they stand for.

        Raises:
            DataError: if a feed is missing, unknown, or of a shape or type that doesn't fit.
            DeviceError: if the device that runs it is gone.
            InferenceError: if the framework fails.
        """
        names = [spec.name for spec in self.inputs]
        if sorted(names) != sorted(feeds):
            raise DataError(
                f"the model's inputs are {'; '.join(map(str, self.inputs))}, the data has {sorted(feeds)}. "
                "Name the arrays of the data like the inputs."
            )
        converted = {spec.name: to_stored(spec, feeds[spec.name]) for spec in self.inputs}
        try:
            if fresh:
                self._reset()
            outputs = self._run(converted)
        except (DataError, DeviceError, InferenceError):
            raise
        # Frameworks raise types of their own; whichever it is, running the model failed.
        except Exception as error:
            raise InferenceError(f"running the model failed: {type(error).__name__}: {error}") from error
        return {spec.name: to_real(spec, outputs[spec.name]) for spec in self.outputs}

    def products(self, feeds: Mapping[str, Array], cotangents: Mapping[str, Array]) -> Mapping[str, Array]:
        """Differentiate, where a library can.

        Args:
            feeds: That fit the inputs.
            cotangents: Of the real outputs, by name.

        Returns:
            The vector-Jacobian product of each real input, by name.
        """
        raise NotImplementedError("it isn't known how this is differentiated")

    def _reset(self) -> None:  # noqa: B027 (most models have none)
        """Set each state to what it is when the model is loaded."""

    @abc.abstractmethod
    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        """Compute one batch of feeds that fit the inputs."""


@contextlib.contextmanager
def loading(model: Model, what: str, *, passing: type[ConrepairError] | tuple[()] = ()) -> Iterator[None]:
    """Turn whatever a library raises of a file into `load_error`: reading damaged ones raises errors of any type.

    Args:
        model: Which.
        what: The format it's taken for ("an ONNX model").
        passing: Errors that say what's wrong already.
    """
    try:
        yield
    except passing:
        raise
    except Exception as error:
        raise load_error(model, what, error) from error


def load_error(model: Model, what: str, error: Exception) -> ModelLoadError:
    """Say that a file couldn't be loaded: what it needs and isn't here, or that it may be damaged.

    Args:
        model: Which.
        what: The format it was taken for ("an ONNX model").
        error: The library's.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    reason = shortened(_PLACE.sub("", " ".join(lines[:3])), _REASON).rstrip(".")
    return ModelLoadError(
        f"{model.path} can't be loaded as {what}: {_remedy(model, f'{type(error).__name__}: {reason}', error)}"
    )


def _remedy(model: Model, reason: str, error: Exception) -> str:
    """What is so of a file that the library refuses, and what to do; damaged is what can't be read at all."""
    from conrepair.formats.models.outline import outline
    from conrepair.formats.models.refusals import refusal

    if model.factory is not None:
        return f"{reason}."
    found = outline(model)
    if found is None:
        return f"{reason}. It may be damaged, cut off, or of another format; export or copy it again."
    listed = "`conrepair inspect` lists what's in it."
    if found.missing:
        return f"{'; '.join(found.missing)}. {listed} ({reason})"
    if words := refusal(model, str(error)):
        return f"{words}. ({reason})"
    return f"{reason}. The file can be read to its end, so it's what is in it that's refused. {listed}"
