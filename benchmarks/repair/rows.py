"""Results of cases, one row each, and the file that keeps them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.common.cases import INTENDED, Case
from benchmarks.repair.scoring import Score, score
from conrepair.runtime.files import whole_output
from conrepair.runtime.workers import Outcome, Success

__all__ = ["Row", "as_json", "from_json", "read_rows", "row_of", "write_rows"]


@dataclass(frozen=True)
class Row:
    """A case and what became of it.

    Attributes:
        case: What was done.
        status: "measured", "failed" (the repair did, by an error, a crash or its time limit), or why there's no such
            case: see `UnfitError`.
        words: More of it.
        result: Of a measured one, from `trial.run`.
    """

    case: Case
    status: str
    words: str = ""
    result: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def counts(self) -> bool:
        """Whether a repair was asked for."""
        return self.status in {"measured", "failed"} and self.case.group != INTENDED

    @property
    def score(self) -> Score:
        """What it's worth; a repair that failed leaves the target as it was."""
        if self.status != "measured":
            return Score("failed", honest=True)
        return score(self.result, faulty=bool(self.case.count))

    @property
    def kind(self) -> str:
        """Of the injected fault, where there's one."""
        injected = self.result.get("injected", [])
        return str(injected[0]["kind"]) if len(injected) == 1 else ""


def row_of(case: Case, outcome: Outcome | str) -> Row:
    """What a worker's outcome says about a case; words, where its models couldn't be made."""
    if isinstance(outcome, str):
        return Row(case, "no model", outcome)
    if not isinstance(outcome, Success):
        words = [str(outcome), *outcome.traceback.strip().splitlines()[-3:-1]]
        return Row(case, "failed", " | ".join(line.strip() for line in words))
    value = dict(outcome.value)
    return Row(case, value.pop("status"), value.pop("words"), value)


def as_json(row: Row) -> dict[str, Any]:
    """A row as plain values."""
    case = dataclasses.asdict(row.case) | {"name": row.case.name}
    case["faults"] = case["faults"][: max(case["count"], 1)]
    scored = dataclasses.asdict(row.score)
    return {"case": case, "status": row.status, "words": row.words, "score": scored, **row.result}


def from_json(value: dict[str, Any]) -> Row:
    """What `as_json` was given; the score is judged anew."""
    rest = {name: item for name, item in value.items() if name != "score"}
    told = rest.pop("case")
    fields = {field.name for field in dataclasses.fields(Case)}
    values = {name: tuple(item) if isinstance(item, list) else item for name, item in told.items() if name in fields}
    return Row(Case(**values), rest.pop("status"), rest.pop("words"), rest)


def read_rows(path: Path) -> tuple[dict[str, Any], list[Row]]:
    """What `write_rows` wrote: what the run was of, and its rows."""
    content = json.loads(path.read_text(encoding="utf-8"))
    rows = content.pop("cases")
    return content, [from_json(row) for row in rows]


def write_rows(path: Path, about: dict[str, Any], rows: Sequence[Row]) -> None:
    """Write all rows: the file appears whole, or stays as it was.

    Args:
        path: Of the JSON file.
        about: What the run is of.
        rows: So far.
    """
    content = about | {"cases": [as_json(row) for row in rows]}
    with whole_output(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1), encoding="utf-8")
