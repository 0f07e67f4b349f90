"""What other generators of networks got wrong (NNSmith, GenCoG): each is shown to be right here."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import numpy as np
import pytest

from conrepair_lab.generate.diversity import Diversity
from conrepair_lab.generate.forms.form import forms
from conrepair_lab.generate.generated import each_generated
from conrepair_lab.generate.graph import Draft
from conrepair_lab.generate.judging import difference
from conrepair_lab.generate.networks import made
from conrepair_lab.generate.onnx_form import accepted
from conrepair_lab.generate.settings.ports import NotAllowedError
from conrepair_lab.generate.settings.solving import Solving
from conrepair_lab.generate.settings.tensors import TensorType
from conrepair_lab.generate.specifications.specification import specifications
from conrepair_lab.generate.support import Probed
from conrepair_lab.generate.values.search import Settling, flaw_of
from conrepair_lab.generate.weaving import Weaver
from conrepair_lab.generate.wishes import Wishes

SUPPORT = Probed(20, accepted)
LIMITED = ("Acos", "Acosh", "Asin", "Atanh", "Div", "Log", "Pow", "Reciprocal", "Sqrt", "Sub", "Exp", "Tan")


def draft_of(*nodes: tuple[str, tuple[int, ...]], dtype: str = "float32") -> Draft:
    """A chain of operators of one tensor, or with weights of these shapes."""
    draft = Draft(20)
    weaver = Weaver(draft, Random(0), SUPPORT, 4096, "test")
    x = weaver.new(dtype, (3, 4))
    for op, weight in nodes:
        x = weaver.node(op, x, *([weaver.new(dtype, weight)] if weight else []))
    return draft


@pytest.mark.parametrize("seed", range(10))
def test_limited_operators_are_finite_by_sampling_too(seed: int) -> None:
    """The first values that were drawn counted as valid, whatever came of them."""
    network = made(Wishes(nodes=12, operators=LIMITED, woven=0.0), Random(seed), SUPPORT)
    assert not [array for array in network.values.computed.values() if flaw_of(array)]


def test_the_search_bears_weights_and_nan() -> None:
    """The search by gradients failed where there were weights, or inputs that weren't finite."""
    draft = draft_of(("Sub", (4,)), ("Sqrt", ()), ("Mul", (3, 4)), ("Log", ()))
    start = {name: np.full(item.type.shape, np.nan, np.float32) for name, item in draft.sources.items()}
    for kept in (None, start):
        found = Settling(draft, np.random.default_rng(1)).settled(kept)
        assert found is not None
        assert not any(flaw_of(array) for array in found.computed.values())


def test_each_output_is_compared() -> None:
    """Outputs behind one that was missing weren't compared, in an order that changed from run to run."""
    right = {name: np.arange(3.0) for name in "abc"}
    for name in right:
        wrong = difference(right, {**right, name: np.array([0.0, 1.0, 9.0])})
        assert wrong is not None
        assert wrong.output == name


def test_nan_is_a_difference() -> None:
    """Where both sides may be NaN, nothing is found that turns numbers into NaN."""
    assert difference({"a": np.ones(2)}, {"a": np.array([1.0, np.nan])}) is not None


def test_nothing_is_remembered_of_an_operator_that_could_not_be_asked() -> None:
    """An empty answer was kept, and every later run stopped at it."""
    support = Probed(20, lambda model, draft: False)
    with pytest.raises(NotAllowedError):
        Solving("Relu", 20, Random(0), support).input()
    assert Probed(20, accepted).choices("Relu", {}, "T", ("float32",)) == ("float32",)


def test_operators_of_several_outputs_are_put_in_front() -> None:
    """Only the first of several outputs could ever be matched."""
    found = set()
    for op in ("Split", "TopK", "MaxPool", "Dropout", "LSTM"):
        target = TensorType("float32", (2, 3, 4, 5))
        for seed in range(60):
            setting = Solving(op, 20, Random(seed), SUPPORT, target=target)
            try:
                specifications()[op].body(setting)
                setting.solved()
            except NotAllowedError:
                continue
            found |= {op} if len([made for made in setting.outputs if made]) > 1 else set()
    assert found >= {"Split", "TopK", "MaxPool", "Dropout"}


def test_nothing_is_pickled(tmp_path: Path) -> None:
    """Models and answers were pickles, and one was evaluated: to load a report ran code."""
    for item in each_generated(Wishes(nodes=4), seed=3, count=2):
        item.write(tmp_path)
        assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".npz", ".npz", ".onnx"]
        json.loads((tmp_path / "model.json").read_text())
        for name in ("inputs.npz", "outputs.npz"):
            assert np.load(tmp_path / name, allow_pickle=False).files


def test_sizes_are_not_mostly_one() -> None:
    """A solver left to itself makes three sizes of four 1 (0.34 to 0.77 were measured)."""
    quotas = dict.fromkeys(forms(), 0.0)
    shapes = [
        array.shape
        for seed in range(4)
        for array in made(Wishes(nodes=10, quotas=quotas), Random(seed), SUPPORT).values.computed.values()
    ]
    sizes = [size for shape in shapes for size in shape]
    assert sizes.count(1) < 0.25 * len(sizes)


def test_one_input_and_output_keep_the_number_of_nodes() -> None:
    """Twenty were asked for, and 5.75 remained."""
    assert len(made(Wishes(nodes=20, single=True), Random(2), SUPPORT).draft.nodes) == 20


def test_ancestries_of_deep_networks_are_found_quickly() -> None:
    """A walk through ancestors without memory takes as many steps as there are paths."""
    draft = draft_of()
    weaver = Weaver(draft, Random(0), SUPPORT, 4096, "test")
    x = next(iter(draft.sources))
    for _ in range(200):
        x = weaver.node("Add", x, x)  # 2 ** 200 paths
    seen = Diversity(["Add"])
    seen.add(draft)  # would not end
    assert len(seen.ancestries) == 200


def test_inputs_have_both_signs() -> None:
    """Inputs were drawn from 0 to 1 alone."""
    values = [made(Wishes(nodes=5), Random(seed), SUPPORT).values.sources.values() for seed in range(4)]
    every = np.concatenate([array.ravel().astype(float) for arrays in values for array in arrays])
    assert (every < 0).any()
    assert (every > 1).any()
