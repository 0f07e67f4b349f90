"""Exchanged outputs are found by their values, without comparing each with each."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conrepair.diagnosis.localization.judge import tensor_order
from conrepair.diagnosis.localization.judge.tensor_order import explain_output_order
from conrepair.ground.runtime.words import percent

Outputs = dict[str, np.ndarray]


def outputs(count: int, seed: int = 0) -> Outputs:
    random = np.random.default_rng(seed)
    return {f"y{index}": random.normal(size=(4, 5)) * (1 + index % 7) for index in range(count)}


@given(order=st.permutations(range(6)), noise=st.sampled_from([0.0, 1e-3]), named=st.booleans())
@settings(max_examples=40)
def test_every_order_is_found(order: list[int], noise: float, named: bool) -> None:
    source = outputs(6)
    shaken = [array * (1 + noise) for array in source.values()]
    target = {f"y{place}" if named else f"z{place}": shaken[index] for place, index in enumerate(order)}
    found = explain_output_order(source, target)
    if order == sorted(order):
        assert found is None
    else:
        assert found is not None
        assert [list(target).index(name) for name in found[0].values()] == [order.index(i) for i in range(6)]
        before, after = re.findall(r"falls from (.+) to (.+)$", found[1])[0]
        assert after == percent(noise)
        assert float(before.removesuffix(" %")) > 10


def test_equal_outputs_keep_their_places() -> None:
    source = outputs(4)
    source["y1"] = source["y0"].copy()
    target = source | {"y2": source["y3"], "y3": source["y2"]}
    found = explain_output_order(source, target)
    assert found is not None
    assert found[0] == {"y0": "y0", "y1": "y1", "y2": "y3", "y3": "y2"}


@pytest.mark.parametrize("wrong", [1, 10, 300])
def test_a_fault_in_many_outputs_is_no_order_and_soon_seen(wrong: int, monkeypatch: pytest.MonkeyPatch) -> None:
    source, calls = outputs(300), []
    other = outputs(300, seed=1)
    target = source | {name: other[name] for name in list(source)[:wrong]}
    compared = tensor_order.relative_error
    monkeypatch.setattr(
        tensor_order, "relative_error", lambda *args, **given: calls.append(1) or compared(*args, **given)
    )
    assert explain_output_order(source, target) is None
    assert len(calls) < 2 * len(source) + wrong
