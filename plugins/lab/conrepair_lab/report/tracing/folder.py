"""The folder of a trace: what came of it, the inputs that show it, and programs that show it without conrepair."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conrepair.application.report.encode import encode
from conrepair.formats.models.identity import copy_model, place_model
from conrepair.formats.onnx.load.proto_file import read_proto
from conrepair.ground.intake.data import write_arrays
from conrepair.ground.runtime.errors import ExitCode
from conrepair.ground.runtime.files.outputs import Output
from conrepair.ground.runtime.files.whole import put_text
from conrepair_lab.report.tracing.picture import kernels_svg
from conrepair_lab.report.tracing.words import traced_lines, verdict_of
from conrepair_lab.systems.registry import SYSTEMS
from conrepair_lab.tracing.judging import Judged
from conrepair_lab.tracing.result import Culprits, Traced

TRACE = "trace.json"
VERSION = 1
"""Of the form of trace.json."""


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
        return int(ExitCode.DIFFERENT if self.found.wrong else ExitCode.EQUIVALENT)

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
        return {"schema_version": VERSION, "verdict": self.verdict, "exit_code": self.exit_code, **encode(self.found)}

    def save(self, folder: str | Path) -> Path:
        """Write all of it; the folder appears whole.

        Args:
            folder: That of an earlier trace is replaced.

        Returns:
            The folder.

        Raises:
            UsageError: if something else is there.
            StorageError: if it can't be written.
        """
        traced, judged = self.found, self.judged
        output = trace_output(Path(folder).absolute())
        output.check()
        with output.write() as temporary:
            temporary.mkdir()
            put_text(temporary / TRACE, json.dumps(self.to_dict(), indent=2, ensure_ascii=False))
            put_text(temporary / "trace.txt", f"{self}\n")
            if picture := kernels_svg(traced):
                put_text(temporary / "kernels.svg", picture)
            if judged.feeds and traced.deviations:
                names = [item.name for item in read_proto(self.file).graph.input if item.name in judged.feeds[0]]
                numbered = ((f"inputs_{place}", place) for place in range(len(judged.feeds)))
                for name, place in (("inputs", traced.deviations[0].sample), *numbered):
                    write_arrays(temporary / f"{name}.npz", {key: judged.feeds[place][key] for key in names})
                _write_programs(traced, self.converted or self.file, temporary)
            if self.repaired is not None:
                place_model(self.repaired, temporary / "repaired.onnx")
        return output.path


def trace_output(folder: Path) -> Output:
    """The folder, as what is written among a person's files."""
    return Output(folder, "trace")


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
