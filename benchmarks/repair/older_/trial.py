"""The 15 conversions that the older ConRepAIr repaired, each prepared rightly and wrongly.

The sources come from PyTorch; a source of another format is converted from there by routes of ours first. Then the
conversion under test is made, and an audit compares both on photos, localizes and repairs. Prepared wrongly, the
target is fed as another framework's own models are. What counts is the share of photos whose best class differs,
measured by a second audit of what came out: the repaired file if there's one, fed by the recipe that repair set if it
set one.

MobileNetV2 is pretrained. ResNet101 and InceptionV3 have random weights here, so that their shares say less.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.common.making import FOLDED, OWN
from benchmarks.common.running import say, some_workers
from benchmarks.common.sides import KERAS, SAVEDMODEL, TFLITE, Sides
from conrepair.config.load import parse_config
from conrepair.pipeline.audit import run_audit
from conrepair.repair.edits import SetRecipe, in_words
from conrepair.repair.patch import Patch, read_patch
from conrepair.report.result import Row
from conrepair.runtime.errors import ConrepairError
from conrepair.runtime.files import whole_output
from conrepair.runtime.progress import ProgressDisplay
from conrepair.runtime.workers import Job, Success, Workers

__all__ = ["CASES", "OlderCase", "OlderRow", "measure", "report", "run_older"]

RIGHT, WRONG = "torchvision", "keras:tf"
_STARTS = {"torch": OWN, "keras": KERAS, "tf": SAVEDMODEL, "tflite": TFLITE}
_ROUTES = {
    ("keras", "tflite"): ("keras-tflite",),
    ("keras", "torch"): ("keras-onnx-tf2onnx", "onnx2torch"),
    ("tf", "keras"): ("savedmodel-onnx-tf2onnx", "onnx-keras"),
    ("tf", "tflite"): ("savedmodel-tflite",),
    ("tflite", "keras"): ("tflite-onnx-tf2onnx", "onnx-keras"),
    ("torch", "keras"): ("torch-onnx-script", "onnx-keras"),
    ("torch", "tf"): ("torch-onnx-script", "onnx-keras", "keras-savedmodel"),
    ("torch", "tflite"): ("torch-onnx-script", "onnx-keras", "keras-tflite"),
}
_PAIRS = {
    "mobilenet-v2": ("keras>tflite", "keras>torch", "tf>keras", "tf>tflite", "torch>keras", "torch>tf"),
    "resnet101": (
        *("keras>tflite", "keras>torch", "tf>keras", "tf>tflite", "tflite>keras", "torch>tf"),
        "torch>tflite",
    ),
    "inception-v3": ("tf>tflite", "torch>keras"),
}
_TIMEOUT = 1200.0
_LOCALIZED = 8


@dataclass(frozen=True)
class OlderCase:
    """A conversion, and how the target is fed.

    Attributes:
        model: Of the benchmark.
        source: Format.
        target: Format.
        recipe: By which the target gets its photos; the source gets them by the right one.
    """

    model: str
    source: str
    target: str
    recipe: str

    @property
    def name(self) -> str:
        """Unique."""
        return f"{self.model}:{self.source}>{self.target}:{'right' if self.recipe == RIGHT else 'wrong'}"


CASES = tuple(
    OlderCase(model, *pair.split(">"), recipe)
    for model, pairs in _PAIRS.items()
    for pair in pairs
    for recipe in (RIGHT, WRONG)
)


@dataclass(frozen=True)
class OlderRow:
    """What became of a case.

    Attributes:
        name: Of the case.
        status: "measured", or "failed".
        words: Why it failed.
        photos: How many.
        before: Share of photos whose best class differs.
        after: The same for what came out.
        found: Kinds of the faults that were found.
        recipe: What the recipe that the repair set does otherwise, in words; none where it set none.
        edits: Of the target's file, in words.
        left: Kinds of the faults that the repair leaves.
        seconds: Of the first audit.
    """

    name: str
    status: str
    words: str = ""
    photos: int = 0
    before: float | None = None
    after: float | None = None
    found: tuple[str, ...] = ()
    recipe: tuple[str, ...] = ()
    edits: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    seconds: float = 0.0


def run_older(models: Sequence[str], photos: int, path: Path | None, *, fresh: bool = False) -> list[OlderRow]:
    """Carry the cases out that have no row yet.

    Args:
        models: Names; those that the older tool didn't have are left out.
        photos: How many at most.
        path: Of the file that keeps rows; None: they aren't kept.
        fresh: Whether it's begun anew.
    """
    rows: list[OlderRow] = []
    if path is not None and path.exists() and not fresh:
        rows = [_from_json(value) for value in json.loads(path.read_text(encoding="utf-8"))["older"]]
    known = {row.name for row in rows}
    cases = [case for case in CASES if case.model in models and case.name not in known]
    with tempfile.TemporaryDirectory(prefix="conrepair-benchmark-") as scratch:
        for row in measure(cases, photos, Path(scratch)):
            rows.append(row)
            say(f"{row.name}: {row.status} {row.words}, {_share(row.before)} differ, then {_share(row.after)}")
            if path is not None:
                with whole_output(path) as temporary:
                    content = {"photos": photos, "older": [asdict(item) for item in rows]}
                    temporary.write_text(json.dumps(content, indent=1), encoding="utf-8")
    return rows


def _from_json(value: Mapping[str, Any]) -> OlderRow:
    return OlderRow(**{name: tuple(item) if isinstance(item, list) else item for name, item in value.items()})


def measure(cases: Sequence[OlderCase], photos: int, folder: Path) -> Iterator[OlderRow]:
    """Convert, audit, localize, repair, and audit what came out.

    Args:
        cases: Which.
        photos: How many at most.
        folder: For models and audits.
    """
    with some_workers(1) as workers:
        sides = Sides(folder / "models", workers)
        sides.make([(case.model, side) for case in cases for side in (FOLDED, _STARTS[case.source])], say)
        targets = {}
        for number, (model, *pair) in enumerate(
            dict.fromkeys((case.model, case.source, case.target) for case in cases)
        ):
            work = folder / "targets" / str(number)
            targets[model, *pair] = _converted(sides, model, (pair[0], pair[1]), workers, work)
    for number, case in enumerate(cases):
        source = sides.get(case.model, _STARTS[case.source])
        target = targets[case.model, case.source, case.target]
        if source is None or isinstance(target, str):
            yield OlderRow(case.name, "failed", target if isinstance(target, str) else "the source couldn't be made")
            continue
        try:
            yield _audited(case, source, target, photos, folder / "audits" / str(number))
        except ConrepairError as error:
            yield OlderRow(case.name, "failed", str(error))


def _converted(
    sides: Sides, model: str, pair: tuple[str, str], workers: Workers, folder: Path
) -> dict[str, Any] | str:
    """The target's side, or why there's none."""
    side = sides.get(model, _STARTS[pair[0]])
    for place, name in enumerate(_ROUTES[pair]):
        payload = {"side": side, "converter": name, "options": {}}
        work = folder / str(place)
        work.mkdir(parents=True)
        outcome = workers.call(Job("benchmarks.common.making:convert", payload, work, timeout=_TIMEOUT))
        if not isinstance(outcome, Success):
            return f"{name}: {outcome}"
        side = outcome.value["side"]
    return side if side is not None else "the source couldn't be made"


def _audited(
    case: OlderCase, source: Mapping[str, Any], target: Mapping[str, Any], photos: int, folder: Path
) -> OlderRow:
    started = time.perf_counter()
    right = _model("source", source["model"], {"base": RIGHT})
    fed = {"base": case.recipe}
    row = _audit([right, _model("target", target["model"], fed)], photos, folder / "first", repair=True)
    seconds = time.perf_counter() - started
    located, repair = row.localization, row.repair
    again, patch = target["model"], Patch()
    if repair is not None:
        patch = Patch() if repair.patch is None else read_patch(Path(repair.patch))[0]
        if repair.model is not None:
            again = {**again, "path": repair.model.path, "factory": None}
        if repair.recipe is not None:
            fed = dict(repair.recipe)
    after = row
    if patch.edits:
        after = _audit([right, _model("target", again, fed)], photos, folder / "second", repair=False)
    faults = () if located is None else located.faults
    left = faults if repair is None else repair.after.faults
    return OlderRow(
        case.name,
        "measured",
        photos=0 if row.run is None else row.run.count,
        before=_differing(row),
        after=_differing(after),
        found=tuple(fault.kind.value for fault in faults),
        recipe=tuple(words for edit in patch.edits if isinstance(edit, SetRecipe) for words in edit.changes),
        edits=tuple(map(in_words, patch.of_file)),
        left=tuple(fault.kind.value for fault in left),
        seconds=seconds,
    )


def _model(name: str, model: Mapping[str, Any], recipe: Mapping[str, Any]) -> dict[str, Any]:
    """A model as a configuration has it."""
    entry: dict[str, Any] = {"name": name, "recipe": dict(recipe)} | (
        {} if name == "source" else {"compare_with": "source"}
    )
    if model["factory"] is None:
        return entry | {"path": model["path"]}
    inputs = [{"name": spec["name"], "shape": spec["shape"], "dtype": spec["dtype"]} for spec in model["inputs"]]
    made = {"factory": model["factory"]["target"], "kwargs": model["factory"]["kwargs"], "weights": model["path"]}
    return entry | made | {"inputs": inputs}


def _audit(models: Sequence[Mapping[str, Any]], photos: int, folder: Path, *, repair: bool) -> Row:
    config = {
        "output": str(folder),
        "dataset": {"zoo": "photos", "limit": photos},
        "limits": {"workers": 1, "seconds": _TIMEOUT},
        "stages": {"localize": repair, "repair": repair},
        "localize": {"when": "always", "samples": _LOCALIZED},
        "models": list(models),
    }
    with contextlib.ExitStack() as stack:
        display = stack.enter_context(ProgressDisplay(quiet=True))
        result = run_audit(parse_config(config, "benchmark"), Path.cwd(), display, stack)
        row = next(item for item in result.rows if item.model == "target")
        problem = row.problem or row.not_localized or row.not_repaired
    if problem is not None:
        raise ConrepairError(str(problem))
    return row


def _differing(row: Row) -> float | None:
    """Share of photos whose best class differs."""
    worst = None if row.comparison is None else row.comparison.worst
    return None if worst is None or worst.answers is None else worst.answers.top1_differs / worst.answers.samples


def report(rows: Sequence[OlderRow]) -> str:
    """The rows as a table in Markdown."""
    titles = ("case", "photos", "differ", "found", "recipe", "edits", "then differ", "left", "s")
    lines = [f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}"]
    for row in rows:
        if row.status == "failed":
            lines.append(f"| {row.name} | failed: {row.words} |{' |' * (len(titles) - 2)}")
            continue
        edits = "; ".join(row.edits)
        cells = (row.name, str(row.photos), _share(row.before), ", ".join(row.found), "; ".join(row.recipe), edits)
        lines.append(f"| {' | '.join((*cells, _share(row.after), ', '.join(row.left), f'{row.seconds:.0f}'))} |")
    measured = [row for row in rows if row.after is not None]
    equal = sum(row.after == 0 for row in measured)
    return "\n".join([*lines, "", f"{equal} of {len(rows)} cases end with no photo answered otherwise."])


def _share(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.2f} %"
