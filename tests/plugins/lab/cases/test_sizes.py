"""Sizes that a network leaves open are set, varied and drawn; numbers stay those of the case."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from fuzz_cases import case

from conrepair_lab.cases.case import Case, read, written
from conrepair_lab.cases.reduce import Budget, reduce
from conrepair_lab.cases.sizes import SIZES, definite, drawn_sizes, open_sizes, resized, with_sizes

TEXT = """g (float[batch, 3] x, float[3, batch] w, float[1] b) => (float[batch, batch] y, float[3] z)
{ a = MatMul (x, w) y = Add (a, b) z = ReduceSum <keepdims = 0> (x, i) }""".replace("{ a", "<int64[1] i = {0}> { a")


def made(**sizes: int) -> Case:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    return with_sizes(case(TEXT, x=x, w=x.T.copy(), b=np.ones(1, np.float32)), sizes)


def test_open_sizes_are_known_by_name() -> None:
    assert open_sizes(made()) == {"batch": 2}
    assert not open_sizes(definite(made()))


def test_a_further_size_repeats_numbers_or_leaves_them_out() -> None:
    more, less = resized(made(batch=5)), resized(made(batch=1))
    assert more is not None
    assert less is not None
    assert more.inputs["x"][:, 0].tolist() == [0, 3, 0, 3, 0]
    assert more.inputs["w"][0].tolist() == [0, 3, 0, 3, 0]
    assert more.inputs["b"].shape == (1,)
    assert less.inputs["x"].tolist() == [[0, 1, 2]]
    assert SIZES not in more.options


@pytest.mark.parametrize("sizes", [{}, {"batch": 2}, {"other": 7}])
def test_no_other_size_is_no_further_one(sizes: dict[str, int]) -> None:
    assert resized(made(**sizes)) is None


def test_a_definite_network_computes_the_same() -> None:
    found = definite(made(batch=5))
    onnx.checker.check_model(found.model, full_check=True)
    assert [size.dim_value for size in found.model.graph.input[0].type.tensor_type.shape.dim] == [2, 3]
    assert [size.dim_value for size in found.model.graph.output[0].type.tensor_type.shape.dim] == [2, 2]
    assert not found.options


def test_drawn_sizes_are_others_and_the_same_for_a_seed() -> None:
    drawn = [drawn_sizes(made(), np.random.default_rng(seed)).options[SIZES]["batch"] for seed in range(20)]
    assert set(drawn) == {1, 3, 7}
    assert drawn[0] == drawn_sizes(made(), np.random.default_rng(0)).options[SIZES]["batch"]
    assert not drawn_sizes(definite(made()), np.random.default_rng(0)).options


def test_sizes_are_written_and_read_with_the_case(tmp_path: Path) -> None:
    folder = tmp_path / "case"
    written(made(batch=5), folder)
    assert read(folder).options == {SIZES: {"batch": 5}}
    assert read(folder).key != made().key


def test_a_reduction_keeps_them_where_they_matter() -> None:
    """What matters is how the output's first size changes: two nodes and an input can go, the open size can't."""

    def still(tried: Case) -> bool:
        further = resized(tried)
        return further is not None and any(array.shape[0] == 5 for array in further.inputs.values() if array.ndim)

    found = reduce(made(batch=5), still, budget=Budget(seconds=20)).case
    assert found.options == {SIZES: {"batch": 5}}
    assert open_sizes(found)
    assert len(found.model.graph.node) == 1


def test_a_reduction_leaves_them_out_where_they_dont() -> None:
    found = reduce(made(batch=5), lambda tried: bool(tried.model.graph.node), budget=Budget(seconds=20)).case
    assert not found.options
    assert not open_sizes(found)


def test_a_result_that_becomes_an_input_keeps_its_open_size() -> None:
    """The first node goes; what it gave is fed with the size open, so that the further one fits both inputs."""
    text = "g (float[batch, 2] x) => (float[batch, 2] y) { a = Exp (x) y = Sub (a, x) }"
    x = np.ones((2, 2), np.float32)

    def still(tried: Case) -> bool:
        return resized(tried) is not None and any(node.op_type == "Sub" for node in tried.model.graph.node)

    found = reduce(with_sizes(case(text, x=x), {"batch": 3}), still, budget=Budget(seconds=20)).case
    assert [node.op_type for node in found.model.graph.node] == ["Sub"]
    assert SIZES in found.options
