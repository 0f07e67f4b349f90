"""A program that shows a finding with the library at fault alone."""

from __future__ import annotations

import base64
import io
import math
import textwrap
import zipfile
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from conrepair.formats.onnx.load.border import is_plain_border
from conrepair.formats.onnx.load.file import nodes_of
from conrepair.formats.onnx.load.proto_file import read_proto
from conrepair.ground.data.stored_values import fileable
from conrepair_lab.cases.case import Array, Case
from conrepair_lab.cases.sizes import SIZES, resized
from conrepair_lab.fuzz.finding import Finding
from conrepair_lab.fuzz.suspicion import OF_NUMBERS, SLOWER, THREADS
from conrepair_lab.fuzz.trial import OTHER_THREADS, RUNS, with_options
from conrepair_lab.systems.registry import SYSTEMS
from conrepair_lab.systems.system import Program

_WIDTH = 100
_MOST = 1000  # elements that are written as numbers
_MOST_LINES = 40  # of a network's text that is there for reading
_IMPORTED = {"onnx": "import onnx\n", "conrepair": "from conrepair"}
_HEAD = '''\
"""{title}

{about}

Exit code 1: the fault is still there. 0: it's gone. 2: something else fails. Needs: {needs}.
"""

import base64
import io
import os
import sys
import tempfile
import zipfile

import numpy

{model}
{inputs}

os.chdir(tempfile.mkdtemp())
{place}
numpy.savez("inputs.npz", **INPUTS)
'''
_WIDENED = """

def widened(array):
    if array.dtype == "V2":  # NumPy has no bfloat16
        return (array.view("<u2").astype("<u4") << 16).view("<f4")
    return array


"""
_ANSWERS = """
with numpy.load("outputs.npz", allow_pickle=True) as outputs:
    given = {{name: {read} for name in outputs.files}}
name, index, exact, allowed = {name!r}, {index!r}, {exact}, {allowed}
there = given[name] if name in given else list(given.values())[{place}]
value = numpy.asarray(there[index]).item()
print(f"{{name}}[{{index}}] is {{value!r}}; right is {{exact!r}}, with a rounding error of at most {{allowed!r}}")
print("first values:", there.ravel()[:20].tolist())
same = value == exact or (value != value and exact != exact)  # NaN isn't equal to itself
sys.exit(int(not (same or (allowed is not None and abs(value - exact) <= allowed))))
"""
_FACES = """
with numpy.load("outputs.npz", allow_pickle=True) as outputs:
    given = {{name: outputs[name] for name in outputs.files}}
there = given[{name!r}] if {name!r} in given else list(given.values())[{place}]
print("found:", {found}, "expected:", {face})
sys.exit(int({found} != {face}))
"""
_OUTPUTS = """
with numpy.load("outputs.npz", allow_pickle=True) as outputs:
    missing = sorted(set({names!r}) - set(outputs.files))
print("missing:", missing)
sys.exit(int(bool(missing)))
"""
_TWICE = """
answers = []
for _ in range(2):
    run()
    with numpy.load("outputs.npz", allow_pickle=True) as outputs:
        answers.append({name: outputs[name] for name in outputs.files})
changed = [name for name, array in answers[0].items() if array.tobytes() != answers[1][name].tobytes()]
print("outputs that differ between two runs:", changed)
sys.exit(int(bool(changed)))
"""
_THREADS = """
answers = []
for each in (run, run_otherwise):
    each()
    with numpy.load("outputs.npz", allow_pickle=True) as outputs:
        answers.append({{name: {read} for name in outputs.files}})
name, index, allowed = {name!r}, {index!r}, {allowed}
one, two = (found[name] if name in found else list(found.values())[{place}] for found in answers)
if allowed is None or one.shape != two.shape:
    print(f"{{name}} is {{one.ravel()[:20]}}, and {{two.ravel()[:20]}} with {other} threads")
    sys.exit(int(one.shape != two.shape or one.tobytes() != two.tobytes()))
values = one[index].item(), two[index].item()
print(f"{{name}}[{{index}}] is {{values[0]!r}}, and {{values[1]!r}} with {other} threads")
print(f"rounding error: at most {{allowed!r}}")
sys.exit(int(not abs(values[0] - values[1]) <= allowed))
"""
_SLOWER = """
took = [[], []]
runs = [loaded(), plain()]
for _ in range({runs} + 1):
    for seconds, run in zip(took, runs):
        begun = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begun)
mine, other = (statistics.median(seconds[1:]) for seconds in took)
print(f"a run takes {{mine:.3g}} s, and {{other:.3g}} s with optimizations off, reading and writing files included")
sys.exit(int(mine - other > {least!r}))
"""
_ENDS = """
try:
    {run}()
except Exception as error:
    print(f"{{type(error).__name__}}: {{error}}")
    names = []
    while error is not None:
        names += [type(error).__name__, getattr(error, "error", "")]
        error = error.__cause__ or error.__context__
    sys.exit(1 if {error!r} in names else 2)
print("no exception")
sys.exit(0)
"""


def model_text(model: onnx.ModelProto) -> str:
    """A network as ONNX's own text, for reading; "" where there's none of it.

    Args:
        model: Which.
    """
    try:
        return str(onnx.printer.to_text(model)).strip()
    except Exception:  # noqa: BLE001 (the printer raises types of its own for what it doesn't know)
        return ""


def _read_back(text: str, model: onnx.ModelProto) -> bool:
    """Whether ONNX's parser makes the same network of a text: digits may be lost in it."""
    try:
        return bool(_plain(onnx.parser.parse_model(text)) == _plain(model))
    except Exception:  # noqa: BLE001 (the parser raises types of its own)
        return False


def _plain(model: onnx.ModelProto) -> onnx.GraphProto:
    """The graph with weights and domains said in one way."""
    graph = model.graph
    for node in nodes_of(graph):
        if not node.domain:
            node.ClearField("domain")
    for item in graph.initializer:
        item.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(item), item.name))
    return graph


def needed(finding: Finding, text: str) -> dict[str, str]:
    """Distributions that a program imports, with their versions: those at fault, and what it's written with.

    Args:
        finding: What it shows.
        text: Of the program.
    """
    more = [name for name, said in _IMPORTED.items() if said in text]
    return {**finding.blamed, **{name: finding.versions.get(name, "") for name in more if name not in finding.blamed}}


def reproducer(finding: Finding, case: Case, programmed: Path, right: Array | None) -> str:
    """Write the program.

    Args:
        finding: What it shows.
        case: Its case.
        programmed: What the system's programs begin with: a file or a folder.
        right: The output as the standard has it; None where none is wrong.
    """
    system = SYSTEMS[finding.system]
    setting = with_options(system, system.settings[finding.setting], case)
    suspicion = finding.suspicion
    trains = suspicion.of_gradients
    own = system.training_program(setting) if trains else system.program(setting)
    program = own.text
    model, place = _placed(programmed, system.file, parsed=_IMPORTED["onnx"] in program)
    head = _HEAD.format(
        title=finding.title,
        about=textwrap.fill(_harmless(f"{suspicion.message} ({finding.judges})"), _WIDTH),
        needs=", ".join(f"{name} {version}".strip() for name, version in needed(finding, program).items()),
        model=model,
        inputs=_inputs(case),
        place=place,
    )
    if suspicion.stage == SIZES and (further := resized(case)) is not None:
        head += f"\n{_inputs(further, 'FURTHER')}\n"
        program = f'{own.text}numpy.savez("inputs.npz", **FURTHER)\n{own.run}'
    outputs = [item.name for item in case.model.graph.output]
    where = outputs.index(suspicion.output) if suspicion.output in outputs else 0
    read = "outputs[name]"
    if not is_plain_border(case.model):
        head, read = head + _WIDENED, f"widened({read})"
    numbers = {key: _literal(getattr(suspicion, key)) for key in ("exact", "allowed")}
    known = (
        vars(suspicion) | numbers | {"name": suspicion.output, "place": where, "read": read, "other": OTHER_THREADS}
    )
    if suspicion.kind in OF_NUMBERS:
        return _tidy(head + program + _ANSWERS.format_map(known))
    if trains:
        right = case.inputs.get(suspicion.output)  # a gradient looks like what it's of
    if suspicion.kind in {"shape", "type"} and right is not None:
        found, face = "list(there.shape)", repr(list(right.shape))
        if suspicion.kind == "type":
            found, face = "there.dtype.name", repr(np.dtype(right.dtype.str).name)  # as NumPy's files have it
        return _tidy(head + program + _FACES.format_map(known | {"found": found, "face": face}))
    if suspicion.kind == SLOWER and suspicion.numbers is not None:
        plain = with_options(system, system.settings[system.plain], case)
        parts = _function("loaded", own) + _function("plain", system.program(plain))
        tail = _SLOWER.format(runs=RUNS, least=(suspicion.numbers[0] - suspicion.numbers[1]) / 2)
        return _tidy(f"{head}\nimport statistics\nimport time\n{parts}\n{tail}")
    if suspicion.kind in {"crash", "hang", "memory"}:
        return _tidy(head + program + '\nprint("it ended")\n')
    if suspicion.kind == "outputs":
        return _tidy(head + program + _OUTPUTS.format(names=outputs))
    indented = textwrap.indent(program, "    ")
    run = "run"
    if suspicion.stage == THREADS:
        run = "run_otherwise"
        other = system.program(setting.with_options({**setting.options, "threads": OTHER_THREADS})).text
        indented += f"\n\ndef run_otherwise():\n{textwrap.indent(other, '    ')}"
    tail = _TWICE if suspicion.kind in {"chance", "layout"} else _ENDS.format(run=run, error=suspicion.error)
    if suspicion.kind == THREADS:
        tail = _THREADS.format_map(known)
    return _tidy(f"{head}\n\ndef run():\n{indented}\n{tail}")


def _literal(number: float | str | None) -> str:
    """As a program has it: NaN and infinity have no literal."""
    finite = not isinstance(number, float) or math.isfinite(number)
    return repr(number) if finite else f'float("{number}")'


def _function(name: str, program: Program) -> str:
    """What loads a model, and gives what runs it."""
    run = f"def run():\n{textwrap.indent(program.run, '    ')}\nreturn run\n"
    return f"\n\ndef {name}():\n{textwrap.indent(program.load + run, '    ')}"


def _harmless(text: str) -> str:
    """Words of a library that end no string."""
    shown = "".join(letter if letter.isprintable() else " " for letter in text)
    return shown.replace("\\", "/").replace('"', "'")


def _placed(programmed: Path, file: str, *, parsed: bool) -> tuple[str, str]:
    """The model as Python, and what writes it: ONNX's text where the program has ONNX, and else for reading alone."""
    model = read_proto(programmed) if file == "model.onnx" else onnx.ModelProto()
    text = model_text(model)
    if model.graph.node and text and parsed and _read_back(text, model):
        quoted = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
        return (
            f'MODEL = """\n{quoted}\n"""',
            'import onnx\n\nonnx.save(onnx.parser.parse_model(MODEL), "model.onnx")',
        )
    if programmed.is_dir():
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(programmed.rglob("*")):
                if path.is_file():
                    archive.write(path, path.relative_to(programmed).as_posix())
        return _bytes(packed.getvalue()), (
            f'zipfile.ZipFile(io.BytesIO(base64.b64decode(MODEL))).extractall("{file}")'
        )
    comment = textwrap.indent(text + "\n", "# ", lambda _: True) if text and text.count("\n") < _MOST_LINES else ""
    return comment + _bytes(programmed.read_bytes()), (
        f'with open("{file}", "wb") as stream:\n    stream.write(base64.b64decode(MODEL))'
    )


def _bytes(content: bytes) -> str:
    lines = textwrap.wrap(base64.b64encode(content).decode(), _WIDTH)
    return 'MODEL = """\n' + "\n".join(lines) + '\n"""'


def _inputs(case: Case, called: str = "INPUTS") -> str:
    lines = []
    for name, array in ((name, fileable(array)) for name, array in case.inputs.items()):
        if array.dtype.kind in "biuf" and array.size <= _MOST and array.dtype.isbuiltin == 1:
            values = repr(array.tolist()).replace("nan", 'float("nan")').replace("inf", 'float("inf")')
            lines.append(f"    {name!r}: numpy.array({values}, {array.dtype.name!r}).reshape({array.shape}),")
            continue
        stream = io.BytesIO()
        np.save(stream, array)
        text = base64.b64encode(stream.getvalue()).decode()
        lines.append(f"    {name!r}: numpy.load(io.BytesIO(base64.b64decode({text!r}))),")
    return f"{called} = {{\n" + "\n".join(lines) + "\n}"


def _tidy(text: str) -> str:
    """Without imports that it doesn't use."""
    for name in ("base64", "io", "zipfile"):
        line = f"import {name}\n"
        if f"{name}." not in text.replace(line, ""):
            text = text.replace(line, "")
    return text
