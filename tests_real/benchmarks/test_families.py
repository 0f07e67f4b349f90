"""The benchmark of families: its networks answer by their inputs, its faults show, its halves are apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from crossed import slower
from documents import localized_in
from onnx import TensorProto, helper, numpy_helper

from benchmarks.common.cases import DEVELOPMENT_SEEDS, REPORTING_SEEDS, Case
from benchmarks.common.in_process import ask
from benchmarks.common.located import LEAST_EFFECT, RIGHT
from benchmarks.families.architectures import DEVELOPMENT, REPORTING, architecture
from benchmarks.families.cases import FAULTY, plan
from benchmarks.families.cases import RIGHT as RIGHT_GROUP
from benchmarks.families.making import make
from benchmarks.families.rows import FamilyRow
from benchmarks.families.running import answers_of
from benchmarks.families.tables import tables
from benchmarks.families.weights import spread

ALL = (*DEVELOPMENT, *REPORTING)
_SLOWER = ("efficientnet-keras", "gru-keras")
"""Of Keras's networks another one is quick."""
_LEAST_SPREAD = 0.2


def _difference(one: list[Any], two: list[Any]) -> float:
    if [item.shape for item in one] != [item.shape for item in two]:
        return float("inf")
    return max(float(np.linalg.norm(a - b) / np.linalg.norm(a)) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("name", [*(name for name in ALL if name not in _SLOWER), *slower(*_SLOWER)])
def test_answers_depend_on_inputs_and_faults(name: str) -> None:
    chosen = architecture(name)
    samples = chosen.samples(np.random.default_rng(5), 16)
    expected = answers_of(chosen, chosen.build(), samples)
    assert min(spread(item) for item in expected) > _LEAST_SPREAD
    assert _difference(expected, answers_of(chosen, chosen.build(), samples)) == 0
    for fault in (item for item in chosen.faults.values() if item.means == "network"):
        network = chosen.build()
        given = answers_of(chosen, fault.change(network) or network, samples)
        assert _difference(expected, given) > LEAST_EFFECT, fault
    for writing in chosen.writings.values():
        network = chosen.build()
        given = answers_of(chosen, writing.change(network) or network, samples)
        assert _difference(expected, given) < RIGHT, writing


def test_halves_are_apart_and_large_enough() -> None:
    assert not set(DEVELOPMENT) & set(REPORTING)
    # What is there in two frameworks is one family.
    families = [{name.removesuffix("-keras") for name in half} for half in (DEVELOPMENT, REPORTING)]
    assert not families[0] & families[1]
    halves = [plan(seeds) for seeds in (DEVELOPMENT_SEEDS, REPORTING_SEEDS)]
    for cases in halves:
        assert len({case.name for case in cases}) == len(cases)
        for name in {case.model for case in cases}:
            groups = [case.group for case in cases if case.model == name]
            assert groups.count(FAULTY) >= 8
            assert groups.count(RIGHT_GROUP) >= 4


def _row(group: str, verdicts: tuple[str, str, str], **more: Any) -> FamilyRow:
    compare, localize, repair = verdicts
    injected = [{"kind": "graph", "target_layers": ["b"], "source_layers": []}] if group == FAULTY else []
    result = {
        "injected": injected,
        "rounding": 1e-7,
        "effect": 0.1,
        "said": {"compare": compare, "localize": localize, "repair": repair},
        "compare": {"exit": 1, "words": "", "reason": ""},
        "localize": {"exit": 1, "words": "", "found": more.pop("found", [])},
        "repair": {"exit": more.pop("exit", 1), "words": "", "edits": more.pop("edits", [])},
        "seconds": {"compare": 1.0},
        "before": 0.1,
    }
    case = Case(group, "bert", "pt2", "dynamo", ("swapped-qk",), int(group == FAULTY))
    return FamilyRow(case, "measured", "", result | more)


def _found(layer: str, kind: str = "graph") -> list[dict[str, Any]]:
    return [{"kind": kind, "target_layers": [layer], "source_layers": [], "evidence": ["so it is"]}]


def test_rows_are_scored_by_what_all_three_say() -> None:
    good = _row(FAULTY, ("faulty",) * 3, found=_found("b"), after=2e-7, edits=["one"], exit=0)
    assert (good.named, good.repaired, good.to_rounding, good.agrees, good.badness) == (True, True, True, True, 0)
    passed = _row(FAULTY, ("noise", "faulty", "faulty"), found=_found("a"))
    assert (passed.passed, passed.agrees, passed.named, passed.repaired) == (True, False, False, False)
    assert passed.badness > _row(FAULTY, ("faulty",) * 3).badness > 0
    oversold = _row(FAULTY, ("faulty",) * 3, found=_found("b"), after=1e-2, exit=0)
    assert oversold.oversold
    assert not oversold.repaired
    accused = _row(RIGHT_GROUP, ("equivalent", "faulty", "equivalent"))
    assert accused.accused
    assert not _row(RIGHT_GROUP, ("equivalent", "noise", "quantized")).badness
    assert _row(RIGHT_GROUP, ("equivalent", "undecided", "equivalent")).doubted
    failed = FamilyRow(good.case, "failed", "a time limit")
    assert failed.failed
    assert not failed.passed
    unseen = FamilyRow(good.case, "below the floor", "the answers differ by 1e-9")
    assert not unseen.counts
    assert not unseen.badness
    text = tables([good, passed, oversold, accused, failed, unseen])
    assert "## The worst 4 of 4" in text
    assert "| dynamo | 4 | 1 |" in text


def test_verbs_are_asked_in_this_process(tmp_path: Any) -> None:
    for name, factor in (("right", 1.0), ("wrong", 1.5)):
        weight = numpy_helper.from_array(np.eye(4, dtype=np.float32) * np.float32(factor), "weight")
        ends = [helper.make_tensor_value_info(end, TensorProto.FLOAT, ["n", 4]) for end in ("x", "y")]
        node = helper.make_node("MatMul", ["x", "weight"], ["y"], name="product")
        graph = helper.make_graph([node], "g", ends[:1], ends[1:], [weight])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(model, tmp_path / f"{name}.onnx")
    files = [str(tmp_path / f"{name}.onnx") for name in ("right", "wrong")]
    found = ask("localize", *files, "-o", str(tmp_path / "out"))
    told = localized_in(found.document["rows"][-1])
    assert (found.exit, told["verdict"]) == (1, "faulty")
    assert told["faults"][0]["target_layers"] == ["product"]
    refused = ask("compare", files[0], str(tmp_path / "nowhere.onnx"), "-o", str(tmp_path / "compared"))
    assert (refused.exit, refused.document) == (3, {})
    assert "nowhere.onnx" in refused.words


@pytest.mark.parametrize(
    ("fault", "target", "source"),
    [
        ("gelu-tanh", "/layers.1/activation/", "layers.1.activation"),
        ("value-scaled", "/layers.1/attention/value/MatMul", "layers.1.attention.value"),
        ("swapped-qk", "/layers.0/attention/MatMul", "layers.0.attention"),
    ],
)
def test_layers_at_fault_are_known_by_both_names(fault: str, target: str, source: str, tmp_path: Any) -> None:
    case = Case(FAULTY, "bert", "pt2", "script", (fault,), 1)
    places = make(case, tmp_path / "kept", tmp_path).truth()
    assert any(name.startswith(target) for name in places["target_layers"])
    assert source in places["source_layers"]
    assert not any("classifier" in name for names in places.values() for name in names)
