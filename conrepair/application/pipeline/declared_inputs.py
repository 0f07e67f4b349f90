"""Inputs of models whose files don't say them, as they're given."""

from __future__ import annotations

import re
from collections.abc import Sequence

from conrepair.ground.data.tensor_spec import TensorSpec, numpy_dtype
from conrepair.ground.runtime.errors import ConfigError
from conrepair.ground.runtime.typed import typed
from conrepair.ground.runtime.words import shortened

_NUMBER = re.compile(r"-?\d+", re.ASCII)
_DIGITS, _SHOWN = 12, 100


def input_specs(texts: Sequence[str | TensorSpec] | TensorSpec) -> tuple[TensorSpec, ...]:
    """The inputs that are declared; one alone may be.

    Raises:
        ConfigError: if there's no shape in one, or a size or a type that no input has.
    """
    if isinstance(texts, str | TensorSpec):
        texts = [texts]
    return tuple(_checked(text, text.name) if isinstance(text, TensorSpec) else _input_spec(text) for text in texts)


def _checked(spec: TensorSpec, text: str) -> TensorSpec:
    """An input that there can be.

    Args:
        spec: The input.
        text: As it was given.
    """
    shown = f"--input {shortened(str(text), _SHOWN)}"
    right = isinstance(spec.name, str) and isinstance(spec.dtype, str) and isinstance(spec.shape, tuple | list)
    if not right or not all(type(size) in {int, str} for size in spec.shape):
        raise ConfigError(f"{shown}: give a name, a shape of numbers and names, and a type")
    if small := [size for size in spec.shape if isinstance(size, int) and size < 1]:
        raise ConfigError(f"{shown}: sizes are at least 1, and one is {small[0]}")
    try:
        numpy_dtype(spec.dtype)
    except TypeError as error:
        raise ConfigError(
            f"{shown}: there's no type '{shortened(spec.dtype, _SHOWN)}'; give float32, int64, bool or the like"
        ) from error
    return spec


def _input_spec(text: str) -> TensorSpec:
    """Read [NAME=]batch,3,224,224[:dtype]."""
    name, _, rest = text.rpartition("=")
    sizes, _, dtype = rest.partition(":")
    shape = [_size(size, text) for size in sizes.split(",") if size]
    if not shape:
        raise ConfigError(f"--input {text}: give a shape, as in --input batch,3,224,224")
    return _checked(typed(TensorSpec, {"name": name, "shape": shape, "dtype": dtype or "float32"}), text)


def _size(size: str, text: str) -> int | str:
    """A number, or the name of a size that's open."""
    if not _NUMBER.fullmatch(size):
        return size
    if len(size) > _DIGITS:
        raise ConfigError(f"--input {shortened(text, _SHOWN)}: no input has a size of {len(size):,} digits")
    return int(size)
