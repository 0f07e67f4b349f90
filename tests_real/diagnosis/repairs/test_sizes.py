"""A target that was converted for inputs of other sizes than its source takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from conrepair.diagnosis.localization.models import localize_models
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.repairs.options import RepairOptions
from conrepair.diagnosis.repairs.patch import read_patch
from conrepair.diagnosis.repairs.repair import apply_patch, repair_models
from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.data.feeds import DataReference
from conrepair.ground.graph.kinds import Kind
from tests.support.sized_networks import FORMATS, exported
from tests.support.small_models import model_of

pytestmark = pytest.mark.timeout(240)

_OPTIONS = RepairOptions(Options(samples=4, batch_size=4), seconds=90, unseen=8)


def sides(source: Model, target: Model) -> tuple[FedModel, FedModel]:
    inputs = [framework(model.framework).describe(model).inputs for model in (source, target)]
    data = DataReference("synthetic", 12, samples=inputs[0])
    return FedModel(source, inputs[0], data, None), FedModel(target, inputs[1], data, None)


@pytest.mark.parametrize("kind", FORMATS)
def test_it_gets_its_sources_sizes(kind: str, tmp_path: Path) -> None:
    source, target = exported(kind, (24, 24), tmp_path / "right"), exported(kind, (12, 12), tmp_path / "wrong")
    both = sides(source, target)
    found = localize_models(*both, tmp_path / "located", Options(samples=4))
    assert [fault.kind for fault in found.faults] == [Kind.INPUT]
    assert "another shape than" in found.reason
    result = repair_models(*both, tmp_path / "out", _OPTIONS)
    assert result.mended
    assert result.before.faults == found.faults
    assert len(result.edits) == 1
    assert "declared with the original's shapes" in result.edits[0]
    assert result.unseen_before.samples == 0
    assert result.unseen_after.error < 1e-6
    assert result.model is not None
    assert result.model.framework == kind
    assert model_sha256(Path(target.path)) == target.sha256
    # The patch makes the same of the target as it came.
    assert result.patch is not None
    again = apply_patch(*read_patch(Path(result.patch)), target, tmp_path / "again")
    assert again is not None
    feed = np.random.default_rng(3).normal(size=(1, 3, 24, 24)).astype(np.float32)
    feed = feed if kind in {"onnx", "torch"} else feed.transpose(0, 2, 3, 1)
    loaded = [framework(kind).load(model) for model in (result.model, again)]
    one, two = (next(iter(item.run({item.inputs[0].name: feed}).values())) for item in loaded)
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("kind", ["onnx", "torch", "keras"])
def test_a_fault_behind_them_is_repaired_too(kind: str, tmp_path: Path) -> None:
    source = exported(kind, (24, 24), tmp_path / "right")
    editor = open_editor(exported(kind, (12, 12), tmp_path / "other"))
    last = next(node for node in reversed(editor.graph.nodes) if "weight" in node.parameters)
    editor.set_parameter(last, "weight", np.roll(last.parameters["weight"].numpy(), 1, -1))
    target = editor.save(tmp_path, "wrong")
    result = repair_models(*sides(source, target), tmp_path / "out", _OPTIONS)
    assert result.mended
    assert len(result.edits) == 2
    assert result.unseen_after.error < 1e-5
    assert result.patch is not None
    assert apply_patch(*read_patch(Path(result.patch)), target, tmp_path / "again") is not None


def test_what_counts_its_picture_is_left_with_the_reason(tmp_path: Path) -> None:
    import keras

    files = []
    for size in (8, 6):
        image = keras.Input((size, size, 3), name="image")
        keras.Model(image, keras.layers.Dense(4)(keras.layers.Flatten()(image))).save(tmp_path / f"{size}.keras")
        files.append(model_of("keras", tmp_path / f"{size}.keras"))
    result = repair_models(*sides(files[0], files[1]), tmp_path / "out", _OPTIONS)
    assert not result.mended
    assert (result.edits, result.model, result.patch) == ((), None, None)
    assert "can't be rebuilt" in result.refused[0]
    assert not any((tmp_path / "out").iterdir())


def test_not_where_other_edits_are_wanted(tmp_path: Path) -> None:
    source, target = exported("torch", (24, 24), tmp_path / "right"), exported("torch", (12, 12), tmp_path / "wrong")
    options = RepairOptions(_OPTIONS.localization, 60, 8, edits=frozenset({"parameters"}))
    result = repair_models(*sides(source, target), tmp_path / "out", options)
    assert not result.mended
    assert result.edits == ()


def test_models_of_different_batches_are_compared(tmp_path: Path) -> None:
    source, target = (exported("onnx", (12, 12), tmp_path / str(batch), batch=batch) for batch in (1, 3))
    found = localize_models(*sides(source, target), tmp_path / "located", Options(samples=6))
    assert found.faults == ()
    editor = open_editor(target)
    last = next(node for node in reversed(editor.graph.nodes) if "weight" in node.parameters)
    editor.set_parameter(last, "weight", 2 * last.parameters["weight"].numpy())
    result = repair_models(*sides(source, editor.save(tmp_path, "wrong")), tmp_path / "out", _OPTIONS)
    assert result.mended
    assert result.model is not None
    assert framework("onnx").load(result.model).inputs[0].shape[0] == 3
