"""What's only written otherwise computes the same; and what's said of it is counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.attention.networks import build
from benchmarks.attention.samples import samples
from benchmarks.attention.spec import networks, writing_of
from benchmarks.common.bounds import interval
from benchmarks.common.cases import Case
from benchmarks.common.exact import difference, in_float32
from benchmarks.common.judged import JudgedRow, judged_sums
from benchmarks.common.otherwise import OF_PICTURES, OTHERWISE, rewritten
from benchmarks.common.plain_graph import PlainGraph
from benchmarks.common.target import UnfitError
from benchmarks.systematic.formats import FORMATS

SPEC = next(spec for spec in networks(11) if spec.position == "rope-half" and not spec.massive)
MODEL = build(SPEC, writing_of(SPEC, 0)).model()


@pytest.mark.parametrize("name", [name for name in OTHERWISE if name not in OF_PICTURES])
def test_outputs_stay(name: str, tmp_path: Path) -> None:
    feeds = samples(SPEC, 2)
    before = MODEL.SerializeToString()
    try:
        other = rewritten(name, MODEL, np.random.default_rng(3), tmp_path)
    except UnfitError as unfit:
        pytest.skip(str(unfit))
    assert MODEL.SerializeToString() == before
    assert difference(in_float32(MODEL, feeds), in_float32(other, feeds)) < 1e-5


def test_a_graph_survives_a_file() -> None:
    graph = PlainGraph.of(MODEL)
    feeds = samples(SPEC, 2)
    assert difference(in_float32(MODEL, feeds), in_float32(graph.model(), feeds)) == 0


def row(group: str, verdict: str, *, count: int = 0) -> JudgedRow:
    place = {"kind": "graph", "words": "", "target_layers": ["a"], "source_layers": []}
    result = {"verdict": verdict, "found": [place], "injected": [place] * count, "compared": "faulty", "seconds": 1.0}
    return JudgedRow(Case(group, "m", "s", "b", ("f",) * count, count), "measured", "", result)


def test_sums_tell_accused_from_undecided() -> None:
    rows = [row("right", "faulty"), row("right", "undecided"), row("right", "noise")]
    rows += [row("faulty", "faulty", count=1), row("faulty", "noise", count=1)]
    found = judged_sums(rows)
    assert (found.right, found.accused, found.undecided) == (3, 1, 1)
    assert (found.faulty, found.detected, found.passed, found.first) == (2, 1, 1, 1.0)
    assert [item.wrong for item in rows] == [True, True, False, False, True]


def test_intervals_are_clopper_and_pearsons() -> None:
    low, high = interval(0, 500)
    assert low == 0
    assert high == pytest.approx(1 - 0.025 ** (1 / 500))
    assert interval(5, 5)[1] == 1
    assert interval(0, 0) == (0, 1)


@pytest.mark.parametrize("name", FORMATS)
def test_narrow_numbers_are_near(name: str) -> None:
    weight = np.random.default_rng(0).standard_normal((5, 40, 3, 3)).astype(np.float32)
    rounded = FORMATS[name](weight, 0)
    error = np.linalg.norm(rounded - weight) / np.linalg.norm(weight)
    assert rounded.shape == weight.shape
    assert rounded.dtype == np.float32
    assert 0 < error < (0.2 if "int4" in name else 0.02)
    assert (
        np.array_equal(FORMATS[name](rounded, 0), rounded)
        or "uint8" in name
        or np.allclose(FORMATS[name](rounded, 0), rounded, atol=1e-6)
    )
