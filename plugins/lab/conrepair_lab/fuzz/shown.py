"""Run a finding's program as a stranger does: in a process of its own, with the libraries that it needs alone."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import re
import signal
import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from conrepair.ground.runtime.libraries import EXTRAS
from conrepair.ground.runtime.outside.environments import Environment, normalized
from conrepair.ground.runtime.outside.scripts import interpreter
from conrepair_lab.fuzz.suspicion import Suspicion

THERE, GONE, FAILS = "there", "gone", "fails"

_ALONE = """
import runpy, sys
program = sys.argv.pop(1)
sys.modules.update(dict.fromkeys(sys.argv[1:]))
runpy.run_path(program, run_name="__main__")
"""
_FRAMEWORKS = {"torch", "tensorflow", "keras", "tflite", "tvm", "simplify", "lab"}  # other extras are small helpers
_LIBRARIES = {
    module: package for extra in EXTRAS if extra.name in _FRAMEWORKS for module, package in extra.libraries.items()
}
_LIBRARIES |= {"onnx": "onnx", "onnxruntime": "onnxruntime", "conrepair": "conrepair"}
_FOLDERS = re.compile(r"(?<![\w.])(?:/[\w.+-]+)+/")  # of this machine
_NAME = re.compile(r"[\w.-]+")
_LONGEST = 600


@dataclass(frozen=True)
class Shown:
    """What a finding's program did.

    Attributes:
        release: Of the library at fault, where another one than the finding's was put in its place.
        verdict: "there", "gone", or "fails": the program says neither.
        ended: How it ended.
        printed: Its last words.
    """

    release: str
    verdict: str
    ended: str
    printed: str

    @property
    def words(self) -> str:
        """In a line."""
        by = f"with {self.release}" if self.release else "with the libraries that it needs, and no others"
        return f"{by}: {self.verdict} ({self.ended})"


def shown(
    program: Path,
    suspicion: Suspicion,
    needs: Collection[str],
    *,
    seconds: float,
    within: Environment | None = None,
    release: str = "",
) -> Shown | None:
    """Run a program.

    Args:
        program: The file; its folder gets what it writes.
        suspicion: What it's to show.
        needs: Distributions that it may import, with what these require; other ones that we know aren't found.
        seconds: It may take.
        within: Whose Python runs it, with all that's there; None: our own.
        release: As of `Shown`.

    Returns:
        None where it would take all of the machine's memory.
    """
    if suspicion.kind == "memory":
        return None
    kept = _required(frozenset(needs))
    others = () if within or "conrepair" in needs else _LIBRARIES.items()  # conrepair imports all that there is
    hidden = [module for module, package in others if package not in kept]
    try:
        with interpreter(within) as python:
            done = subprocess.run(
                [str(python.python), *python.flags, "-c", _ALONE, str(program), *hidden],
                cwd=program.parent,
                env={**os.environ, **python.variables, "TMPDIR": str(program.parent)},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=seconds,
                pass_fds=python.locks,
                check=False,
            )
    except subprocess.TimeoutExpired:
        return Shown(release, THERE if suspicion.kind == "hang" else FAILS, f"not within {seconds:g} s", "")
    code, errors = done.returncode, done.stderr.decode(errors="replace")
    shows = code < 0 if suspicion.kind == "crash" else code == 1 and "Traceback (most" not in errors
    ended = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    said = _FOLDERS.sub("", done.stdout.decode(errors="replace") if shows or not code else errors)
    return Shown(release, THERE if shows else FAILS if code else GONE, ended, said.strip()[-_LONGEST:])


@functools.cache
def _required(names: frozenset[str]) -> frozenset[str]:
    """Distributions, and what they require."""
    left, found = list(names), set[str]()
    while left:
        name = normalized(left.pop())
        if name not in found:
            found.add(name)
            try:
                asked = importlib.metadata.requires(name) or ()
            except importlib.metadata.PackageNotFoundError:
                continue
            left += [match[0] for line in asked if "extra ==" not in line and (match := _NAME.match(line))]
    return frozenset(found)
