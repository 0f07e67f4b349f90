"""What a node says is what PyTorch computes: attributes and parameters in the vocabulary's convention."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch_networks as nets
from crossed import crossed
from node_functions import assert_follows_vocabulary, compute

from conrepair.formats.torch.read.network import open_network
from conrepair.ground.graph.operators import OPERATORS

# Operators that have no word in the vocabulary, by network.
NATIVE = {
    "encoder": {"ScaledDotProductAttention"},
    "seq2seq": {"ScaledDotProductAttention"},
    "functions": {"aten.max.dim", "aten.std.correction", "aten.add.Tensor"},
    "arrangement": {"aten.unbind.int"},
    "writing": {"aten.slice_scatter.default"},
    "branches": {"cond"},
    "selecting": {"aten.nonzero.default", "aten.index.Tensor", "aten.item.default"},
}
# A module is exported as it is in a file. Taken apart, a recurrent network has a node for each step of each gate.
QUICK = [
    *((name, "factory") for name in nets.CASES),
    *((name, "pt2") for name in ("convnet", "residual", "mlp", "selecting")),
    *((name, "core") for name in ("encoder", "functions", "residual", "writing", "branches", "selecting")),
]


@pytest.mark.parametrize(("name", "form"), crossed(nets.CASES, ["factory", "pt2", "core"], quick=QUICK))
def test_nodes_compute_what_they_say(tmp_path: Path, name: str, form: str) -> None:
    model, feeds, _ = nets.prepared(name, tmp_path, pt2=form == "pt2", core=form == "core")
    network = open_network(model, nets.specs_of(feeds))
    graph = network.graph
    assert_follows_vocabulary(graph)
    values = {network.input_names[key]: array for key, array in feeds.items()}
    observable = [key for key, tensor in graph.tensors.items() if tensor.observable and key not in values]
    captured = network.segment(graph.inputs, observable).run(values) | values
    known = dict(captured)
    native, checked = set(), 0
    for node in graph.nodes:
        if node.op not in OPERATORS and node.op != "Constant":
            native.add(node.op)
        if node.op not in OPERATORS or any(item and item not in known for item in node.inputs):
            continue
        results = compute(node, [known[name] for name in node.inputs if name])
        assert results is not None, node.op
        checked += 1
        for output, array in zip(node.outputs, results, strict=False):
            known.setdefault(output, array)  # between the layers of an LSTM
            expected = known[output]
            assert array.shape == expected.shape, node
            scale = float(np.abs(expected).max(initial=0)) or 1.0
            np.testing.assert_allclose(array, expected, rtol=0, atol=2e-5 * scale, err_msg=str(node))
    assert checked >= len(graph.nodes) // 2
    if form == "factory":
        assert native == NATIVE.get(name, set())
