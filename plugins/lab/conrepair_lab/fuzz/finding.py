"""A finding: one cause in one system, the smallest case that shows it, and what's known of it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import onnx

from conrepair.formats.onnx.load.file import nodes_of
from conrepair.ground.runtime.files.whole import canonical_json
from conrepair_lab.cases.sizes import SIZES
from conrepair_lab.fuzz.cause import Cause
from conrepair_lab.fuzz.shown import Shown
from conrepair_lab.fuzz.suspicion import GRADIENT, OF_NUMBERS, SLOWER, THREADS, Suspicion
from conrepair_lab.systems.registry import Entry

VERSION = 1
"""Of the form of finding.json."""

_OTHERS = re.compile("axis|^to$|type")  # whole numbers that are no truth values: places, and element types


@dataclass(frozen=True)
class Span:
    """Which releases show a finding.

    Attributes:
        first_wrong: The earliest that is known to.
        last_right: The last one before that is known not to; "" where none is.
        first_right: The first one behind that is known not to again; "" where none is.
        exact: Whether no release that wasn't asked may move a boundary.
    """

    first_wrong: str
    last_right: str
    first_right: str
    exact: bool

    @property
    def words(self) -> str:
        """In a line."""
        parts = [f"wrong since {self.first_wrong}"]
        parts.append(f"right in {self.last_right}" if self.last_right else "no earlier release is known to be right")
        parts.append(
            f"right again in {self.first_right}" if self.first_right else "no later release is known to be right"
        )
        return ", ".join(parts) + ("" if self.exact else "; not all releases in between were tried")


@dataclass(frozen=True)
class Finding:
    """A finding, as it's written to finding.json.

    Attributes:
        key: Of its cause, for this system: doubles have the same.
        system: By which it was seen first.
        setting: Of that.
        suspicion: What is seen.
        operators: Of the reduced network, in order; of branches and loops, too.
        cause: Which switches it hangs on.
        judges: Who says that it's wrong.
        blamed: Distributions of the library at fault, or those between which it lies, with their versions.
        versions: Of all libraries that took part.
        case: The key of the case.
        source: Of the network in which it was seen first: a seed and number, or a file.
        tries: Of the reduction.
        smallest: Whether nothing can be left out any more.
        also: Other settings of the campaign that show it.
        known: Where it's been reported, by the list of known findings.
        release: Of the system's library, where that isn't the one that was installed.
        shown: What its program did when it was written, and with other releases that were tried.
        since: Which releases show it, where they were asked.
    """

    key: str
    system: str
    setting: str
    suspicion: Suspicion
    operators: tuple[str, ...]
    cause: Cause
    judges: str
    blamed: Mapping[str, str]
    versions: Mapping[str, str]
    case: str
    source: str
    tries: int
    smallest: bool
    also: tuple[str, ...] = ()
    known: str = ""
    release: str = ""
    shown: tuple[Shown, ...] = ()
    since: Span | None = None

    @property
    def entry(self) -> str:
        """The system and its setting, as it's asked for."""
        return Entry(self.system, self.setting, self.release).name

    @property
    def name(self) -> str:
        """The name of the finding's folder."""
        return f"{self.entry}-{self.suspicion.kind.replace(' ', '-')}-{self.key[:8]}"

    @property
    def title(self) -> str:
        """One line, for a list or an issue."""
        further = " with a further size" if self.suspicion.stage == SIZES else ""
        return f"{self.entry}: {self.what}{further} for {', '.join(dict.fromkeys(self.operators))}"

    @property
    def what(self) -> str:
        """The fault, in a few words."""
        return {
            "numbers": "wrong numbers",
            "not finite": "NaN or infinity",
            "differs": "numbers that two other systems contradict",
            "shape": "wrong shape",
            "type": "wrong element type",
            "outputs": "missing outputs",
            GRADIENT: "wrong gradients",
            "chance": "other outputs in each run",
            "layout": "outputs depend on how inputs lie in memory",
            SLOWER: "slower than with optimizations off",
            THREADS: "outputs depend on the number of threads",
            "exception": f"{self.suspicion.error} ({self.suspicion.stage})",
            "crash": f"crash ({self.suspicion.error})",
            "hang": "never ends",
            "memory": "takes all memory",
        }[self.suspicion.kind]


def key_of(
    system: str, suspicion: Suspicion, operators: tuple[str, ...], cause: Cause, choices: tuple[str, ...] = ()
) -> str:
    """The key that duplicates share: of system, kind, cause (or stage), and operators (or message and place).

    Args:
        system: By which it's seen.
        suspicion: What is seen.
        operators: Of the reduced network.
        cause: Which switches it hangs on.
        choices: Of that network: what operators are told by.
    """
    what: Any = sorted(sorted(item) for item in cause.causes)
    if suspicion.kind == "exception":  # one pass may run into several, as folding constants runs kernels
        thrown = suspicion.thrown(operators)
        what = [what, thrown] if cause.causes else thrown
    elif not cause.causes:
        what = [suspicion.stage, suspicion.error, sorted({*operators, *choices})]
    elif suspicion.kind in OF_NUMBERS:
        what = [what, sorted({*operators, *choices})]  # one pass may be wrong for several reasons
    return hashlib.sha256(canonical_json([system, suspicion.kind, what]).encode()).hexdigest()


def choices(model: onnx.ModelProto) -> tuple[str, ...]:
    """Attributes that choose what operators compute: strings and booleans ("DFT.inverse"), as names.

    Which value it is isn't told: what's wrong is mostly so with several. Nor are sizes, which are as they come.

    Args:
        model: A reduced one, which has no attribute that doesn't matter.
    """
    return tuple(
        sorted(
            {
                f"{node.op_type}.{item.name}"
                for node in nodes_of(model.graph)
                for item in node.attribute
                if item.type == onnx.AttributeProto.STRING or (_is_truth(item) and not _OTHERS.search(item.name))
            }
        )
    )


def _is_truth(item: onnx.AttributeProto) -> bool:
    return item.type == onnx.AttributeProto.INT and item.i in {0, 1}
