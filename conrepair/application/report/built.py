"""What a compilation came to, as a value that writes its files."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conrepair.ground.runtime.errors import ExitCode, UsageError
from conrepair.ground.runtime.files.outputs import Output
from conrepair.ground.runtime.files.store import RECORD
from conrepair.ground.runtime.path_text import real_path


@dataclass(frozen=True, kw_only=True)
class Built:
    """A compiled model.

    Attributes:
        folder: Where it is, until it's saved: a target for `compare`, `localize` and `repair`.
        via: Converters joined by + that made of the model what the compiler imports; "" for the model itself.
        record: What the compiler says about it: importer, passes, target, times, versions.
        source: The model's file or folder.
    """

    folder: Path
    via: str
    record: Mapping[str, Any]
    source: Path

    @property
    def seconds(self) -> float:
        """That compiling took."""
        return float(sum(self.record["seconds"].values()))

    @property
    def exit_code(self) -> int:
        """As the command line's."""
        return int(ExitCode.EQUIVALENT)

    def save(self, folder: str | Path, *, force: bool = False) -> Path:
        """Write the module, Relax after optimization, and the generated code; the folder appears whole.

        Args:
            folder: For them.
            force: Whether an earlier build is replaced.

        Returns:
            The folder.

        Raises:
            StorageError: if it can't be written.
            UsageError: if there's one already, or it is, holds, or lies in the model.
        """
        place = Path(folder).absolute()
        check_build_folder(self.source, place, force=force)
        with _output(place).write() as temporary:
            shutil.copytree(self.folder, temporary, ignore=shutil.ignore_patterns(RECORD))
        return place

    def to_dict(self) -> dict[str, Any]:
        """As JSON values; `build` is what build.json says."""
        return {"via": self.via, "source": str(self.source), "build": dict(self.record)}

    def __str__(self) -> str:
        record = self.record
        lines = [f"{record['kernels']} kernels for {record['options']['target']} in {self.seconds:.1f} s"]
        if tuning := record["tuning"]:
            lines.append("tuned: {measured} candidates measured, {reused} reused, {failed} failed".format_map(tuning))
        lines.append(
            f"imported by {record['importer']}{f' after {self.via}' if self.via else ''}; {record['when_built']}"
        )
        return "\n".join(lines)


def check_build_folder(model: Path, folder: Path, *, force: bool) -> None:
    """Refuse to write over an input, or over something else than a build.

    Args:
        model: That is compiled.
        folder: For the build.
        force: Whether an earlier build is replaced.

    Raises:
        UsageError: if so.
    """
    here, there = real_path(model), real_path(folder)
    if here.is_relative_to(there) or there.is_relative_to(here):
        raise UsageError(f"{folder} is, holds, or lies in the model that is compiled. Give another output.")
    _output(folder).check(force=force)


def _output(folder: Path) -> Output:
    return Output(folder, "build", beside=True)
