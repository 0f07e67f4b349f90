"""What a repair says of the file that it delivers is what a comparison says of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import conrepair
from benchmarks.faults.catalogue import faults
from benchmarks.faults.inject_file import inject_file
from conrepair.formats.models.model import Model
from tests.support.native_models import feeds_of, keras_file, tensorflow_file, tflite_file, torch_file

_MAKERS: dict[str, Callable[[Path], Model]] = {
    "keras": partial(keras_file, "image"),
    "tensorflow": partial(tensorflow_file, "image"),
    "tflite": partial(tflite_file, "image"),
    "torch": partial(torch_file, "image"),
}
_QUICK = {("tflite", "activation-missing"), ("torch", "bounds-of-clip"), ("keras", "weights-scaled")}
_NAMES = [fault.name for fault in faults()]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        pytest.param(kind, name, marks=() if (kind, name) in _QUICK else pytest.mark.slow, id=f"{kind}-{name}")
        for kind in _MAKERS
        for name in _NAMES
    ],
)
def test_a_comparison_says_what_the_repair_says(kind: str, name: str, tmp_path: Path) -> None:
    right = _MAKERS[kind](tmp_path)
    fault = next(fault for fault in faults() if fault.name == name)
    feeds = feeds_of("image", channels_last=kind != "torch")
    changed = inject_file(right, fault, feeds, np.random.default_rng(3), tmp_path / "faulty")
    if changed is None:
        pytest.skip("has no place in this network")
    done = conrepair.repair(right.path, changed.path, output=tmp_path / "out", in_process=True, seconds=60)
    delivered = changed.path if done.model is None else next((tmp_path / "out").glob("repaired*"))
    for seed in (0, 1):
        compared = conrepair.compare(right.path, delivered, in_process=True, seed=seed)
        assert (compared.exit_code == 0) == done.mended, (done.reason, compared.reason)
        assert not done.mended or compared.verdict is done.verdict, seed
