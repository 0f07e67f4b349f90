"""What a file consists of, also one that nothing here can run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from conrepair.data.tensor_spec import TensorSpec
from conrepair.frameworks.detect import detect_framework
from conrepair.frameworks.identity import model_sha256
from conrepair.frameworks.model import Description, Model, from_json, to_json
from conrepair.pipeline.evaluation import problem_of_failure
from conrepair.pipeline.session import Session
from conrepair.pipeline.sources import framework_needs
from conrepair.report.result import Problem
from conrepair.runtime.workers import Failure

__all__ = ["Described", "read_file"]


@dataclass(frozen=True)
class Described:
    """What could be read of a file.

    Attributes:
        model: The file.
        description: What it consists of; None where nothing could be read.
        missing: What can't be said without running it.
        problem: Why it can't be run.
    """

    model: Model
    description: Description | None
    missing: tuple[str, ...] = ()
    problem: Problem | None = None

    def checked(self) -> Description:
        """What the file consists of.

        Raises:
            ConrepairError: if it can't be run.
        """
        if self.problem is not None:
            what = "" if self.problem.kind == "refused" else f"{self.model.path} can't be loaded"
            raise self.problem.as_error(what)
        if self.description is None:
            raise ValueError("a file that was described has no description")
        return self.description


def read_file(
    path: Path, session: Session, inputs: Sequence[TensorSpec] = (), *, timeout: float = 600.0, trust: bool = False
) -> Described:
    """Describe a file; one that can't be run as far as it can be read.

    Args:
        path: Of the file or folder.
        session: Where.
        inputs: That its file doesn't say.
        timeout: In seconds.
        trust: Whether code and pickles in it may run.

    Raises:
        ModelLoadError: if there's no such file, or it's of no known format.
    """
    model = Model(detect_framework(path), str(path), model_sha256(path), inputs=tuple(inputs), trust=trust)
    payload = {"model": to_json(model)}
    needs = framework_needs(model.framework)
    outcome = session.call("describe", payload, needs=needs, timeout=timeout)
    problem = problem_of_failure(outcome) if isinstance(outcome, Failure) else None
    read = outcome if problem is None else session.call("contents", payload, needs=needs, timeout=timeout)
    if isinstance(read, Failure) or "description" not in read.value:
        return Described(model, None, problem=problem)
    description = from_json(Description, read.value["description"])
    return Described(model, description, tuple(read.value.get("missing", ())), problem)
