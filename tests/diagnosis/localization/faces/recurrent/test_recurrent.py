"""What a recurrent layer has become is told from whichever of its results is read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import rewritten_networks as networks
from localizing import localize_networks

from conrepair.diagnosis.localization.options import Options

_STEPS, _BATCH, _WIDTH, _HIDDEN = 6, 3, 5, 4
_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def recurrent(folder: Path, name: str, op: str, *, reads: str, factor: float = 1.0) -> networks.Network:
    """A layer of which all states are read, or the last one, with its recurrent weights times a number."""
    rows = _GATES[op] * _HIDDEN
    weights = {
        "w": networks.drawn(1, rows, _WIDTH, seed=1, scale=0.5),
        "r": factor * networks.drawn(1, rows, _HIDDEN, seed=2, scale=0.5),
        "b": networks.drawn(1, 2 * rows, seed=3, scale=0.3),
        "axis": np.array([1 if reads == "states" else 0]),
    }
    text = f"""small (float[{_STEPS}, {_BATCH}, {_WIDTH}] x) => (float[m, n] y) {{
        [layer] states, last = {op} <hidden_size = {_HIDDEN}> (x, w, r, b)
        [squeeze] q = Squeeze ({reads}, axis)
        [bent] y = Softplus (q)
    }}"""
    return networks.opened(networks.written(folder / name, text, weights), feeds())


def feeds() -> dict[str, np.ndarray]:
    return {"x": networks.drawn(_STEPS, _BATCH, _WIDTH, seed=9, scale=1)}


@pytest.mark.parametrize("reads", ["states", "last"])
@pytest.mark.parametrize("op", list(_GATES))
def test_recurrent_weights_that_are_scaled(op: str, reads: str, tmp_path: Path) -> None:
    source = recurrent(tmp_path, "source.onnx", op, reads=reads)
    target = recurrent(tmp_path, "target.onnx", op, reads=reads, factor=1.3)
    found = localize_networks(source, target, [(feeds(), feeds())], tmp_path, Options()).result
    [fault] = found.faults
    assert fault.target_layers[0] == "layer"
    assert "the recurrent weights are scaled by 1.3" in fault.evidence[0], fault.evidence
