"""The folder of a trace: what came of it, the inputs that show it, and programs that show it without conrepair."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conrepair.frameworks.identity import copy_model, place_model
from conrepair.frameworks.proto_file import read_proto
from conrepair.intake.data import write_arrays
from conrepair.report.encode import encode
from conrepair.report.tracing.picture import kernels_svg
from conrepair.report.tracing.words import traced_lines, verdict_of
from conrepair.runtime.errors import ExitCode
from conrepair.runtime.files import put_text
from conrepair.runtime.outputs import Output
from conrepair.systems.registry import SYSTEMS
from conrepair.tracing.judging import Judged
from conrepair.tracing.result import Culprits, Traced

__all__ = ["TRACE", "VERSION", "TracedModel", "exit_code_of", "trace_json", "trace_output", "write_trace"]

TRACE = "trace.json"
VERSION = 1
"""Of the form of trace.json."""


def exit_code_of(traced: Traced) -> ExitCode:
    """1 where a deviation lies above the bound."""
    return ExitCode.DIFFERENT if traced.wrong else ExitCode.EQUIVALENT


def trace_json(traced: Traced) -> dict[str, Any]:
    """The document."""
    return {
        "schema_version": VERSION,
        "verdict": verdict_of(traced),
        "exit_code": int(exit_code_of(traced)),
        **encode(traced),
    }


@dataclass(frozen=True, repr=False)
class TracedModel:
    """What a trace came to, with the files that show it.

    Attributes:
        found: All that was found.
        judged: The inputs that were found, with what both sides give, the worst first.
        file: The ONNX file that was run: the model, or a copy with sizes in place of open ones.
        converted: The model in the format that the system is given, where that's another than the file's.
        repaired: The model with a stable form in the place of what's wrong, which heals; None where none was found.
    """

    found: Traced
    judged: Judged
    file: Path
    converted: Path | None = None
    repaired: Path | None = None

    @property
    def verdict(self) -> str:
        """One sentence."""
        return verdict_of(self.found)

    @property
    def exit_code(self) -> int:
        """As the command line's: 1 where something lies above what rounding explains."""
        return int(exit_code_of(self.found))

    @property
    def culprits(self) -> Culprits:
        """Which switches it hangs on."""
        return self.found.culprits

    def __str__(self) -> str:
        """What a terminal shows."""
        return "\n".join(traced_lines(self.found))

    def __repr__(self) -> str:
        """One line, as notebooks save it."""
        return f"<TracedModel {self.verdict}>"

    def __bool__(self) -> bool:
        """Refuse to be taken for a verdict.

        Raises:
            TypeError: always.
        """
        raise TypeError("TracedModel is neither true nor false. Ask its exit_code or found.wrong.")

    def to_dict(self) -> dict[str, Any]:
        """As trace.json."""
        return trace_json(self.found)

    def save(self, folder: str | Path) -> Path:
        """Write all of it; the folder appears whole.

        Args:
            folder: That of an earlier trace is replaced.

        Returns:
            The folder.
        """
        path = Path(folder).absolute()
        write_trace(self, path)
        return path


def trace_output(folder: Path) -> Output:
    """The folder, as what is written among a person's files."""
    return Output(folder, "trace")


def write_trace(model: TracedModel, folder: Path) -> None:
    """Write all of it; the folder appears whole, and replaces that of an earlier trace.

    Args:
        model: What came of it.
        folder: Where.

    Raises:
        UsageError: if something else is there.
        StorageError: if it can't be written.
    """
    traced, judged = model.found, model.judged
    output = trace_output(folder)
    output.check()
    with output.write() as temporary:
        temporary.mkdir()
        put_text(temporary / TRACE, json.dumps(trace_json(traced), indent=2, ensure_ascii=False))
        put_text(temporary / "trace.txt", "\n".join(traced_lines(traced)) + "\n")
        if picture := kernels_svg(traced):
            put_text(temporary / "kernels.svg", picture)
        if judged.feeds and traced.deviations:
            names = [item.name for item in read_proto(model.file).graph.input if item.name in judged.feeds[0]]
            for name, place in (("inputs", traced.deviations[0].sample), *_numbered(len(judged.feeds))):
                write_arrays(temporary / f"{name}.npz", {key: judged.feeds[place][key] for key in names})
            _write_programs(traced, model.converted or model.file, temporary)
        if model.repaired is not None:
            place_model(model.repaired, temporary / "repaired.onnx")


def _numbered(count: int) -> list[tuple[str, int]]:
    return [(f"inputs_{place}", place) for place in range(count)]


def _write_programs(traced: Traced, file: Path, folder: Path) -> None:
    """`with.py` shows the deviation, `without.py` doesn't: the libraries alone."""
    side, other = traced.setting, traced.against
    if side.setting is None:
        return
    system, heals = SYSTEMS[side.system], next(iter(traced.culprits.heals), None)
    wrong, right = side.setting, system.without(side.setting, heals) if heals else None
    if other.setting is not None and other.system == side.system:
        blamed = traced.deviations[0].blamed
        if blamed == "against":
            wrong, right = other.setting, side.setting
        elif blamed == "setting":
            right = right or other.setting
    (place_model if system.file == "model.onnx" else copy_model)(file, folder / system.file)
    put_text(folder / "with.py", system.program(wrong).text)
    if right is not None:
        put_text(folder / "without.py", system.program(right).text)
