"""What a worker does for a trace then: follow the error on the worst inputs through the kernels of both sides."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from conrepair.forms.all_forms import float64_operators, stable_operators
from conrepair.frameworks.model import Model, from_json
from conrepair.frameworks.runnable import Array
from conrepair.networks.network import Network
from conrepair.report.encode import encode
from conrepair.runtime.errors import ConrepairError, ConversionError
from conrepair.systems.registry import SYSTEMS
from conrepair.systems.system import Setting, System
from conrepair.tracing.exact_side import pieces_of
from conrepair.tracing.formed import candidates, has_guilty_groups, in_other_form, taken_apart
from conrepair.tracing.judging import REWRITTEN, read_judged
from conrepair.tracing.propagation import Replayed, matched, replay
from conrepair.truth.bound import ACCURACY, Analysis
from conrepair.truth.widening import types_of

_FORMS = 6  # that are tried
_PAYLOAD = {"setting": "one", "against": "two"}


def kernels(payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Follow the error on a sample through the kernels of both sides.

    Args:
        payload: "model", "one" and "two" as for `trace`, "judged" (its folder), "judged_sha256", "sample", "blamed"
            (as of `Deviation`), "accuracy" as for `trace`.
        folder: Receives `stable_<index>.onnx` of each form, where there's a stable one.

    Returns:
        "setting" and "against" (`KernelError`s), "pairs", "doubts" (what can't be looked into, and why), "forms"
        ("form", "place", "words", "explained", "file"); where no side at fault can be looked into, the operators that
        can be computed otherwise, "stable" and "float64".
    """
    with tempfile.TemporaryDirectory(dir=folder) as made:
        return _Looking(payload, Path(made)).told(folder)


def forms(payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Write a network with operators in another form.

    Args:
        payload: "model"; "stable" and "float64", names of operators.
        folder: Receives `rewritten.onnx`.

    Returns:
        "forms" ("form", "place", "words") of these operators.
    """
    told, made = in_other_form(onnx.load(payload["model"]["path"]), payload["stable"], payload["float64"])
    onnx.save(made, folder / REWRITTEN)
    return {"forms": [{"form": item.form, "place": item.place, "words": item.words} for item in told]}


@dataclass(frozen=True)
class _Opened:
    """A side that can be looked into: what it's fed, and its tensors that the network has, too."""

    network: Network
    feeds: dict[str, Array]
    cuts: list[str]


class _Looking:
    """Both sides of a trace, on one sample."""

    def __init__(self, payload: dict[str, Any], made: Path) -> None:
        self._model, self._made, self._blamed = from_json(Model, payload["model"]), made, payload["blamed"]
        self._feeds = read_judged(Path(payload["judged"])).feeds[payload["sample"]]
        self._proto = onnx.load(self._model.path)  # with weights that lie beside it
        self._exact = Analysis(self._proto).truth(self._feeds)
        written = {name for node in self._proto.graph.node for name in node.output if name}
        self._outputs = written & self._exact.keys() & types_of(self._proto).keys()
        self._asked = {
            name: (SYSTEMS[payload[key]["system"]], from_json(Setting, payload[key]["setting"]))
            for name, key in _PAYLOAD.items()
            if payload[key] is not None
        }
        self._accuracy = {**ACCURACY, **payload["accuracy"]}
        self._doubts: list[str] = []

    def told(self, folder: Path) -> dict[str, Any]:
        """See `kernels`."""
        opened: dict[str, _Opened] = {}
        for name, (system, setting) in self._asked.items():
            with self._doubting(system):
                opened[name] = self._opened(system, setting)
        runs = {name: [Replayed()] for name in _PAYLOAD}
        for name, side in opened.items():
            with self._doubting(self._asked[name][0]):
                other = next((other.network for key, other in opened.items() if key != name), None)
                runs[name] = [self._replayed(side, other)]
            with self._doubting(self._asked[name][0]):
                runs[name] = self._taken_apart(*self._asked[name], runs[name][0])
        one, two = (runs[name][0].values for name in _PAYLOAD)
        guilty = [run for name in self._asked if self._blamed in {name, "both"} for run in runs[name]]
        blind = bool(guilty) and not any(run.errors for run in guilty)
        forms = []
        for place, (form, model) in enumerate(candidates(self._proto, guilty, _FORMS)):
            file = None if model is None else f"stable_{place}.onnx"
            if model is not None and file is not None:
                onnx.save(model, folder / file)
            forms.append(vars(form) | {"file": file})
        return {
            "forms": forms,
            "stable": stable_operators(self._proto) if blind else [],
            "float64": float64_operators(self._proto) if blind else [],
            **{name: [encode(item) for item in runs[name][0].errors] for name in _PAYLOAD},
            "pairs": [encode(item) for item in matched(one, two)],
            "doubts": list(dict.fromkeys(self._doubts)),
        }

    @contextlib.contextmanager
    def _doubting(self, system: System) -> Iterator[None]:
        try:
            yield
        except ConrepairError as error:
            self._doubts.append(f"the kernels of {system.name} can't be looked into: {error}")

    def _opened(self, system: System, setting: Setting) -> _Opened:
        found = system.observed(self._model, setting, self._made)
        if found is None:
            raise ConversionError("it shows none")
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
