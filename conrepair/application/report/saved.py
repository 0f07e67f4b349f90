"""result.json: all that a run came to, as one document that reports can be made of without running a model.

The document is the result's values as they are: `conrepair.application.report.result.AuditResult` and what it
consists of. So nothing is translated, and what is read is what was written. Numbers that JSON lacks are "inf",
"-inf" and "nan".
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pydantic

from conrepair.application.report.encode import encode
from conrepair.application.report.next_steps import Step, next_steps
from conrepair.application.report.result import AuditResult
from conrepair.application.report.row_paths import placed, relative_to, resolved_in
from conrepair.ground.runtime.errors import DataError
from conrepair.ground.runtime.files.json_file import read_json_text, value_of
from conrepair.ground.runtime.path_text import checked_path
from conrepair.ground.runtime.words import shortened

DOCUMENT = "result.json"
PAGE = "report.html"
_LARGEST = 1 << 63
_WITH_PAGE = {"audit", "compare", "localize", "repair"}
SCHEMA_VERSION = 1
_PLACES, _WORDS = 3, 500  # of what is wrong in a file


def has_page(result: AuditResult) -> bool:
    """Whether a run of that kind leaves a page beside its document: runs that judge a target do.

    Args:
        result: Of any verb, or of an audit.
    """
    return result.kind in _WITH_PAGE


def result_json(result: AuditResult, steps: Sequence[Step] | None = None) -> dict[str, Any]:
    """A run as a JSON value.

    Graphs stand in it once, by the SHA-256 of their models. Names of samples are left out: inputs have theirs. Paths
    of files in the run's folder are told from there, so that it may be moved.

    Args:
        result: Of any verb, or of an audit.
        steps: What to do next; default: as follows from the result.
    """
    steps = next_steps(result) if steps is None else steps
    rows = tuple(placed(row, relative_to(result.folder)) for row in result.rows)
    value: dict[str, Any] = encode(dataclasses.replace(result, samples={}, rows=rows))
    graphs: dict[str, Any] = value["graphs"]
    _lift_graphs(value["rows"], graphs)
    first = {
        "schema_version": SCHEMA_VERSION,
        "kind": result.kind,
        "exit_code": result.exit_code,
        "next": list(map(dataclasses.asdict, steps)),
    }
    return first | value


def _lift_graphs(value: Any, graphs: dict[str, Any]) -> None:
    """Take the graphs out of all localizations in a JSON value."""
    if isinstance(value, list):
        for item in value:
            _lift_graphs(item, graphs)
    elif isinstance(value, dict):
        if "graphs" in value and "layers" in value:
            for sha256, graph in value["graphs"].items():
                graphs.setdefault(sha256, graph)
            value["graphs"] = {}
        for item in value.values():
            if isinstance(item, dict | list):
                _lift_graphs(item, graphs)


def result_text(result: AuditResult, steps: Sequence[Step] | None = None) -> str:
    """What the file holds, but for the line's end.

    Args:
        result: Of any verb, or of an audit.
        steps: What to do next; default: as follows from the result.
    """
    return pydantic.TypeAdapter(Any).dump_json(result_json(result, steps), indent=1).decode()


def read_result(path: str | Path) -> AuditResult:
    """Read what a run came to.

    Args:
        path: The document, or the folder that it lies in.

    Returns:
        The result, its folder being the one that the document lies in.

    Raises:
        DataError: if it's missing, damaged, of another version, or something else.
    """
    place = checked_path(path).absolute()
    file = place / DOCUMENT if place.is_dir() else place
    try:
        text = read_json_text(file)
    except FileNotFoundError as error:
        raise DataError(f"{file} isn't there: name a folder that conrepair has written, or its {DOCUMENT}") from error
    except (OSError, ValueError) as error:
        raise DataError(f"{file} can't be read: {error}") from error
    try:
        value = value_of(text, constant=_no_number)
        _check_numbers(value)
    except ValueError as error:
        raise DataError(f"{file} is damaged: {error}. Run the command again that made it.") from error
    if not isinstance(value, dict) or "schema_version" not in value:
        raise DataError(f"{file} is no result of conrepair: it has no schema_version")
    if value["schema_version"] != SCHEMA_VERSION:
        version = shortened(str(value["schema_version"]), _WORDS)
        raise DataError(
            f"{file} is of version {version}, this conrepair reads version {SCHEMA_VERSION}. "
            f"It was written by conrepair {_writer(value)}: read it with that, or run its command again."
        )
    try:
        result: AuditResult = _adapter().validate_python(value)
    except pydantic.ValidationError as error:
        found = error.errors(include_url=False)
        places = "; ".join(map(_told, found[:_PLACES]))
        raise DataError(f"{file} is damaged, in {len(found)} places: {shortened(places, _WORDS)}") from error
    if not result.rows:
        raise DataError(f"{file} is damaged: rows: there are none, so nothing was run that could be shown")
    rows = tuple(placed(row, resolved_in(file.parent)) for row in result.rows)
    return dataclasses.replace(result, folder=file.parent, rows=rows)


def _told(error: Mapping[str, Any]) -> str:
    """What is wrong, and where, as Pydantic says it."""
    return f"{'.'.join(map(str, error['loc']))}: {error['msg'].removeprefix('Value error, ')}"


def _no_number(text: str) -> float:
    raise ValueError(f'{text} is no JSON; such a number is a text there, "nan" or "inf"')


def _check_numbers(value: Any) -> None:
    """Refuse integers that no count and no size has: sums and shares of them are no floating-point numbers.

    Raises:
        ValueError: if there's one.
    """
    level = [value] if isinstance(value, dict | list) else []
    while level:
        inner = [item for held in level for item in (held.values() if isinstance(held, dict) else held)]
        if any(isinstance(item, int) and not -_LARGEST <= item <= _LARGEST for item in inner):
            raise ValueError("a number in it has more than 64 bits")
        level = [item for item in inner if isinstance(item, dict | list)]


@functools.cache
def _adapter() -> pydantic.TypeAdapter[AuditResult]:
    return pydantic.TypeAdapter(AuditResult)


def _writer(value: Mapping[str, Any]) -> str:
    versions = value.get("versions")
    return shortened(str(versions.get("conrepair", "?")), _WORDS) if isinstance(versions, Mapping) else "?"
