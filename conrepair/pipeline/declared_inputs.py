"""Inputs of models whose files don't say them, as they're given."""

from __future__ import annotations

import re
from collections.abc import Sequence

from conrepair.data.tensor_spec import TensorSpec
from conrepair.frameworks.model import from_json
from conrepair.runtime.errors import ConfigError
from conrepair.runtime.words import shortened

__all__ = ["input_specs"]

_NUMBER = re.compile(r"-?\d+", re.ASCII)
_DIGITS, _SHOWN = 12, 100


def input_specs(texts: Sequence[str | TensorSpec]) -> tuple[TensorSpec, ...]:
    """The inputs that are declared.

    Raises:
        ConfigError: if there's no shape in one.
    """
    return tuple(text if isinstance(text, TensorSpec) else _input_spec(text) for text in texts)


def _input_spec(text: str) -> TensorSpec:
    """Read [NAME=]batch,3,224,224[:dtype]."""
    name, _, rest = text.rpartition("=")
    sizes, _, dtype = rest.partition(":")
    shape = [_size(size, text) for size in sizes.split(",") if size]
    if not shape:
        raise ConfigError(f"--input {text}: give a shape, as in --input batch,3,224,224")
    return from_json(TensorSpec, {"name": name, "shape": shape, "dtype": dtype or "float32"})


def _size(size: str, text: str) -> int | str:
    """A number, or the name of a size that's open."""
    if not _NUMBER.fullmatch(size):
        return size
    if len(size) > _DIGITS:
        raise ConfigError(f"--input {shortened(text, _SHOWN)}: no input has a size of {len(size):,} digits")
    return int(size)
