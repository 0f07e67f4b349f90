"""result.json: all that a run came to, as one document that reports can be made of without running a model.

The document is the result's values as they are: `conrepair.report.result.AuditResult` and what it consists of. So
nothing is translated, and what is read is what was written. Numbers that JSON lacks are "inf", "-inf" and "nan".
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pydantic

from conrepair.report.encode import encode
from conrepair.report.places import placed, relative_to, resolved_in
from conrepair.report.result import AuditResult
from conrepair.runtime.errors import DataError
from conrepair.runtime.json_file import read_json_text, value_of
from conrepair.runtime.path_text import checked_path

__all__ = ["DOCUMENT", "PAGE", "SCHEMA_VERSION", "has_page", "read_result", "result_json", "result_text"]

DOCUMENT = "result.json"
PAGE = "report.html"
_WITH_PAGE = {"audit", "compare", "localize", "repair"}
SCHEMA_VERSION = 1
_PLACES = 3  # of what is wrong in a file
_JSON: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(Any)


def has_page(result: AuditResult) -> bool:
    """Whether a run of that kind leaves a page beside its document: runs that judge a target do.

    Args:
        result: Of any verb, or of an audit.
    """
    return result.kind in _WITH_PAGE


def result_json(result: AuditResult) -> dict[str, Any]:
    """A run as a JSON value.

    Graphs stand in it once, by the SHA-256 of their models. Names of samples are left out: inputs have theirs. Paths
    of files in the run's folder are told from there, so that it may be moved.

    Args:
        result: Of any verb, or of an audit.
    """
    rows = tuple(placed(row, relative_to(result.folder)) for row in result.rows)
    value: dict[str, Any] = encode(dataclasses.replace(result, samples={}, rows=rows))
    graphs: dict[str, Any] = value["graphs"]
    _lift_graphs(value["rows"], graphs)
    first = {"schema_version": SCHEMA_VERSION, "kind": result.kind, "exit_code": result.exit_code}
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


def result_text(result: AuditResult) -> str:
    """What the file holds, but for the line's end.

    Args:
        result: Of any verb, or of an audit.
    """
    return _JSON.dump_json(result_json(result), indent=1).decode()


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
        value = value_of(text)
    except ValueError as error:
        raise DataError(f"{file} is damaged: {error}. Run the command again that made it.") from error
    if not isinstance(value, dict) or "schema_version" not in value:
        raise DataError(f"{file} is no result of conrepair: it has no schema_version")
    if value["schema_version"] != SCHEMA_VERSION:
        raise DataError(
            f"{file} is of version {value['schema_version']}, this conrepair reads version {SCHEMA_VERSION}. "
            f"It was written by conrepair {_writer(value)}: read it with that, or run its command again."
        )
    try:
        result: AuditResult = _adapter().validate_python(value)
    except pydantic.ValidationError as error:
        found = error.errors(include_url=False)
        places = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in found[:_PLACES])
        raise DataError(f"{file} is damaged, in {len(found)} places: {places}") from error
    rows = tuple(placed(row, resolved_in(file.parent)) for row in result.rows)
    return dataclasses.replace(result, folder=file.parent, rows=rows)


@functools.cache
def _adapter() -> pydantic.TypeAdapter[AuditResult]:
    return pydantic.TypeAdapter(AuditResult)


def _writer(value: Mapping[str, Any]) -> str:
    versions = value.get("versions")
    return str(versions.get("conrepair", "?")) if isinstance(versions, Mapping) else "?"
