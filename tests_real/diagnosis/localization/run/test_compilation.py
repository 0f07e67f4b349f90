"""A build against what it was compiled of: no alarm where it's right, the kernel at fault where it isn't."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import compiled
import numpy as np
import pytest
import small_models as small
from crossed import crossed

from conrepair.formats.networks.tvm import open_build
from conrepair.formats.tvm.opencl_run import find_device
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.runtime.errors import DeviceError, ModelLoadError
from conrepair.verdicts.evaluate.verdict import Verdict

SETTINGS = ("O0", "O1", "O2", "O3")


@pytest.mark.parametrize(
    ("make", "setting"),
    crossed(
        [compiled.convnet, compiled.encoder, compiled.mobile],
        SETTINGS,
        quick=[
            *((compiled.convnet, setting) for setting in ("O1", "O2")),
            *((compiled.encoder, setting) for setting in ("O0", "O2")),
            *((compiled.mobile, setting) for setting in ("O0", "O3")),
        ],
    ),
)
def test_a_correct_build_raises_no_alarm(make: Any, setting: str, tmp_path: Path) -> None:
    model = make(tmp_path)
    found = compiled.localized(model, compiled.built(model, tmp_path / "build", setting), tmp_path / "work")
    assert found.verdict is Verdict.EQUIVALENT, found.faults
    assert found.unmatched_source == found.unmatched_target == ()
    assert len(found.layers) > 3
    assert max(row.introduced_error for row in found.layers) < 1e-5


def test_kernels_that_run_through_pyopencl(tmp_path: Path) -> None:
    try:
        find_device()
    except DeviceError as error:
        pytest.skip(str(error))
    model = compiled.mobile(tmp_path)
    folder = compiled.built(model, tmp_path / "build", "O2", target="opencl")
    found = compiled.localized(model, folder, tmp_path / "work")
    assert found.verdict is Verdict.EQUIVALENT, found.faults
    assert found.unmatched_target == ()


@pytest.mark.parametrize("setting", ["O0", "O3"])
def test_an_operator_that_tvm_gets_wrong_is_named(setting: str, tmp_path: Path) -> None:
    """TVM's importer ignores antialias; see docs/measured/tvm-conformance.md."""
    between = 'p4 = Resize <antialias = 1, mode = "linear"> (p, , scales)'
    model = compiled.mobile(tmp_path, between, scales=np.array([1, 1, 0.5, 0.5], np.float32))
    found = compiled.localized(model, compiled.built(model, tmp_path / "build", setting), tmp_path / "work")
    assert found.verdict is Verdict.FAULTY
    (fault,) = found.faults
    assert fault.kind is Kind.COMPILATION
    assert "p4" in fault.target_layers
    assert fault.target_tensor == "p4"
    assert fault.introduced_error > 0.01
    assert "Resize `p4`" in fault.evidence[0]
    assert "that model gives the original's values there" in fault.evidence[1]
    assert sum(row.full_run_error > 1e-3 for row in found.layers) > 1, "it's inherited, and nobody else's fault"


def test_a_wrong_schedule_is_told_from_the_operators_that_it_computes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rule for CPUs as it was: a padding's ends stayed unwritten."""
    from conrepair.formats.tvm import cpu_rule

    def without_ends(block: Any) -> list[int]:
        return [{9: 8}.get(int(item.dom.extent), int(item.dom.extent)) for item in block.iter_vars]

    monkeypatch.setattr(cpu_rule, "_extents", without_ends)
    model = compiled.mobile(tmp_path)
    folder = compiled.built(model, tmp_path / "build", "O3")
    found = compiled.localized(model, folder, tmp_path / "work")
    ((kind, layers),) = {(fault.kind, fault.target_layers) for fault in found.faults}
    assert kind is Kind.COMPILATION
    assert layers == ("b", "b6", "bp")
    assert "pad" in found.faults[0].evidence[0]


@pytest.mark.parametrize("form", ["torch", "tflite"])
def test_builds_of_other_formats(form: str, tmp_path: Path) -> None:
    import torch

    if form == "torch":
        examples = [torch.from_numpy(small.images())]
        path = small.export_pt2(small.torch_convnet().eval(), examples, tmp_path / "net.pt2")
    else:
        path = small.tflite_of(small.keras_convnet(), tmp_path / "net.tflite")
    model = small.model_of(form, path)
    folder = compiled.built(model, tmp_path / "build", "O2")
    found = compiled.localized(model, folder, tmp_path / "work")
    assert found.verdict is Verdict.EQUIVALENT, found.faults
    assert len(found.layers) > 3


def test_a_build_of_a_conversion_is_compared_with_its_source(tmp_path: Path) -> None:
    """What was imported is kept, so the source may be in a format that TVM doesn't read."""
    source = compiled.mobile(tmp_path)
    (tmp_path / "other").mkdir()
    other = compiled.mobile(tmp_path / "other", "p4 = Neg (p)")
    folder = compiled.built(other, tmp_path / "build", "O2")
    found = compiled.localized(source, folder, tmp_path / "work")
    assert found.verdict is Verdict.FAULTY
    assert all(fault.kind is not Kind.COMPILATION for fault in found.faults), "the model that was compiled is wrong"
    with pytest.raises(ModelLoadError, match="build it again"):
        open_build(compiled.older(folder), source)
