"""The jobs that make or describe a model."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from conrepair.application.jobs.values import BuildRequest, RunRequest
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.formats.models.builders import build_from_factory
from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import LoadedModel, Model
from conrepair.formats.models.outline import Outline, describe_unrun, outline
from conrepair.formats.models.registry import framework
from conrepair.ground.runtime.errors import SourceChangedError
from conrepair.ground.runtime.files.whole import HashedPath

_Job = TypeVar("_Job", bound=Callable[..., Any])


class _Read(Protocol):
    """A model, or another file or folder: where it is, and what it held."""

    @property
    def path(self) -> str | Path: ...

    @property
    def sha256(self) -> str: ...


def of_what_stays(job: _Job) -> _Job:
    """Have a job refuse its result where a file was replaced while it was read: it would be kept for the older one.

    A job that calls others checks what they read itself, once, and calls what they wrap.

    Args:
        job: Its models and files are hashed again when it's done.
    """

    @functools.wraps(job)
    def checked(*args: Any, **kwargs: Any) -> Any:
        result = job(*args, **kwargs)
        check_unchanged(*_files((*args, *kwargs.values())))
        return result

    return cast(_Job, checked)


def _files(value: Any) -> Iterator[_Read]:
    """Models and files among a job's arguments."""
    if isinstance(value, Model | HashedPath):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _files(item)
    elif isinstance(value, LoadedModel | FedModel):
        yield value.model
    elif isinstance(value, BuildRequest):
        yield from _files(value.weights)
    if isinstance(value, FedModel | RunRequest) and value.data.kind == "tensors":
        yield HashedPath(value.data.path, value.data.sha256)


@of_what_stays
def build(folder: Path, request: BuildRequest) -> LoadedModel:
    """Call a factory, load or draw its weights, save what it made.

    Args:
        folder: Receives the weights or the model; the result's path is relative to it.
        request: What to build.
    """
    weights = request.weights
    own = {**vars(request), "weights": None if weights is None else weights.path}
    model = build_from_factory(**own, folder=folder)
    return described(model, folder)


@of_what_stays
def describe(folder: Path, model: Model, *, unrun: bool = False, place: str = "") -> LoadedModel:
    """Describe an existing model.

    Args:
        folder: Not used.
        model: Where it is.
        unrun: Whether nothing of it may be run for that.
        place: What the result is kept for: it names the file, which others of the same content don't have.
    """
    found = describe_unrun(model) if unrun else Outline(framework(model.framework).describe(model))
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


def check_unchanged(*read: _Read) -> None:
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
