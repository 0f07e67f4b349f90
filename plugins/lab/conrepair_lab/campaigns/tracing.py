"""Trace a model: search inputs, follow the error through the kernels, isolate the switches that it hangs on."""

from __future__ import annotations

import dataclasses
import re
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from conrepair.application.engine.fingerprint import library_versions
from conrepair.application.engine.session import Session
from conrepair.application.engine.task import Task
from conrepair.formats.backends.base import Switch, named_rightly
from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import Model
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.intake.data import write_arrays
from conrepair.ground.runtime.bisection import fewest_that_heal
from conrepair.ground.runtime.errors import ConrepairError, UsageError
from conrepair.ground.runtime.files.store import Entry
from conrepair.ground.runtime.files.whole import HashedPath, sha256_of
from conrepair.ground.runtime.processes.reach import CONFINED, GPU
from conrepair_lab.accuracy.measured import known_errors
from conrepair_lab.jobs.trace_values import Compared, Followed, JudgedSample, Refereed, Search
from conrepair_lab.options.trace import EXACT, Trace
from conrepair_lab.systems.isolating import Isolated, isolate
from conrepair_lab.systems.registry import SYSTEMS, installed
from conrepair_lab.systems.system import Setting, System
from conrepair_lab.tracing.judging import JUDGED, REWRITTEN, Judged, deviates, read_judged
from conrepair_lab.tracing.result import Culprits, Deviation, Formed, Side, Traced, worst_first

_STABLE = re.compile(r"stable_\d\.onnx")  # a worker says it, which isn't to be believed
_BUILDS, _FEW_BUILDS = 200, 25
_REFEREE = "torch-eager"  # the one that takes the network converted
_SEARCHED_BY = ("method", "objective", "evaluations", "seconds", "low", "high", "seed")  # options of the verb
_JUDGED_KINDS = {"wrong", "ill-conditioned"}


class Tracing:
    """A model on its way through a trace.

    Attributes:
        found: What is known so far.
        judged: The samples that were found.
        repaired: The model with a stable form that heals; None where none was found.
    """

    def __init__(
        self, asked: Trace, path: Path, session: Session, samples: Path | None = None, weights: Sequence[str] = ()
    ) -> None:
        """Find out what is compared; nothing is run yet but what tells a system's switches.

        Args:
            asked: What's wanted.
            path: An ONNX file whose sizes are numbers.
            session: Where jobs run, and their results are until it's left.
            samples: Arrays by input, samples first (.npz): those to start from where data were given, else for the
                inputs that aren't searched.
            weights: Inputs among them that are the network's weights.

        Raises:
            ConrepairError: for a system or a switch that doesn't exist.
        """
        self._asked, self._session, self._samples, self._weights, self._count = asked, session, samples, weights, 0
        self._model = Model("onnx", str(path), model_sha256(path))
        self._own = Path(tempfile.mkdtemp(dir=session.room))
        one = self._named(asked.setting, asked.granularity)
        self.found = Traced(
            model=str(path),
            sha256=self._model.sha256,
            setting=one,
            against=self._other(one),
            method=asked.method,
            objective=asked.objective,
            seed=asked.seed,
            versions=library_versions(),
        )
        sides = [side.name for side in (self.found.setting, self.found.against) if side.setting is not None]
        known = {} if asked.accuracy is None else known_errors(Path(asked.accuracy), sides)
        self._sides = Compared(model=self._model, one=one, two=self.found.against, accuracy=known)
        self.judged = Judged()
        self.repaired: Path | None = None
        self._folder = Path()

    def run(self) -> None:
        """Search, follow, isolate.

        Raises:
            ConrepairError: if the model can't be loaded, run or searched.
        """
        self.search()
        if self.found.wrong:
            self.ask_referees()
        if self.found.deviations:
            self.follow()
            self.isolate()

    def converted(self) -> Path | None:
        """The model in the format that the system is given; None where that's the file's own."""
        path = self._folder / SYSTEMS[self.found.setting.system].file
        return path if path.exists() and not path.is_symlink() else None

    def search(self) -> None:
        """Search inputs, and judge those that were found."""
        asked, given = self._asked, self._samples
        search = Search(
            given=None if given is None else _hashed(given),
            starts=asked.data is not None,
            weights=tuple(self._weights),
            **{name: getattr(asked, name) for name in _SEARCHED_BY},
        )
        done = self._session.made(self._task("trace", {"sides": self._sides, "search": search}))
        self._folder, self.judged = done.folder, read_judged(done.folder)
        known = self.found
        self.found = dataclasses.replace(done.read(Traced), model=known.model, versions=known.versions)

    def ask_referees(self) -> None:
        """Ask all who compute the network in float64 before somebody is blamed; nobody is where they differ."""
        payload = {"model": self._model, "sample": self._sample()}
        words = f"only {self.found.referees[0]} gave exact values"
        done = self._tried_to("referees", payload, words, self._named(_REFEREE))
        if done is None:
            return
        told = done.read(Refereed)
        judged = (item.unless(told.doubted.get(item.output, -1.0)) for item in self.found.deviations)
        self.found = dataclasses.replace(
            self.found,
            referees=told.agreed,
            doubts=(*self.found.doubts, *told.doubts),
            deviations=tuple(worst_first(judged)),
        )

    def _sample(self) -> JudgedSample:
        """The worst inputs, as jobs are told of them."""
        return JudgedSample(_hashed(self._folder / JUDGED), self.found.deviations[0].sample)

    def follow(self) -> None:
        """Follow the worst deviation through the kernels of both sides."""
        if not self.judged.exact[0]:
            return
        payload = {"sides": self._sides, "sample": self._sample(), "blamed": self.found.deviations[0].blamed}
        done = self._tried_to("kernels", payload, "the error can't be followed through the kernels")
        if done is None:
            return
        told = done.read(Followed)
        forms = [*filter(_telling, (self._tried(form, done.folder, file) for form, file in told.forms))]
        forms = forms or self._fewest("stable", told.stable) or self._fewest("float64", told.float64)
        self.found = dataclasses.replace(
            self.found, kernels=told.kernels, doubts=(*self.found.doubts, *told.doubts), forms=tuple(forms)
        )

    def _tried(self, form: Formed, folder: Path, file: str) -> Formed:
        """A form, with the stable one tried by the side that's wrong."""
        healed = self._healed(folder / file) if _STABLE.fullmatch(file) else None
        if healed and self.repaired is None:
            self.repaired = folder / file
        return dataclasses.replace(form, healed=healed)

    def _fewest(self, sort: str, operators: Sequence[str]) -> list[Formed]:
        """The fewest operators that heal in another form, where kernels can't be looked into.

        Args:
            sort: "stable" or "float64".
            operators: That have such a form.
        """

        def made(names: Sequence[str]) -> Entry:
            return self._session.made(self._task("forms", {"model": self._model, sort: names}, self.found.setting))

        def heals(names: Sequence[str]) -> bool:
            try:
                return self._healed(made(names).folder / REWRITTEN) is True
            except ConrepairError:  # it can't be written so
                return False

        found = fewest_that_heal(operators, heals, self._builds).places
        if not found:
            return []
        done = made([operators[place] for place in found])
        self.repaired = done.folder / REWRITTEN
        return [dataclasses.replace(item, healed=True) for item in done.read(tuple[Formed, ...])]

    def _healed(self, file: Path) -> bool | None:
        """Whether the side that's wrong is right with another network; None where that's none that can be asked."""
        worst = self.found.deviations[0]
        side = self.found.against if worst.blamed == "against" else self.found.setting
        if file.is_symlink() or side.setting is None:
            return None
        given = self.answers(side, [worst.sample], Model("onnx", str(file), model_sha256(file)))
        return given is not None and not deviates(self.judged, worst, given[0][0])

    @property
    def _builds(self) -> int:
        """The most that are made: nobody waits long for the switches of what's nobody's fault."""
        return self._asked.builds or (_BUILDS if self.found.wrong else _FEW_BUILDS)

    def isolate(self) -> None:
        """Find the switches that the worst deviation hangs on, and try what heals it on other inputs."""
        worst, side = self.found.deviations[0], self.found.setting
        if worst.kind not in _JUDGED_KINDS or side.setting is None:
            return
        payload = {"model": self._model, "chosen": side.chosen}
        listed = self._tried_to("switches", payload, "the passes and options can't be listed", self._lister(side))
        if listed is None:
            return
        switches = listed.read(tuple[Switch, ...])
        tries = _Tries(self, SYSTEMS[side.system], side.setting, switches, worst)
        wrong = tries.deviate(range(len(switches)))
        if wrong is None:
            self._doubt(
                "a second build with the same setting failed, so which optimization is the cause wasn't searched"
            )
            return
        # What makes it deviate; or what makes it right, where the other side is wrong. One that fails says neither.
        found = isolate(len(switches), lambda on: tries.deviate(on) is wrong, tries=self._builds)
        self.found = dataclasses.replace(self.found, culprits=tries.told(found, wrong=wrong))

    def _doubt(self, words: str) -> None:
        self.found = dataclasses.replace(self.found, doubts=(*self.found.doubts, words))

    def _tried_to(self, kind: str, payload: Mapping[str, Any], words: str, *sides: Side) -> Entry | None:
        """Do a job without which what was found stands: where it fails, that's a doubt."""
        task = self._task(kind, payload, *sides)
        try:
            return self._session.made(task)
        except ConrepairError as error:
            self._doubt(f"{words}: {error}")
            return None

    def _named(self, name: str, granularity: int | None = None) -> Side:
        """A side by what a person calls it: "tvm-O3", or a setting of TVM alone."""
        found = installed(name)
        setting = found.chosen
        if granularity is not None:
            if not found.runs.fusion:
                raise UsageError(f"granularity is for TVM alone, and {found.name} isn't TVM. Leave it out.")
            setting = setting.with_options({**setting.options, found.runs.fusion: granularity})
        return Side(found.name, found.system, setting)

    def _other(self, one: Side) -> Side:
        """What the side in question is compared with."""
        asked = self._asked
        if asked.switch is not None:
            task = self._task("switches", {"model": self._model, "chosen": one.chosen}, self._lister(one))
            switches = self._session.made(task).read(tuple[Switch, ...])
            named_rightly("pass", [asked.switch], [item.name for item in switches])
            off = [item for item in switches if item.name == asked.switch]
            return Side(f"{one.name} without {asked.switch}", one.system, SYSTEMS[one.system].without(one.runs, off))
        if asked.against == EXACT:
            return Side(EXACT)
        return self._named(asked.against or installed(one.name).plain.name)

    def _lister(self, side: Side) -> Side:
        """The side as a process has to be started that lists its switches."""
        return dataclasses.replace(side, setting=SYSTEMS[side.system].listing(side.runs))

    def _task(self, kind: str, payload: Mapping[str, Any], *sides: Side) -> Task:
        """A job of both sides, or of some."""
        asked_for = sides or (self.found.setting, self.found.against)
        variables: dict[str, str] = {}
        for side in asked_for:
            own = {} if side.setting is None else SYSTEMS[side.system].environment(side.setting)
            if any(variables.get(name, value) != value for name, value in own.items()):
                both = " and ".join(item.name for item in asked_for)
                raise UsageError(
                    f"{both} need processes that are started differently, so they can't be compared. Compare each "
                    f"with {EXACT}, or with another system."
                )
            variables |= own
        self._count += 1
        return Task(
            f"{kind} {self._count}",
            kind,
            lambda _: dict(payload),
            needs=frozenset().union(
                *(SYSTEMS[side.system].needs(side.setting) for side in asked_for if side.setting)
            ),
            timeout=self._asked.timeout,
            device=GPU if any(side.setting and side.setting.reach == GPU for side in asked_for) else CONFINED,
            environment=variables,
        )

    def answers(
        self, side: Side, samples: Sequence[int], model: Model | None = None
    ) -> tuple[list[Mapping[str, Array]], float] | None:
        """What a setting of a system gives for samples, and how long a run takes.

        Args:
            side: A system with its setting.
            samples: Which.
            model: Default: the one that's traced.

        Returns:
            None where it can't be built or run.
        """
        path = self._own / f"samples-{'-'.join(map(str, samples))}.npz"
        if not path.is_file():
            feeds = [self.judged.feeds[place] for place in samples]
            write_arrays(path, {name: np.stack([item[name] for item in feeds]) for name in feeds[0]})
        payload = {"model": model or self._model, "chosen": side.chosen, "given": _hashed(path)}
        task = self._task("answers", payload, side)
        try:
            done = self._session.made(task)
        except ConrepairError:
            return None
        with np.load(done.folder / "outputs.npz") as file:
            found = {name: file[name] for name in file.files}
        each: list[Mapping[str, Array]] = [
            {name: array[place] for name, array in found.items()} for place in range(len(samples))
        ]
        return each, done.read(float)


class _Tries:
    """Builds of a setting with switches left out.

    Attributes:
        failed: How many couldn't be built or run.
    """

    def __init__(
        self, tracing: Tracing, system: System, setting: Setting, switches: Sequence[Switch], worst: Deviation
    ) -> None:
        self._tracing, self._system, self._setting = tracing, system, setting
        self._switches, self._worst = switches, worst
        self.failed = 0

    def _with(self, on: Collection[int]) -> Side:
        """The side in question with some switches on alone."""
        off = [item for place, item in enumerate(self._switches) if place not in on]
        setting = self._system.without(self._setting, off) if off else self._setting
        return dataclasses.replace(self._tracing.found.setting, setting=setting)

    def deviate(self, on: Sequence[int]) -> bool | None:
        """Whether it deviates with some switches on alone; None where that can't be built or run."""
        found = self._tracing.answers(self._with(on), [self._worst.sample])
        if found is None:
            self.failed += 1
            return None
        return deviates(self._tracing.judged, self._worst, found[0][0])

    def told(self, found: Isolated, *, wrong: bool) -> Culprits:
        """What was isolated, by the switches' names; what heals is tried on the other samples."""

        def named(sets: Sequence[frozenset[int]]) -> tuple[tuple[Switch, ...], ...]:
            return tuple(tuple(self._switches[place] for place in sorted(item)) for item in sets)

        verified, cost, healed = None, None, None
        heals = sorted(found.heals, key=len) if wrong else []
        if heals:
            healed = self._with(set(range(len(self._switches))) - heals[0])
            verified, cost = self._verified(healed)
        return Culprits(
            asked=len(self._switches),
            causes=named(found.causes) if wrong else (),
            heals=named(heals),
            mends=() if wrong else named(found.causes),
            builds=found.tries,
            failed=self.failed,
            exact=found.exact,
            verified=verified,
            cost=cost,
            setting=None if healed is None else healed.setting,
        )

    def _verified(self, side: Side) -> tuple[bool | None, float | None]:
        """Whether what heals one sample heals the others, and what it costs in time."""
        judged, worst = self._tracing.judged, self._worst
        others = [
            place
            for place in range(len(judged.feeds))
            if place != worst.sample and deviates(judged, worst, judged.setting[place], place)
        ]
        found = self._tracing.answers(side, others or [worst.sample])
        if found is None:
            return None, None
        healed = [not deviates(judged, worst, given, place) for place, given in zip(others, found[0], strict=False)]
        before = self._tracing.found.setting.run_seconds
        return (all(healed) if healed else None), (found[1] / before if before else None)


def _hashed(path: Path) -> HashedPath:
    return HashedPath(str(path), sha256_of(path))


def _telling(form: Formed) -> bool:
    """Whether a form explains something: its stable form heals, or its errors are those that were seen."""
    return form.healed is True or (form.healed is None and form.explained is not None)
