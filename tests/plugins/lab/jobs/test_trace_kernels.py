"""Following an error through kernels, where a side can't be looked into."""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import Model
from conrepair.formats.networks.network import Network, open_network
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import InferenceError
from conrepair.ground.runtime.files.whole import HashedPath
from conrepair_lab.jobs import trace_kernels
from conrepair_lab.jobs.trace_values import Compared, Followed, JudgedSample
from conrepair_lab.systems.system import Setting
from conrepair_lab.tracing.judging import JUDGED, REWRITTEN, Judged, write_judged
from conrepair_lab.tracing.result import Side

TEXT = '<ir_version: 8, opset_import: ["" : 17]>\ng (float[1, 3] x) => (float[1, 3] y) { h = Exp (x) y = Neg (h) }'
X = np.array([[0.5, -1.0, 2.0]], np.float32)


class Observed:
    """A system that shows a network; a broken one's can't be run."""

    fusion = ""

    def __init__(self, name: str, broken: bool) -> None:
        self.name, self.broken = name, broken

    def observed(self, model: Model, *_: Any) -> Network:
        found = copy.copy(open_network(model, [TensorSpec("x", (1, 3), "float32")]))
        if self.broken:
            found.segment = fail  # type: ignore[method-assign]
        return found


def fail(fed: Collection[str], wanted: Sequence[str]) -> Any:
    raise InferenceError("its kernels fail")


def test_a_side_that_cannot_be_run_takes_nothing_from_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    onnx.save(onnx.parser.parse_model(TEXT), tmp_path / "net.onnx")
    model = Model("onnx", str(tmp_path / "net.onnx"), model_sha256(tmp_path / "net.onnx"))
    write_judged(Judged(feeds=[{"x": X}]), tmp_path)
    systems = Observed("whole", False), Observed("broken", True)
    monkeypatch.setattr(trace_kernels, "SYSTEMS", {item.name: item for item in systems})
    one, two = (Side(name, name, Setting("libraries")) for name in ("whole", "broken"))
    sample = JudgedSample(HashedPath(str(tmp_path / JUDGED), ""), 0)

    def followed(one: Side, two: Side, blamed: str = "") -> Followed:
        return trace_kernels.kernels(tmp_path, Compared(model=model, one=one, two=two), sample, blamed)

    told = followed(one, two)
    assert [item.tensor for item in told.kernels.setting] == ["h", "y"]
    assert told.kernels.against == ()
    assert told.doubts == ("the error can't be followed through the kernels of broken: its kernels fail",)
    assert [item.apart for item in followed(one, one).kernels.setting] == [0, 0]
    blind = followed(two, one, "setting")
    assert (blind.forms, blind.stable, blind.float64) == ((), ("h",), ("h", "y"))
    seen = followed(one, two, "setting")
    assert (seen.stable, seen.float64) == ((), ())


def test_operators_are_written_in_another_form(tmp_path: Path) -> None:
    onnx.save(onnx.parser.parse_model(TEXT), tmp_path / "net.onnx")
    told = trace_kernels.forms(tmp_path, Model("onnx", str(tmp_path / "net.onnx"), ""), ("h",), ("y",))
    assert [(item.form, item.place) for item in told] == [("fast e^x", "h"), ("computed in float64", "y")]
    written = onnx.load(tmp_path / REWRITTEN)
    (y,) = ReferenceEvaluator(written).run(None, {"x": X})
    np.testing.assert_allclose(y, -np.exp(X), rtol=1e-6)
    assert "Exp" not in {node.op_type for node in written.graph.node}
