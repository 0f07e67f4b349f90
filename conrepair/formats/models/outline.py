"""The outline of a model's file, and how to read it."""

from __future__ import annotations

import dataclasses
import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conrepair.formats.models.admission import admitted
from conrepair.formats.models.detect import container, is_torchscript
from conrepair.formats.models.model import Description, Model
from conrepair.formats.models.registry import framework
from conrepair.formats.models.runnable import load_error, loading
from conrepair.ground.runtime.errors import ModelLoadError

_MOST = 6


@dataclass(frozen=True)
class Outline:
    """What a file says.

    Attributes:
        description: Without what only running tells (shapes that aren't in the file).
        missing: What it needs and isn't there, each a sentence that says what to do about it.
    """

    description: Description
    missing: tuple[str, ...] = ()


def outline(model: Model) -> Outline | None:
    """Read a model's file, and run nothing of it; None where it can't be read: it's damaged, or of another format.

    Ours is `conrepair.formats.{name}.load.outline`.

    Args:
        model: Of any framework.
    """
    try:
        return framework(model.framework).outline(model)
    # Reading a damaged file raises whatever its bytes make of it, in all libraries: that's how it shows.
    except Exception:  # noqa: BLE001
        return None


def counted(names: list[str]) -> str:
    """Names with how often each occurs: "Erf (2), Foo"."""
    different = list(dict.fromkeys(names))
    words = [f"{name} ({names.count(name)})" if names.count(name) > 1 else name for name in different[:_MOST]]
    more = [f"{len(different) - _MOST} more"] if len(different) > _MOST else []
    return ", ".join(words + more)


def lacking(names: list[str], words: str) -> tuple[str, ...]:
    """What to say of what a file names and nobody here has; nothing where there's none.

    Args:
        names: One for each time that it occurs.
        words: A sentence, with {} where the names belong.
    """
    return (words.format(counted(names)),) if names else ()


# What a model consists of, as far as nothing of it is run for that.


def describe_unrun(model: Model) -> Outline:
    """Describe a file. Loading TorchScript and SavedModels runs what's in them, so they are only read.

    Args:
        model: Of any framework; of a trusted one, everything is said, whatever has to run for it.

    Raises:
        ModelLoadError: if it can't be read.
    """
    path = Path(model.path)
    if model.trust or model.factory is not None:
        return Outline(framework(model.framework).describe(model))
    if model.framework == "torch" and container(path) == ".pt2":
        reader: Any = importlib.import_module("conrepair.formats.torch.load.exported_outline")
        found: Outline = reader.read(model)
        return found
    if model.framework == "torch" and is_torchscript(path):
        return _read(model, "TorchScript", "inputs and outputs")
    if model.framework == "tensorflow" and path.is_dir():
        return _read(model, "a SavedModel", "")
    return Outline(framework(model.framework).describe(model))


def _read(model: Model, what: str, unsaid: str) -> Outline:
    """Read a file; what it lacks makes it one that can't be run.

    Args:
        model: The file.
        what: Its format.
        unsaid: What the format doesn't say.
    """
    with loading(model, what, passing=ModelLoadError), admitted(model) as place:
        found = framework(model.framework).outline(dataclasses.replace(model, path=str(place)))
    if found is None or found.missing:
        raise load_error(model, what, ValueError("it needs what isn't here"))
    description = found.description
    if not description.inputs and model.inputs:
        description = dataclasses.replace(description, inputs=model.inputs)
        unsaid = unsaid.replace("inputs and ", "")
    if model.framework == "tensorflow":
        indices = [spec.name for spec in description.inputs if spec.dtype.startswith(("int", "uint"))]
        unsaid = f"how large {', '.join(indices)} may be" if indices else ""
    note = f"{unsaid}: not tried, as that would run it (`conrepair execute` does; so does --trust)"
    return Outline(description, (note,) if unsaid else ())
