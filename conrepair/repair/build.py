"""Repair a build: the smallest change of how it's compiled after which no kernel is at fault."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conrepair.backends.registry import COMPILERS
from conrepair.backends.tvm.build import BUILD
from conrepair.backends.tvm.options import read_options
from conrepair.backends.tvm.runnable import TvmRunnable
from conrepair.faults.fault import Kind
from conrepair.frameworks.model import Model
from conrepair.localize.models import Subject, localize_models
from conrepair.localize.opening import Build
from conrepair.localize.result import Localization
from conrepair.networks.tvm import imported_model
from conrepair.repair.build_change import (
    BuildChange,
    changed_options,
    changes_for,
    write_build_patch,
    write_changed,
)
from conrepair.repair.repair import PATCH, RepairOptions
from conrepair.repair.result import RepairResult
from conrepair.repair.search import STEM
from conrepair.repair.verify import agreement, answers, shared_batch
from conrepair.runtime.errors import ConversionError
from conrepair.runtime.files import sha256_of
from conrepair.runtime.journal import Journal

__all__ = ["repair_build"]


@dataclass
class _Bench:
    """Compiles and judges changes.

    Attributes:
        source: The model that is right.
        target: The model whose build is in question.
        options: Samples, time.
        folder: For candidates.
        build: The one in question.
        journal: Keeps which changes are none.
        end: When no other is tried.
        tried: How many were judged.
        recalled: How many of them by an earlier search.
        effects: What each did, in words.
    """

    source: Subject
    target: Subject
    options: RepairOptions
    folder: Path
    build: Path
    journal: Journal
    end: float
    tried: int = 0
    recalled: int = 0
    effects: list[str] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        """Whether nothing else shall be tried."""
        return self.journal.asked_to_end or time.monotonic() > self.end

    def localize(self, build: Path) -> Localization:
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            target = dataclasses.replace(self.target, build=Build(str(build), sha256_of(build)), photos=())
            return localize_models(self.source, target, Path(scratch), self.options.localization)

    def mended(self, change: BuildChange, guilty: int) -> Mended | None:
        """Make a changed build, and look into it; None where a kernel is still at fault, or it can't be compiled.

        None, too, when an earlier search has found it to be no good.
        """
        self.tried += 1
        line = hashlib.sha256(f"{sha256_of(self.build / BUILD)} {change}".encode()).hexdigest()
        if line in self.journal:
            self.recalled += 1
            self.effects.append(f"{change.in_words()}: no good, as an earlier search has found")
            return None
        folder = self.folder / f"candidate-{self.tried}"
        folder.mkdir()
        with self.journal.trying(line):
            try:
                values, batch = changed_options(self.build, change)
                imported = imported_model(self.build, self.target.model)
                COMPILERS["tvm"].compile(imported, values, batch, folder)
            except ConversionError as error:
                self.effects.append(f"{change.in_words()}: doesn't compile: {error}")
                self.journal.add(line)
                return None
            found = self.localize(folder)
        left = sum(fault.kind is Kind.COMPILATION for fault in found.faults)
        self.effects.append(f"{change.in_words()}: {guilty} kernels at fault before, {left} now")
        if not left:
            return change, folder, found
        self.journal.add(line)
        return None


Mended = tuple[BuildChange, Path, Localization]


def repair_build(
    source: Subject, target: Subject, folder: Path, options: RepairOptions, journal: Journal | None = None
) -> RepairResult:
    """Compile a model otherwise, so that no kernel is at fault.

    Args:
        source: The model that is right.
        target: A model, with the build of it that is in question.
        folder: Receives the repaired build, and what was changed.
        options: Samples, time.
        journal: Of the search, which one that was stopped goes on with.

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
    build = Path(target.build.path)
    record = json.loads((build / BUILD).read_text(encoding="utf-8"))
    folder.mkdir(parents=True, exist_ok=True)
    journal = Journal() if journal is None else journal
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        bench = _Bench(source, target, options, Path(scratch), build, journal, started + options.seconds)
        before = bench.localize(build)
        found, in_time = _search(bench, before, record)
        interrupted = journal.asked_to_end
        begin = options.localization.samples if source.data.count > options.localization.samples else 0
        size = shared_batch(source.inputs, target.inputs)
        unseen_samples = functools.partial(answers, begin=begin, count=options.unseen, batch_size=size)
        right = list(unseen_samples(source, source.model))
        model, change, after = None, BuildChange(), before
        unseen = agreement(right, unseen_samples(target, target.model, runnable=_runnable(build, record)))
        unseen_after = unseen
        if found is not None:
            change, made, after = found
            unseen_after = agreement(right, unseen_samples(target, target.model, runnable=_runnable(made, record)))
            repaired = folder / STEM
            write_changed(build, change, made, repaired)
            write_build_patch(change, folder / PATCH, build)
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
        interrupted,
        bench.recalled,
        patch=str(folder / PATCH) if found is not None else None,
    )


def _search(bench: _Bench, before: Localization, record: Mapping[str, Any]) -> tuple[Mended | None, bool]:
    """The first change that leaves no kernel at fault, without what it doesn't need; and whether there was time."""
    guilty = [fault for fault in before.faults if fault.kind is Kind.COMPILATION]
    if not guilty:
        return None, True
    kernels = [fault.target_layers for fault in guilty]
    operators = tuple(dict.fromkeys(name for layers in kernels for name in layers))
    found: Mended | None = None
    for change in changes_for(read_options(record["options"]), operators):
        if bench.is_over:
            return None, False
        found = bench.mended(change, len(guilty))
        if found is not None:
            break
    if found is None or not (found[0].unscheduled or found[0].unfused) or len(kernels) < 2:
        return found, True
    for layers in kernels:  # is each needed?
        smaller = found[0].without(layers)
        if not (smaller.unscheduled or smaller.unfused):
            continue
        if bench.is_over:
            return found, False
        found = bench.mended(smaller, len(guilty)) or found
    return found, True


def _runnable(build: Path, record: Mapping[str, Any]) -> TvmRunnable:
    return TvmRunnable(build, record["options"].get("threads"))
