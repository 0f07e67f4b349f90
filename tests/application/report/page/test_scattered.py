"""A scatter in words."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from conrepair.application.report.page.scattered import scatter_words
from conrepair.diagnosis.localization.run.scatter import scatter_of

DRAWN = np.random.default_rng(0).standard_normal(4000)
SHUFFLED = np.random.default_rng(1).permutation(DRAWN)


@pytest.mark.parametrize(
    ("converted", "seen", "line"),
    [
        (DRAWN, "All points lie on the diagonal", "1 x original; correlation 1; 100 % of"),
        (
            1.125 * DRAWN,
            "all values are 1.125 times as large, a factor",
            "1.125 x original; correlation 1; 0.050 % of",
        ),
        (1.125 * DRAWN + 0.02 * SHUFFLED + 0.01, "1.125 times as large, a factor", "x original + 0.0"),
        (DRAWN + 0.25, "all values are off by 0.25, an offset", "1 x original + 0.25; correlation 1; none of"),
        (2 * DRAWN - 3, "a factor and an offset", "2 x original - 3;"),
        (-DRAWN, "a falling line: the sign is another", "-1 x original;"),
        (SHUFFLED, "a cloud", "x original"),
        (np.where(DRAWN > 0, DRAWN, 0.1 * DRAWN), "no single factor or offset", "x original + 0.36;"),
        (np.full(4000, 2.0), "no line can be fitted", "0.25 % of the values are the same within 1 %"),
    ],
)
def test_what_is_seen_and_the_fitted_line(converted: npt.NDArray[np.float64], seen: str, line: str) -> None:
    scatter = scatter_of(DRAWN, converted)
    assert scatter is not None
    assert seen in scatter_words(scatter)
    assert line in scatter_words(scatter)
