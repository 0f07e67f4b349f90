"""Answers that are right but elsewhere: classes, activations, outputs, inputs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
import torch

from conrepair.diagnosis.localization.judge.answers import explain_final_activation
from conrepair.diagnosis.localization.judge.label_mapping import explain_class_permutation, explain_label_shift
from conrepair.diagnosis.localization.judge.tensor_order import explain_input_order, explain_output_order
from conrepair.ground.data.tensor_spec import TensorSpec


@pytest.fixture
def scores() -> np.ndarray:
    return np.random.default_rng(0).normal(0, 3, (8, 200)).astype(np.float32)


def noisy(array: np.ndarray, share: float = 1e-3) -> np.ndarray:
    return array + share * array.std() * np.random.default_rng(1).normal(size=array.shape).astype(array.dtype)


@pytest.mark.parametrize("shift", [1, -1, 3, 90])
def test_rolled_classes(scores: np.ndarray, shift: int) -> None:
    found = explain_label_shift(scores, noisy(np.roll(scores, shift, axis=1)))
    assert found is not None
    words, before = found
    assert words.startswith(f"class k of the original is {abs(shift)} {'after' if shift > 0 else 'before'} k")
    assert before > 0.5


@pytest.mark.parametrize(("front", "behind"), [(1, 0), (2, 3)])
def test_more_classes(scores: np.ndarray, front: int, behind: int) -> None:
    wide = np.pad(scores, ((0, 0), (front, behind)))
    found = explain_label_shift(scores, wide)
    assert found is not None
    assert found[0].startswith(
        f"{200 + front + behind} classes against 200: class k of the original is {front} after k"
    )
    back = explain_label_shift(wide, scores)
    assert back is not None
    assert f"class k of the original is {front} before k in the converted model" in back[0]


def test_classes_added_behind_need_no_shift(scores: np.ndarray) -> None:
    assert explain_label_shift(scores, np.pad(scores, ((0, 0), (0, 1)))) is None


def test_no_shift_is_made_up(scores: np.ndarray) -> None:
    assert explain_label_shift(scores, noisy(scores)) is None
    assert explain_label_shift(scores, np.random.default_rng(3).normal(size=scores.shape)) is None
    assert explain_label_shift(scores, np.full_like(scores, np.nan)) is None
    assert explain_label_shift(np.ones_like(scores), np.ones_like(scores)) is None


def test_permuted_classes(scores: np.ndarray) -> None:
    order = np.random.default_rng(2).permutation(200)
    found = explain_class_permutation(scores, noisy(scores[:, order]))
    assert found is not None
    moved = np.flatnonzero(order != np.arange(200))
    examples = ", ".join(f"{place} is at {np.flatnonzero(order == place)[0]}" for place in moved[:3])
    assert found.startswith(f"{len(moved)} of 200 classes are at another index ({examples})")


def test_classes_of_equal_scores_keep_their_places(scores: np.ndarray) -> None:
    scores[:, 50:60] = 0
    exchanged = scores.copy()
    exchanged[:, [3, 4]] = scores[:, [4, 3]]
    found = explain_class_permutation(scores, exchanged)
    assert found is not None
    assert found.startswith("2 of 200 classes are at another index (3 is at 4, 4 is at 3)")


def test_no_permutation_is_made_up(scores: np.ndarray) -> None:
    generator = np.random.default_rng(3)
    assert explain_class_permutation(scores, noisy(scores)) is None
    # Two samples of many classes can be paired well by chance; the other half shows that it was chance.
    assert explain_class_permutation(scores[:2], generator.permuted(scores[:2], axis=1)) is None
    assert explain_class_permutation(scores, generator.normal(0, 3, scores.shape)) is None
    assert explain_class_permutation(scores[:1], scores[:1, ::-1]) is None


@pytest.mark.parametrize("name", ["softmax", "log-softmax", "sigmoid"])
def test_activation_of_torch(scores: np.ndarray, name: str) -> None:
    function = {"softmax": torch.nn.Softmax(1), "log-softmax": torch.nn.LogSoftmax(1), "sigmoid": torch.nn.Sigmoid()}
    applied = function[name](torch.from_numpy(scores)).numpy()
    added = explain_final_activation(scores, applied)
    assert added is not None
    assert added.startswith(f"the converted model applies {name} to its outputs, the original doesn't")
    missing = explain_final_activation(applied, scores)
    assert missing is not None
    assert missing.startswith(f"the original applies {name} to its outputs, the converted model doesn't")


def test_softmax_twice(scores: np.ndarray) -> None:
    once = torch.softmax(torch.from_numpy(scores), 1)
    found = explain_final_activation(once.numpy(), torch.softmax(once, 1).numpy())
    assert found is not None
    assert found.startswith("the converted model applies softmax twice to its outputs")


def test_no_activation_is_made_up(scores: np.ndarray) -> None:
    assert explain_final_activation(scores, noisy(scores)) is None
    assert explain_final_activation(scores, 2 * scores) is None
    flat = np.full_like(scores, 1 / 200)
    assert explain_final_activation(flat + 1e-9 * scores, flat) is None


@pytest.fixture
def outputs() -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    return {name: generator.normal(size=(4, 5)) for name in ("one", "two", "three")} | {"map": np.ones((4, 2, 3))}


def test_outputs_under_other_names(outputs: dict[str, np.ndarray]) -> None:
    given = {"one": outputs["two"], "two": outputs["one"], "three": outputs["three"], "map": outputs["map"]}
    found = explain_output_order(outputs, {name: noisy(array, 1e-5) for name, array in given.items()})
    assert found is not None
    assert found[0] == {"one": "two", "two": "one", "three": "three", "map": "map"}
    assert "one is in two, two is in one" in found[1]


def test_outputs_in_other_places(outputs: dict[str, np.ndarray]) -> None:
    given = {"a": outputs["map"], "b": outputs["three"], "c": outputs["one"], "d": outputs["two"]}
    found = explain_output_order(outputs, given)
    assert found is not None
    assert found[0] == {"one": "c", "two": "d", "three": "b", "map": "a"}


def test_no_order_of_outputs_is_made_up(outputs: dict[str, np.ndarray]) -> None:
    equal = {"one": outputs["one"], "two": outputs["one"]}
    assert explain_output_order(equal, equal) is None
    assert explain_output_order(outputs, {name: noisy(array, 1e-5) for name, array in outputs.items()}) is None
    assert explain_output_order(outputs, {name: array + 1 for name, array in outputs.items()}) is None


INPUTS = tuple(TensorSpec(name, ("batch", 6), "float32") for name in ("a", "b", "c"))


class Weighed:
    """Three inputs through one matrix each, and runs counted."""

    def __init__(self, order: str = "abc") -> None:
        torch.manual_seed(0)
        self.parts = torch.nn.ModuleList([torch.nn.Linear(6, 4) for _ in "abc"])
        self.order, self.runs = order, 0

    def __call__(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        self.runs += 1
        with torch.no_grad():
            terms = [part(torch.from_numpy(feeds[name])) for part, name in zip(self.parts, self.order, strict=True)]
            return {"sum": torch.tanh(sum(terms)).numpy()}


@pytest.fixture
def feeds() -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    return {spec.name: generator.normal(size=(4, 6)).astype(np.float32) for spec in INPUTS}


@pytest.mark.parametrize("order", ["bac", "cab", "bca"])
def test_exchanged_inputs(feeds: dict[str, np.ndarray], order: str) -> None:
    target = Weighed(order)
    found = explain_input_order(target, feeds, INPUTS, Weighed()(feeds), most_runs=30)
    assert found is not None
    assert [found[0][name] for name in order] == ["a", "b", "c"]
    assert target.runs <= 6


def test_no_order_of_inputs_is_made_up(feeds: dict[str, np.ndarray]) -> None:
    assert explain_input_order(Weighed(), feeds, INPUTS, Weighed()(feeds), most_runs=30) is None
    wrong = {"sum": Weighed()(feeds)["sum"][::-1]}
    assert explain_input_order(Weighed(), feeds, INPUTS, wrong, most_runs=30) is None
    other_shapes = {"a": feeds["a"], "b": feeds["b"][:, :3], "c": feeds["c"][:, :2]}
    target = lambda feeds: {"sum": feeds["a"] + 1}  # noqa: E731
    assert explain_input_order(target, other_shapes, INPUTS, {"sum": feeds["a"]}, most_runs=30) is None


def test_many_inputs_cost_few_runs() -> None:
    specs = tuple(TensorSpec(f"x{index}", ("batch", 3), "float32") for index in range(20))
    generator = np.random.default_rng(0)
    feeds = {spec.name: generator.normal(size=(2, 3)).astype(np.float32) for spec in specs}

    runs = 0

    def source(values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        nonlocal runs
        runs += 1
        return {"sum": sum(index * array for index, array in enumerate(values.values()))}

    exchanged = feeds | {"x3": feeds["x11"], "x11": feeds["x3"]}
    found = explain_input_order(source, feeds, specs, source(exchanged), most_runs=300)
    assert found is not None
    assert {name: given for name, given in found[0].items() if name != given} == {"x3": "x11", "x11": "x3"}
    assert runs <= 191 + 1  # and what it should give
