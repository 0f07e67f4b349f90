"""How much samples differ."""

from __future__ import annotations

import numpy as np

from conrepair.ground.metrics.spread import spread_between_samples


def test_of_nothing_and_of_one_sample_there_is_none() -> None:
    assert spread_between_samples(np.zeros((0, 3))) is None
    assert spread_between_samples(np.ones((1, 3))) is None
    assert spread_between_samples(np.ones((2, 3))) == 0
