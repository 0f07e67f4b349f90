"""What of a build can be left out, and how a person does it with TVM alone.

Single applications of passes (sort "application"); what a pass does that can't be left out ("option"); and what the
target lets LLVM or CUDA's compiler do with numbers ("arithmetic").
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from conrepair.formats.backends.base import Switch
from conrepair.formats.tvm.cuda import EXACT
from conrepair.formats.tvm.options import TvmOptions
from conrepair.formats.tvm.passes_run import MANDATORY, pass_of

_VECTORIZE, _FAST_MATH = "vectorize", "fast_math"
_SCALAR = 'tvm.transform.PassContext(opt_level=3, config={"tirx.disable_vectorize": True})'
_ARITHMETIC = ("-mcpu=", "-mattr=", "-fast-math")
_DISABLING = "tvm.transform.PassContext(opt_level=3, disabled_pass=[{name!r}])"
# Counts what no other pass calls, as `PassesRun` does.
_SKIPPING = (
    'tvm.transform.PassContext(opt_level=3, instruments=[tvm.ir.instrument.pass_instrument(type("Skip", (), dict('
    'on=[], met=[], should_run=lambda self, _, info: info.name != {name!r} or not {{"sequential", "_pipeline"}} >= '
    "set(self.on) or bool(self.met.append(0)) or len(self.met) != {number}, run_before_pass=lambda self, _, info: "
    "self.on.append(info.name), run_after_pass=lambda self, _, info: self.on.pop())))()])"
)


def switches(record: Mapping[str, Any], options: Mapping[str, Any]) -> list[Switch]:
    """What can be left out of a build, in the order in which it ran; on a GPU not all of it can be.

    Args:
        record: What its `build.json` says.
        options: That it was built with.

    Returns:
        Each with the line that leaves it out with TVM alone: the context that the model is compiled in, or the target
        that it's compiled for.
    """
    times = Counter(map(pass_of, record["applications"]))
    found = []
    for application in record["applications"]:
        name, _, count = application.partition("#")
        if name == "tirx.VectorizeLoop" and options.get(_VECTORIZE, True):
            found.append(Switch(_VECTORIZE, "option", _SCALAR))
        elif name not in MANDATORY:
            line = _DISABLING.format(name=name)
            if times[name] > 1:
                line = _SKIPPING.format(name=name, number=int(count) + 1)
            found.append(Switch(application, "application", line))
    target = json.loads(record["target"])
    for part in arithmetic(options.get("target", TvmOptions.target)):
        kept = {key: value for key, value in target.items() if key not in {"tag", "keys", part[1:].partition("=")[0]}}
        found.append(Switch(part, "arithmetic", f"tvm.target.Target({kept})"))
    if target["kind"] == "cuda" and options.get(_FAST_MATH, True):
        found.append(Switch(_FAST_MATH, "arithmetic", " ".join(f"{name}={value}" for name, value in EXACT.items())))
    return found


def without(options: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Options of a build that leaves out what `switches` named, or whole passes."""
    changed = dict(options)
    for name in names:
        if name in {_VECTORIZE, _FAST_MATH}:
            changed[name] = False
        elif name.startswith("-"):
            changed["target"] = arithmetic(changed["target"])[name]
        else:
            changed["left_out"] = [*changed.get("left_out", ()), name]
    return changed


def arithmetic(target: str) -> dict[str, str]:
    """The parts of a target by which LLVM computes otherwise than with plain instructions in plain order.

    Args:
        target: "llvm -mcpu=native -fast-math=1".

    Returns:
        By each part ("-mcpu=native") the target without it.
    """
    parts = target.split()
    return {part: " ".join(kept for kept in parts if kept != part) for part in parts if part.startswith(_ARITHMETIC)}
