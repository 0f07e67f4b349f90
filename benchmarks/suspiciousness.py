"""The Kruskal-Wallis test of every element of an activation, against scipy's, one element at a time.

    python -m benchmarks.suspiciousness

The activation is that of a layer of 112 x 112 x 32, behind a rectifier (half of the values are equal), of 15 inputs
on which two models disagree and 15 on which they agree. scipy tests some of its elements.
"""

from __future__ import annotations

import time

import numpy as np
import scipy.stats

from conrepair.ground.metrics.kruskal import kruskal_wallis

_SHAPE = (112, 112, 32)
_SAMPLES = 15
_BY_SCIPY = 500
_SEED = 0


def main() -> None:
    """Measure and print."""
    generator = np.random.default_rng(_SEED)
    groups = [np.maximum(generator.normal(shift, 1, (_SAMPLES, *_SHAPE)), 0).astype("f4") for shift in (0, 0.2)]
    started = time.perf_counter()
    statistic, _ = kruskal_wallis(groups)
    ours = (time.perf_counter() - started) / statistic.size
    chosen = generator.choice(statistic.size, _BY_SCIPY, replace=False)
    columns = [group.reshape(_SAMPLES, -1)[:, chosen].astype(np.float64) for group in groups]
    started = time.perf_counter()
    expected = [
        scipy.stats.kruskal(*(column[:, index] for column in columns)).statistic for index in range(_BY_SCIPY)
    ]
    theirs = (time.perf_counter() - started) / _BY_SCIPY
    worst = np.abs(statistic.reshape(-1)[chosen] - expected).max()
    print(f"{statistic.size} elements, {_SAMPLES} + {_SAMPLES} samples")
    print(f"ours {1e6 * ours:.2f} us an element, scipy {1e6 * theirs:.0f} us: {theirs / ours:.0f} times as fast")
    print(f"largest difference of the statistic: {worst:.1e}")


if __name__ == "__main__":
    main()
