"""Names are cut, facts never; a share has one form."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conrepair.ground.runtime.words import percent, quoted, shortened

FUSED = "MobilenetV2/expanded_conv_6/expand/Relu6;MobilenetV2/expanded_conv_6/expand/BatchNorm/FusedBatchNormV3;" * 3


def test_what_is_behind_a_long_name_is_told() -> None:
    told = quoted(f"the weights ({FUSED}) of `{FUSED}` are scaled by 2")
    assert told.startswith("the weights (MobilenetV2")
    assert told.endswith("` are scaled by 2")
    assert len(told) < 150
    assert quoted(f"`{FUSED}` and `short`", 20).endswith("` and `short`")


def test_another_name_stands_for_a_long_one() -> None:
    told = quoted(f"the weights of `{FUSED}` are scaled by 2", names={FUSED: "expand", "expand": "never"})
    assert told == "the weights of `expand` are scaled by 2"


def test_short_texts_are_left_alone() -> None:
    for text in ("pads [0, 0, 1, 1] in the target, [1, 1, 1, 1] in the source", ""):
        assert quoted(text) == text
    assert shortened("abcdefghij", 6) == "a…ghij"


@pytest.mark.parametrize(
    ("share", "told"),
    [
        (0.0, "0 %"),
        (0.00465139, "0.47 %"),
        (9.5e-7, "below 0.0001 %"),
        (1.3e-6, "0.00013 %"),
        (0.16, "16 %"),
        (1.0, "100 %"),
        (0.996, "100 %"),
        (0.0996, "10 %"),
        (-0.05, "-5.0 %"),
        (2.634, "260 %"),
        (9.96, "10 times"),
        (1467.0, "1,500 times"),
        (math.inf, "infinite"),
        (math.nan, "not a number"),
    ],
)
def test_a_share_has_one_form(share: float, told: str) -> None:
    assert percent(share) == told


@given(st.floats(1e-6, 9.9))
def test_two_digits_are_true(share: float) -> None:
    assert float(percent(share).removesuffix(" %")) / 100 == pytest.approx(share, rel=0.051)
