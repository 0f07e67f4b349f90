"""What an edit of a .keras file doesn't name stays: vocabularies, statistics, the optimizer, files of others."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import h5py
import keras
import keras2_files
import numpy as np
import pytest
import small_models as small

from conrepair.formats.editing.open_editor import open_editor

IDS = np.array([[5, 7, 9, 11], [13, 5, 5, 1], [11, 13, 7, 9]])
NUMBERS = np.random.default_rng(0).normal(3, 2, size=(3, 4)).astype(np.float32)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Layers with a vocabulary and with statistics, trained for a step, and labels in the archive."""
    path = tmp_path_factory.mktemp("keras") / "net.keras"
    ids, numbers = keras.Input((4,), dtype="int64", name="ids"), keras.Input((4,), name="numbers")
    lookup, normalization = keras.layers.IntegerLookup(name="lookup"), keras.layers.Normalization(name="scaled")
    lookup.adapt(IDS)
    normalization.adapt(NUMBERS)
    words = keras.layers.Flatten()(keras.layers.Embedding(8, 6, name="words")(lookup(ids)))
    joined = keras.layers.Concatenate()([words, normalization(numbers)])
    hidden = keras.layers.LeakyReLU(negative_slope=0.2, name="active")(keras.layers.Dense(5, name="hidden")(joined))
    network = keras.Model([ids, numbers], keras.layers.Dense(3, name="last")(hidden))
    network.compile(optimizer=keras.optimizers.Adam(1e-3), loss="mse", metrics=["mae"])
    network.fit([IDS, NUMBERS], np.ones((3, 3)), verbose=0)
    network.save(path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("labels.txt", "cat\ndog")
    return path


def edited(original: Path, edit: str, folder: Path) -> Path:
    editor = open_editor(small.model_of("keras", original))
    nodes = {node.layer: node for node in editor.graph.nodes}
    if edit == "numbers":
        editor.set_parameter(nodes["last"], "weight", nodes["last"].parameters["weight"].numpy() * 2)
    else:
        editor.set_attributes(nodes["active"], {"alpha": 0.1})
    return Path(editor.save(folder, "repaired").path)


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def numbers_of(content: bytes) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    with h5py.File(io.BytesIO(content)) as file:

        def visit(name: str, item: object) -> None:
            if isinstance(item, h5py.Dataset):
                found[name] = np.asarray(item[()]).tobytes()

        file.visititems(visit)
    return found


@pytest.mark.parametrize(("edit", "changed"), [("numbers", {"layers/dense_1/vars/0"}), ("attribute", set())])
def test_all_else_stays(original: Path, edit: str, changed: set[str], tmp_path: Path) -> None:
    new = edited(original, edit, tmp_path)
    before, after = members(original), members(new)
    assert before.keys() == after.keys()
    assert any(name.startswith("assets/") for name in before)
    different = {name for name in before if before[name] != after[name]} - {"metadata.json"}
    assert different <= ({"model.weights.h5"} if edit == "numbers" else {"config.json", "model.weights.h5"})
    one, two = (numbers_of(item["model.weights.h5"]) for item in (before, after))
    assert one.keys() == two.keys()
    assert {name for name in one if one[name] != two[name]} == changed
    configurations = [json.loads(item["config.json"]) for item in (before, after)]
    assert configurations[0]["compile_config"] == configurations[1]["compile_config"]


@pytest.mark.parametrize("edit", ["numbers", "attribute"])
def test_the_file_works_as_it_did(original: Path, edit: str, tmp_path: Path) -> None:
    network = keras.saving.load_model(original)
    new = keras.saving.load_model(edited(original, edit, tmp_path))
    states = [[np.asarray(item) for item in one.optimizer.variables] for one in (network, new)]
    for one, two in zip(*states, strict=True):
        np.testing.assert_array_equal(one, two)
    if edit == "numbers":
        last = network.get_layer("last")
        last.kernel.assign(last.kernel * 2)
    else:
        network.get_layer("active").negative_slope = 0.1
        network.make_predict_function(force=True)
    np.testing.assert_allclose(
        new.predict([IDS, NUMBERS], verbose=0), network.predict([IDS, NUMBERS], verbose=0), rtol=1e-5, atol=1e-6
    )


def test_an_archive_of_keras2_is_read_after_it(tmp_path: Path) -> None:
    path = keras2_files.write_archive("seq", tmp_path / "net.keras")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("labels.txt", "cat\ndog")
    editor = open_editor(small.model_of("keras", path))
    last = next(node for node in editor.graph.nodes if node.layer == "dense_1")
    editor.set_parameter(last, "bias", last.parameters["bias"].numpy() + 1)
    (tmp_path / "out").mkdir()
    new = Path(editor.save(tmp_path / "out", "repaired").path)
    network = keras.saving.load_model(new, compile=False)
    given = network.predict_on_batch(keras2_files.question("seq"))
    np.testing.assert_allclose(given, keras2_files.answers("seq") + 1, rtol=1e-5, atol=1e-5)
    assert members(new)["labels.txt"] == b"cat\ndog"
