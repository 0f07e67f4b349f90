"""What a worker does for a trace then: follow the error on the worst inputs through the kernels of both sides."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx

from conrepair.formats.models.model import Model
from conrepair.formats.models.runnable import Array
from conrepair.formats.networks.network import Network
from conrepair.ground.forms.all_forms import float64_operators, stable_operators
from conrepair.ground.runtime.errors import ConrepairError, ConversionError
from conrepair.verdicts.truth.bound import ACCURACY, Analysis
from conrepair.verdicts.truth.widening import types_of
from conrepair_lab.jobs.trace_values import Compared, Followed, JudgedSample
from conrepair_lab.systems.registry import SYSTEMS
from conrepair_lab.systems.system import Setting, System
from conrepair_lab.tracing.exact_side import pieces_of
from conrepair_lab.tracing.formed import candidates, has_guilty_groups, in_other_form, taken_apart
from conrepair_lab.tracing.judging import REWRITTEN
from conrepair_lab.tracing.propagation import Replayed, matched, replay
from conrepair_lab.tracing.result import Formed, Kernels

_FORMS = 6  # that are tried
_SIDES = ("setting", "against")


def kernels(folder: Path, sides: Compared, sample: JudgedSample, blamed: str) -> Followed:
    """Follow the error on a sample through the kernels of both sides.

    Args:
        folder: Receives `stable_<index>.onnx` of each form, where there's a stable one.
        sides: The model, and what runs it.
        sample: On which.
        blamed: As of `Deviation`.
    """
    with tempfile.TemporaryDirectory(dir=folder) as made:
        return _Looking(sides, sample, blamed, Path(made)).followed(folder)


def forms(
    folder: Path, model: Model, stable: tuple[str, ...] = (), float64: tuple[str, ...] = ()
) -> tuple[Formed, ...]:
    """Write a network with operators in another form.

    Args:
        folder: Receives `rewritten.onnx`.
        model: An ONNX file.
        stable: Operators that get their stable form.
        float64: Operators that are computed in float64.

    Returns:
        The forms of these operators.
    """
    told, made = in_other_form(onnx.load(model.path), stable, float64)
    onnx.save(made, folder / REWRITTEN)
    return tuple(Formed(item.form, item.place, item.words) for item in told)


@dataclass(frozen=True)
class _Opened:
    """A side that can be looked into: what it's fed, and its tensors that the network has, too."""

    network: Network
    feeds: dict[str, Array]
    cuts: list[str]


class _Looking:
    """Both sides of a trace, on one sample."""

    def __init__(self, sides: Compared, sample: JudgedSample, blamed: str, made: Path) -> None:
        self._model, self._made, self._blamed, self._feeds = sides.model, made, blamed, sample.feeds
        self._proto = onnx.load(self._model.path)  # with weights that lie beside it
        self._exact = Analysis(self._proto).truth(self._feeds)
        written = {name for node in self._proto.graph.node for name in node.output if name}
        self._outputs = written & self._exact.keys() & types_of(self._proto).keys()
        both = zip(_SIDES, (sides.one, sides.two), strict=True)
        self._asked = {name: (SYSTEMS[side.system], side.setting) for name, side in both if side.setting is not None}
        self._accuracy = {**ACCURACY, **sides.accuracy}
        self._doubts: list[str] = []

    def followed(self, folder: Path) -> Followed:
        """See `kernels`."""
        opened: dict[str, _Opened] = {}
        for name, (system, setting) in self._asked.items():
            with self._doubting(system):
                opened[name] = self._opened(system, setting)
        runs = {name: [Replayed()] for name in _SIDES}
        for name, side in opened.items():
            with self._doubting(self._asked[name][0]):
                other = next((other.network for key, other in opened.items() if key != name), None)
                runs[name] = [self._replayed(side, other)]
            with self._doubting(self._asked[name][0]):
                runs[name] = self._taken_apart(*self._asked[name], runs[name][0])
        one, two = (runs[name][0] for name in _SIDES)
        guilty = [run for name in self._asked if self._blamed in {name, "both"} for run in runs[name]]
        blind = bool(guilty) and not any(run.errors for run in guilty)
        forms = []
        for place, (form, model) in enumerate(candidates(self._proto, guilty, _FORMS)):
            file = "" if model is None else f"stable_{place}.onnx"
            if model is not None:
                onnx.save(model, folder / file)
            forms.append((form, file))
        return Followed(
            Kernels(tuple(one.errors), tuple(two.errors), tuple(matched(one.values, two.values))),
            doubts=tuple(dict.fromkeys(self._doubts)),
            forms=tuple(forms),
            stable=tuple(stable_operators(self._proto)) if blind else (),
            float64=tuple(float64_operators(self._proto)) if blind else (),
        )

    @contextlib.contextmanager
    def _doubting(self, system: System) -> Iterator[None]:
        try:
            yield
        except ConrepairError as error:
            self._doubts.append(f"the error can't be followed through the kernels of {system.name}: {error}")

    def _opened(self, system: System, setting: Setting) -> _Opened:
        found = system.observed(self._model, setting, self._made)
        if found is None:
            raise ConversionError("it doesn't show them")
        cuts = [key for key, item in found.graph.tensors.items() if item.observable and key in self._outputs]
        named = {found.input_names[key]: array for key, array in self._feeds.items()}
        if cuts:  # what can't be run is no side to compare with
            found.segment(tuple(named), cuts).run(named)
        return _Opened(found, named, cuts)

    def _replayed(self, side: _Opened, other: Network | None = None) -> Replayed:
        return replay(side.network, side.feeds, self._exact, pieces_of(self._proto, side.cuts, self._accuracy), other)

    def _taken_apart(self, system: System, setting: Setting, run: Replayed) -> list[Replayed]:
        """A run, and that of fused kernels at fault operator by operator, unless somebody said how far to fuse."""
        if not system.fusion or system.fusion in setting.options or not has_guilty_groups(run):
            return [run]
        side = self._opened(system, setting.with_options({**setting.options, system.fusion: 1}))
        return taken_apart(self._proto, run, side.network, self._replayed(side))
