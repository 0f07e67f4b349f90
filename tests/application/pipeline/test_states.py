"""Models that keep a state from call to call: it isn't chance, and it's compared step by step from a fresh start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import small_models as small
import tensorflow as tf

import conrepair
from conrepair.formats.models.registry import framework

KINDS = {"saved": "tensorflow", "right": "tflite", "gru": "keras", "exported": "torch"}
STATES = {"saved": ("memory",), "right": ("memory",), "gru": ("gru/state",), "exported": ("total",)}
WEIGHT = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)


class Memory(tf.Module):
    """An output of all inputs so far, of which older ones count less; a variable that's only read is no state."""

    def __init__(self, decay: float) -> None:
        super().__init__()
        self.memory, self.scale = tf.Variable(tf.zeros((1, 4)), name="memory"), tf.Variable(tf.ones(1), name="scale")
        self.decay = decay

    @tf.function(input_signature=[tf.TensorSpec([1, 4], tf.float32, name="x")])
    def __call__(self, x: Any) -> Any:
        if self.decay:
            self.memory.assign(self.memory * self.decay + x)
            x = self.memory.read_value()
        return {"y": tf.tanh(x @ tf.constant(WEIGHT)) * self.scale}


def recurrent(path: Path, *, stateful: bool = True, factor: float = 1.0) -> None:
    steps = keras.Input(batch_shape=(1, 1, 4), name="x")
    network = keras.Model(steps, keras.layers.GRU(3, stateful=stateful, name="gru")(steps))
    generator = np.random.default_rng(1)
    kernel, inner, bias = (generator.normal(size=item.shape).astype(np.float32) for item in network.get_weights())
    network.set_weights([kernel, inner * np.float32(factor), bias])
    network.save(path)


def running_total(path: Path) -> None:
    import torch

    class Total(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", torch.zeros(1, 4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.total.add_(x)
            return self.total * 2.0

    torch.export.save(torch.export.export(Total(), (torch.zeros(1, 4),)), path)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A source in four formats, and for two of them what's right, what forgets, and what remembers otherwise."""
    folder = tmp_path_factory.mktemp("states")
    found = {"saved": folder / "saved"}
    for name, decay in (("right", 0.5), ("wrong", 0.6), ("forgets", 0.0)):
        network, place = Memory(decay), found["saved"] if name == "right" else folder / f"of {name}"
        tf.saved_model.save(network, str(place), signatures=network.__call__)
        found[name] = folder / f"{name}.tflite"
        found[name].write_bytes(tf.lite.TFLiteConverter.from_saved_model(str(place)).convert())
    for name, options in (("gru", {}), ("gru wrong", {"factor": 1.3}), ("gru forgets", {"stateful": False})):
        found[name] = folder / f"{name}.keras"
        recurrent(found[name], **options)
    found["exported"] = folder / "exported.pt2"
    running_total(found["exported"])
    return found


@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_state_is_found_and_begins_anew(name: str, files: dict[str, Path]) -> None:
    model = small.model_of(KINDS[name], files[name])
    runnable = framework(KINDS[name]).load(model)
    assert framework(KINDS[name]).describe(model).states == runnable.states == STATES[name]
    [spec] = runnable.inputs
    feeds = {spec.name: np.full(spec.shape, 0.3, np.float32)}
    first, second, again = (runnable.run(feeds, fresh=fresh) for fresh in (True, False, True))
    [output] = first
    assert not np.allclose(first[output], second[output])
    np.testing.assert_array_equal(first[output], again[output])


def test_files_that_are_not_loaded_say_their_states(files: dict[str, Path]) -> None:
    assert conrepair.inspect(files["saved"], in_process=True).states == ("memory",)


@pytest.mark.parametrize(
    ("source", "target", "words"),
    [
        ("saved", "right", ""),
        ("saved", "wrong", "the error begins at time step 2 of 4"),
        (
            "saved",
            "forgets",
            "step 2 of 4, where the state of earlier steps matters; only the original model keeps a state",
        ),
        ("gru", "gru", ""),
        ("gru", "gru wrong", "the error begins at time step 2 of 4"),
        ("gru", "gru forgets", "only the original model keeps a state (gru/state)"),
    ],
)
def test_right_and_wrong_targets(source: str, target: str, words: str, files: dict[str, Path]) -> None:
    compared = conrepair.compare(files[source], files[target], in_process=True, samples=6)
    assert compared.verdict == ("faulty" if words else "equivalent"), compared.reason
    assert words in compared.reason
    assert any("keeps a state" in note and "4 steps" in note for note in compared.run.notes)


def test_a_format_without_variables_is_told(files: dict[str, Path]) -> None:
    with pytest.raises(conrepair.ConrepairError, match=r"keeps a state \(memory\), and ONNX has no variables"):
        conrepair.convert(files["saved"], to="onnx", mend=False, in_process=True)


def test_outputs_have_an_axis_of_steps(files: dict[str, Path]) -> None:
    rows = np.random.default_rng(2).normal(size=(7, 1, 4)).astype(np.float32)[:, 0]
    outputs = conrepair.execute(files["right"], data={"x": rows}, steps=3, in_process=True).outputs["y"]
    memory, expected = np.zeros(4), []
    for step in range(6):
        memory = rows[step] + (memory * 0.5 if step % 3 else 0)
        expected.append(np.tanh(memory @ WEIGHT))
    np.testing.assert_allclose(outputs, np.reshape(expected, (2, 3, 3)), rtol=1e-5, atol=1e-6)
    with pytest.raises(conrepair.ConrepairError, match=r"has 7 samples, and 8 steps make one.*steps="):
        conrepair.execute(files["right"], data={"x": rows}, steps=8, in_process=True)


def test_what_a_later_step_shows_is_located_and_repaired(files: dict[str, Path], tmp_path: Path) -> None:
    found = conrepair.localize(files["right"], files["wrong"], in_process=True)
    assert (found.verdict, [fault.kind for fault in found.faults]) == ("faulty", ["parameters"])
    repaired = conrepair.repair(files["right"], files["wrong"], output=tmp_path / "out", advice=0, in_process=True)
    assert repaired.exit_code == 0
    again = conrepair.compare(files["right"], tmp_path / "out" / "repaired.tflite", in_process=True)
    assert again.verdict == "equivalent"


@pytest.mark.parametrize(("target", "verdict"), [("right", "equivalent"), ("wrong", "faulty")])
def test_outputs_decide_where_layers_cannot_be_looked_into(target: str, verdict: str, files: dict[str, Path]) -> None:
    found = conrepair.localize(files["saved"], files[target], in_process=True)
    assert (found.verdict, found.faults) == (verdict, ())
    assert any("layers weren't compared" in note for note in found.localization.notes)


def test_layers_that_are_right_at_the_first_step_do_not_excuse_the_others(files: dict[str, Path]) -> None:
    found = conrepair.localize(files["gru"], files["gru forgets"], in_process=True)
    assert (found.verdict, found.faults) == ("faulty", ())
    assert "no layer is faulty at the first step" in found.reason


@pytest.mark.parametrize("right", [True, False])
def test_outputs_computed_elsewhere_have_their_steps_behind_the_samples(right: bool, files: dict[str, Path]) -> None:
    rows = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
    runnable = framework("tflite").load(small.model_of("tflite", files["right"]))
    given = [runnable.run({"x": row[None]}, fresh=not place % 4)["y"][0] for place, row in enumerate(rows)]
    outputs = np.array(given).reshape(2, 4, 3)
    if not right:
        outputs[:, 2:] += 0.1
    found = conrepair.compare(files["right"], {"y": outputs}, data={"x": rows}, in_process=True)
    assert found.verdict == ("equivalent" if right else "faulty")
    assert ("begins at time step 3 of 4" in found.reason) != right
