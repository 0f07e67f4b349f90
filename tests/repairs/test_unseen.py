"""Which samples take no part in finding a repair."""

from __future__ import annotations

import pytest

from conrepair.data.feeds import DataReference
from conrepair.data.tensor_spec import TensorSpec
from conrepair.frameworks.model import Model
from conrepair.localization.fed_model import FedModel
from conrepair.localization.options import Options
from conrepair.repairs.options import RepairOptions
from conrepair.repairs.unseen import unseen_samples


@pytest.mark.parametrize(
    ("counts", "begin"),
    [((12, 12), 4), ((5, 12), 4), ((4, 12), 0), ((12, 3), 0)],
)
def test_they_lie_behind_those_that_are_looked_at_or_are_all(counts: tuple[int, int], begin: int) -> None:
    sides = [
        FedModel(Model("onnx", "model.onnx", ""), (spec,), DataReference("synthetic", count, samples=(spec,)), None)
        for count, spec in zip(
            counts, (TensorSpec("x", (2, 5), "float32"), TensorSpec("x", ("n", 5), "float32")), strict=True
        )
    ]
    found = unseen_samples(*sides, RepairOptions(Options(samples=4), unseen=6, labels=tuple(range(12))))
    assert (found.begin, found.count, found.batch_size) == (begin, 6, 2)
    assert found.labels == tuple(range(begin, 12))
