"""A transposition that a conversion between layouts lost, where all sizes are the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from localizing import localize_networks
from onnx_networks import drawn, written
from rewritten_networks import opened

from conrepair.diagnosis.localization.options import Options
from conrepair.ground.graph.kinds import Kind
from conrepair.verdicts.evaluate.verdict import Verdict


def convolved(path: Path, *, last: bool) -> Path:
    """Of pictures with the channels last, or first."""
    first, end = ("t = Transpose <perm = [0, 3, 1, 2]> (x)", "y = Transpose <perm = [0, 2, 3, 1]> (d)")
    text = f"""small (float[batch, 6, 6, 6] x) => (float[batch, 6, 6, 6] y) {{
        {first if last else "t = Identity (x)"}
        c = Conv <pads = [1, 1, 1, 1]> (t, v)
        r = Relu (c)
        d = Conv <pads = [1, 1, 1, 1]> (r, w)
        {end if last else "y = Identity (d)"}
    }}"""
    return written(path, text, {"v": drawn(6, 6, 3, 3, seed=1), "w": drawn(6, 6, 3, 3, seed=2)})


@pytest.mark.parametrize("channels", ["first", "kept"])
@pytest.mark.parametrize(("lost", "right"), [(True, False), (False, True)])
def test_a_transposition_that_is_lost_between_formats(lost: bool, right: bool, channels: str, tmp_path: Path) -> None:
    feeds = {"x": drawn(2, 6, 6, 6, seed=3)}
    source = opened(convolved(tmp_path / "s.onnx", last=True), feeds)
    target = opened(convolved(tmp_path / "t.onnx", last=not lost), feeds)
    source.channels, target.channels = "last", channels
    found = localize_networks(source, target, [(feeds, feeds)], tmp_path / "work", Options()).result
    assert found.verdict is (Verdict.EQUIVALENT if right else Verdict.FAULTY)
    assert [fault.kind for fault in found.faults] == ([] if right else [Kind.INPUT])
    assert right or found.faults[0].evidence[0].startswith("a Transpose is missing behind `x`")
