"""Normalizations over other groups than the source's, written as one operator there, and in pieces here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import rewritten_networks as networks
from localizing import localize_networks

from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.result import Localization
from conrepair.ground.graph.kinds import Kind
from conrepair.verdicts.evaluate.verdict import Verdict

WHOLE = "[norm] n = InstanceNormalization <epsilon = 1e-5> (r, ones, zeros)"
PIECES = """
    [mean] m = ReduceMean <axes = [2]> (r)
    [centre] d = Sub (r, m)
    [square] q = Mul (d, d)
    [variance] v = ReduceMean <axes = [2]> (q)
    [add] a = Add (v, epsilon)
    [root] s = Sqrt (a)
    [divide] n = Div (d, s)
"""


def network(path: Path, norm: str, groups: int) -> networks.Network:
    weights = {
        "w": networks.drawn(8, 3, 1, 1, seed=1), "f": networks.drawn(4, 8, 1, 1, seed=2),
        "ones": np.ones(groups, np.float32), "zeros": np.zeros(groups, np.float32), "epsilon": np.float32(1e-5),
        "groups": np.array([0, groups, -1]), "back": np.array([-1, 8, 6, 6]),
    }  # fmt: skip
    lines = f"""[first] c = Conv (x, w)
        [apart] r = Reshape (c, groups)
        {norm}
        [together] b = Reshape (n, back)
        [act] e = Relu (b)
        [last] y = Conv (e, f)"""
    used = {name: array for name, array in weights.items() if f", {name}" in lines}
    text = f"small (float[batch, 3, 6, 6] x) => (float[batch, 4, 6, 6] y) {{ {lines} }}"
    return networks.opened(networks.written(path, text, used), feeds())


def feeds() -> dict[str, np.ndarray]:
    return {"x": networks.drawn(4, 3, 6, 6, seed=99, scale=1)}


def localized(folder: Path, groups: int) -> Localization:
    source, target = network(folder / "s.onnx", WHOLE, 4), network(folder / "t.onnx", PIECES, groups)
    return localize_networks(source, target, [(feeds(), feeds())], folder, Options()).result


@pytest.mark.parametrize("groups", [1, 2, 8])
def test_other_groups_are_counted(groups: int, tmp_path: Path) -> None:
    (fault,) = localized(tmp_path, groups).faults
    assert fault.kind is Kind.HYPERPARAMETERS
    assert (fault.source_layers[0], fault.target_layers[0]) == ("norm", "mean")
    assert (
        fault.evidence[0]
        == f"`norm` normalizes {groups} groups of each sample in the converted model, 4 in the original"
    )


def test_the_same_groups_are_right(tmp_path: Path) -> None:
    assert localized(tmp_path, 4).verdict is Verdict.EQUIVALENT
