"""Networks as they're given away, and how their outputs are compared."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from conrepair.ground.runtime.errors import MissingLibraryError, UsageError
from conrepair_lab.campaigns.fuzz_jobs import read_network
from conrepair_lab.generate.checks import check_wishes
from conrepair_lab.generate.forms.form import forms
from conrepair_lab.generate.generated import Generated, block, generated, versions
from conrepair_lab.generate.judging import ResultDifference, difference, optimized
from conrepair_lab.generate.networks import GeneratedNetwork
from conrepair_lab.generate.onnx_form import accepted
from conrepair_lab.generate.support import Probed
from conrepair_lab.generate.wishes import Wishes

WISHES = Wishes(nodes=4, operators=("Add", "Conv", "Relu", "Cast"), dtypes=("float32", "float16"))


def some(count: int) -> list[Generated]:
    networks = itertools.islice(block(WISHES, 7, 0, Probed(20, accepted)), count)
    return [
        generated(network, 7, place).judged()
        for place, network in enumerate(networks)
        if isinstance(network, GeneratedNetwork)
    ]


def test_what_is_said_of_a_network_is_so(tmp_path: Path) -> None:
    for network in some(6):
        about, graph = network.about, network.model.graph
        assert sum(about["operators"].values()) == len(graph.node) == 4
        assert set(about["operators"]) <= set(WISHES.operators)
        assert list(about["inputs"]) == [item.name for item in graph.input] == list(network.inputs)
        assert list(about["outputs"]) == [item.name for item in graph.output] == list(network.outputs)
        assert set(about["weights"]) <= {item.name for item in graph.initializer}
        assert about["versions"] == versions()
        assert about["optimized"]["verdict"] == "same"
        network.write(tmp_path)
        with np.load(tmp_path / "inputs.npz", allow_pickle=False) as read:
            assert {name: str(array.dtype) for name, array in read.items()} == {
                name: text.partition("[")[0] for name, text in about["inputs"].items()
            }


def test_networks_with_bfloat16_are_fed_as_they_are_written(tmp_path: Path) -> None:
    """ONNX Runtime takes float32 from NumPy's file, and the network casts it: it refuses float32 for bfloat16."""
    operators = ("Cast", "Concat", "Identity", "Relu", "Transpose")
    wishes = Wishes(nodes=4, operators=operators, dtypes=("bfloat16", "float32"), extremes=1.0)
    narrow = 0
    for place, network in enumerate(itertools.islice(block(wishes, 3, 0, Probed(20, accepted)), 12)):
        assert isinstance(network, GeneratedNetwork)
        found = generated(network, 3, place).judged()
        narrow += any(
            array.dtype.name == "bfloat16" for array in (*network.inputs.values(), *network.answers.values())
        )
        assert found.about["optimized"]["verdict"] == "same"
        found.write(tmp_path)
        session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
        with np.load(tmp_path / "inputs.npz") as inputs, np.load(tmp_path / "outputs.npz") as outputs:
            right = dict(outputs)
            given = dict(zip(right, session.run(list(right), dict(inputs)), strict=True))
        assert {name: array.dtype for name, array in given.items()} == {
            name: array.dtype for name, array in right.items()
        }
        assert all(array.dtype.name in {"float32", "int64"} for array in right.values())
        case, expected = read_network(tmp_path)
        assert expected is not None
        for arrays, read in ((found.inputs, case.inputs), (found.outputs, expected)):
            assert all(read[name].tobytes() == array.tobytes() for name, array in arrays.items())
    assert narrow >= 4


@pytest.mark.parametrize(
    ("found", "coarsest", "expected"),
    [
        ([1.0, 100.5], "float32", None),
        ([1.0, 103.0], "float32", ResultDifference("y", 3.0, 1)),
        ([1.0, 103.0], "float16", None),
        ([1.5, np.nan], "float32", ResultDifference("y", None, 2)),
        ([1.0], "float32", ResultDifference("y", None, 2)),
    ],
)
def test_real_numbers_may_be_apart(found: list[float], coarsest: str, expected: ResultDifference | None) -> None:
    assert difference({"y": np.float32([1.0, 100.0])}, {"y": np.float32(found)}, coarsest) == expected


def test_whole_numbers_are_compared_exactly() -> None:
    most = np.iinfo(np.int64).max
    expected, found = {"y": np.array([1, most])}, {"y": np.array([1, most - 1])}
    assert difference(expected, found) == ResultDifference("y", 1.0, 1)
    assert difference({"y": np.array([True])}, {"y": np.array([False])}) == ResultDifference("y", 1.0, 1)
    assert difference(expected, expected) is None


def test_the_output_that_is_furthest_off_is_named() -> None:
    expected = {name: np.zeros(2, np.float32) for name in "abc"}
    found = {"a": np.float32([0, 1]), "b": np.float32([5, 0]), "c": np.zeros(2, np.float32)}
    assert difference(expected, found) == ResultDifference("b", 5.0, 1)


def test_what_the_runtime_refuses_and_what_it_computes_otherwise_are_told_apart() -> None:
    head = '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y)'
    model = onnx.parser.parse_model(f"{head} {{ y = Relu (x) }}")
    x = np.float32([-1, 1])
    assert optimized(model, {"x": x}, {"y": np.float32([0, 1])}, "float32") == {"verdict": "same"}
    differs = optimized(model, {"x": x}, {"y": x}, "float32")
    assert differs == {"verdict": "differs", "output": "y", "largest": 1.0, "elements": 1}
    wrong = optimized(model, {"x": x.astype(np.float64)}, {"y": x}, "float32")
    assert wrong["verdict"] == "fails"
    assert "Unexpected input data type" in wrong["words"]


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        ({"operators": ("Ad",)}, "no operator 'Ad' here; did you mean 'And' or 'Add'?"),
        ({"exclude": ("Zzz",)}, "no operator 'Zzz' here; known: Abs, "),
        ({"dtypes": ("float23",)}, "did you mean 'float32'"),
        ({"quotas": {"size of nil": 0.1}}, "did you mean 'size of zero'"),
        ({"quotas": {"size of zero": 2.0}}, "no share"),
        ({"ranks": (5, 3)}, "ranks 5-3: give the fewest"),
        ({"ranks": (0, 9)}, "of 0 to 6"),
        ({"opset": 9}, "opsets 17 to 24"),
        ({"operators": ("Gelu",), "opset": 17}, "opset 17 has no Gelu"),
        ({"operators": ("Add",), "exclude": ("Add",)}, "all of them are excluded"),
        ({"operators": ("And",), "dtypes": ("float32",)}, "none of And takes tensors of float32"),
        ({"operators": ("Conv",), "ranks": (1, 2)}, "none of Conv takes tensors of any type with 1 to 2 axes"),
    ],
)
def test_wishes_that_no_network_can_meet_are_refused(wishes: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_wishes(Wishes(**wishes))
    assert words in str(caught.value)


def test_a_solver_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingLibraryError, match=r"z3-solver.*pip install 'conrepair\[lab\]'"):
        check_wishes(Wishes())


def test_the_documentation_names_every_form() -> None:
    page = " ".join((Path(__file__).parents[4] / "docs" / "generate.md").read_text(encoding="utf-8").split())
    assert f"another share: {', '.join(forms())}. *Patterns*" in page
