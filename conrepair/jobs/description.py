"""The jobs that make or describe a model."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from conrepair.frameworks.builders import build_from_factory
from conrepair.frameworks.identity import model_sha256
from conrepair.frameworks.model import LoadedModel, Model
from conrepair.frameworks.outlines.outline import Outline, describe_unrun, outline
from conrepair.frameworks.registry import framework
from conrepair.jobs.values import BuildRequest
from conrepair.runtime.errors import SourceChangedError
from conrepair.runtime.files import HashedPath


def build(folder: Path, request: BuildRequest) -> LoadedModel:
    """Call a factory, load or draw its weights, save what it made.

    Args:
        folder: Receives the weights or the model; the result's path is relative to it.
        request: What to build.
    """
    weights = request.weights
    own = {**vars(request), "weights": None if weights is None else weights.path}
    model = build_from_factory(**own, folder=folder)
    if weights is not None:
        check_unchanged(weights)
    return described(model, folder)


def describe(folder: Path, model: Model, *, unrun: bool = False, place: str = "") -> LoadedModel:
    """Describe an existing model.

    Args:
        folder: Not used.
        model: Where it is.
        unrun: Whether nothing of it may be run for that.
        place: What the result is kept for: it names the file, which others of the same content don't have.
    """
    found = describe_unrun(model) if unrun else Outline(framework(model.framework).describe(model))
    check_unchanged(model)
    return LoadedModel(model, found.description, found.missing)


def contents(folder: Path, model: Model) -> Outline | None:
    """Say what a file holds that can't be run; None for one that can't be read either.

    Args:
        folder: Not used.
        model: The file.
    """
    return outline(model)


def described(model: Model, folder: Path) -> LoadedModel:
    """A model that was made, with its path relative to the folder that it's in.

    Args:
        model: What was made.
        folder: Of the job.
    """
    description = framework(model.framework).describe(model)
    return LoadedModel(dataclasses.replace(model, path=Path(model.path).relative_to(folder).as_posix()), description)


def check_unchanged(*read: Model | HashedPath) -> None:
    """Refuse a result whose source was replaced while the job read it: the store would keep it for the older one.

    Args:
        *read: What the job has read.

    Raises:
        SourceChangedError: if so.
    """
    for item in read:
        if model_sha256(Path(item.path)) != item.sha256:
            raise SourceChangedError(
                f"{item.path} was changed while it was read; the result was not used. Run again."
            )
