"""Attention whose code was at fault before it was exported: named as what it is, and mended by as little."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from attention_keras import keras_file
from attention_modules import STEPS, WORDS, Encoder, exported

from conrepair.data.feeds import DataReference
from conrepair.evaluate.verdict import Verdict
from conrepair.frameworks.model import Model
from conrepair.frameworks.registry import framework
from conrepair.graph.kinds import Kind
from conrepair.localization.models import Subject
from conrepair.localization.options import Options
from conrepair.repairs.options import RepairOptions
from conrepair.repairs.repair import repair_models
from conrepair.repairs.result import RepairResult
from conrepair.runtime.files import sha256_of

OPTIONS = RepairOptions(Options(samples=4, batch_size=2), seconds=120, unseen=4)
ROUTES = ("pt2", "18", "20", "torchscript")


def subject(path: Path, data: DataReference) -> Subject:
    format_ = {".pt2": "torch", ".onnx": "onnx", ".keras": "keras", ".tflite": "tflite", "": "tensorflow"}[
        path.suffix
    ]
    model = Model(format_, str(path), sha256_of(path))
    return Subject(model, framework(format_).describe(model).inputs, data, None)


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


@pytest.mark.parametrize("how", ROUTES)
@pytest.mark.parametrize("fused", [True, False])
def test_exchanged_queries_and_keys(how: str, fused: bool, tmp_path: Path) -> None:
    source = exported(Encoder(fused=fused), tmp_path / "source", "pt2")
    target = exported(Encoder(fused=fused, swapped=True), tmp_path / "target", how)
    result = repaired(source, target, tmp_path)
    (fault,) = result.before.faults
    assert fault.kind is Kind.GRAPH
    assert fault.evidence[0].startswith("queries and keys are exchanged")
    assert result.after.verdict is Verdict.EQUIVALENT
    (effect,) = result.edits
    assert re.search(r"reads? `.*` and `.*` exchanged", effect)


@pytest.mark.parametrize("how", ["keras", "saved_model", "tflite"])
def test_exchanged_queries_and_keys_in_formats_of_tensorflow(how: str, tmp_path: Path) -> None:
    source, target = keras_file(tmp_path / "source", "keras"), keras_file(tmp_path / "target", how, swapped=True)
    result = repaired(source, target, tmp_path)
    (fault,) = result.before.faults
    assert fault.evidence[0].startswith("queries and keys are exchanged")
    assert result.after.verdict is Verdict.EQUIVALENT
    (effect,) = result.edits
    assert re.search(r"reads? `.*` and `.*` exchanged", effect)


def check_rotary(result: RepairResult, right: str) -> None:
    """Both rotations are named as what they are, and mended by the features' order alone."""
    other = {"halves": "neighbours", "neighbours": "halves"}[right]
    words = {"halves": "halves of the features", "neighbours": "interleaved pairs"}
    rule = f"rotary positions turn {words[other]} in the target, {words[right]} in the source"
    (found,) = (item for item in result.before.rules if item.words.startswith("rotary"))
    assert (found.kind, found.words, len(found.layers), found.among) == (Kind.STRUCTURE, rule, 2, 0)
    assert result.before.faults[0].evidence[0].startswith(rule)
    assert result.after.verdict is Verdict.EQUIVALENT
    # In front of the queries, and of the keys: scores are the same in any order of the features.
    assert len(result.edits) == 2
    assert all(effect.startswith("Gather is put behind") for effect in result.edits)
    assert result.tried <= 15  # more than a hundred where changes of single places are tried first


@pytest.mark.parametrize("how", ROUTES)
@pytest.mark.parametrize("right", ["halves", "neighbours"])
def test_rotary_positions_in_the_other_form(right: str, how: str, tmp_path: Path) -> None:
    wrong = "neighbours" if right == "halves" else "halves"
    source = exported(Encoder(rotated=right), tmp_path / "source", "pt2")
    target = exported(Encoder(rotated=wrong, right=right), tmp_path / "target", how)
    check_rotary(repaired(source, target, tmp_path), right)


def test_rotary_positions_in_the_other_form_of_attention_in_pieces(tmp_path: Path) -> None:
    source = exported(Encoder(fused=False, rotated="halves"), tmp_path / "source", "pt2")
    target = exported(Encoder(fused=False, rotated="neighbours", right="halves"), tmp_path / "target", "torchscript")
    result = repaired(source, target, tmp_path)
    assert result.before.faults[0].evidence[0].startswith("rotary positions turn interleaved pairs in the target")
    assert result.after.verdict is Verdict.EQUIVALENT
    assert len(result.edits) == 2
    assert all(effect.startswith("Gather is put behind") for effect in result.edits)


@pytest.mark.parametrize("how", ["keras", "saved_model", "tflite"])
@pytest.mark.parametrize("right", ["halves", "neighbours"])
def test_rotary_positions_in_the_other_form_in_formats_of_tensorflow(right: str, how: str, tmp_path: Path) -> None:
    wrong = "neighbours" if right == "halves" else "halves"
    source = keras_file(tmp_path / "source", "keras", rotated=right)
    target = keras_file(tmp_path / "target", how, rotated=wrong)
    check_rotary(repaired(source, target, tmp_path), right)


@pytest.mark.parametrize("how", ["18", "20"])
@pytest.mark.parametrize("masked", ["added", "filled"])
def test_a_mask_that_is_ignored(masked: str, how: str, tmp_path: Path) -> None:
    """What's put in holds for batches of other sizes than those that it was found with."""
    source = exported(Encoder(fused=False, masked=masked), tmp_path / "source", "pt2")
    target = exported(Encoder(fused=False, masked="ignored"), tmp_path / "target", how)
    result = repaired(source, target, tmp_path)
    assert result.before.faults
    assert result.after.verdict in {Verdict.EQUIVALENT, Verdict.NOISE}, result.after.reason
    assert not result.undone
    assert result.unseen_after.error < 1e-5
