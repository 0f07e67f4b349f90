"""Which code a job's result depends on: what its function imports, and what that imports."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import conrepair
from conrepair.application.engine.fingerprint import code_fingerprint, job_code
from conrepair.application.engine.job_table import JOBS

PACKAGE = Path(conrepair.__file__).parent


@pytest.mark.parametrize(
    ("kind", "reached"),
    [
        ("localize", "formats/onnx/edit/editor.py"),  # by a lazy import, and then by a name that is put together
        ("localize", "diagnosis/localization/faces/recurrent/rotary.py"),
        ("localize", "ground/runtime/typed.py"),
        ("localize", "formats/tflite/read/network.py"),
        ("repair", "diagnosis/repairs/search.py"),
        ("rounding", "diagnosis/localization/run/reference.py"),
        ("convert", "formats/converters/all_converters.py"),
        ("execute", "formats/keras/load/framework.py"),
        ("describe", "formats/torch/load/framework.py"),
        ("compile", "formats/tvm/build.py"),
        ("draw_inputs", "formats/networks/synthetic_inputs.py"),
        ("look", "diagnosis/localization/localize.py"),  # by the names of jobs that it calls itself
    ],
)
def test_what_is_imported_on_the_way_counts(kind: str, reached: str) -> None:
    assert reached in job_code(PACKAGE, kind)


@pytest.mark.parametrize(
    ("kind", "other"),
    [
        ("localize", "application/report/summary.py"),
        ("localize", "diagnosis/repairs/search.py"),
        ("localize", "application/cli/main.py"),
        ("execute", "diagnosis/localization/localize.py"),
        ("execute", "formats/onnx/edit/editor.py"),
        ("describe", "formats/converters/all_converters.py"),
        ("describe", "diagnosis/repairs/search.py"),
        ("look", "application/config/model.py"),
        ("look", "application/engine/scheduler.py"),  # which hands it out, and all other jobs
    ],
)
def test_what_isn_t_imported_doesn_t(kind: str, other: str) -> None:
    assert (PACKAGE / other).is_file()
    assert other not in job_code(PACKAGE, kind)


def test_every_kind_of_job_has_its_function_in_its_key() -> None:
    for kind, place in JOBS.items():
        module, _, function = place.partition(":")
        file = f"{module.removeprefix('conrepair.').replace('.', '/')}.py"
        assert f"def {function}(".encode() in job_code(PACKAGE, kind)[file]


def test_an_edit_makes_the_results_of_those_that_reach_it_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "conrepair"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(conrepair, "__file__", str(copy / "__init__.py"))

    def keys() -> dict[str, str]:
        return {kind: code_fingerprint.__wrapped__(kind) for kind in ("localize", "describe")}

    before = keys()
    for name, stale in (
        ("formats/onnx/edit/editor.py", {"localize"}),
        ("application/report/summary.py", set()),
        ("formats/onnx/load/framework.py", {*before}),
    ):
        with (copy / name).open("a", encoding="utf-8") as file:
            file.write("\n")
        after = keys()
        assert {kind for kind in before if before[kind] != after[kind]} == stale, name
        before = after
