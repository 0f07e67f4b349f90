"""Random graphs in other words, with a fault at a random place: it's found there, and nothing is found without it."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from localizing import localize_networks
from random_graphs import Computed, all_values, disguised, drawn_feeds, graphs

from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.result import Localization
from conrepair.ground.graph.layer_graph import LayerGraph
from conrepair.verdicts.evaluate.verdict import Verdict


def localized(source: Computed, target: Computed, names: dict[str, str]) -> Localization:
    feeds = [drawn_feeds(source.graph, seed) for seed in (0, 1)]
    batches = [(batch, {names[name]: array for name, array in batch.items()}) for batch in feeds]
    with tempfile.TemporaryDirectory() as folder:
        return localize_networks(source, target, batches, Path(folder), Options()).result


def with_all_outputs(graph: LayerGraph) -> LayerGraph:
    """Everything that nobody reads is a result: no node is there for nothing."""
    ends = [node.outputs[0] for node in graph.nodes if not any(graph.consumers[name] for name in node.outputs)]
    return dataclasses.replace(graph, outputs=tuple(ends))


def repeats(graph: LayerGraph) -> bool:
    """Whether two nodes compute the same: which of them an output stands for is anybody's guess then."""
    arrays = list(all_values(Computed(graph), drawn_feeds(graph)).values())
    return any(np.array_equal(one, two) for place, one in enumerate(arrays) for two in arrays[:place])


@settings(deadline=None, max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.filter_too_much])
@given(graphs(), st.integers(0, 10_000), st.data())
def test_a_fault_is_found_where_it_is(graph: LayerGraph, seed: int, data: st.DataObject) -> None:
    assume(not repeats(graph))
    graph = with_all_outputs(graph)
    theirs, names = disguised(graph, seed)
    clean = localized(Computed(graph), Computed(theirs), names)
    assert clean.verdict is Verdict.EQUIVALENT
    assert clean.faults == ()
    faulty = data.draw(st.sampled_from([node for node in theirs.nodes if node.op != "Identity"]))
    result = localized(Computed(graph), Computed(theirs, {faulty.name: lambda x: 0.4 * x + np.float32(0.6)}), names)
    assert result.verdict is Verdict.FAULTY
    assert 1 <= len(result.faults) <= len(faulty.outputs)
    for fault in result.faults:
        assert faulty.name in fault.target_layers
        assert fault.introduced_error > 10 * fault.noise_floor
