"""Options of the command line as parts of a configuration."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from conrepair.converters.routes import Route
from conrepair.data.tensor_spec import TensorSpec
from conrepair.frameworks.model import from_json
from conrepair.runtime.errors import ConfigError, UsageError

__all__ = [
    "dataset_of",
    "given",
    "given_recipe",
    "input_specs",
    "localize_section",
    "parse_input",
    "read_options",
    "slug",
]

_LAYERS = 8  # samples that layers are compared on; outputs are compared on all


def dataset_of(options: argparse.Namespace) -> dict[str, Any]:
    """The dataset that --data names; without it a synthetic one."""
    if options.data is None:
        limits = {"seed": options.seed, "low": options.low, "high": options.high}
        return {"synthetic": {"samples": options.samples} | given(limits)}
    path = Path(options.data).absolute()
    return {"tensors": str(path)} if path.suffix in {".npz", ".npy"} else {"folder": str(path)}


def given(values: dict[str, Any]) -> dict[str, Any]:
    """Those that aren't None."""
    return {key: value for key, value in values.items() if value is not None}


def localize_section(options: argparse.Namespace) -> dict[str, Any]:
    """How layers are looked at, as a configuration takes it.

    Args:
        options: Of a command that looks at every layer.
    """
    return {
        "when": "always",
        "samples": min(_LAYERS, options.samples),
        "batch_size": options.batch_size,
        "latent": options.latent,
    }


def given_recipe(text: str | None) -> Any:
    """A recipe as a configuration takes it: by its name, or what a JSON file says.

    Args:
        text: A name, or the path of a file that ends with .json; None where none is given.

    Raises:
        ConfigError: if the file can't be read.
    """
    if text is None or not text.endswith(".json"):
        return text
    try:
        return json.loads(Path(text).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{text} can't be read as a recipe: {error}. Give a recipe.json, or a name.") from error


def slug(path: Path) -> str:
    """A file's name as the name of a model."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", path.name).lstrip("._-") or "model"


def parse_input(text: str) -> dict[str, Any]:
    """Read [NAME=]batch,3,224,224[:dtype].

    Raises:
        ConfigError: if there's no shape in it.
    """
    name, _, rest = text.rpartition("=")
    sizes, _, dtype = rest.partition(":")
    shape = [int(size) if size.lstrip("-").isdigit() else size for size in sizes.split(",") if size]
    if not shape:
        raise ConfigError(f"--input {text}: give a shape, as in --input batch,3,224,224")
    return {"name": name or None, "shape": shape, "dtype": dtype or "float32"}


def input_specs(texts: Sequence[str]) -> tuple[TensorSpec, ...]:
    """The inputs that --input declares.

    Raises:
        ConfigError: if there's no shape in one.
    """
    values = [parse_input(text) for text in texts]
    return tuple(from_json(TensorSpec, value | {"name": value["name"] or ""}) for value in values)


def read_options(texts: Sequence[str], route: Route) -> dict[str, dict[str, Any]]:
    """What is given for each step of a route.

    Args:
        texts: Each "CONVERTER.NAME=VALUE".
        route: Whose converters they must be.

    Raises:
        ConfigError: for an unknown option or a value that isn't allowed.
        UsageError: if a text is written otherwise, or names a converter that the route doesn't use.
    """
    found: dict[str, dict[str, Any]] = {step.name: {} for step in route.steps}
    steps = {step.name: step for step in route.steps}
    for text in texts:
        place, equals, value = text.partition("=")
        name, dot, option = place.partition(".")
        if not (equals and dot and option):
            raise UsageError(f"--option {text}: write CONVERTER.NAME=VALUE, as in keras-tflite.quantize=int8")
        if name not in steps:
            raise UsageError(f"--option {text}: the route is {route.name}, which doesn't use {name}")
        known = steps[name].options.get(option)
        found[name][option] = known.read(value, f"--option {place}") if known is not None else value
    for step in route.steps:
        step.complete(found[step.name])
    return found
