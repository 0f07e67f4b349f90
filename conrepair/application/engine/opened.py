"""A session for one call from Python."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from conrepair.application.verbs.options import Compare, Loaded, Localize, Repair
from conrepair.ground.runtime.errors import ConrepairError
from conrepair.ground.runtime.files.scratch import SCRATCH, scratch_folder

if TYPE_CHECKING:
    from conrepair.application.report.result import AuditResult

Value = TypeVar("Value")


class Opened:
    """A session for one call, with what was handed over as files; it ends with the call, or with its result.

    Attributes:
        session: Where things are done.
        given: Folder for what was handed over as objects.
    """

    def __init__(self, options: Loaded) -> None:
        self._stack = contextlib.ExitStack()
        self._in_process, self._quiet = options.in_process, not options.progress
        between = [f"between[{place}]" for place, _ in enumerate(getattr(options, "between", ()))]
        self._models = (
            ["source", *between, "target"] if isinstance(options, Compare | Localize | Repair) else ["model"]
        )

    def __enter__(self) -> Opened:
        from conrepair.application.engine.session import Session

        room = self._stack.enter_context(scratch_folder(Path(tempfile.gettempdir()), SCRATCH))
        self._work = contextlib.ExitStack()
        self.session = self._work.enter_context(Session(room, in_process=self._in_process, quiet=self._quiet))
        self.given = room / "given"
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, ConrepairError):
            error.args = tuple(self._told(item) if isinstance(item, str) else item for item in error.args)
        self._work.__exit__(kind, error, trace)
        self._stack.__exit__(kind, error, trace)

    def _told(self, text: str) -> str:
        """A text in which what was handed over is called as the argument, and not by the file that it became."""

        def called(found: re.Match[str]) -> str:
            is_data = (found[2] or "").startswith("data.np")
            return "the given data" if is_data else f"the model given as {self._models[int(found[1] or 0)]}"

        return re.sub(rf"{re.escape(str(self.given))}(?:/(\d+))?(?:/([\w.-]*\w))?", called, text)

    def told_of(self, run: AuditResult) -> AuditResult:
        """A run whose reasons call what was handed over so.

        Args:
            run: Of the call.
        """
        rows = []
        for row in run.rows:
            problem = row.problem and dataclasses.replace(row.problem, message=self._told(row.problem.message))
            rows.append(dataclasses.replace(row, reason=self._told(row.reason), problem=problem))
        return dataclasses.replace(run, rows=tuple(rows))

    def kept(self, result: Value) -> Value:
        """A result whose files stay as long as it does."""
        weakref.finalize(result, self._stack.pop_all().close)
        return result
