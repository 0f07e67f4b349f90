"""Several faults in one piece, which no single edit fixes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnx_ir
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from onnx_networks import written
from small_models import model_of

from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.repairs.bench import Bench
from conrepair.diagnosis.repairs.edits import Graft, Remove, SetParameter
from conrepair.diagnosis.repairs.proposals.all import CHANGES
from conrepair.diagnosis.repairs.proposals.proposal import Proposer
from conrepair.diagnosis.repairs.search import SearchOutcome, _EditSearch, search
from conrepair.diagnosis.repairs.state import RepairState, Taken
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.data.feeds import DataReference
from conrepair.ground.runtime.files.whole import sha256_of

_WIDTH, _SAMPLES, _LAYERS = 16, 8, 4


def weights() -> list[np.ndarray]:
    generator = np.random.default_rng(5)
    return [generator.normal(size=(_WIDTH, _WIDTH)).astype(np.float32) / 4 for _ in range(_LAYERS)]


def chain(path: Path, arrays: list[np.ndarray]) -> Model:
    """Products, each through a tanh."""
    nodes, held, value = [], [], "x"
    for place, array in enumerate(arrays):
        held.append(numpy_helper.from_array(np.ascontiguousarray(array), f"weight{place}"))
        nodes.append(helper.make_node("MatMul", [value, f"weight{place}"], [f"a{place}"], name=f"product{place}"))
        value = f"b{place}"
        nodes.append(helper.make_node("Tanh", [f"a{place}"], [value], name=f"tanh{place}"))
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", _WIDTH]) for name in ("x", value)]
    graph = helper.make_graph(nodes, "chain", values[:1], values[1:], held)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx_ir.save(onnx_ir.from_proto(proto), path)
    return Model("onnx", str(path), sha256_of(path))


def normalized(path: Path, *, spelled_out: bool) -> Model:
    """A normalization and a Sigmoid; spelled out without the Sigmoid, and with a maximum for the mean."""
    first, last, *_ = weights()
    numbers = np.random.default_rng(7)
    scale, bias = (numbers.normal(1.0, 0.3, size=_WIDTH).astype(np.float32) for _ in range(2))
    constants = {"first": first, "last": last, "scale": scale, "bias": bias, "small": np.float32(1e-5)}
    written = (
        "a = MatMul (x, first) m = ReduceMax <axes = [-1]> (a) d = Sub (a, m) s = Mul (d, d)"
        " v = ReduceMean <axes = [-1]> (s) e = Add (v, small) r = Sqrt (e) q = Div (d, r) p = Mul (q, scale)"
        " n = Add (p, bias) y = MatMul (n, last)"
        if spelled_out
        else "a = MatMul (x, first) n = LayerNormalization <axis = -1> (a, scale, bias) g = Sigmoid (n)"
        " y = MatMul (g, last)"
    )
    text = (
        f'<ir_version: 8, opset_import: ["": 17]> net (float[n, {_WIDTH}] x) => (float[n, {_WIDTH}] y) {{{written}}}'
    )
    proto = parser.parse_model(text)
    for place, node in enumerate(proto.graph.node):
        node.name = f"node{place}"
    proto.graph.initializer.extend(
        numpy_helper.from_array(np.ascontiguousarray(array), name)
        for name, array in constants.items()
        if any(name in node.input for node in proto.graph.node)
    )
    onnx_ir.save(onnx_ir.from_proto(proto), path)
    return Model("onnx", str(path), sha256_of(path))


def scaled_and_shifted(path: Path, *, faulty: bool) -> Model:
    """A BatchNormalization with the first channel's scale 0; its variance, which is then nothing's, may differ."""
    first, last, *_ = weights()
    numbers = np.random.default_rng(8)
    scale, bias, mean = (numbers.normal(1.0, 0.3, size=_WIDTH).astype(np.float32) for _ in range(3))
    variance = numbers.uniform(0.5, 2.0, size=_WIDTH).astype(np.float32)
    scale[0] = 0
    if faulty:
        scale, bias = scale * 2, bias[::-1]
        variance[0] = 9
    text = f"""net (float[n, {_WIDTH}] x) => (float[n, {_WIDTH}] y) {{
        a = MatMul (x, first)
        b = Tanh (a)
        [norm] c = BatchNormalization (b, scale, bias, mean, variance)
        d = Tanh (c)
        y = MatMul (d, last)
    }}"""
    arrays = {"first": first, "last": last, "scale": scale, "bias": bias, "mean": mean, "variance": variance}
    return model_of("onnx", written(path, text, arrays))


def searched(right: Model, faulty: Model, folder: Path) -> SearchOutcome:
    data = folder / "data.npz"
    np.savez(data, x=np.random.default_rng(6).normal(size=(_SAMPLES, _WIDTH)).astype(np.float32))
    inputs = framework("onnx").describe(right).inputs
    source = FedModel(right, inputs, DataReference("tensors", _SAMPLES, str(data), sha256_of(data)), None)
    bench = Bench(source, dataclasses.replace(source, model=faulty), folder, Options(samples=_SAMPLES, batch_size=4))
    return search(bench, faulty, folder, seconds=60)


@pytest.mark.parametrize("places", [(1,), (1, 2), (0, 1, 2), (0, 1, 2, 3)])
def test_as_many_edits_as_faults(places: tuple[int, ...], tmp_path: Path) -> None:
    wrong = [array[::-1].T if place in places else array for place, array in enumerate(weights())]
    outcome = searched(chain(tmp_path / "right.onnx", weights()), chain(tmp_path / "wrong.onnx", wrong), tmp_path)
    assert outcome.before.result.faults
    assert not outcome.after.result.faults
    assert outcome.after.result.output_error < 1e-6
    edited = [edit.node for edit in outcome.patch.edits if isinstance(edit, SetParameter)]
    assert len(edited) == len(outcome.patch.edits)
    assert sorted(edited) == [f"product{place}" for place in places]


def test_a_piece_that_only_became_smaller_is_written_anew_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[tuple[Taken, ...]] = []
    usual = _EditSearch._fix_one

    def fix_one(one: _EditSearch, retreats: list[tuple[RepairState, frozenset[str]]]) -> bool:
        repaired = usual(one, retreats)
        steps.append(one.outcome.taken)
        return repaired

    advance = _EditSearch._advance

    def advance_once(one: _EditSearch, sorts: Sequence[Sequence[Proposer]]) -> bool:
        return not (steps and CHANGES in sorts) and advance(one, sorts)  # nothing fixes what was left

    monkeypatch.setattr(_EditSearch, "_fix_one", fix_one)
    monkeypatch.setattr(_EditSearch, "_advance", advance_once)
    right = normalized(tmp_path / "right.onnx", spelled_out=False)
    wrong = normalized(tmp_path / "wrong.onnx", spelled_out=True)
    outcome = searched(right, wrong, tmp_path)
    assert outcome.before.result.faults
    assert not outcome.after.result.faults
    assert outcome.after.result.output_error < 1e-6
    ((undone,), repaired) = steps
    assert undone.left
    (edit,) = undone.edits
    assert isinstance(edit, Graft)
    for taken in (repaired, outcome.taken):
        assert edit not in [other for item in taken for other in item.edits]
    (tmp_path / "again").mkdir()
    assert outcome.patch.apply(wrong, tmp_path / "again", "again").sha256 == outcome.state.model.sha256


def test_what_makes_no_difference_is_left_out(tmp_path: Path) -> None:
    """All numbers of a layer are the source's at first, as no smaller edit fixes it."""
    sides = (scaled_and_shifted(tmp_path / f"{name}.onnx", faulty=name == "wrong") for name in ("right", "wrong"))
    outcome = searched(*sides, tmp_path)
    assert not outcome.after.result.faults
    roles = [(edit.node, edit.role) for edit in outcome.patch.edits if isinstance(edit, SetParameter)]
    assert roles == [("norm", "scale"), ("norm", "bias")]
    held = {item.name: item for item in onnx.load(outcome.state.model.path).graph.initializer}
    assert numpy_helper.to_array(held["variance"])[0] == 9


def test_faults_that_make_up_for_one_another(tmp_path: Path) -> None:
    """Either alone is further off than both; each is repaired as soon as its edit is tried."""
    right, wrong = weights(), weights()
    wrong[0] = wrong[0][:, ::-1]
    values = np.random.default_rng(6).normal(size=(_SAMPLES, _WIDTH)).astype(np.float32)
    reached, wanted = values, values
    for ours, theirs in zip(right[:3], wrong[:3], strict=True):
        wanted, reached = np.tanh(wanted @ ours), np.tanh(reached @ theirs)
    fitted = np.linalg.lstsq(reached, wanted @ right[3], rcond=None)[0]
    wrong[3] = 0.9 * fitted.astype(np.float32) + 0.1 * right[3]
    source = chain(tmp_path / "right.onnx", right)
    outcome = searched(source, chain(tmp_path / "wrong.onnx", wrong), tmp_path)
    one = searched(source, chain(tmp_path / "one.onnx", [wrong[0], *right[1:]]), tmp_path).before
    assert one.result.output_error > outcome.before.result.output_error
    assert not outcome.after.result.faults
    assert outcome.after.result.output_error < 1e-6
    assert outcome.tried == 1  # both edits at once; as each fixes a piece of its own, both are needed


def test_operators_that_only_the_target_has_go_together(tmp_path: Path) -> None:
    """Without one of them alone the outputs have another shape, which no piece is guilty of."""
    right = chain(tmp_path / "right.onnx", weights())
    proto = onnx_ir.to_proto(onnx_ir.load(right.path))
    output = proto.graph.output[0].name
    proto.graph.node[-1].output[0] = "before"
    constants = {"first": [0], "one": [1], "axis": [1], "far": [_WIDTH]}
    proto.graph.initializer.extend(
        numpy_helper.from_array(np.array(value, np.int64), name) for name, value in constants.items()
    )
    proto.graph.node.extend(
        [
            helper.make_node("Slice", ["before", "first", "one", "axis"], ["head"], name="head"),
            helper.make_node("Slice", ["before", "one", "far", "axis"], ["tail"], name="tail"),
            helper.make_node("Concat", ["tail", "head"], [output], name="turned", axis=1),
        ]
    )
    onnx_ir.save(onnx_ir.from_proto(proto), tmp_path / "wrong.onnx")
    wrong = Model("onnx", str(tmp_path / "wrong.onnx"), sha256_of(tmp_path / "wrong.onnx"))
    outcome = searched(right, wrong, tmp_path)
    assert not outcome.after.result.faults
    assert outcome.after.result.output_error == 0
    assert all(isinstance(edit, Remove) for edit in outcome.patch.edits)
