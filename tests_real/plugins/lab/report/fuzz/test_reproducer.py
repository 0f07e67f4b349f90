"""Programs that show findings with the libraries alone: run as a stranger would run them."""

from __future__ import annotations

import ast
import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from fuzz_cases import case, compared_by_halves, padded_pool, right
from fuzz_findings import comparing, finding_of, written_finding
from hypothesis import given
from hypothesis import strategies as st

from conrepair_lab.cases.case import Case
from conrepair_lab.fuzz.finding import Finding
from conrepair_lab.fuzz.suspicion import Suspicion
from conrepair_lab.report.fuzz.reproducer import reproducer

DROPPED = """g (float x, float r) => (bool[1] y) <int64[1] s = {1}, bool t = {0}>
{ a = Erf (x) b, m = Dropout (a, r, t) y = Expand (m, s) }"""


def shown(program: Path) -> subprocess.CompletedProcess[str]:
    """Run it in isolation: nothing of this project is found."""
    return subprocess.run([sys.executable, "-I", program], capture_output=True, text=True, cwd="/", check=False)


_IN_TURN = """
import runpy, sys
for program in sys.argv[1:]:
    try:
        runpy.run_path(program, run_name="__main__")
        code = 0
    except SystemExit as ended:
        code = ended.code or 0
    print("ended:", code)
"""


def shown_in_turn(*programs: Path) -> tuple[list[int], str, str]:
    """Run them in one process, which loads a framework once: with what they end, what they print, and errors."""
    words = [sys.executable, "-I", "-c", _IN_TURN, *programs]
    found = subprocess.run(words, capture_output=True, text=True, cwd="/", check=False)
    codes = [int(line.split()[1]) for line in found.stdout.splitlines() if line.startswith("ended: ")]
    return codes, found.stdout, found.stderr


def program_of(finding: Finding, made: Case, folder: Path, answer: Any = None) -> Path:
    return written_finding(finding, made, folder, answer) / "reproduce.py"


def test_wrong_numbers_are_shown(tmp_path: Path) -> None:
    finding = comparing(tmp_path)
    found = shown(program_of(finding, compared_by_halves(), tmp_path))
    assert (found.returncode, found.stderr) == (1, "")
    assert f"y[{finding.suspicion.index}] is" in found.stdout
    assert f"right is {finding.suspicion.exact!r}, with a rounding error of at most" in found.stdout


@pytest.mark.parametrize("exact", [float("nan"), float("inf"), float("-inf")])
def test_a_right_value_that_is_not_finite_is_compared(exact: float, tmp_path: Path) -> None:
    """What is right may be NaN or infinite: a finite number is wrong then, and the same value is right."""
    made = case("g (float[1] x) => (float[1] y) { y = Identity (x) }", x=np.float32([1.5]))
    for value, code in ((1.5, 1), (exact, 0)):
        given = Case.of(made.model, {"x": np.float32([value])})
        wrong = Suspicion("numbers", "answers", "", "y is off", "", "y", (0,), 1.5, exact, float("inf"), 2.0)
        wrong = dataclasses.replace(wrong, allowed=1e-7)
        found = shown(
            program_of(finding_of(given, "ort-none", tmp_path / str(code), suspicion=wrong), given, tmp_path)
        )
        assert (found.returncode, found.stderr) == (code, "")
        assert f"right is {exact!r}" in found.stdout


_VALUES: dict[str, tuple[str, Any, Any]] = {
    "NaN": ("float", np.float32([np.nan]), 1.5),
    "infinity": ("float", np.float32([-np.inf]), 1.5),
    "-0": ("float", np.float32([-0.0]), 1.5),
    "bool": ("bool", np.array([True]), False),
    "half": ("float16", np.float16([1.5]), 2.5),
    "bfloat16": ("bfloat16", np.array([1.5], ml_dtypes.bfloat16), 2.5),
    "float8": ("float8e4m3fn", np.array([1.5], ml_dtypes.float8_e4m3fn), 2.5),
    "64 bits": ("uint64", np.array([2**64 - 1], np.uint64), 2**64 - 2),
    "string": ("string", np.array(["a'\\\"\n\u00fc"], np.str_), "b"),
}


@pytest.mark.parametrize("name", [*_VALUES, "int4"])
def test_every_kind_of_value_is_fed_and_compared(name: str, tmp_path: Path) -> None:
    kind, fed, wrong = _VALUES.get(name, ("int4", np.array([-3], ml_dtypes.int4), 2.0))
    text = f"g ({kind}[1] x) => ({kind}[1] y) {{ y = Identity (x) }}"
    if name == "int4":  # of which ONNX Runtime has few kernels
        text = "g (int4[1] x) => (float[1] y) { y = Cast <to = 1> (x) }"
    model = onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 21]> ' + text)
    made = Case.of(model, {"x": fed})
    value = str(fed[0]) if kind == "string" else fed[0].item()
    for exact, code in ((wrong, 1), (value, 0)):
        allowed = None if kind == "string" else 1e-7
        said = Suspicion("numbers", "answers", "", "y is off", "", "y", (0,), wrong, exact, allowed, 2.0)
        found = shown(program_of(finding_of(made, "ort-none", tmp_path / str(code), suspicion=said), made, tmp_path))
        assert (found.returncode, found.stderr) == (code, ""), found.stdout


def test_another_exception_than_the_findings_is_told_apart(tmp_path: Path) -> None:
    made = case("g (float[1] x) => (float[1] y) <int64[1] i = {7}> { y = Gather (x, i) }", x=np.ones(1, np.float32))
    codes = []
    for error in ("InvalidArgument", "ImportError"):
        said = Suspicion("exception", "run", error, "out of bounds")
        (folder := tmp_path / error).mkdir()
        codes.append(shown(program_of(comparing(folder, suspicion=said), made, folder)).returncode)
    assert codes == [1, 2]


def test_an_optimizations_numbers_are_shown(tmp_path: Path) -> None:
    found = shown(program_of(finding_of(padded_pool(), "ort-all", tmp_path), padded_pool(), tmp_path))
    assert (found.returncode, found.stderr) == (1, "")


def test_a_program_ends_with_0_where_the_value_is_as_it_should_be(tmp_path: Path) -> None:
    there = comparing(tmp_path).suspicion
    mended = comparing(tmp_path, suspicion=dataclasses.replace(there, exact=there.given))
    found = shown(program_of(mended, compared_by_halves(), tmp_path))
    assert (found.returncode, found.stderr) == (0, "")


def test_a_shape_is_compared_with_the_standards(tmp_path: Path) -> None:
    finding = comparing(tmp_path, suspicion=Suspicion("shape", "answers", "", "y has another shape", "", "y"))
    programs = []
    for shape in ((2, 1), (2,)):
        (folder := tmp_path / str(shape)).mkdir()
        programs.append(program_of(finding, compared_by_halves(), folder, np.zeros(shape, np.int64)))
    codes, printed, errors = shown_in_turn(*programs)
    assert (codes, errors) == ([1, 0], "")
    assert printed.count("expected") == 2


def test_an_optimizers_exception_is_shown(tmp_path: Path) -> None:
    made = case(DROPPED, x=np.float32(0.5), r=np.float32(0.5))
    found = shown(program_of(finding_of(made, "convert-onnxslim", tmp_path), made, tmp_path))
    assert (found.returncode, found.stderr) == (1, "")
    assert "InvalidArgument" in found.stdout


def test_no_exception_ends_with_0(tmp_path: Path) -> None:
    thrown = Suspicion("exception", "load", "Fail", "no such thing")
    found = shown(program_of(finding_of(right(), "ort-all", tmp_path, suspicion=thrown), right(), tmp_path))
    assert (found.returncode, found.stdout.strip()) == (0, "no exception")


def test_a_crash_ends_the_program(tmp_path: Path) -> None:
    least = np.array(np.iinfo(np.int32).min, np.int32)
    made = case("g (int32 x, int32 z) => (int32 y) { y = Div (x, z) }", x=least, z=np.array(-1, np.int32))
    crash = Suspicion("crash", "process", "SIGFPE", "the process ends by SIGFPE")
    finding = finding_of(made, "ort-none", tmp_path, suspicion=crash)
    program = program_of(finding, made, tmp_path, np.zeros((), np.int32))
    assert shown(program).returncode < 0


def test_outputs_that_are_there_end_with_0_and_others_with_1(tmp_path: Path) -> None:
    made = case("g (float[1] x) => (float[1] y, float[1] z) { y = Relu (x) z = Neg (x) }", x=np.ones(1, np.float32))
    said = Suspicion("outputs", "answers", message="there is no output z")
    finding = finding_of(made, "ort-none", tmp_path, suspicion=said)
    path = tmp_path / "reproduce.py"
    for network, code in ((right(np.ones(1)), 1), (made, 0)):
        path.write_text(reproducer(finding, made, Path(network.file(tmp_path).path), None))
        assert shown(path).returncode == code


ARRAYS = [
    np.array([[True, False]]),
    np.array([np.nan, np.inf, -np.inf, -0.0], np.float32),
    np.array([0.1, 1e-8], np.float16),
    np.array([2**64 - 1], np.uint64),
    np.array(-(2**63), np.int64),
    np.zeros((0, 3), np.float64),
    np.arange(1200, dtype=np.float32),
    np.array(["a'b", '"""']),
]
KINDS = {"bool": "bool", "float32": "float", "float16": "float16", "uint64": "uint64", "int64": "int64",
         "float64": "double"}  # fmt: skip


def test_inputs_are_fed_bit_by_bit(tmp_path: Path) -> None:
    programs = []
    for number, array in enumerate(ARRAYS):
        kind = KINDS.get(array.dtype.name, "string")
        sizes = f"[{', '.join(map(str, array.shape))}]" if array.ndim else ""
        made = case(f"g ({kind}{sizes} x) => ({kind}{sizes} y) {{ y = Identity (x) }}", x=array)
        thrown = Suspicion("exception", "run", "Fail", "boom", "", "y")
        (folder := tmp_path / str(number)).mkdir()
        programs.append(program_of(finding_of(made, "ort-none", folder, suspicion=thrown), made, folder, array))
    codes, printed, errors = shown_in_turn(*programs)
    assert codes == [0] * len(ARRAYS), errors
    assert printed.splitlines() == ["no exception", "ended: 0"] * len(ARRAYS)


HALVES = case(
    "g (bfloat16[2] x) => (bfloat16[2] y, float[2] z) { y = Identity (x) z = Cast <to = 1> (x) }",
    x=np.array([1.5, -2.0], ml_dtypes.bfloat16),
)


@pytest.mark.parametrize(
    ("name", "exact", "code"),
    [
        ("ort-none", -2.0, 0),
        ("ort-all", -3.0, 1),
        ("tensorflow-eager", -3.0, 1),
        ("convert-onnxslim", -2.0, 0),
        ("convert-import", -3.0, 1),
    ],
)
def test_bfloat16_is_fed_and_read_bit_by_bit(name: str, exact: float, code: int, tmp_path: Path) -> None:
    said = Suspicion("numbers", "answers", "", "y is wrong", "", "y", (1,), -2.0, exact, 0.25)
    program = program_of(finding_of(HALVES, name, tmp_path, suspicion=said), HALVES, tmp_path)
    isolated = () if name == "convert-import" else ("-I",)  # the importer is of this project
    found = subprocess.run([sys.executable, *isolated, program], capture_output=True, text=True, cwd="/", check=False)
    assert found.returncode == code, found.stderr
    assert "first values: [1.5, -2.0]" in found.stdout
    assert "ml_dtypes" not in program.read_text()


@pytest.mark.parametrize(
    ("name", "answer", "code"), [("torch-eager", HALVES.inputs["x"], 0), ("tvm-O2", np.zeros(2, np.float16), 1)]
)
def test_bfloat16_is_read_bit_by_bit_and_told_from_other_types(
    name: str, answer: Any, code: int, tmp_path: Path
) -> None:
    numbers = Suspicion("numbers", "answers", "", "y is wrong", "", "y", (1,), -2.0, -3.0, 0.25)
    type_ = Suspicion("type", "answers", "", "y is of another type", "", "y")
    programs = []
    for said, reply in ((numbers, None), (type_, answer)):
        (folder := tmp_path / said.kind).mkdir()
        programs.append(program_of(finding_of(HALVES, name, folder, suspicion=said), HALVES, folder, reply))
    codes, printed, errors = shown_in_turn(*programs)
    assert codes == [1, code], errors
    assert "first values: [1.5, -2.0]" in printed
    assert all("ml_dtypes" not in program.read_text() for program in programs)


def test_names_of_any_kind(tmp_path: Path) -> None:
    programs = []
    for number, name in enumerate(["x", "an input/with 'odd' \"letters\" \\ 1", "ä"]):
        model = right().model
        for node in model.graph.node:
            for names in (node.input, node.output):
                names[:] = [{"x": name, "y": f"{name}2"}.get(item, item) for item in names]
        model.graph.input[0].name, model.graph.output[0].name = name, f"{name}2"
        made = Case.of(model, {name: right().inputs["x"]})
        said = Suspicion("numbers", "answers", "", "it's wrong", "", f"{name}2", (0,), 1.0, 7.0, 0.1, 60.0)
        (folder := tmp_path / str(number)).mkdir()
        programs.append(program_of(finding_of(made, "ort-none", folder, suspicion=said), made, folder))
    codes, _, errors = shown_in_turn(*programs)
    assert (codes, errors) == ([1] * 3, "")


@given(st.text(max_size=60))
def test_a_librarys_words_end_no_string(words: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(right().network)
        thrown = Suspicion("exception", "load", "Fail", words)
        finding = finding_of(right(), "ort-all", Path(folder), suspicion=thrown)
        tree = ast.parse(reproducer(finding, right(), path, None))
        called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and hasattr(node.func, "id")}
    assert called <= {"run", "print", "dict", "zip", "type", "open", "list", "float", "int", "getattr"}


def test_nothing_is_imported_that_is_not_used(tmp_path: Path) -> None:
    text = program_of(comparing(tmp_path), compared_by_halves(), tmp_path).read_text(encoding="utf-8")
    assert "import zipfile" not in text
    assert "import io\n" not in text
    assert "import onnx\n" not in text
    assert "conrepair" not in text.replace('producer_name: "conrepair"', "")


def test_a_folder_that_a_program_begins_with_is_packed(tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    (saved / "variables").mkdir(parents=True)
    (saved / "variables" / "weights").write_bytes(b"\0\1")
    (saved / "saved_model.pb").write_bytes(b"graph")
    thrown = Suspicion("exception", "run", "Fail", "boom")
    finding = finding_of(right(), "tensorflow-eager", tmp_path, suspicion=thrown)
    text = reproducer(finding, right(), saved, None)
    before = text.partition("numpy.savez(")[0]  # what it does before it runs anything
    path = tmp_path / "unpack.py"
    path.write_text(f"{before}\nprint(os.getcwd())\n", encoding="utf-8")
    found = shown(path)
    assert (found.returncode, found.stderr) == (0, "")
    unpacked = Path(found.stdout.strip()) / "saved_model"
    assert (unpacked / "variables" / "weights").read_bytes() == b"\0\1"
    assert (unpacked / "saved_model.pb").read_bytes() == b"graph"
