"""Several faults in one piece, which no single edit mends."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import onnx_ir
import pytest
from onnx import TensorProto, helper, numpy_helper

from conrepair.data.feeds import DataReference
from conrepair.frameworks.model import Model
from conrepair.frameworks.registry import framework
from conrepair.localize.models import Subject
from conrepair.localize.options import Options
from conrepair.repair.bench import Bench
from conrepair.repair.edits import SetParameter
from conrepair.repair.search import Outcome, search
from conrepair.runtime.files import sha256_of

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


def searched(wrong: list[np.ndarray], folder: Path) -> Outcome:
    right = chain(folder / "right.onnx", weights())
    faulty = chain(folder / "wrong.onnx", wrong)
    data = folder / "data.npz"
    np.savez(data, x=np.random.default_rng(6).normal(size=(_SAMPLES, _WIDTH)).astype(np.float32))
    inputs = framework("onnx").describe(right).inputs
    source = Subject(right, inputs, DataReference("tensors", _SAMPLES, str(data), sha256_of(data)), None)
    bench = Bench(source, dataclasses.replace(source, model=faulty), folder, Options(samples=_SAMPLES, batch_size=4))
    return search(bench, faulty, folder, seconds=60)


@pytest.mark.parametrize("places", [(1,), (1, 2), (0, 1, 2), (0, 1, 2, 3)])
def test_as_many_edits_as_faults(places: tuple[int, ...], tmp_path: Path) -> None:
    wrong = [array[::-1].T if place in places else array for place, array in enumerate(weights())]
    outcome = searched(wrong, tmp_path)
    assert outcome.before.result.faults
    assert not outcome.after.result.faults
    assert outcome.after.result.output_error < 1e-6
    edited = [edit.node for edit in outcome.patch.edits if isinstance(edit, SetParameter)]
    assert len(edited) == len(outcome.patch.edits)
    assert sorted(edited) == [f"product{place}" for place in places]
