"""Repair a build: the smallest change of how it's compiled after which no kernel is at fault."""

from __future__ import annotations

import dataclasses
import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conrepair.backends.registry import COMPILERS
from conrepair.backends.tvm.build import BUILD
from conrepair.backends.tvm.options import TvmOptions, read_options
from conrepair.backends.tvm.runnable import TvmRunnable
from conrepair.backends.tvm.settings import steps_of
from conrepair.faults.fault import Kind
from conrepair.frameworks.model import Model
from conrepair.localize.models import Subject, localize_models
from conrepair.localize.opening import Build
from conrepair.localize.result import Localization
from conrepair.networks.tvm import imported_model
from conrepair.repair.repair import PATCH, RepairOptions
from conrepair.repair.result import RepairResult
from conrepair.repair.verify import Answers, agreement, answers
from conrepair.runtime.errors import ConversionError
from conrepair.runtime.files import sha256_of, write_json

__all__ = ["BuildChange", "changes_for", "repair_build"]

_STEM = "repaired"


@dataclass(frozen=True)
class BuildChange:
    """What is compiled otherwise.

    Attributes:
        unscheduled: Operators whose kernels get no schedule.
        unfused: Operators that aren't fused with others.
        disabled_pass: Passes that are left out altogether.
    """

    unscheduled: tuple[str, ...] = ()
    unfused: tuple[str, ...] = ()
    disabled_pass: tuple[str, ...] = ()

    def applied(self, options: TvmOptions) -> TvmOptions:
        """Options of a build, changed so."""
        required = tuple(name for name in options.required_pass if name not in self.disabled_pass)
        return dataclasses.replace(
            options,
            unscheduled=(*options.unscheduled, *self.unscheduled),
            unfused=(*options.unfused, *self.unfused),
            disabled_pass=tuple(dict.fromkeys([*options.disabled_pass, *self.disabled_pass])),
            required_pass=required,
        )

    def in_words(self) -> str:
        """For a person."""
        parts = [
            ("no schedule for", self.unscheduled),
            ("no fusion of", self.unfused),
            ("without", self.disabled_pass),
        ]
        changes = "; ".join(f"{words} {', '.join(f'`{name}`' for name in names)}" for words, names in parts if names)
        return changes or "built again, with nothing changed"

    def without(self, operators: Sequence[str]) -> BuildChange:
        """A smaller change, that leaves some operators as they were."""
        return dataclasses.replace(
            self,
            unscheduled=tuple(name for name in self.unscheduled if name not in operators),
            unfused=tuple(name for name in self.unfused if name not in operators),
        )


def changes_for(options: TvmOptions, operators: Sequence[str]) -> Iterator[BuildChange]:
    """Changes that may mend kernels, the smallest first.

    What concerns a few operators comes before what concerns all: a schedule less changes no kernel but theirs, a
    fusion less makes more kernels, a pass less changes any. The first changes nothing: an older version may have
    built what this one builds rightly.

    Args:
        options: Of the build.
        operators: That the kernels at fault stand for.
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
    for step in reversed(passes):
        if not step.mandatory:
            yield BuildChange(disabled_pass=(step.name,))


@dataclass
class _Bench:
    """Compiles and judges changes.

    Attributes:
        source: The model that is right.
        target: The model whose build is in question.
        options: Samples, time.
        folder: For candidates.
        build: The one in question.
        record: What its `build.json` says.
        tried: How many were judged.
        effects: What each did, in words.
    """

    source: Subject
    target: Subject
    options: RepairOptions
    folder: Path
    build: Path
    record: Mapping[str, Any]
    tried: int = 0
    effects: list[str] = field(default_factory=list)

    def localize(self, build: Path) -> Localization:
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            target = dataclasses.replace(self.target, build=Build(str(build), sha256_of(build)), photos=())
            return localize_models(self.source, target, Path(scratch), self.options.localization)

    def judged(self, change: BuildChange, guilty: int) -> tuple[Path, Localization] | None:
        """Make a changed build, and look into it; None where it can't be compiled."""
        folder = self.folder / f"candidate-{self.tried}"
        folder.mkdir()
        self.tried += 1
        options = change.applied(read_options(self.record["options"]))
        batch = int((self.record["inputs"][0]["shape"] or [1])[0])
        model = imported_model(self.build, self.target.model)
        values = dataclasses.asdict(options) | {"built": None, "built_sha256": None}
        try:
            COMPILERS["tvm"].compile(model, values, batch, folder)
        except ConversionError as error:
            self.effects.append(f"{change.in_words()}: doesn't compile: {error}")
            return None
        found = self.localize(folder)
        left = sum(fault.kind is Kind.COMPILATION for fault in found.faults)
        self.effects.append(f"{change.in_words()}: {guilty} kernels at fault before, {left} now")
        return folder, found


def repair_build(source: Subject, target: Subject, folder: Path, options: RepairOptions) -> RepairResult:
    """Compile a model otherwise, so that no kernel is at fault.

    Args:
        source: The model that is right.
        target: A model, with the build of it that is in question.
        folder: Receives the repaired build, and what was changed.
        options: Samples, time.

    Returns:
        Its model is the build's folder; None where nothing helps: where the importer is wrong, for instance, no
        pass is.

    Raises:
        ModelLoadError: if the build, or what it was made of, can't be opened.
        DataError: if the data doesn't fit.
    """
    if target.build is None:
        raise ValueError("there's no build")
    started = time.monotonic()
    end = started + options.seconds
    build = Path(target.build.path)
    record = json.loads((build / BUILD).read_text(encoding="utf-8"))
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        bench = _Bench(source, target, options, Path(scratch), build, record)
        before = bench.localize(build)
        found, in_time = _search(bench, before, end)
        begin = options.localization.samples if source.data.count > options.localization.samples else 0
        right = list(answers(source, source.model, begin=begin, count=options.unseen))
        model, change, after = None, BuildChange(), before
        unseen = agreement(right, _answers(target, build, record, begin, options.unseen))
        unseen_after = unseen
        if found is not None:
            change, made, after = found
            unseen_after = agreement(right, _answers(target, made, record, begin, options.unseen))
            repaired = folder / _STEM
            _write(change, made, repaired, build)
            write_json(folder / PATCH, {"build": dataclasses.asdict(change), "of": sha256_of(build / BUILD)})
            model = Model("tvm", str(repaired), sha256_of(repaired))
    edits = (change.in_words(),) if found is not None else ()
    return RepairResult(
        before,
        after,
        edits,
        tuple(bench.effects),
        model,
        unseen,
        unseen_after,
        bench.tried,
        time.monotonic() - started,
        in_time,
        patch=str(folder / PATCH) if found is not None else None,
    )


Mended = tuple[BuildChange, Path, Localization]


def _search(bench: _Bench, before: Localization, end: float) -> tuple[Mended | None, bool]:
    """The first change that leaves no kernel at fault, without what it doesn't need; and whether there was time."""
    guilty = [fault for fault in before.faults if fault.kind is Kind.COMPILATION]
    if not guilty:
        return None, True
    kernels = [fault.target_layers for fault in guilty]
    operators = tuple(dict.fromkeys(name for layers in kernels for name in layers))
    found: Mended | None = None
    for change in changes_for(read_options(bench.record["options"]), operators):
        if time.monotonic() > end:
            return None, False
        found = _mended(bench, change, len(guilty))
        if found is not None:
            break
    if found is None or not (found[0].unscheduled or found[0].unfused) or len(kernels) < 2:
        return found, True
    for layers in kernels:  # is each needed?
        smaller = found[0].without(layers)
        if not (smaller.unscheduled or smaller.unfused):
            continue
        if time.monotonic() > end:
            return found, False
        found = _mended(bench, smaller, len(guilty)) or found
    return found, True


def _mended(bench: _Bench, change: BuildChange, guilty: int) -> Mended | None:
    judged = bench.judged(change, guilty)
    if judged is None:
        return None
    folder, found = judged
    return None if any(fault.kind is Kind.COMPILATION for fault in found.faults) else (change, folder, found)


def _answers(target: Subject, build: Path, record: Mapping[str, Any], begin: int, count: int) -> Iterator[Answers]:
    runnable = TvmRunnable(build, record["options"].get("threads"))
    return answers(target, target.model, begin=begin, count=count, runnable=runnable)


def _write(change: BuildChange, made: Path, folder: Path, build: Path) -> None:
    """The build, whose `build.json` says what was changed."""
    shutil.copytree(made, folder)
    record = json.loads((folder / BUILD).read_text(encoding="utf-8"))
    # Candidates are compiled of what was imported; the repaired build is one of the same model as the faulty one.
    source = json.loads((build / BUILD).read_text(encoding="utf-8"))["source"]
    record["source"] = source | {"kept": record["source"]["kept"]}
    record["repair"] = {"of": sha256_of(build / BUILD), "change": dataclasses.asdict(change)}
    write_json(folder / BUILD, record)
