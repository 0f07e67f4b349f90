"""What a file consists of, also one that nothing here can run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conrepair.formats.models.detect import detect_framework
from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import Description, Model
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import ConrepairError, ModelLoadError

if TYPE_CHECKING:
    from conrepair.application.engine.session import Session


@dataclass(frozen=True)
class Described:
    """What could be read of a file.

    Attributes:
        model: The file.
        description: What it consists of; None where nothing could be read.
        missing: What can't be said without running it.
        problem: Why it can't be run, as far as that was looked at.
    """

    model: Model
    description: Description | None
    missing: tuple[str, ...] = ()
    problem: ConrepairError | None = None

    def checked(self) -> Description:
        """What the file consists of.

        Raises:
            ConrepairError: if it can't be run.
        """
        if self.problem is not None:
            raise self.problem
        if self.description is None:
            raise ValueError("a file that was described has no description")
        return self.description


def read_file(
    path: Path, session: Session, inputs: Sequence[TensorSpec] = (), *, timeout: float = 600.0, trust: bool = False
) -> Described:
    """Describe a file; one that can't be run as far as it can be read. Nothing of it is run unless it's trusted.

    Args:
        path: Of the file or folder.
        session: Where other files are opened, and progress is shown.
        inputs: That its file doesn't say.
        timeout: In seconds.
        trust: Whether code and pickles in it may run.

    Raises:
        ModelLoadError: if there's no such file, or it's of no known format.
    """
    model = Model(detect_framework(path), str(path), model_sha256(path), inputs=tuple(inputs), trust=trust)
    if model.framework != "onnx":
        return _opened(model, session, timeout)
    with session.shown("describe"):
        return _read(model)


def _read(model: Model) -> Described:
    from conrepair.formats.models.outline import outline
    from conrepair.formats.onnx.load.outline import check

    found, problem = outline(model), None
    try:
        check(model, found)
    except ModelLoadError as error:
        problem = error
    if found is None:
        return Described(model, None, problem=problem)
    return Described(model, found.description, found.missing, problem)


def _opened(model: Model, session: Session, timeout: float) -> Described:
    from conrepair.application.engine.problems import problem_of_failure
    from conrepair.application.engine.task import Result, Task
    from conrepair.formats.models.formats import framework_needs
    from conrepair.formats.models.outline import Outline

    def done(kind: str, **payload: Any) -> Result:
        needs = framework_needs(model.framework)
        return session.result(Task(kind, kind, lambda _: payload, needs=needs, timeout=timeout))

    read, problem = done("describe", model=model, unrun=True), None
    if read.failure is not None:
        told = problem_of_failure(read.failure, loading=True)
        problem = told.as_error("" if told.kind == "refused" else f"{model.path} can't be loaded")
        read = done("contents", model=model)
    if read.entry is None or read.entry.result is None:
        return Described(model, None, problem=problem)
    found = read.entry.read(Outline)
    return Described(model, found.description, found.missing, problem)
