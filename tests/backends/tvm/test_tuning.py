"""Schedules that are measured."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path

import pytest
import small_models as small

from conrepair.backends.tvm.backend import BACKEND
from conrepair.backends.tvm.tuning import check_tuning
from conrepair.frameworks.registry import framework
from conrepair.runtime.errors import ConversionError


def test_a_library_that_crashes_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "0.1.15.post2")
    model = small.model_of("onnx", small.onnx_convnet(tmp_path / "net.onnx"))
    (tmp_path / "build").mkdir()
    with pytest.raises(
        ConversionError, match=r"crashes with apache-tvm-ffi 0\.1\.15\.post2.* Install apache-tvm-ffi 0"
    ):
        BACKEND.compile(model, {"setting": "tuned"}, 1, tmp_path / "build")


@pytest.mark.slow
def test_tuning_keeps_what_it_measured(tmp_path: Path) -> None:
    try:
        check_tuning()
    except ConversionError as error:
        pytest.skip(str(error))
    model = small.model_of("onnx", small.onnx_convnet(tmp_path / "net.onnx"))
    options = {"setting": "tuned", "trials": 8, "target": "llvm -num-cores=2"}
    feeds = {"image": small.images(2)}
    expected = framework("onnx").load(model).run(feeds)["probabilities"]
    database = None
    for name in ("first", "again"):
        folder = tmp_path / name
        folder.mkdir()
        record = BACKEND.compile(model, options | {"database": database}, 2, folder)
        found = BACKEND.load(model, {"build": {"path": str(folder)}}).run(feeds)["probabilities"]
        assert small.relative_l2(expected, found) < 1e-6
        lines = (folder / "tuning" / "database_tuning_record.json").read_text().splitlines()
        assert len([json.loads(line) for line in lines]) == 8  # the second time nothing is measured
        assert "ApplyTuned" in record["passes_run"]
        database = str(folder / "tuning")
