"""What workers do to screen a pattern: compare its changed networks in one process, whichever of them ends it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import onnx

from conrepair.application.report.encode import encode
from conrepair.formats.onnx.load.file import nodes_of
from conrepair.ground.intake.data import write_arrays
from conrepair.ground.runtime.files.whole import write_json
from conrepair_lab.campaigns.generate_jobs import AT, bounded
from conrepair_lab.cases.case import Case
from conrepair_lab.fuzz.looking import SUSPECT, Looked, computed
from conrepair_lab.fuzz.screen.screening import Screener, Seen, changed
from conrepair_lab.fuzz.suspicion import Suspicion
from conrepair_lab.generate.generated import ABOUT, INPUTS, MODEL
from conrepair_lab.generate.patterns.pattern import patterns
from conrepair_lab.generate.settings.ports import Support
from conrepair_lab.generate.variants import variants
from conrepair_lab.generate.wishes import Wishes
from conrepair_lab.systems.registry import entry as entry_of

LOOKED = "looked.json"
"""In the folder of a network: what was seen in it."""

_FIRST_SECONDS = 120.0  # more for a pattern's first network: libraries are imported


@dataclass(frozen=True)
class Screened:
    """What came of a pattern.

    Attributes:
        networks: How many ways to change it were tried.
        computed: How many of these ONNX Runtime computes.
        fired: In how many variants an optimization did something.
    """

    networks: int = 0
    computed: int = 0
    fired: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: Screened) -> Screened:
        """Both together."""
        fired = Counter(self.fired) + Counter(other.fired)
        return Screened(self.networks + other.networks, self.computed + other.computed, dict(fired))


def fuzz_screen(
    folder: Path,
    *,
    entry: str,
    pattern: str,
    step: int,
    wishes: Wishes,
    share: int,
    seconds: float,
    ended: Mapping[str, Suspicion],
    unusual: bool = False,
) -> Screened:
    """Screen a pattern.

    Args:
        folder: Receives a folder for each network that's suspect, with `LOOKED`, and `AT`, which one is tried.
        entry: The system and its setting.
        pattern: Its name.
        step: Of `conrepair_lab.fuzz.screen.screening`.
        wishes: Operators, element types and opset that networks may have.
        share: One of how many is tried.
        seconds: For each.
        ended: Networks that ended a worker, by number, and how; what was before the last of them isn't tried again.
        unusual: Whether networks count whose results aren't finite.
    """
    names, dtypes = set(wishes.names), set(wishes.dtypes)

    def allows(model: onnx.ModelProto) -> bool:
        types = {item.type.tensor_type.elem_type for item in model.graph.input}
        return {node.op_type for node in nodes_of(model.graph)} <= names and (
            not dtypes or {onnx.helper.tensor_dtype_to_np_dtype(kind).name for kind in types if kind} <= dtypes
        )

    screener = Screener(entry_of(entry), folder, step, allows, unusual=unusual)
    every = variants(patterns()[pattern], wishes.narrowed(Support()), wishes.opset, wishes.most)
    first, place = max(map(int, ended), default=-1), -1
    with (folder / AT).open("w", encoding="utf-8") as at:
        for place, (variant, made) in enumerate(screener.networks(every)):
            if place < first or place % share:
                continue
            at.seek(0)
            at.write(f"{place} {screener.computed}\n")
            at.flush()
            if str(place) in ended:
                there = changed(variant, made)
                case = Case.of(onnx.shape_inference.infer_shapes(there.model), there.inputs)
                words = tuple(change.words for change in made)
                found: Seen | None = Seen(case, ended[str(place)], words) if computed(case) else None
            else:
                with bounded(seconds if screener.computed else seconds + _FIRST_SECONDS):
                    found = screener.seen(variant, made)
            if found is not None:
                _deliver(folder / f"{pattern}-{step}-{place}".replace(" ", "-"), pattern, found)
    return Screened(place + 1, screener.computed, dict(screener.fired))


def _deliver(folder: Path, pattern: str, found: Seen) -> None:
    """Write a suspect as the networks of campaigns are, `LOOKED` last."""
    folder.mkdir(exist_ok=True)
    (folder / MODEL).write_bytes(found.case.network)
    write_arrays(folder / INPUTS, found.case.inputs)
    operators = Counter(node.op_type for node in nodes_of(found.case.model.graph))
    how = "; ".join(found.words) or "as it is"
    about = {"operators": dict(operators), "source": f"pattern {pattern!r}: {how}", "causes": list(found.causes)}
    write_json(folder / ABOUT, about)
    write_json(folder / LOOKED, encode(Looked(SUSPECT, found.suspicion, plainly=found.plainly)))
