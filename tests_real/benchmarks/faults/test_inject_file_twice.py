"""Several faults in one file, other places by other seeds, and what can't be edited."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from benchmarks.faults.catalogue import faults
from benchmarks.faults.inject_file import inject_file
from conrepair.formats.models.registry import framework
from conrepair.ground.runtime.files.whole import sha256_of
from tests.support.native_models import (
    feeds_of,
    keras_file,
    tflite_file,
    tflite_shared,
    torch_factory_model,
    torch_file,
)
from tests.support.small_models import images, model_of, onnx_convnet

BY_NAME = {fault.name: fault for fault in faults()}
THREE = ("weights-scaled", "activation-extra", "bias-dropped")
MAKERS = {"torch": torch_file, "factory": torch_factory_model, "keras": keras_file, "tflite": tflite_file}


@pytest.mark.parametrize("kind", MAKERS)
def test_three_at_once(kind: str, tmp_path: Path) -> None:
    model = MAKERS[kind]("image", tmp_path)
    feeds = feeds_of("image", channels_last=kind in {"keras", "tflite"})
    avoid: frozenset[str] = frozenset()
    paths = {model.path}
    for name in THREE:
        injection = inject_file(model, BY_NAME[name], feeds, np.random.default_rng(1), tmp_path / "out", avoid=avoid)
        assert injection is not None
        assert not injection.layers & avoid
        avoid |= injection.layers
        model = injection.model
        paths.add(model.path)
    assert len(paths) == 4
    assert Path(model.path).name.startswith(f"image{'.float' if kind == 'tflite' else ''}.{'.'.join(THREE)}")


@pytest.mark.parametrize("kind", MAKERS)
def test_places_are_random(kind: str, tmp_path: Path) -> None:
    model = MAKERS[kind]("image", tmp_path)
    feeds = feeds_of("image", channels_last=kind in {"keras", "tflite"})
    found = set()
    for seed in range(6):
        injection = inject_file(
            model, BY_NAME["weights-disturbed"], feeds, np.random.default_rng(seed), tmp_path / str(seed)
        )
        assert injection is not None
        found.add(injection.layers)
    assert len(found) > 1


def test_a_place_to_avoid_is_the_only_one(tmp_path: Path) -> None:
    model = keras_file("image", tmp_path)
    feeds = feeds_of("image", channels_last=True)
    for avoid, expected in ((frozenset({"other"}), True), (frozenset({"norm"}), False)):
        injection = inject_file(
            model, BY_NAME["moving-mean-lost"], feeds, np.random.default_rng(0), tmp_path / "out", avoid=avoid
        )
        assert (injection is not None) == expected


def test_a_shared_constant_is_changed_for_one_reader_only(tmp_path: Path) -> None:
    model = tflite_shared(tmp_path)
    feeds = {"vector": np.random.default_rng(0).normal(size=(2, 8)).astype(np.float32)}
    injection = inject_file(model, BY_NAME["weights-zeroed"], feeds, np.random.default_rng(0), tmp_path / "out")
    assert injection is not None
    results = list(framework("tflite").load(injection.model).run(feeds).values())
    assert sorted(bool(np.any(result)) for result in results) == [False, True]


@pytest.mark.parametrize("external", [False, True])
def test_onnx(tmp_path: Path, external: bool) -> None:
    path = onnx_convnet(tmp_path / "net.onnx", external=external)
    before = [sha256_of(item) for item in sorted(tmp_path.iterdir())]
    first = inject_file(
        model_of("onnx", path),
        BY_NAME["weights-scaled"],
        {"image": images()},
        np.random.default_rng(0),
        tmp_path / "out",
    )
    assert first is not None
    second = inject_file(
        first.model,
        BY_NAME["weights-zeroed"],
        {"image": images()},
        np.random.default_rng(0),
        tmp_path / "out",
        avoid=first.layers,
    )
    assert second is not None
    assert not second.layers & first.layers
    assert {*first.layers, *second.layers} <= {node.name for node in onnx.load(second.path).graph.node}
    assert [sha256_of(item) for item in sorted(tmp_path.iterdir()) if item.is_file()] == before
    assert Path(f"{second.path}.data").exists() == external


def test_what_has_no_editor(tmp_path: Path) -> None:
    model = model_of("caffe", onnx_convnet(tmp_path / "net.onnx"))
    with pytest.raises(ValueError, match="unknown framework 'caffe'"):
        inject_file(model, BY_NAME["weights-scaled"], {}, np.random.default_rng(0), tmp_path / "out")
