"""Whether the export computes what the network does: `pytest --conrepair-reports reports`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from export import classifier, export

from conrepair.testing import assert_equivalent

IMAGES = np.random.default_rng(0).normal(size=(8, 3, 16, 16)).astype(np.float32)


def test_the_export_is_right(tmp_path: Path) -> None:
    network = classifier()
    assert_equivalent(network, export(network, tmp_path / "net.onnx"), data=IMAGES, in_process=True)
