"""NNSmith, in a Python of its own that has it: asked for networks by lines of JSON."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

__all__ = ["NNSmith"]

_SIDE = Path(__file__).with_name("nnsmith_side.py")
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


class NNSmith:
    """A process that makes NNSmith's networks.

    Args:
        python: Of an environment with nnsmith, torch, onnx, onnxruntime and onnxscript.

    Attributes:
        about: Versions of its libraries, and how many operators it can export.
    """

    def __init__(self, python: Path) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="nnsmith-")
        self._process = subprocess.Popen(
            [str(python), "-P", str(_SIDE), self._folder.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | _ONE_THREAD,
        )
        self.about: dict[str, Any] = self._answer()

    def __enter__(self) -> NNSmith:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()

    def made(
        self,
        nodes: int,
        seeds: Sequence[int],
        *,
        vulnerable: bool = False,
        folder: Path | None = None,
        run: bool = False,
    ) -> list[dict[str, Any]]:
        """Make networks.

        Args:
            nodes: Operators of each.
            seeds: One for each network.
            vulnerable: Whether operators of a limited domain may be in them, too.
            folder: Receives them as ONNX, and the inputs that NNSmith found for them, by their seeds.
            run: Whether they're exported, and run at two levels of ONNX Runtime.

        Returns:
            For each, "failed" (why there's none), or "seconds" (of a processor, values included), "finite" (whether
            its outputs are), "ran" (whether both levels ran, with the same result), and the "whole" of it in seconds.
        """
        asked = {
            "nodes": nodes,
            "seeds": list(seeds),
            "vulnerable": vulnerable,
            "folder": None if folder is None else str(folder),
            "run": run,
        }
        assert self._process.stdin is not None
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        found: list[dict[str, Any]] = self._answer()
        return found

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"NNSmith's process ended with {self._process.wait()}: does that Python have it?")
        return json.loads(line)
