"""Attention whose code was at fault before it was exported: named as what it is, and repaired by as little."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attention_keras import keras_file
from attention_modules import STEPS, WORDS, Encoder, exported
from crossed import crossed, slower

from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.repairs.options import RepairOptions
from conrepair.diagnosis.repairs.repair import repair_models
from conrepair.diagnosis.repairs.result import RepairResult
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.data.feeds import DataReference
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.runtime.files.whole import sha256_of
from conrepair.verdicts.evaluate.verdict import Verdict

OPTIONS = RepairOptions(Options(samples=4, batch_size=2), seconds=120, unseen=4)
ROUTES = ("pt2", "18", "20", "torchscript")
FORMS = ("halves", "neighbours")  # of rotary positions
Original = Callable[..., Path]


def subject(path: Path, data: DataReference) -> FedModel:
    format_ = {".pt2": "torch", ".onnx": "onnx", ".keras": "keras", ".tflite": "tflite", "": "tensorflow"}[
        path.suffix
    ]
    model = Model(format_, str(path), sha256_of(path))
    return FedModel(model, framework(format_).describe(model).inputs, data, None)


def repaired(source: Path, target: Path, folder: Path) -> RepairResult:
    count = OPTIONS.localization.samples + OPTIONS.unseen
    generator = np.random.default_rng(0)
    rows = {name: generator.integers(0, high, (count, STEPS)) for name, high in (("ids", WORDS), ("types", 2))}
    rows["mask"] = np.where(np.arange(STEPS) < generator.integers(STEPS // 2, STEPS + 1, (count, 1)), 1, 0)
    if source.suffix == ".keras":
        rows = {"ids": rows["ids"].astype(np.int32)}
    np.savez(folder / "data.npz", **rows)
    data = DataReference("tensors", count, str(folder / "data.npz"), sha256_of(folder / "data.npz"))
    return repair_models(subject(source, data), subject(target, data), folder, OPTIONS)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Original:
    """Networks that are right, as PyTorch exports them: each once, from the encoder's options."""
    folder = tmp_path_factory.mktemp("original")

    @functools.cache
    def made(**options: Any) -> Path:
        return exported(Encoder(**options), folder / "-".join(f"{key}={options[key]}" for key in options), "pt2")

    return made


@pytest.fixture(scope="module")
def keras_original(tmp_path_factory: pytest.TempPathFactory) -> Original:
    """The same of Keras's, by how positions are rotated."""
    folder = tmp_path_factory.mktemp("original")
    return functools.cache(lambda rotated: keras_file(folder / f"net-{rotated}", "keras", rotated=rotated))


@pytest.mark.parametrize(
    ("fused", "how"),
    crossed([True, False], ROUTES, quick=[(True, "pt2"), (False, "18"), (True, "20"), (False, "torchscript")]),
)
def test_exchanged_queries_and_keys(how: str, fused: bool, tmp_path: Path, original: Original) -> None:
    source = original(fused=fused)
    target = exported(Encoder(fused=fused, swapped=True), tmp_path / "target", how)
    result = repaired(source, target, tmp_path)
    (fault,) = result.before.faults
    assert fault.kind is Kind.GRAPH
    assert fault.evidence[0].startswith("queries and keys are exchanged")
    assert result.after.verdict is Verdict.EQUIVALENT
    (effect,) = result.edits
    assert re.search(r"reads? `.*` and `.*` exchanged", effect)


@pytest.mark.parametrize("how", ["keras", *slower("saved_model"), "tflite"])
def test_exchanged_queries_and_keys_in_formats_of_tensorflow(
    how: str, tmp_path: Path, keras_original: Original
) -> None:
    source, target = keras_original(""), keras_file(tmp_path / "target", how, swapped=True)
    result = repaired(source, target, tmp_path)
    (fault,) = result.before.faults
    assert fault.evidence[0].startswith("queries and keys are exchanged")
    assert result.after.verdict is Verdict.EQUIVALENT
    (effect,) = result.edits
    assert re.search(r"reads? `.*` and `.*` exchanged", effect)


def check_rotary(result: RepairResult, right: str) -> None:
    """Both rotations are named as what they are, and repaired by the features' order alone."""
    other = {"halves": "neighbours", "neighbours": "halves"}[right]
    words = {"halves": "halves of the features", "neighbours": "interleaved pairs"}
    rule = f"rotary position embeddings turn {words[other]} in the converted model, {words[right]} in the original"
    (found,) = (item for item in result.before.rules if item.words.startswith("rotary"))
    assert (found.kind, found.words, len(found.layers), found.among) == (Kind.STRUCTURE, rule, 2, 0)
    assert result.before.faults[0].evidence[0].startswith(rule)
    assert result.after.verdict is Verdict.EQUIVALENT
    # In front of the queries, and of the keys: scores are the same in any order of the features.
    assert len(result.edits) == 2
    assert all(effect.startswith("Gather is put behind") for effect in result.edits)
    assert result.tried <= 15  # more than a hundred where changes of single places are tried first


@pytest.mark.parametrize(
    ("right", "how"),
    [
        ("neighbours", "torchscript"),  # halves: in TensorFlow's formats, and in pieces
        *slower(("halves", "pt2"), ("halves", "torchscript"), ("neighbours", "pt2")),
        *slower(*((right, how) for right in FORMS for how in ("18", "20"))),
    ],
)
def test_rotary_positions_in_the_other_form(right: str, how: str, tmp_path: Path, original: Original) -> None:
    wrong = "neighbours" if right == "halves" else "halves"
    source = original(rotated=right)
    target = exported(Encoder(rotated=wrong, right=right), tmp_path / "target", how)
    check_rotary(repaired(source, target, tmp_path), right)


def test_rotary_positions_in_the_other_form_of_attention_in_pieces(tmp_path: Path, original: Original) -> None:
    source = original(fused=False, rotated="halves")
    target = exported(Encoder(fused=False, rotated="neighbours", right="halves"), tmp_path / "target", "torchscript")
    result = repaired(source, target, tmp_path)
    assert (
        result.before.faults[0]
        .evidence[0]
        .startswith("rotary position embeddings turn interleaved pairs in the converted model")
    )
    assert result.after.verdict is Verdict.EQUIVALENT
    assert len(result.edits) == 2
    assert all(effect.startswith("Gather is put behind") for effect in result.edits)


@pytest.mark.parametrize(
    ("right", "how"),
    [
        ("halves", "tflite"),
        *slower(("neighbours", "tflite"), *((right, how) for right in FORMS for how in ("keras", "saved_model"))),
    ],
)
def test_rotary_positions_in_the_other_form_in_formats_of_tensorflow(
    right: str, how: str, tmp_path: Path, keras_original: Original
) -> None:
    wrong = "neighbours" if right == "halves" else "halves"
    source = keras_original(right)
    target = keras_file(tmp_path / "target", how, rotated=wrong)
    check_rotary(repaired(source, target, tmp_path), right)


@pytest.mark.parametrize(
    ("masked", "how"), [("added", "18"), *slower(("added", "20"), ("filled", "18"), ("filled", "20"))]
)
def test_a_mask_that_is_ignored(masked: str, how: str, tmp_path: Path, original: Original) -> None:
    """What's put in holds for batches of other sizes than those that it was found with."""
    source = original(fused=False, masked=masked)
    target = exported(Encoder(fused=False, masked="ignored"), tmp_path / "target", how)
    result = repaired(source, target, tmp_path)
    assert result.before.faults
    assert result.after.verdict in {Verdict.EQUIVALENT, Verdict.NOISE}, result.after.reason
    assert not result.undone
    assert result.unseen_after.error < 1e-5
