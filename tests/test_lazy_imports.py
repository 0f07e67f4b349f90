"""What commands must not import before they need it: each of these takes a tenth of a second or more."""

from __future__ import annotations

import subprocess
import sys

import pytest

_SLOW = ("keras", "onnx", "onnx_ir", "onnxruntime", "scipy", "sympy", "tensorflow", "torch")


@pytest.mark.parametrize(
    "module",
    [
        "conrepair.pipeline.commands",
        "conrepair.pipeline.inspect_command",
        "conrepair.pipeline.localize_command",
        "conrepair.pipeline.repair_command",
        "conrepair.report.result",
    ],
)
def test_the_process_that_hands_out_jobs_imports_nothing_that_does_them(module: str) -> None:
    code = f"import sys, {module}; print(*sorted({{*{_SLOW!r}}} & {{*sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_the_package_itself_imports_next_to_nothing() -> None:
    code = "import sys; before = {*sys.modules}; import conrepair; print(len({*sys.modules} - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 10
