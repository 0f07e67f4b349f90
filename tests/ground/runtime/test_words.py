"""Names are cut, facts never."""

from __future__ import annotations

from conrepair.ground.runtime.words import quoted, shortened

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
