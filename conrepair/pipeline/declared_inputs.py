"""Inputs of models whose files don't say them, as they're given."""

from __future__ import annotations

from collections.abc import Sequence

from conrepair.data.tensor_spec import TensorSpec
from conrepair.frameworks.model import from_json
from conrepair.runtime.errors import ConfigError

__all__ = ["input_specs"]


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
    shape = [int(size) if size.lstrip("-").isdigit() else size for size in sizes.split(",") if size]
    if not shape:
        raise ConfigError(f"--input {text}: give a shape, as in --input batch,3,224,224")
    return from_json(TensorSpec, {"name": name, "shape": shape, "dtype": dtype or "float32"})
