"""Faults of PyTorch's ONNX exporters and of onnx2torch, used plainly. A failing test: the tool was fixed; correct
docs/measured/converter-faults.md.
"""

from __future__ import annotations

from typing import Any

import faulty_models as faulty
import faulty_torch_models as models
import onnxruntime
import pytest
import torch
from faulty_models import Case
from faulty_torch_models import TorchCase, export

from conrepair.ground.runtime.torchvision import import_torchvision

BOTH = [pytest.param(True, id="current"), pytest.param(False, id="older")]


def exporter_differs(case: TorchCase, *, dynamo: bool) -> bool:
    (got,) = faulty.run(export(case, dynamo=dynamo), case.arrays)
    return faulty.difference(case.expected(), got) > case.least


def onnx2torch(case: Case) -> Any:
    import_torchvision()
    import onnx2torch

    return onnx2torch.convert(case.model()).eval()


def answers(network: Any, case: Case) -> list[Any]:
    with torch.no_grad():
        given = network(*(torch.from_numpy(array.copy()) for array in case.feeds.values()))
    return [tensor.numpy() for tensor in (given if isinstance(given, (list, tuple)) else [given])]


@pytest.mark.parametrize("dynamo", BOTH)
@pytest.mark.parametrize("case", models.BOTH_WRONG.values(), ids=models.BOTH_WRONG.keys())
def test_both_exporters_are_wrong(case: TorchCase, dynamo: bool) -> None:
    assert exporter_differs(case, dynamo=dynamo)


@pytest.mark.parametrize("case", models.OLDER_WRONG.values(), ids=models.OLDER_WRONG.keys())
def test_the_older_exporter_is_wrong_and_the_current_one_right(case: TorchCase) -> None:
    assert exporter_differs(case, dynamo=False)
    assert not exporter_differs(case, dynamo=True)


@pytest.mark.parametrize("case", models.CURRENT_WRONG.values(), ids=models.CURRENT_WRONG.keys())
def test_the_current_exporter_is_wrong(case: TorchCase) -> None:
    assert exporter_differs(case, dynamo=True)


@pytest.mark.parametrize("dynamo", BOTH)
@pytest.mark.parametrize("case", models.UNLOADABLE.values(), ids=models.UNLOADABLE.keys())
def test_exported_models_that_do_not_load(case: TorchCase, dynamo: bool) -> None:
    # onnxruntime's classes of errors are found there only.
    with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.InvalidGraph):
        faulty.run(export(case, dynamo=dynamo), case.arrays)


def test_current_exporter_drops_the_projection_of_an_lstm() -> None:
    with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.Fail):
        faulty.run(export(models.LSTM, dynamo=True), models.LSTM.arrays)


@pytest.mark.parametrize("dynamo", BOTH)
@pytest.mark.parametrize("case", models.BOTH_REFUSE.values(), ids=models.BOTH_REFUSE.keys())
def test_both_exporters_refuse(case: TorchCase, dynamo: bool) -> None:
    errors = (torch.onnx.errors.OnnxExporterError, torch.onnx.errors.SymbolicValueError)
    with pytest.raises(errors):
        export(case, dynamo=dynamo)


@pytest.mark.parametrize("case", models.OLDER_REFUSES.values(), ids=models.OLDER_REFUSES.keys())
def test_the_older_exporter_refuses_what_the_current_one_takes(case: TorchCase) -> None:
    with pytest.raises((torch.onnx.errors.UnsupportedOperatorError, torch.onnx.errors.SymbolicValueError)):
        export(case, dynamo=False)
    (got,) = faulty.run(export(case, dynamo=True), case.arrays)
    assert faulty.difference(case.expected(), got) < 1e-4


@pytest.mark.parametrize("case", faulty.ONNX2TORCH_WRONG.values(), ids=faulty.ONNX2TORCH_WRONG.keys())
def test_onnx2torch_is_wrong(case: Case) -> None:
    expected, got = case.expected(), answers(onnx2torch(case), case)
    assert len(expected) != len(got) or faulty.is_wrong(expected[-1], got[-1], case.least)


@pytest.mark.parametrize("case", faulty.ONNX2TORCH_REFUSED.values(), ids=faulty.ONNX2TORCH_REFUSED.keys())
def test_onnx2torch_refuses(case: Case) -> None:
    assert case.expected()
    with pytest.raises((NotImplementedError, KeyError)):
        onnx2torch(case)


@pytest.mark.parametrize("case", faulty.ONNX2TORCH_FAILS.values(), ids=faulty.ONNX2TORCH_FAILS.keys())
def test_onnx2torch_makes_what_does_not_run(case: Case) -> None:
    assert case.expected()
    network = onnx2torch(case)
    with pytest.raises((RuntimeError, IndexError)):
        answers(network, case)
