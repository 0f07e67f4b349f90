"""Results of cases, one row each, and the file that keeps them."""

from __future__ import annotations

import abc
import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.common.cases import Case
from conrepair.evaluate.verdict import Verdict
from conrepair.runtime.files import whole_output
from conrepair.runtime.workers import Outcome, Success

__all__ = ["CaseRow", "disagreements", "read_rows", "row_of", "write_rows"]


@dataclass(frozen=True)
class CaseRow(abc.ABC):
    """A case and what became of it.

    Attributes:
        case: What was done.
        status: "measured", "failed" (by an error, a crash or the time limit), or why there's no such case: "no model"
            came out of a converter, or that of `UnfitError`.
        words: More of it.
        result: Of a measured one, from the benchmark's `trial.run`.
    """

    case: Case
    status: str
    words: str = ""
    result: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    @abc.abstractmethod
    def score(self) -> Any:
        """What it's worth, a dataclass; None where that can't be said."""

    @property
    def off(self) -> str:
        """What is wrong with the target that nobody put in; "" where that's nothing."""
        return str(self.result.get("off", ""))

    @property
    def agrees(self) -> bool | None:
        """Whether localization doesn't pass what comparing outputs calls faulty; None where one wasn't asked."""
        if self.status != "measured" or not self.result.get("compared"):
            return None
        return self.result["compared"] != Verdict.FAULTY or not Verdict(self.result["verdict"]).is_right

    @property
    def kind(self) -> str:
        """Of the injected fault, where there's one."""
        injected = self.result.get("injected", [])
        return str(injected[0]["kind"]) if len(injected) == 1 else ""


Row = TypeVar("Row", bound=CaseRow)


def disagreements(rows: Sequence[CaseRow]) -> str:
    """Rows in which commands contradict each other, by name, and of how many."""
    asked = [row for row in rows if row.agrees is not None]
    found = [row for row in asked if not row.agrees]
    lines = [f"disagreements: {len(found)} of {len(asked)}", *(f"- `{row.case.name}`" for row in found)]
    return "\n".join(lines) + "\n"


def row_of(sort: type[Row], case: Case, outcome: Outcome | str) -> Row:
    """What a worker's outcome says about a case; words, where its models couldn't be made."""
    if isinstance(outcome, str):
        return sort(case, "no model", outcome)
    if not isinstance(outcome, Success):
        words = [str(outcome), *outcome.traceback.strip().splitlines()[-3:-1]]
        return sort(case, "failed", " | ".join(line.strip() for line in words))
    value = dict(outcome.value)
    return sort(case, value.pop("status"), value.pop("words"), value)


def _as_json(row: CaseRow) -> dict[str, Any]:
    """A row as plain values."""
    case = dataclasses.asdict(row.case) | {"name": row.case.name}
    case["faults"] = case["faults"][: max(case["count"], 1)]
    scored = row.score and dataclasses.asdict(row.score)
    return {"case": case, "status": row.status, "words": row.words, "score": scored, **row.result}


def _from_json(sort: type[Row], value: Mapping[str, Any]) -> Row:
    """What `_as_json` was given; the score is judged anew."""
    rest = {name: item for name, item in value.items() if name != "score"}
    told = rest.pop("case")
    fields = {field.name for field in dataclasses.fields(Case)}
    values = {name: tuple(item) if isinstance(item, list) else item for name, item in told.items() if name in fields}
    return sort(Case(**values), rest.pop("status"), rest.pop("words"), rest)


def read_rows(sort: type[Row], path: Path) -> tuple[dict[str, Any], list[Row]]:
    """What `write_rows` wrote: what the run was of, and its rows."""
    content = json.loads(path.read_text(encoding="utf-8"))
    rows = content.pop("cases")
    return content, [_from_json(sort, row) for row in rows]


def write_rows(path: Path, about: Mapping[str, Any], rows: Sequence[CaseRow]) -> None:
    """Write all rows: the file appears whole, or stays as it was.

    Args:
        path: Of the JSON file.
        about: What the run is of.
        rows: So far.
    """
    content = {**about, "cases": [_as_json(row) for row in rows]}
    with whole_output(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1), encoding="utf-8")
