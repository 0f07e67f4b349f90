"""What a build may be compiled otherwise by, from the smallest up, and how that's kept."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conrepair.formats.tvm.options import BUILD, TvmOptions, read_options
from conrepair.formats.tvm.settings import steps_of
from conrepair.ground.runtime.errors import DataError
from conrepair.ground.runtime.files.json_file import read_json_text, value_of
from conrepair.ground.runtime.files.store import RECORD
from conrepair.ground.runtime.files.whole import sha256_of, write_json


@dataclass(frozen=True)
class BuildChange:
    """A change of how a model is compiled.

    Attributes:
        unscheduled: Operators whose kernels get no schedule.
        unfused: Operators that aren't fused with others.
        disabled_pass: Passes that are left out altogether.
        stable: Operators that are computed in a stable form.
        float64: Operators that are computed in float64.
    """

    unscheduled: tuple[str, ...] = ()
    unfused: tuple[str, ...] = ()
    disabled_pass: tuple[str, ...] = ()
    stable: tuple[str, ...] = ()
    float64: tuple[str, ...] = ()

    def applied(self, options: TvmOptions) -> TvmOptions:
        """Options of a build, changed so."""
        lists: Any = {key: tuple(dict.fromkeys([*getattr(options, key), *own])) for key, own in vars(self).items()}
        required = tuple(name for name in options.required_pass if name not in self.disabled_pass)
        return dataclasses.replace(options, **lists, required_pass=required)

    def in_words(self) -> str:
        """For a person."""
        parts = [
            ("no schedule for", self.unscheduled),
            ("no fusion of", self.unfused),
            ("without", self.disabled_pass),
            ("a stable form of", self.stable),
            ("float64 for", self.float64),
        ]
        changes = "; ".join(f"{words} {', '.join(f'`{name}`' for name in names)}" for words, names in parts if names)
        return changes or "built again, with nothing changed"

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        """What it's made of: an attribute's name, and one of the names there."""
        return tuple((key, name) for key, names in vars(self).items() for name in names)

    def joined(self, other: BuildChange) -> BuildChange:
        """Both changes at once."""
        return _of_parts(dict.fromkeys([*self.parts, *other.parts]))

    def without(self, part: tuple[str, str]) -> BuildChange:
        """A change with fewer parts.

        Args:
            part: One of `parts`.
        """
        return _of_parts(own for own in self.parts if own != part)


def _of_parts(parts: Iterable[tuple[str, str]]) -> BuildChange:
    names: dict[str, tuple[str, ...]] = {}
    for key, name in parts:
        names[key] = (*names.get(key, ()), name)
    return BuildChange(**names)


def changes_for(
    options: TvmOptions, operators: Sequence[str], stable: Sequence[str] = (), float64: Sequence[str] = ()
) -> Iterator[BuildChange]:
    """Changes that may fix kernels, the smallest first.

    What concerns a few operators comes before what concerns all: a schedule less changes no kernel but theirs, a
    fusion less makes more kernels, a pass less changes any. The first changes nothing: an older version may have
    built what this one builds rightly. Last comes what computes operators otherwise: where that helps alone, the
    build is as its settings say, and its kernels lose digits.

    Args:
        options: Of the build.
        operators: That the kernels at fault stand for.
        stable: Those that have a stable form.
        float64: Those that can be computed in float64.
    """
    target = options.parsed_target
    passes = steps_of(target, options.setting, options.required_pass, options.disabled_pass)
    names = {step.name for step in passes}
    operators = tuple(operators)
    yield BuildChange()
    scheduled = not target.on_gpu and not names.isdisjoint({"ScheduleCPU", "ApplyTuned"})
    if operators and scheduled:
        yield BuildChange(unscheduled=operators)
    if operators and {"FuseOps", "FuseTIR"} <= names:
        yield BuildChange(unfused=operators)
        if scheduled:
            yield BuildChange(unscheduled=operators, unfused=operators)
    plain = without_passes(options)
    for name in plain.disabled_pass:
        yield BuildChange(disabled_pass=(name,))
    yield plain
    if stable:
        yield BuildChange(stable=tuple(stable))
    if float64:
        yield BuildChange(float64=tuple(float64))


def without_passes(options: TvmOptions) -> BuildChange:
    """All passes left out that can be: a kernel that is wrong even so is wrong as the model was imported."""
    steps = steps_of(options.parsed_target, options.setting, options.required_pass, options.disabled_pass)
    return BuildChange(disabled_pass=tuple(step.name for step in reversed(steps) if not step.mandatory))


def changed_options(build: Path, change: BuildChange) -> tuple[dict[str, Any], int]:
    """The compiler's options for another build, and the batch.

    Args:
        build: The build's folder.
        change: Of its options.
    """
    record = value_of(read_json_text(build / BUILD))
    options = change.applied(read_options(record["options"]))
    batch = int((record["inputs"][0]["shape"] or [1])[0])
    return dataclasses.asdict(options) | {"built": None, "built_sha256": None}, batch


def write_changed(build: Path, change: BuildChange, made: Path, folder: Path) -> None:
    """Write what was compiled with a change, as a build whose `build.json` says what that was.

    Args:
        build: As it came.
        change: Of its options.
        made: What was compiled with `changed_options`.
        folder: Receives it; must not be there.
    """
    shutil.copytree(made, folder, ignore=shutil.ignore_patterns(RECORD))
    record = value_of(read_json_text(folder / BUILD))
    # It's compiled of what was imported; it's a build of the same model as the one that came.
    source = value_of(read_json_text(build / BUILD))["source"]
    record["source"] = source | {"kept": record["source"]["kept"]}
    record["repair"] = {"of": sha256_of(build / BUILD), "change": dataclasses.asdict(change)}
    write_json(folder / BUILD, record)


def write_build_patch(change: BuildChange, path: Path, build: Path) -> None:
    """Write a change of a build as a patch."""
    write_json(path, {"build": dataclasses.asdict(change), "of": sha256_of(build / BUILD)})


def read_build_patch(path: Path, build: Path) -> BuildChange:
    """Read what `write_build_patch` wrote.

    Raises:
        DataError: if the file is none, or is for another build.
    """
    try:
        content: Mapping[str, Any] = value_of(read_json_text(path))
        change = BuildChange(**{name: tuple(map(str, values)) for name, values in content["build"].items()})
        wanted = str(content["of"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path} can't be read as a patch of a build: {type(error).__name__}: {error}") from error
    if wanted != (found := sha256_of(build / BUILD)):
        raise DataError(
            f"the patch is for another build: its {BUILD} has the sha256 {wanted[:16]}..., that of {build} has "
            f"{found[:16]}... Its operators have other names, so search for a repair of this build."
        )
    return change
