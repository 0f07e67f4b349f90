"""The package's budget, whose numbers in pyproject.toml go down with the package, and never up with it."""

from __future__ import annotations

import ast
import dataclasses
import functools
import sys
import tokenize
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import conrepair
from conrepair.application.engine.session import Session
from conrepair.application.pipeline.pair import localize_pair, pair_of
from conrepair.application.verbs.options import Localize
from conrepair.ground.graph.operators import OPERATORS
from conrepair.ground.runtime.processes.executor import InProcess

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "conrepair"
ALL = [PACKAGE, *ROOT.glob("plugins/*/conrepair_*[a-z]/")]
_OF_RUNTIMES = {"conrepair_openvino", "conrepair_executorch", "conrepair_qnn", "conrepair_iree", "conrepair_tract"}
BUDGET = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["conrepair-budget"]
NETWORK = """<ir_version: 8, opset_import: ["" : 17]>
g (float[n, 4] x) => (float[n, 3] y) { h = MatMul (x, w) y = Relu (h) }"""


_NO_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}


@functools.cache
def _lines_with_code(path: Path) -> int:
    """Lines that hold more than a comment or a part of a docstring, which is a text where a block begins."""
    lines, before = set[int](), tokenize.INDENT
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type not in _NO_CODE and (token.type, before) != (tokenize.STRING, tokenize.INDENT):
                lines.update(range(token.start[0], token.end[0] + 1))
            if token.type not in _NO_CODE or token.type == tokenize.INDENT:
                before = token.type
    return len(lines)


def test_lines_with_code() -> None:
    count = sum(_lines_with_code(path) for package in ALL for path in package.rglob("*.py"))
    assert count <= BUDGET["lines-with-code"], f"{count} lines with code: remove what the change makes unnecessary"


@pytest.mark.parametrize(("part", "most"), BUDGET["lines-of-a-part"].items())
def test_lines_of_a_part(part: str, most: int) -> None:
    """A package, or a storey of the core."""
    count = sum(map(_lines_with_code, (ROOT / part).rglob("*.py")))
    assert count <= most, f"{count} lines with code in {part}/: remove what the change makes unnecessary"


def test_files_of_a_folder() -> None:
    for folder in {path.parent for package in ALL for path in package.rglob("*.py")}:
        count = sum(path.stem != "__init__" for path in folder.glob("*.py"))
        assert count <= BUDGET["files-in-a-folder"], f"{folder.relative_to(ROOT)} has {count} files"


def _strings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_operators_are_named_in_the_vocabulary() -> None:
    ours = [package for package in ALL if package.name not in _OF_RUNTIMES]  # which call them as the runtime does
    files = [path for package in ours for path in package.rglob("*.py")]
    elsewhere = [path for path in files if PACKAGE / "ground" / "operators" not in path.parents]
    count = sum(text in OPERATORS for path in elsewhere for text in _strings(path))
    assert count <= BUDGET["operator-strings"]


def _holds(value: Any, path: str) -> bool:
    """Whether a path is anywhere in a value."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return any(_holds(getattr(value, field.name, None), path) for field in dataclasses.fields(value))
    if isinstance(value, Mapping):
        return any(_holds(item, path) for pair in value.items() for item in pair)
    if isinstance(value, list | tuple | set | frozenset):
        return any(_holds(item, path) for item in value)
    return isinstance(value, str | Path) and path in str(value)


@pytest.fixture
def two_files(tmp_path: Path) -> tuple[Path, Path]:
    """A network, and the same with other weights."""
    for name, factor in (("source", 1.0), ("target", 1.1)):
        model = onnx.parser.parse_model(NETWORK)
        weights = factor * np.random.default_rng(0).normal(size=(4, 3))
        model.graph.initializer.append(numpy_helper.from_array(weights.astype(np.float32), "w"))
        onnx.save(model, tmp_path / f"{name}.onnx")
    return tmp_path / "source.onnx", tmp_path / "target.onnx"


def test_jobs_and_forms_of_two_files(two_files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """What `localize a b` takes: jobs, and types that hold the target's path."""
    path, kinds, forms = str(two_files[1]), [], set()
    start = InProcess.start

    def started(self: InProcess, lane: Any, job: Any) -> Any:
        kinds.append(job.function)
        return start(self, lane, job)

    def noted(frame: FrameType, event: str, _: Any) -> None:
        value = frame.f_locals.get("self")
        made = event == "return" and frame.f_code.co_name == "__init__" and dataclasses.is_dataclass(value)
        if made and _holds(value, path):
            forms.add(type(value).__qualname__)

    monkeypatch.setattr(InProcess, "start", started)
    sys.setprofile(noted)
    try:
        assert conrepair.localize(*two_files, in_process=True).exit_code == 1
    finally:
        sys.setprofile(None)
    assert len(kinds) <= BUDGET["jobs-of-two-files"], kinds
    assert len(forms) <= BUDGET["forms-of-a-path"], sorted(forms)


def test_calls_of_two_files(two_files: tuple[Path, Path]) -> None:
    """How far `localize a b` goes: calls of the package's functions, those into another file, and files."""

    def look() -> int:
        """As the command does where no report is written."""
        pair = pair_of(Localize.of({"source": str(two_files[0]), "target": str(two_files[1])}))
        with Session(in_process=True) as session:
            return localize_pair(pair, session).exit_code

    assert look() == 1  # imports
    calls, moves, files = 0, 0, set()

    def noted(frame: FrameType, event: str, _: Any) -> None:
        nonlocal calls, moves
        place = frame.f_code.co_filename
        if event == "call" and place.startswith(str(PACKAGE)):
            before = "" if frame.f_back is None else frame.f_back.f_code.co_filename
            calls += 1
            moves += before != place and before.startswith(str(PACKAGE))
            files.add(place)

    sys.setprofile(noted)
    try:
        look()
    finally:
        sys.setprofile(None)
    found = {"calls-of-two-files": calls, "moves-of-two-files": moves, "files-of-two-files": len(files)}
    assert {name: count for name, count in found.items() if count > BUDGET[name]} == {}
