"""Passes made faulty on purpose: what's planted shows, and is gone where it's left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import pytest

from benchmarks.common.cases import Case
from benchmarks.trace import faulty_passes
from benchmarks.trace.faulty_passes import Row, plan, report
from benchmarks.trace.generated import Generated, generated
from benchmarks.trace.planting import MARK, SORTS, Place, Plant, planted, surveyed
from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import Model
from conrepair_lab.systems.registry import SYSTEMS

TVM = SYSTEMS["tvm"]
TEXT = """<ir_version: 8, opset_import: ["" : 17]>
g (float[4] x) => (float[4] y) <float[1] c = {3.0}> { h = Mul (x, c) s = Sin (h) y = Add (s, h) }"""
TANH = '<ir_version: 8, opset_import: ["" : 17]>\ng (float[4] x) => (float[4] y) { y = Tanh (x) }'
X = np.array([0.5, -1.25, 2.0, 3.0], np.float32)


@pytest.fixture
def network(tmp_path: Path) -> Generated:
    proto = onnx.parser.parse_model(TEXT)
    onnx.save(proto, tmp_path / "net.onnx")
    model = Model("onnx", str(tmp_path / "net.onnx"), model_sha256(tmp_path / "net.onnx"))
    return Generated(model, proto, {"x": X})


def answer(network: Generated, folder: Path, *left_out: str):  # type: ignore[no-untyped-def]
    setting = TVM.settings["O3"].with_options({"setting": "O3", "left_out": list(left_out)})
    return TVM.open(network.model, setting, folder).run(network.feeds)["y"]


def test_a_fault_goes_with_its_application(network: Generated, tmp_path: Path) -> None:
    with surveyed() as places:
        right = answer(network, tmp_path)
    assert {place.step for place in places} >= {"CanonicalizeBindings", "FuseTIR"}
    early = next(
        place for place in places if place.step == "EliminateCommonSubexpr" and "wrong constant" in place.sorts
    )
    late = next(place for place in places if place.step == "FuseTIR")
    for plant in (Plant(early, "wrong constant"), Plant(late, "scaled", own=0)):
        with planted([plant]):
            assert not np.allclose(answer(network, tmp_path), right, rtol=1e-3)
            np.testing.assert_array_equal(answer(network, tmp_path, plant.application), right)
    mark = Plant(early, MARK)
    with planted([mark, Plant(late, "sign lost", own=1, only_after=mark)]):
        assert not np.allclose(answer(network, tmp_path), right, rtol=1e-3)
        for off in ("EliminateCommonSubexpr#0", "Planted1#0"):
            np.testing.assert_array_equal(answer(network, tmp_path, off), right)


def test_the_smallest_case(network: Generated, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(faulty_passes, "generated", lambda *_: network)
    monkeypatch.setattr(faulty_passes, "switches", few_switches)
    found = faulty_passes.run(tmp_path, case=vars(plan((11,))[0]))
    row = Row(plan((11,))[0], found.pop("status"), found.pop("words"), found)
    assert row.status == "measured"
    assert row.exact
    assert f"| **single** | 1 | 100.0% | 2.5 % | {found['builds']} | {found['builds']} | 100% |" in report([row])


@pytest.mark.parametrize(("values", "usable"), [(X, True), (X * 1e-6, False)])
def test_a_network_that_is_wrong_without_optimizations_is_no_case(
    values: npt.NDArray[np.float32], usable: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """TVM's own tanh loses the digits of tiny numbers, and fast math doesn't."""
    onnx.save(onnx.parser.parse_model(TANH), tmp_path / "tanh.onnx")
    model = Model("onnx", str(tmp_path / "tanh.onnx"), model_sha256(tmp_path / "tanh.onnx"))
    case = next(item for item in plan((11,)) if item.source == "fast")
    monkeypatch.setattr(faulty_passes._Trial, "_isolated", lambda *_: {})
    monkeypatch.setattr(faulty_passes, "_DRAWS", 20)
    network = Generated(model, onnx.load(model.path), {"x": values})
    assert faulty_passes._Trial(network, case, tmp_path).told() == ({} if usable else None)


def few_switches(record, options):  # type: ignore[no-untyped-def]
    """Those on Relax alone: a build takes a third of a second."""
    return [item for item in faulty_passes_switches(record, options) if not item.name.startswith(("tirx", "s_tir"))]


faulty_passes_switches = faulty_passes.switches


@pytest.mark.parametrize(
    ("group", "causes", "heals", "exact"),
    [
        ("two", [["a"], ["b"]], [["a", "b"]], True),
        ("two", [["a"]], [["a"]], False),
        ("together", [["a", "b"]], [["a"], ["b"]], True),
        ("together", [["a"], ["b"]], [["a", "b"]], False),
    ],
)
def test_exact_is_all_that_was_planted_and_nothing_else(
    group: str, causes: list[list[str]], heals: list[list[str]], exact: bool
) -> None:
    case = Case(group, "generated", "O3", "O3", (f"{group} 0",), 1, 11)
    assert Row(case, "measured", "", {"planted": ["a", "b"], "causes": causes, "heals": heals}).exact is exact


def test_there_are_as_many_cases_as_are_wanted() -> None:
    cases = plan((1, 2))
    assert [sum(case.group == name for case in cases) for name in ("single", "two", "together")] == [60, 30, 30]
    assert len({case.name for case in cases}) == 120
    assert Plant(Place("FuseTIR", "FuseTIR#0", "tensor_1", tuple(SORTS)), "scaled").application == "FuseTIR#0"


def test_the_same_name_draws_the_same_network(tmp_path: Path) -> None:
    one, two = (generated("3/1", tmp_path, nodes=4) for _ in range(2))
    assert one is not None
    assert two is not None
    assert one.model.sha256 == two.model.sha256
