"""Repair a build: the smallest change of how it's compiled after which no kernel is at fault, or fewer are."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import operator
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import onnx

from conrepair.diagnosis.localization.models import localize_models
from conrepair.diagnosis.localization.result import Localization, LocatedFault
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.repairs.build_change import (
    BuildChange,
    changed_options,
    changes_for,
    without_passes,
    write_build_patch,
    write_changed,
)
from conrepair.diagnosis.repairs.options import RepairOptions
from conrepair.diagnosis.repairs.outcomes import PATCH, Agreement
from conrepair.diagnosis.repairs.result import RepairResult
from conrepair.diagnosis.repairs.search import STEM
from conrepair.diagnosis.repairs.verify import is_of_use, undone, unseen_samples
from conrepair.formats.backends.all_backends import compiler
from conrepair.formats.models.model import Model
from conrepair.formats.networks.tvm import imported_model
from conrepair.formats.tvm.options import BUILD, TvmOptions, read_options
from conrepair.formats.tvm.runnable import TvmRunnable
from conrepair.ground.forms.all_forms import float64_operators, stable_operators
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.runtime.errors import ConversionError, InferenceError, ModelLoadError
from conrepair.ground.runtime.files.journal import Journal
from conrepair.ground.runtime.files.json_file import read_json_text, value_of
from conrepair.ground.runtime.files.whole import HashedPath, sha256_of


@dataclass(frozen=True)
class _JudgedBuild:
    """A build.

    Attributes:
        change: That it was compiled with.
        folder: Where it is.
        found: What localization says of it.
    """

    change: BuildChange
    folder: Path
    found: Localization

    @property
    def faults(self) -> list[LocatedFault]:
        """Those of its kernels."""
        return [fault for fault in self.found.faults if fault.kind is Kind.COMPILATION]


Left = frozenset[str]
"""What is wrong with a build: each fault's tensor, in the build as it came where that has the fault, too."""


@dataclass
class _BuildSearch:
    """Compile changed builds, and judge their kernels.

    Attributes:
        source: The model that is right.
        target: The model whose build is in question.
        options: Samples, time.
        folder: For candidates.
        build: The one in question.
        journal: Keeps which changes are none.
        end: When no other is tried.
        seen: Changes that were judged.
        recalled: How many of them by an earlier search.
        in_time: Whether nothing was left out for want of time, or as somebody wanted the search to end.
        effects: What each did, in words.
        imported: Operators whose kernels are wrong with all passes left out: what was imported is.
    """

    source: FedModel
    target: FedModel
    options: RepairOptions
    folder: Path
    build: Path
    journal: Journal
    end: float
    seen: set[BuildChange] = field(default_factory=set)
    recalled: int = 0
    in_time: bool = True
    effects: list[str] = field(default_factory=list)
    imported: tuple[str, ...] = ()

    @functools.cached_property
    def first(self) -> _JudgedBuild:
        """The build as it came."""
        return _JudgedBuild(BuildChange(), self.build, self._localized(self.build))

    def run(self) -> _JudgedBuild:
        """Repair one fault after the other, each with what is needed and no more, as long as that goes."""
        state = self.first
        while state.faults and (better := self._better(state)) is not None:
            state = self._smaller(better)
        return state

    def _better(self, state: _JudgedBuild) -> _JudgedBuild | None:
        """The first change, on top of those that were made, that fixes a fault."""
        operators = tuple(dict.fromkeys(name for fault in state.faults for name in fault.target_layers))
        stable, float64 = self._forms(operators)
        for change in changes_for(state.change.applied(_options(self.build)), operators, stable, float64):
            found = self._tried(state.change.joined(change), state, operator.lt)
            if found is not None:
                return found
        return None

    def _forms(self, operators: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
        """Of some operators, those with a stable form, and those that can be computed in float64 (two lists)."""
        imported = imported_model(self.build, self.target.model)
        if imported.framework != "onnx":
            return (), ()
        proto = onnx.load(imported.path)
        known, wide = set(stable_operators(proto)), set(float64_operators(proto))
        return [name for name in operators if name in known], [name for name in operators if name in wide]

    def _smaller(self, state: _JudgedBuild) -> _JudgedBuild:
        """A change without each part that isn't needed."""
        for part in state.change.parts:
            state = self._tried(state.change.without(part), state, operator.le) or state
        return state

    def _tried(
        self, change: BuildChange, state: _JudgedBuild, as_wanted: Callable[[Left, Left], bool]
    ) -> _JudgedBuild | None:
        """Make a changed build, and look into it.

        Args:
            change: Of the build as it came.
            state: To compare with.
            as_wanted: Compares what is left with what is left in the state.

        Returns:
            None where that isn't as wanted, it can't be compiled or run, it was tried before, or nothing shall be
            tried any more. What is no good for a state is none for those that follow it, which have less left.
        """
        if change in self.seen or self._is_over():
            return None
        self.seen.add(change)
        line = hashlib.sha256(f"{sha256_of(self.build / BUILD)} {change}".encode()).hexdigest()
        if line in self.journal:
            self.recalled += 1
            self.effects.append(f"{change.in_words()}: doesn't help, as an earlier search has found")
            return None
        with self.journal.trying(line):
            made = self._made(change)
        if made is not None:
            if as_wanted(self._left(made), self._left(state)):
                return made
            shutil.rmtree(made.folder)
        self.journal.add(line)
        return None

    def _made(self, change: BuildChange) -> _JudgedBuild | None:
        folder = self.folder / f"candidate-{len(self.seen)}"
        folder.mkdir()
        try:
            values, batch = changed_options(self.build, change)
            compiler("tvm").compile(imported_model(self.build, self.target.model), values, batch, folder)
            made = _JudgedBuild(change, folder, self._localized(folder))
        except (ConversionError, ModelLoadError, InferenceError) as error:
            self.effects.append(f"{change.in_words()}: doesn't compile or run: {error}")
            return None
        others = "" if self._left(made) <= self._left(self.first) else ", not the same kernels"
        if change == without_passes(_options(self.build)):
            self.imported = tuple(dict.fromkeys(name for fault in made.faults for name in fault.target_layers))
        before, now = len(self.first.faults), len(made.faults)
        self.effects.append(f"{change.in_words()}: {before} kernels at fault before, {now} now{others}")
        return made

    def _localized(self, build: Path) -> Localization:
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            target = dataclasses.replace(self.target, build=HashedPath(str(build), sha256_of(build)), photos=())
            return localize_models(self.source, target, Path(scratch), self.options.localization)

    def _left(self, state: _JudgedBuild) -> Left:
        """The faulty kernels that a change left, or added.

        It may draw the borders of kernels elsewhere, so a fault is the same as one of the build as it came where both
        stand for some of the same operators.
        """
        known = {fault.target_tensor: _operators(fault) for fault in self.first.faults}
        found = {fault.target_tensor: _operators(fault) for fault in state.faults}
        left = {tensor for tensor, own in known.items() if _meets(own, found)}
        others = {tensor for tensor, own in found.items() if not _meets(own, known)}
        return frozenset(left | others)

    def _is_over(self) -> bool:
        """Whether the search shall end: time is over, or the user asked for it."""
        over = self.journal.asked_to_end or time.monotonic() > self.end
        self.in_time = self.in_time and not over
        return over


def repair_build(
    source: FedModel, target: FedModel, folder: Path, options: RepairOptions, journal: Journal | None = None
) -> RepairResult:
    """Compile a model otherwise, so that no kernel is at fault, or fewer are.

    Args:
        source: The model that is right.
        target: A model, with the build of it that is in question.
        folder: Receives the repaired build, and what was changed.
        options: Samples, time.
        journal: Of the search, which one that was stopped goes on with.

    Returns:
        Its model is the build's folder; None where nothing helps (where the importer is wrong, for instance, no
        pass is), or where what helps there doesn't on other samples.

    Raises:
        ModelLoadError: if the build, or what it was made of, can't be opened.
        DataError: if the data doesn't fit.
    """
    if target.build is None:
        raise ValueError("there's no build")
    started = time.monotonic()
    build = Path(target.build.path)
    folder.mkdir(parents=True, exist_ok=True)
    journal = Journal() if journal is None else journal
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        search = _BuildSearch(source, target, options, Path(scratch), build, journal, started + options.seconds)
        state = search.run()
        interrupted = journal.asked_to_end
        before, after = _agreements(source, target, (build, state.folder), options)
        why_undone = None
        if state is not search.first and not is_of_use(after, before, clean=not state.found.faults):
            why_undone = undone(after, before)
            search.effects.append(why_undone)
            state, after = search.first, before
        if state.faults and search.imported and why_undone is None:
            why_undone = _of_importer(search.imported, build)
        model = None if state is search.first else _written(state, build, folder)
    return RepairResult(
        before=search.first.found,
        after=state.found,
        edits=() if model is None else (state.change.in_words(),),
        effects=tuple(search.effects),
        model=model,
        unseen_before=before,
        unseen_after=after,
        tried=len(search.seen),
        seconds=time.monotonic() - started,
        in_time=search.in_time,
        interrupted=interrupted,
        recalled=search.recalled,
        patch=None if model is None else str(folder / PATCH),
        undone=why_undone,
    )


def _of_importer(operators: Sequence[str], build: Path) -> str:
    """What to say of kernels that are wrong whatever passes run."""
    record = value_of(read_json_text(build / BUILD))
    own = record["source"]["framework"]
    other = "" if own == "onnx" else ", or have it imported by way of ONNX (`importer`)"
    names = ", ".join(f"`{name}`" for name in operators)
    return (
        f"no optimization causes this: {names} gives the same wrong values with all passes, fusions and schedules "
        f"left out, so TVM's importer ({record['importer']}) reads it wrongly, as where it drops an attribute. "
        f"Write {names} in the model by other operators{other}, and report it to TVM"
    )


def _agreements(
    source: FedModel, target: FedModel, builds: tuple[Path, Path], options: RepairOptions
) -> tuple[Agreement, Agreement]:
    """How far the answers of two builds are the source's, on samples that took no part."""
    unseen = unseen_samples(source, target, options)
    right = list(unseen.answers(source, source.model))
    threads = _options(builds[0]).threads
    found = [
        unseen.agreement_if_any(right, unseen.answers(target, target.model, TvmRunnable(build, threads)))
        for build in dict.fromkeys(builds)
    ]
    return found[0], found[-1]


def _written(state: _JudgedBuild, build: Path, folder: Path) -> Model:
    """The repaired build, and beside it what was changed."""
    repaired = folder / STEM
    write_changed(build, state.change, state.folder, repaired)
    write_build_patch(state.change, folder / PATCH, build)
    return Model("tvm", str(repaired), sha256_of(repaired))


def _operators(fault: LocatedFault) -> frozenset[str]:
    """What the kernel at fault stands for; where that's no whole operator, the tensor that it computes."""
    return frozenset(fault.target_layers or (fault.target_tensor,))


def _meets(operators: frozenset[str], others: Mapping[str, frozenset[str]]) -> bool:
    return any(operators & other for other in others.values())


def _options(build: Path) -> TvmOptions:
    return read_options(value_of(read_json_text(build / BUILD))["options"])
