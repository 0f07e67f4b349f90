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
from conrepair.ground.runtime.files.whole import whole_output
from conrepair.ground.runtime.processes.workers import Outcome, Success
from conrepair.verdicts.evaluate.verdict import Verdict

__all__ = ["FAILED", "CaseRow", "disagreements", "read_rows", "row_of", "write_rows"]

FAILED = "failed"
"""Of a verb that ended with an error."""


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
    def verdicts(self) -> dict[str, str]:
        """What each verb that was asked says: "right", "undecided", "faulty", or "failed" for an error."""
        return {verb: _class(verdict) for verb, verdict in self.result.get("said", {}).items()}

    @property
    def agrees(self) -> bool | None:
        """Whether the verbs that answer say the same; None where fewer than two do."""
        told = [verdict for verdict in self.verdicts.values() if verdict != FAILED]
        return len(set(told)) == 1 if len(told) > 1 else None

    @property
    def kind(self) -> str:
        """Of the injected fault, where there's one."""
        injected = self.result.get("injected", [])
        return str(injected[0]["kind"]) if len(injected) == 1 else ""


Row = TypeVar("Row", bound=CaseRow)


def _class(verdict: str) -> str:
    """What a verdict comes to."""
    if verdict not in set(Verdict):
        return FAILED
    if Verdict(verdict).is_right:
        return "right"
    return "undecided" if verdict == Verdict.UNDECIDED else "faulty"


def disagreements(rows: Sequence[CaseRow]) -> str:
    """Rows in which verbs contradict each other, by name, and of how many."""
    asked = [row for row in rows if row.agrees is not None]
    found = [row for row in asked if not row.agrees]
    lines = [f"disagreements: {len(found)} of {len(asked)}"]
    lines += [f"- `{row.case.name}`: {', '.join(map(' '.join, row.verdicts.items()))}" for row in found]
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
