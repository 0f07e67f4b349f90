"""TFLite networks that are observed and cut, against the framework's own run."""

from __future__ import annotations

import functools
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite_opened as shelf
from tflite_opened import FILES, SYMBOLIC

from conrepair.formats.tflite.load.framework import FRAMEWORK
from conrepair.ground.runtime.errors import DataError


@pytest.fixture(scope="module")
def opened() -> Any:
    """A model by its name."""
    return functools.cache(shelf.opened)


@pytest.mark.parametrize("name", FILES + SYMBOLIC)
def test_outputs_are_the_runnables(opened: Any, name: str) -> None:
    one = opened(name)
    expected = FRAMEWORK.load(one.model).run(one.feeds)
    names = one.network.output_names
    assert list(names) == list(expected)
    assert [names[key] for key in expected] == list(one.network.graph.outputs)
    for key, array in expected.items():
        np.testing.assert_allclose(one.captured[names[key]], array, **one.near(names[key]))


@pytest.mark.parametrize("name", FILES + SYMBOLIC)
def test_shapes_and_types_are_those_of_the_values(opened: Any, name: str) -> None:
    one = opened(name)
    for tensor, array in one.captured.items():
        said = one.network.graph.tensors[tensor]
        assert said.shape == array.shape
        assert array.dtype == (np.float32 if said.quantization else said.dtype)


# --- Cutting ---


@pytest.mark.parametrize("name", FILES)
def test_every_piece_alone_gives_the_same_again(opened: Any, name: str) -> None:
    one = opened(name)
    again = one.network.segment([*one.network.graph.inputs, *one.cuts], one.cuts).run(one.captured)
    assert set(again) == set(one.cuts)
    for tensor, array in again.items():
        np.testing.assert_allclose(array, one.captured[tensor], **one.near(tensor))


@pytest.mark.parametrize("name", FILES)
def test_a_changed_value_changes_its_readers_and_nobody_behind_a_cut(opened: Any, name: str) -> None:
    one = opened(name)
    graph = one.network.graph
    segment = one.network.segment([*graph.inputs, *one.cuts], one.cuts)
    chosen = [tensor for tensor in one.cuts if tensor in segment.needs and graph.tensors[tensor].dtype == "float32"]
    chosen = chosen or [tensor for tensor in one.cuts if tensor in segment.needs]
    for tensor in random.Random(0).sample(chosen, min(4, len(chosen))):
        value = one.captured[tensor]
        changed = value + np.linspace(1, 2, value.size).reshape(value.shape).astype(value.dtype) * (
            np.abs(value).max() + 1
        )
        result = segment.run({**one.captured, tensor: changed})
        unchanged = segment.run(one.captured)
        differing = {cut for cut in one.cuts if not np.array_equal(result[cut], unchanged[cut])}
        # Cuts that are computed from this one without another cut between.
        direct = {cut for cut in one.cuts if any(tensor in node.inputs for node in graph.between(one.cuts, [cut]))}
        assert differing <= direct
        assert differing or not direct or graph.tensors[tensor].quantization


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("seed", range(4))
def test_some_cuts(opened: Any, name: str, seed: int) -> None:
    one, generator = opened(name), random.Random(seed)
    cuts = generator.sample(one.cuts, generator.randint(1, len(one.cuts)))
    wanted = generator.sample(one.observable, generator.randint(1, len(one.observable)))
    segment = one.network.segment([*one.network.graph.inputs, *cuts], wanted)
    assert set(segment.needs) <= {*one.network.graph.inputs, *cuts}
    result = segment.run({name: one.captured[name] for name in segment.needs})
    assert set(result) == set(wanted)
    for tensor in wanted:
        np.testing.assert_allclose(result[tensor], one.captured[tensor], **one.near(tensor))


def test_a_piece_holds_only_its_own_weights(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from conrepair.formats.tflite.read import network as tflite

    sizes: list[int] = []
    make = tflite.interpreter_of
    monkeypatch.setattr(
        tflite,
        "interpreter_of",
        lambda content, **options: sizes.append(len(content)) or make(content, **options),
    )
    one = opened("perceptron-float")
    first, *_, last = one.cuts
    one.network.segment([*one.network.graph.inputs, first], [last])
    one.network.segment(one.network.graph.inputs, one.cuts)
    whole = Path(one.model.path).stat().st_size
    # The first layer has 40 x 48 weights of four bytes.
    assert sizes[1] - sizes[0] >= 40 * 48 * 4
    assert sizes[1] <= whole + 4096


def test_what_cannot_be_cut(opened: Any) -> None:
    network = opened("convnet-float").network
    graph = network.graph
    hidden = next(name for name, tensor in graph.tensors.items() if not tensor.observable)
    with pytest.raises(ValueError, match="observed"):
        network.segment(graph.inputs, [hidden])
    with pytest.raises(ValueError, match="observed"):
        network.segment([hidden], graph.outputs)
    with pytest.raises(ValueError, match="observed"):
        network.segment(["nothing"], graph.outputs)
    with pytest.raises(ValueError, match="without the inputs"):
        network.segment([], graph.outputs)
    with pytest.raises(ValueError, match="is an input"):
        network.segment(graph.inputs, graph.inputs)


def test_a_feed_that_is_missing_or_does_not_fit(opened: Any) -> None:
    one = opened("convnet-float")
    segment = one.network.segment(one.network.graph.inputs, one.network.graph.outputs)
    with pytest.raises(DataError, match="it wasn't fed"):
        segment.run({})
    with pytest.raises(DataError, match="can't take"):
        segment.run({name: array[:1] for name, array in one.given.items()})
