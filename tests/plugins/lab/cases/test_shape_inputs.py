"""Inputs that are shapes are drawn so that the network runs: a judge has nothing to say of nonsense."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from conrepair.ground.runtime.onnx_session import open_session
from conrepair_lab.cases.shape_inputs import fitted

HEAD = '<ir_version: 10, opset_import: ["" : 20]> '
NETWORKS = {
    "g (float[2,3] x, int64[3] s) => (float[a,b,c] y) { z = Relu (x) y = Reshape (z, s) }": [("s", 3)],
    "g (float[2,1] x, int64[3] s) => (float[a,b,c] y) { y = Expand (x, s) }": [("s", 3)],
    "g (float[4,5] x, int64[2] st, int64[2] en, int64[2] ax) => (float[a,b] y) { y = Slice (x, st, en, ax) }": [
        *(("st", 2), ("en", 2), ("ax", 2))
    ],
    "g (float[2,3] x, int64[2] r) => (float[a,b] y) { y = Tile (x, r) }": [("r", 2)],
    "g (int64 s, int64 l, int64 d) => (int64[a] y) { y = Range (s, l, d) }": [("s", 0), ("l", 0), ("d", 0)],
    "g (int64[2] s) => (float[a,b] y) { y = ConstantOfShape (s) }": [("s", 2)],
    "g (float[2,5] x, int64[1] k) => (float[a,b] y, int64[a,b] i) { y, i = TopK (x, k) }": [("k", 1)],
    "g (float[2,3] x, int64[4] p) => (float[a,b] y) { y = Pad (x, p) }": [("p", 4)],
    "g (float[2,1,3] x, int64[1] a) => (float[p,q] y) { y = Squeeze (x, a) }": [("a", 1)],
    "g (float[2,3] x, int64[2] a) => (float[p,q,r,s] y) { y = Unsqueeze (x, a) }": [("a", 2)],
    "g (float[6,2] x, int64[2] s) => (float[p,q] y, float[r,t] z) { y, z = Split (x, s) }": [("s", 2)],
    "g (float[1,1,4,4] x, int64[4] s) => (float[a,b,c,e] y) { y = Resize (x, , , s) }": [("s", 4)],
    "g (float[2,3] x, int64[1] a) => (float[p,q] y) { y = ReduceSum (x, a) }": [("a", 1)],
}


@pytest.mark.parametrize("text", NETWORKS, ids=lambda text: text.partition("= ")[2].split(" ")[0] or text[-20:])
def test_a_network_runs_with_what_is_drawn(text: str) -> None:
    model = onnx.parser.parse_model(HEAD + text)
    session = open_session(model.SerializeToString(), threads=1, quiet=True)
    named = dict(NETWORKS[text])
    seen = set()
    for seed in range(12):
        generator = np.random.default_rng(seed)
        feeds: dict[str, Any] = {name: np.full((size,) if size else (), 77, np.int64) for name, size in named.items()}
        for item in model.graph.input:
            if item.name not in named:
                sizes = [size.dim_value for size in item.type.tensor_type.shape.dim]
                feeds[item.name] = generator.normal(size=sizes).astype(np.float32)
        found = fitted(model, feeds, generator)
        assert all((found[name] != 77).all() for name in named)
        assert all(found[name] is feeds[name] for name in feeds.keys() - named.keys())
        session.run(None, found)
        seen.add(tuple(tuple(found[name].ravel().tolist()) for name in named))
    assert len(seen) > 1 or "Squeeze" in text, "not always the same"


def test_what_nothing_is_known_of_stays() -> None:
    model = onnx.parser.parse_model(HEAD + "g (float[4] x, int64[2] i) => (float[2] y) { y = Gather (x, i) }")
    feeds = {"x": np.zeros(4, np.float32), "i": np.array([1, 3])}
    found = fitted(model, feeds, np.random.default_rng(0))
    assert all(found[name] is feeds[name] for name in feeds)
