"""What a measurement leaves behind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from random_graphs import SHAPE, Computed, drawn_feeds, graph_of

from conrepair.diagnosis.localization.align.layout import layouts
from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.run.activations import Activations
from conrepair.diagnosis.localization.run.measurement import measure
from conrepair.diagnosis.localization.run.reference import Reference


def test_both_networks_hold_the_first_batch_afterwards(tmp_path: Path) -> None:
    """Pieces that are run later are fed the inputs of one batch, and are compared with the same one."""
    network = Computed(graph_of(["x"], [("n0", "Tanh", ["x"], ["t0"]), ("n1", "Sin", ["t0"], ["y"])], ["y"]))
    batches = [{"x": seed + drawn_feeds(network.graph)["x"]} for seed in range(3)]
    reference = Reference(network, tmp_path / "source")
    right, given = reference.batch(0, batches[0]), Activations(network, batches[0], tmp_path / "target")
    plain = layouts(SHAPE, SHAPE)[0]
    pairs = [Pair(name, name, plain, 1.0, "") for name in ("t0", "y")]
    measure(reference, pairs, given, [(batch, batch) for batch in batches[1:]])
    given.compute(["y"])
    np.testing.assert_array_equal(given["y"], right["y"])
    np.testing.assert_array_equal(given.feeds["x"], batches[0]["x"])
