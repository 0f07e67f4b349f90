"""Other sizes of a model's inputs: the file then computes what the same network exported with these sizes does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from crossed import crossed

from conrepair.formats.editing.editor import Editor, NotEditableError
from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.graph.layer_graph import Array
from tests.support.sized_networks import FORMATS, exported
from tests.support.small_models import model_of

pytestmark = pytest.mark.timeout(180)
_SIZES = ((12, 12), (24, 36), (10, 24))


def answer(model: Model, shape: tuple[int, ...]) -> Array:
    runnable = framework(model.framework).load(model)
    feed = np.random.default_rng(5).normal(size=shape).astype(np.float32)
    (result,) = runnable.run({runnable.inputs[0].name: feed}).values()
    return result


def resized(editor: Editor, shape: tuple[int | None, ...], folder: Path) -> Model:
    editor.set_input_shapes([shape])
    return editor.save(folder, "resized")


@pytest.mark.parametrize(
    ("kind", "before"),
    crossed(
        FORMATS,
        _SIZES,
        quick=[
            *((kind, _SIZES[place % len(_SIZES)]) for place, kind in enumerate(FORMATS)),
            *((kind, size) for kind in ("onnx", "torch") for size in _SIZES),
        ],
    ),
)
def test_a_picture_of_another_size(kind: str, before: tuple[int, int], tmp_path: Path) -> None:
    wanted, model = exported(kind, (24, 24), tmp_path / "wanted"), exported(kind, before, tmp_path / "before")
    first = kind in {"onnx", "torch"}
    editor = open_editor(model)
    sizes = (None, None, 24, 24) if first else (None, 24, 24, None)
    made = resized(editor, sizes, tmp_path)
    runnable = framework(kind).load(made)
    assert runnable.inputs[0].shape[1:] == ((3, 24, 24) if first else (24, 24, 3))
    shape = (1, 3, 24, 24) if first else (1, 24, 24, 3)
    np.testing.assert_allclose(answer(made, shape), answer(wanted, shape), rtol=1e-6, atol=1e-6)
    assert model_sha256(Path(model.path)) == model.sha256


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (3, 2)])
@pytest.mark.parametrize("kind", ["onnx", "torch"])
def test_another_batch(kind: str, before: int, after: int, tmp_path: Path) -> None:
    editor = open_editor(exported(kind, (12, 10), tmp_path / "before", batch=before))
    made = resized(editor, (after, None, None, None), tmp_path)
    wanted = exported(kind, (12, 10), tmp_path / "wanted", batch=after)
    shape = (after, 3, 12, 10)
    np.testing.assert_allclose(answer(made, shape), answer(wanted, shape), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", ["onnx", "torch"])
def test_an_open_batch_stays_so(kind: str, tmp_path: Path) -> None:
    made = resized(open_editor(exported(kind, (12, 12), tmp_path, batch=None)), (None, None, 16, 16), tmp_path)
    wanted = exported(kind, (16, 16), tmp_path / "wanted", batch=3)
    np.testing.assert_allclose(answer(made, (3, 3, 16, 16)), answer(wanted, (3, 3, 16, 16)), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", ["keras", "tensorflow", "tflite"])
def test_the_batch_stays_open(kind: str, tmp_path: Path) -> None:
    editor = open_editor(exported(kind, (12, 12), tmp_path / "before"))
    made = resized(editor, (None, 16, 16, None), tmp_path)
    assert answer(made, (3, 16, 16, 3)).shape == (3, 4)


def test_a_network_that_counts_its_picture_keeps_its_sizes(tmp_path: Path) -> None:
    import keras

    image = keras.Input((6, 6, 3), name="image")
    keras.Model(image, keras.layers.Dense(4)(keras.layers.Flatten()(image))).save(tmp_path / "net.keras")
    editor = open_editor(model_of("keras", tmp_path / "net.keras"))
    editor.set_input_shapes([(None, 8, 8, None)])
    with pytest.raises(NotEditableError, match="can't be rebuilt"):
        editor.save(tmp_path, "resized")


def test_another_number_of_axes_is_refused(tmp_path: Path) -> None:
    editor = open_editor(exported("torch", (12, 12), tmp_path))
    with pytest.raises(NotEditableError, match="3 axes"):
        editor.set_input_shapes([(None, 24, 24)])
