"""What commands must not import before they need it: each of these takes a tenth of a second or more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

_SLOW = ("keras", "onnx", "onnx_ir", "onnxruntime", "scipy", "sympy", "tensorflow", "torch")
_NET = '<ir_version: 8, opset_import: ["" : 17]> g (float[n, 4] x) => (float[n, 4] y) { y = Relu (x) }'


@pytest.mark.parametrize(
    "module",
    [
        "conrepair.application.cli.commands.audit",
        "conrepair.application.cli.commands.inspect",
        "conrepair.application.cli.commands.localize",
        "conrepair.application.cli.commands.repair",
        "conrepair.application.report.result",
    ],
)
def test_the_process_that_hands_out_jobs_imports_nothing_that_does_them(module: str) -> None:
    code = f"import sys, {module}; print(*sorted({{*{_SLOW!r}}} & {{*sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_a_file_of_onnx_is_inspected_with_onnx_alone(tmp_path: Path) -> None:
    onnx.save(onnx.parser.parse_model(_NET), tmp_path / "net.onnx")
    code = (
        "import sys; from conrepair.application.cli import main; main(sys.argv[1:]); sys.exit(' '.join(sys.modules))"
    )
    words = [sys.executable, "-c", code, "inspect", "net.onnx"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert "Relu 1" in done.stdout
    imported = set(done.stderr.splitlines()[-1].split())
    assert "onnx" in imported
    assert not imported & {*_SLOW[2:], "conrepair.application.config.model", "conrepair.application.pipeline.run"}


_LIBRARIES = {"ml_dtypes", "numpy", "platformdirs", "pydantic", "rich"}
_ROOMS = {
    *("cli", "verbs", "intake", "pipeline", "engine", "report", "runtime", "data", "models", "graph", "metrics"),
    *("evaluate", "judging", "truth", "operators", "localization", "repairs", "backends", "converters", "zoo"),
    *("onnx", "torch", "tvm"),  # what is read of files without a library, and options
    "jobs",  # what they're asked for, and what they return
}
_LEFT = {
    "conrepair.application.jobs.execution",
    "conrepair.formats.converters.all_converters",
    "conrepair.diagnosis.repairs.patch",
    "conrepair.formats.tvm.build",
    "unittest",
}


@pytest.mark.parametrize(
    ("program", "libraries", "rooms"),
    [
        (
            "import conrepair.api",
            set(),
            {"engine", "evaluate", "intake", "models", "runtime", "verbs"},
        ),
        ("from conrepair.application.cli import main; main(['compare', 'net.onnx', 'net.onnx'])", _LIBRARIES, _ROOMS),
        (
            "import conrepair.application.cli.commands.audit, conrepair.application.pipeline.audit; "
            "import conrepair.application.pipeline.stages.looked",
            _LIBRARIES | {"conrepair_crowd", "conrepair_lab"},  # whose parts of a configuration these are
            {*_ROOMS, "config", "networks"},
        ),
    ],
)
def test_what_a_verb_may_load_where_it_hands_out_jobs(
    program: str, libraries: set[str], rooms: set[str], tmp_path: Path
) -> None:
    """Libraries that it shows and hashes with; of our own, no editor, no importer, nothing that runs a model."""
    onnx.save(onnx.parser.parse_model(_NET), tmp_path / "net.onnx")
    code = f"import sys; before = {{*sys.modules}}; {program}; sys.exit(' '.join({{*sys.modules}} - before))"
    words, variables = [sys.executable, "-c", code], os.environ | {"CONREPAIR_CACHE": ""}
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path, env=variables)
    loaded = set(done.stderr.splitlines()[-1].split())
    assert {name.split(".")[2] for name in loaded if name.startswith("conrepair.") and name.count(".") > 1} <= rooms
    assert not loaded & {*_LEFT, *_SLOW} - libraries
    others = {name.partition(".")[0] for name in loaded} - {"conrepair", *sys.stdlib_module_names}
    small = {"annotated_types", "pydantic_core", "typing_extensions", "typing_inspection"}
    assert {name for name in others if not name.startswith("_")} <= libraries | small


def test_the_package_itself_imports_next_to_nothing() -> None:
    code = "import sys; before = {*sys.modules}; import conrepair; print(len({*sys.modules} - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 10


def test_a_worker_loads_sympy_only_where_sizes_are_computed() -> None:
    code = (
        "import sys; from conrepair.ground.runtime.processes.worker_process import prepare_libraries; "
        "prepare_libraries(); import onnx_ir; print('mpmath' in sys.modules); "
        "print(onnx_ir.SymbolicDim('n') + 1, onnx_ir.SymbolicDim('max(2, 3)').evaluate({}), 'mpmath' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["False", "n + 1 3 True"]


def test_a_job_that_measures_rounding_names_no_faults() -> None:
    code = "import sys, conrepair.application.jobs.localization; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "conrepair.verdicts.judging.measured" in loaded
    assert not loaded & {"conrepair.diagnosis.localization.localize", "conrepair.formats.editing.open_editor", "PIL"}
