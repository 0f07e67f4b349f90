"""Names of rows as paths: none leaves the run's folder, and no two rows share one."""

from __future__ import annotations

import dataclasses
from pathlib import Path, PurePosixPath, PureWindowsPath

import localizations
import pytest
import told_runs
from hypothesis import given
from hypothesis import strategies as st

from conrepair.application.report.result import Build, Compared, LocalizedStep, LocalizedTarget, Problem, Ran, Row
from conrepair.application.report.row_paths import RowFolders
from conrepair.application.report.texts import texts_of
from conrepair.formats.models.model import Model
from conrepair.verdicts.evaluate.inputs import ComparedInput

ODD = [
    "..",
    ".",
    "",
    "/",
    "/etc",
    "../../x",
    "a/b",
    "a\\b",
    "C:\\x",
    "a\0b",
    "con",
    "Net",
    "net",
    "n" * 300,
    "\n",
    "a.",
]
NAMES = st.sampled_from(ODD) | st.text(max_size=20)
ROWS = st.lists(st.tuples(NAMES, NAMES, NAMES, st.booleans()), max_size=8)


def full_row(model: str, conversion: str, backend: str, *, built: bool) -> Row:
    """A row of which every file is written."""
    steps = tuple(
        LocalizedStep(
            Compared(localizations.about().source, localizations.about().target, build), localizations.made(2)
        )
        for build in ("", "/nowhere/build")[: 1 + built]
    )
    given_input = ComparedInput(
        index=0, name="a", label=None, differs=None, relative_l2=0.1, max_abs=0.1, reference=(), candidate=()
    )
    return told_runs.row(
        model,
        conversion=conversion,
        backend=backend,
        problem=Problem(message="it failed"),
        inputs=(given_input,),
        localized=LocalizedTarget(steps=steps),
        ran=Ran(
            artifact=Model("onnx", "/nowhere/a.onnx", "0" * 64),
            build=Build(Path("/nowhere/build"), "", {}) if built else None,
        ),
    )


@given(ROWS)
def test_paths_stay_in_the_folder_and_apart(told: list[tuple[str, str, str, bool]]) -> None:
    places = {(model, conversion, backend): built for model, conversion, backend, built in told}
    rows = [full_row(*place, built=built) for place, built in places.items()]
    texts = texts_of(told_runs.audit(*rows))
    for path in texts:
        assert PurePosixPath(path).parts == PureWindowsPath(path).parts == tuple(path.split("/"))
        assert not {"", ".", ".."} & set(path.split("/"))
        assert all(len(name.encode()) <= 204 for name in path.split("/"))
    assert len({path.casefold() for path in texts}) == len(texts)
    for sort in ("runs/", "errors/"):
        assert sum(path.startswith(sort) for path in texts) == len(rows)


def test_names_of_configurations_are_paths_as_they_are() -> None:
    row = full_row("MobileNetV2", "torch-onnx+onnx-keras", "tvm-llvm-O3", built=True)
    assert set(texts_of(told_runs.audit(row))) > {
        "models/MobileNetV2/torch-onnx+onnx-keras/provenance.json",
        "runs/MobileNetV2/torch-onnx+onnx-keras/tvm-llvm-O3/inputs.csv",
        "localization/MobileNetV2/torch-onnx+onnx-keras@tvm-llvm-O3/layers.csv",
        "localization/MobileNetV2/torch-onnx+onnx-keras@tvm-llvm-O3/build/layers.csv",
        "errors/MobileNetV2__torch-onnx+onnx-keras@tvm-llvm-O3.log",
    }


@pytest.mark.parametrize("order", [1, -1])
def test_each_row_keeps_its_place_however_often_it_is_asked(order: int) -> None:
    rows = [told_runs.row(model, conversion="", backend="ort") for model in ("Net", "net", "a/b", "a_b")]
    folders = RowFolders(rows)
    found = {row.model: folders.run(row) for row in rows[::order]}
    assert (found["Net"], found["net"]) == ("runs/Net/source/ort", "runs/net-2/source/ort")
    assert found["a_b"] == "runs/a_b/source/ort" != found["a/b"]


def test_all_that_failed_of_a_row_is_in_its_log() -> None:
    row = full_row("net", "a+b", "ort", built=False)
    row = dataclasses.replace(row, localized=dataclasses.replace(row.localized, problem=Problem(message="no layers")))
    text = texts_of(told_runs.audit(row))["errors/net__a+b@ort.log"]
    assert text.splitlines() == ["it failed", "", "no layers"]
