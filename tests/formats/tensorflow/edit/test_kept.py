"""What an edit of a SavedModel doesn't name stays: signatures, variables, assets, files of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_models as small
import tensorflow as tf

from conrepair.formats.editing.open_editor import open_editor

ROWS = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)
KNOWN = ("weight", "bias", "unread", "step", "vocabulary")


class Network(tf.Module):
    """With a signature besides the one that's repaired, variables that this one doesn't read, and an asset."""

    def __init__(self, vocabulary: Path) -> None:
        super().__init__()
        values = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
        self.weight, self.bias = tf.Variable(values, name="weight"), tf.Variable(np.ones(3, np.float32), name="bias")
        self.unread, self.step = tf.Variable(np.arange(5.0), name="unread"), tf.Variable(7, dtype=tf.int64)
        self.vocabulary = tf.saved_model.Asset(str(vocabulary))

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
    def __call__(self, x: Any) -> Any:
        return {"y": tf.nn.relu(x @ self.weight + self.bias)}

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
    def other(self, x: Any) -> Any:
        return {"z": tf.exp(x) + tf.cast(self.step, tf.float32)}


@pytest.fixture(scope="module", params=[False, True], ids=["alone", "with another signature"])
def original(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    (vocabulary := folder / "vocabulary.txt").write_text("cat\ndog\n")
    network, path = Network(vocabulary), folder / "net"
    signatures = {"serving_default": network.__call__} | ({"other": network.other} if request.param else {})
    tf.saved_model.save(network, str(path), signatures=signatures)
    (path / "assets.extra").mkdir()
    (path / "assets.extra" / "labels.txt").write_text("labels")
    (path / "README.md").write_text("what it's for")
    return path


@pytest.mark.parametrize("edit", ["numbers", "graph"])
def test_all_else_stays(original: Path, edit: str, tmp_path: Path) -> None:
    editor = open_editor(small.model_of("tensorflow", original))
    nodes = {node.op: node for node in editor.graph.nodes}
    if edit == "numbers":
        editor.set_parameter(nodes["MatMul"], "weight", nodes["MatMul"].parameters["weight"].numpy() * 2)
    else:
        editor.remove(nodes["Relu"])
    new = Path(editor.save(tmp_path, "repaired").path)
    written = {"saved_model.pb", "fingerprint.pb"}
    files = {item.relative_to(original) for item in original.rglob("*") if item.is_file()}
    for place in files:
        if place.parts[0] not in written | {"variables"}:
            assert (new / place).read_bytes() == (original / place).read_bytes(), place
    before, after = tf.saved_model.load(str(original)), tf.saved_model.load(str(new))
    assert set(before.signatures) == set(after.signatures)
    for name in KNOWN[:-1]:
        same = np.array_equal(getattr(before, name).numpy(), getattr(after, name).numpy())
        assert same == (name != "weight" or edit == "graph"), name
    assert Path(after.vocabulary.asset_path.numpy().decode()).read_text() == "cat\ndog\n"
    prefixes = [str(path / "variables" / "variables") for path in (original, new)]
    names = [{name for name, _ in tf.train.list_variables(prefix)} for prefix in prefixes]
    assert names[0] == names[1]
    x = tf.constant(ROWS)
    expected = ROWS @ before.weight.numpy() * (2 if edit == "numbers" else 1) + before.bias.numpy()
    expected = np.maximum(expected, 0) if edit == "numbers" else expected
    np.testing.assert_allclose(after.signatures["serving_default"](x=x)["y"].numpy(), expected, rtol=1e-5, atol=1e-5)
    if "other" in before.signatures:
        one, two = (model.signatures["other"](x=x)["z"].numpy() for model in (before, after))
        np.testing.assert_array_equal(one, two)
