"""Whether passes that are made faulty on purpose are isolated, and by how many builds.

    python -m benchmarks.trace.faulty_passes [--seeds development|reporting] [--groups GROUP,...] [--case NAME ...]
                                             [--list] [--first N] [--lanes N] [--json FILE] [--fresh] [-o FILE]
    python -m benchmarks.trace.faulty_passes --tables FILE

A pass of TVM's on Relax damages one result (`benchmarks.trace.planting`), as a pass of its own or as a part of one
that is there, in builds of generated networks with all optimizations, and with fast math on this processor. Groups:
"single" culprits, "two" that do harm independently, "together": two that only do harm if both ran. What's wrong is
told by the bound of rounding, as in `conrepair trace`, and isolated by what that uses; what doesn't show with all
else left out is no case. Exact: causes, and what heals, are the planted ones and nothing else.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.common.bounds import at_least
from benchmarks.common.cases import Case
from benchmarks.common.generated import case_of
from benchmarks.common.rows import CaseRow
from benchmarks.trace.asking import ask
from benchmarks.trace.generated import Generated, generated
from benchmarks.trace.planting import MARK, Place, Plant, planted, surveyed
from conrepair.formats.backends.base import Switch
from conrepair.formats.tvm.runnable import TvmRunnable
from conrepair.formats.tvm.switches import switches
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.runtime.errors import ConrepairError
from conrepair.verdicts.truth.bound import ACCURACY, Analysis
from conrepair_lab.systems.isolating import isolate
from conrepair_lab.systems.registry import SYSTEMS
from conrepair_lab.systems.system import Setting
from conrepair_lab.tracing.judging import Judged, deviates, deviation_of
from conrepair_lab.tracing.result import Deviation

__all__ = ["Row", "plan", "report", "run"]

_COUNTS = {"single": 30, "two": 15, "together": 15}  # for each of two seeds
_SETTINGS = ("O3", "fast")
_NETWORKS, _DRAWS = 20, 4
_BUILDS, _WANTED = 200, 25
_TIMEOUT = 1200.0
_TVM = SYSTEMS["tvm"]


def plan(seeds: Sequence[int]) -> list[Case]:
    """All cases."""
    return [
        Case(group, "generated", setting, setting, (f"{group} {number}",), 1, seed)
        for seed in seeds
        for group, count in _COUNTS.items()
        for number in range(count)
        for setting in [_SETTINGS[number % 2]]
    ]


def run(folder: Path, **payload: Any) -> dict[str, Any]:
    """Carry a case out; a job of a worker.

    Args:
        payload: "case".
        folder: For files.

    Returns:
        "status", "words"; of a measured one "plants", "planted" (what should be isolated), "causes", "heals",
        "builds", "failed", "asked", "seconds" of this process's processor.
    """
    case = case_of(payload)
    for place in range(_NETWORKS):
        with tempfile.TemporaryDirectory(dir=folder) as made:
            found = generated(f"{case.seed}/{case.faults[0]}/{place}", Path(made))
            told = None if found is None else _Trial(found, case, Path(made)).told()
            if told is not None:
                return {"status": "measured", "words": ""} | told
    return {"status": "no place", "words": f"{_NETWORKS} networks show no fault that was drawn"}


class _Trial:
    """A network with faults."""

    def __init__(self, network: Generated, case: Case, folder: Path) -> None:
        self._network, self._case, self._folder = network, case, folder
        self._setting = _TVM.settings[case.source]
        self._random = random.Random(case.name)

    def told(self) -> dict[str, Any] | None:
        """What isolation says; None where a build is wrong by itself, optimized or plain, or no fault shows."""
        try:
            found = Analysis(self._network.proto).at(self._network.feeds, ACCURACY)
            with surveyed() as places:
                right = self._built(self._setting).run(self._network.feeds)
            plain = self._built(_TVM.settings[_TVM.plain]).run(self._network.feeds)
        # ONNX's reference raises a dozen types of its own for what it doesn't know.
        except Exception:  # noqa: BLE001
            return None
        self._judged = Judged(feeds=[self._network.feeds], against=[right], exact=[found.truth], bound=[found.bound])
        if not places or any(self._worst(given) is not None for given in (right, plain)):
            return None
        for _ in range(_DRAWS):
            plants = self._drawn(places)
            with planted(plants):
                try:
                    wrong = self._built(self._setting)
                except ConrepairError:
                    continue
                answers = wrong.run(self._network.feeds)
                worst = self._worst(answers)
                if worst is None:
                    continue
                self._judged.setting[:] = [answers]
                known = switches(wrong.record, self._setting.options)
                harmful = [plants] if self._case.group == "together" else [[item] for item in plants]
                if all(self._shows(self._alone(some, known), worst) for some in harmful):
                    return self._isolated(plants, worst, known)
        return None

    def _isolated(self, plants: Sequence[Plant], worst: Deviation, known: Sequence[Switch]) -> dict[str, Any]:
        failed, started = [], time.process_time()

        def fails(on: Sequence[int]) -> bool:
            kept = set(on)
            off = [item for place, item in enumerate(known) if place not in kept]
            return self._shows(_TVM.without(self._setting, off), worst, failed)

        found = isolate(len(known), fails, tries=_BUILDS)

        def named(sets: Sequence[frozenset[int]]) -> list[list[str]]:
            return sorted(sorted(known[place].name for place in item) for item in sets)

        return {
            "plants": [asdict(item) for item in plants],
            "planted": sorted(item.application for item in plants),
            "causes": named(found.causes),
            "heals": named(found.heals),
            "builds": found.tries,
            "failed": len(failed),
            "asked": len(known),
            "seconds": time.process_time() - started,
        }

    def _drawn(self, places: Sequence[Place]) -> list[Plant]:
        """One fault, or two that can be left out one without the other; the second lies behind the first."""
        own = self._random.random() < 0.5
        plants = [self._plant(self._random.choice(places), 0 if own else None)]
        if self._case.group == "single":
            return plants
        while True:
            own = self._random.random() < 0.5
            one, other = plants[0], self._plant(self._random.choice(places), 1 if own else None)
            if one.place.step != other.place.step:
                order = [item.step for item in places]
                first, second = sorted((one, other), key=lambda item: order.index(item.place.step))
                if self._case.group == "two":
                    return [first, second]
                mark = Plant(first.place, MARK, first.own)
                return [mark, Plant(second.place, second.sort, second.own, only_after=mark)]

    def _plant(self, place: Place, own: int | None) -> Plant:
        return Plant(place, self._random.choice(place.sorts), own)

    def _alone(self, plants: Sequence[Plant], known: Sequence[Switch]) -> Setting:
        """With all else left out."""
        kept = {item.application for item in plants}
        return _TVM.without(self._setting, [item for item in known if item.name not in kept])

    def _built(self, setting: Setting) -> TvmRunnable:
        with tempfile.TemporaryDirectory(dir=self._folder) as made:
            found = _TVM.open(self._network.model, setting, Path(made))
        assert isinstance(found, TvmRunnable)
        return found

    def _shows(self, setting: Setting, worst: Deviation, failed: list[Setting] | None = None) -> bool:
        """Whether a build deviates; one that fails doesn't, as in `conrepair trace`."""
        try:
            return deviates(self._judged, worst, self._built(setting).run(self._network.feeds))
        except ConrepairError:
            if failed is not None:
                failed.append(setting)
            return False

    def _worst(self, answers: Mapping[str, Array]) -> Deviation | None:
        judged = self._judged
        found = [
            deviation_of(name, 0, array, judged.against[0][name], judged.exact[0][name], judged.bound[0][name])
            for name, array in answers.items()
            if array.size and array.dtype.kind == "f"
        ]
        wrong = [item for item in found if item.kind == "wrong"]
        return max(wrong, key=lambda item: (item.total.over if item.total else 0) or 0, default=None)


@dataclass(frozen=True)
class Row(CaseRow):
    """A case of this benchmark."""

    @property
    def score(self) -> None:
        """Nothing but what's in the result."""

    @property
    def exact(self) -> bool:
        """Whether what was planted was isolated, and nothing else."""
        planted_ones = self.result["planted"]
        apart, at_once = [[item] for item in planted_ones], [planted_ones]
        causes, heals = (at_once, apart) if self.case.group == "together" else (apart, at_once)
        return bool(self.result["causes"] == causes and self.result["heals"] == heals)


def report(rows: Sequence[Row]) -> str:
    """Tables of rows."""
    done = [row for row in rows if row.status == "measured"]
    lines = [
        "| faults | cases | exact | at least | builds, median | most | at most 25 builds | seconds, median |",
        "|---|---|---|---|---|---|---|---|",
    ]
    keys: tuple[Callable[[Row], str], ...] = (
        lambda row: f"**{row.case.group}**",
        lambda row: f"{row.case.group}, {row.case.source}",
        lambda row: f"{row.case.group}, {_how(row)}",
        lambda row: str(row.result["plants"][-1]["sort"]),
    )
    for key in keys:
        names = sorted({key(row) for row in done})
        lines += [_line(name, [row for row in done if key(row) == name]) for name in names]
    left = sorted({row.status for row in rows} - {"measured"})
    lines += ["", *(f"{status}: {sum(row.status == status for row in rows)}" for status in left)]
    lines += [
        f"- `{row.case.name}`: planted {row.result['planted']}, causes {row.result['causes']}, heals "
        f"{row.result['heals']}, {row.result['builds']} builds"
        for row in done
        if not row.exact
    ]
    return "\n".join(lines)


def _how(row: Row) -> str:
    own = {item["own"] is not None for item in row.result["plants"]}
    return "both" if len(own) > 1 else "a pass of its own" if True in own else "a part of a pass"


def _line(name: str, rows: Sequence[Row]) -> str:
    builds = [row.result["builds"] for row in rows]
    exact, few = (sum(items) / len(rows) for items in ([r.exact for r in rows], [b <= _WANTED for b in builds]))
    seconds = statistics.median(row.result["seconds"] for row in rows)
    return (
        f"| {name} | {len(rows)} | {exact:.1%} | {at_least(exact, len(rows))} | {statistics.median(builds):g} "
        f"| {max(builds)} | {few:.0%} | {seconds:.1f} |"
    )


def _told(row: Row) -> str:
    return row.words or f"{'exact' if row.exact else 'NOT EXACT'}, {row.result['builds']} builds"


def main() -> int:
    """Run and print; returns 1 where anything isn't exact."""
    trial = ("benchmarks.trace.faulty_passes:run", _TIMEOUT, "trace")
    rows = ask(__doc__, Row, plan, trial, report, _told)
    return int(any(row.status == "measured" and not row.exact for row in rows))


if __name__ == "__main__":
    sys.exit(main())
