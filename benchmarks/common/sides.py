"""Models that cases start from: each as it's made, and converted on, once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.common.lanes import run_all
from benchmarks.common.making import FOLDED, KEPT, OWN
from benchmarks.common.models import MODELS
from conrepair.formats.converters.all_converters import CONVERTERS, converter
from conrepair.ground.runtime.processes.reach import OPEN
from conrepair.ground.runtime.processes.workers import Job, Success, Workers

__all__ = ["KERAS", "SAVEDMODEL", "TFLITE", "Conversion", "Sides", "conversions"]

KERAS = f"{FOLDED}>onnx-keras"
TFLITE = f"{KERAS}>keras-tflite"
SAVEDMODEL = f"{KERAS}>keras-savedmodel"
_STARTS = {OWN: "torch", KERAS: "keras", TFLITE: "tflite", SAVEDMODEL: "tensorflow", FOLDED: "onnx"}
_OPSETS = range(13, 22)
_TIMEOUT = 600.0
_ONNX_TO_ONNX = ("onnx-normalise", "onnx-onnxslim", "onnx-onnxsim")
_MADE = frozenset({OWN, FOLDED, KEPT})


@dataclass(frozen=True)
class Conversion:
    """An edge of the tree.

    Attributes:
        parent: Side that's converted.
        converter: Its name.
        options: That differ from the defaults.
        intent: Precision that is meant to come out, if it's another.
    """

    parent: str
    converter: str
    options: Mapping[str, Any] = field(default_factory=dict)
    intent: str = ""

    @property
    def side(self) -> str:
        """The name of what comes out."""
        chosen = ",".join(f"{name}={value}" for name, value in self.options.items())
        return f"{self.parent}>{self.converter}" + (f"({chosen})" if chosen else "")

    @property
    def format(self) -> str:
        """Of what comes out."""
        return converter(self.converter).target


def conversions(normalized: bool) -> Iterator[Conversion]:
    """All that are tried: every converter that needs no environment of its own, from a model of its format.

    Args:
        normalized: Whether the model is there with BatchNorm unfolded, too.
    """
    for parent, framework in _STARTS.items():
        for step in CONVERTERS.values():
            if step.source != framework or step.environment is not None or step.name == "torch-onnx-script":
                continue
            if step.name != "onnx-version-converter" and not step.intent(step.complete({})):
                yield Conversion(parent, step.name)
    yield from (Conversion(FOLDED, "onnx-version-converter", {"opset": opset}) for opset in _OPSETS)
    if normalized:
        yield from (Conversion(KEPT, name) for name in (*_ONNX_TO_ONNX, "onnx2torch", "onnx-keras"))
    yield Conversion(FOLDED, "onnx-float16", intent="float16")
    yield Conversion(FOLDED, "onnx-quantize-dynamic", intent="int8 weights")
    yield Conversion(KERAS, "keras-tflite", {"quantize": "float16"}, "float16")
    yield Conversion(KERAS, "keras-tflite", {"quantize": "dynamic"}, "int8 weights")


class Sides:
    """Makes what cases need, and knows where it is.

    Args:
        folder: For models.
        workers: Where they're made.
        unseen: Whether there are samples behind those that models are compared on.
    """

    def __init__(self, folder: Path, workers: Workers, *, unseen: bool = False) -> None:
        self._folder, self._workers, self._unseen = folder, workers, unseen
        self._made: dict[tuple[str, str], dict[str, Any]] = {}
        self.data: dict[str, str] = {}
        self.failures: dict[tuple[str, str], str] = {}

    def get(self, model: str, side: str) -> dict[str, Any] | None:
        """What was made; None where that failed."""
        return self._made.get((model, side))

    def make(self, wanted: Iterable[tuple[str, str]], say: Callable[[str], None]) -> None:
        """Make models and sides.

        Args:
            wanted: Models' names with sides.
            say: Told what is done.
        """
        missing = {key for key in wanted if key not in self._made and key not in self.failures}
        models = sorted({model for model, _ in missing} - set(self.data))
        self._make_models(models, say)
        known = {item.side: item for item in conversions(True)}
        needed = {(model, side) for model, side in missing if side not in _MADE}
        ahead = list(needed)
        while ahead:
            model, side = ahead.pop()
            parent = known[side].parent
            if parent not in _MADE and (model, parent) not in needed:
                needed.add((model, parent))
                ahead.append((model, parent))
        for depth in sorted({side.count(">") for _, side in needed}):
            level = [(model, known[side]) for model, side in sorted(needed) if side.count(">") == depth]
            self._convert(level, say)

    def _make_models(self, models: Iterable[str], say: Callable[[str], None]) -> None:
        jobs = []
        for name in models:
            wanted = MODELS[name]
            payload = {"model": name, "samples": wanted.samples + (wanted.unseen if self._unseen else 0)}
            make = "benchmarks.common.making:make"  # which fetches weights, and keeps what it trains
            jobs.append((name, Job(make, payload, self._folder / name, timeout=_TIMEOUT, reach=OPEN)))
        for name, outcome in run_all(self._workers, jobs):
            if not isinstance(outcome, Success):
                raise RuntimeError(f"{name} could not be made: {outcome}")
            say(f"{name}: made in {outcome.seconds:.0f} s")
            self.data[name] = outcome.value["data"]
            self._made |= {(name, side): value for side, value in outcome.value["sides"].items()}

    def _convert(self, level: Iterable[tuple[str, Conversion]], say: Callable[[str], None]) -> None:
        jobs = []
        for place, (model, item) in enumerate(level):
            parent = self.get(model, item.parent)
            if parent is None:
                self.failures[model, item.side] = f"{item.parent} couldn't be made"
                continue
            payload = {"side": parent, "converter": item.converter, "options": dict(item.options)}
            folder = self._folder / f"{model}-{item.side.count('>')}-{place}"
            step = converter(item.converter)
            job = Job("benchmarks.common.making:convert", payload, folder, step.needs, _TIMEOUT)
            jobs.append(((model, item.side), job))
        for key, outcome in run_all(self._workers, jobs):
            if isinstance(outcome, Success):
                self._made[key] = outcome.value["side"]
            else:
                self.failures[key] = str(outcome)
                say(f"{': '.join(key)}: {outcome}")
