"""For tests of one's own: `assert_equivalent(source, target)`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypedDict, Unpack

import conrepair
from conrepair.api import localized
from conrepair.application.verbs.option import FOLDER, option, options, takes
from conrepair.application.verbs.options import Localize
from conrepair.ground.intake.arguments import path
from conrepair.ground.runtime.errors import InferenceError
from conrepair.ground.runtime.path_text import fitting_name
from conrepair.ground.runtime.words import shortened
from conrepair.pytest_plugin import REPORTS

__all__ = ["TraceOptions", "assert_equivalent", "assert_exact"]

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conrepair.application.report.results import Localized
    from conrepair.ground.data.tensor_spec import TensorSpec
    from conrepair_lab.report.tracing.folder import TracedModel

_LINES, _WIDTH = 10, 200


@options("output")
class Asserted(Localize):
    """Options of `assert_equivalent`: those of a localization of two models, and the folder for its report."""

    report: str | Path | None = option(
        "Folder that keeps the localization where it fails.",
        FOLDER,
        usual="one below the folder that pytest's option --conrepair-reports or the environment variable "
        "CONREPAIR_REPORTS names, where there's one",
        default=None,
        flag="",
    )


class TraceOptions(TypedDict, total=False):
    """Those of `conrepair.trace`, for type checkers."""

    progress: bool
    timeout: float
    in_process: bool
    inputs: Sequence[str | TensorSpec] | str | TensorSpec
    setting: str
    against: str | None
    switch: str | None
    granularity: int | None
    weights: bool
    method: str
    evaluations: int
    seconds: float
    low: float
    high: float
    data: Any
    seed: int
    builds: int


def assert_exact(model: Any, *, report: str | Path | None = None, **options: Unpack[TraceOptions]) -> None:
    """Fail where a system is off by more than rounding error, on inputs that are searched.

    Args:
        model: An ONNX model: a path or an object.
        report: Folder that keeps the trace where it fails; default: as for `assert_equivalent`.
        **options: Those of `conrepair.trace`: the setting, how many inputs are tried, and others.

    Raises:
        AssertionError: with the inputs, the kernel and what to switch off, in ten lines at most.
        ConrepairError: if it can't be run or searched.
    """
    __tracebackhide__ = True
    found = conrepair.trace(model, **options)
    judged = {item.kind for item in found.found.deviations}
    if not judged or "not judged" in judged:
        raise InferenceError(f"can't tell: {found.verdict}. {'; '.join(found.found.doubts)}")
    if not found.found.wrong:
        return
    _fail(found, report)


@takes(Asserted)
def assert_equivalent(options: Asserted) -> None:
    """Fail where a converted model computes something else than the original, and name the faulty layer.

    Raises:
        AssertionError: with the faulty layer and its fault, in ten lines at most.
        ConrepairError: if one of them can't be loaded or looked into.
    """
    __tracebackhide__ = True
    found = localized(options)
    if not found.localization.is_right:
        _fail(found, options.report)


def _fail(found: Localized | TracedModel, report: str | Path | None) -> NoReturn:
    """Raise what was found, in a few lines."""
    __tracebackhide__ = True
    lines = [shortened(line, _WIDTH) for line in str(found).splitlines()][: _LINES - 1]
    if report is not None:
        report = path("report", report)
    elif reports := os.environ.get(REPORTS):
        report = _free(Path(reports))
    if report is not None:
        lines.append(f"report: {found.save(report)}")
    raise AssertionError("\n".join(lines))


def _free(reports: Path) -> Path:
    """A folder that isn't there yet, named by the test that runs."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]  # "file.py::test[parameters] (call)"
    function, bracket, parameters = test.partition("[")
    text = f"{function.rpartition('::')[2]}{bracket}{parameters}"
    name = "".join(letter if letter.isalnum() else "-" for letter in text).strip("-") or "localization"
    name = fitting_name(name)
    places = (reports / (name if not number else f"{name}-{number}") for number in range(10_000))
    return next(place for place in places if not place.exists())
