"""Weights in blocks of few bits: right files are left alone, and one layer at fault is repaired in its bits."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from block_networks import BLOCK_FAULTS, chain, in_blocks, with_block_fault
from quantized_faults import in_eight_bits, with_fault
from quantized_networks import source as eight_bit_source

import conrepair
from conrepair.verdicts.evaluate.verdict import Verdict


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return chain(tmp_path_factory.mktemp("blocks") / "source.onnx")


@pytest.mark.parametrize(
    ("bits", "size", "symmetric", "form"),
    [(4, 32, False, "QOperator"), (4, 128, True, "QOperator"), (8, 16, False, "QOperator"), (4, 32, False, "QDQ")],
)
def test_right_ones_are_neither_accused_nor_rewritten(
    source: Path, tmp_path: Path, bits: int, size: int, symmetric: bool, form: str
) -> None:
    target = in_blocks(source, tmp_path / "few.onnx", bits, size, symmetric=symmetric, form=form)
    compared = conrepair.compare(source, target, in_process=True)
    located = conrepair.localize(source, target, in_process=True)
    done = conrepair.repair(source, target, in_process=True)
    assert compared.verdict == located.verdict == Verdict.QUANTIZED
    assert not located.faults
    assert done.model is None


@pytest.mark.parametrize(
    ("name", "bits", "symmetric"),
    [
        ("zero points lost", 4, False),
        ("scales in another order", 4, False),
        ("scales in another order", 4, True),
        ("scaled", 8, False),
        ("columns", 8, True),
    ],
)
def test_one_layer_is_named_and_repaired_in_its_bits(
    source: Path, tmp_path: Path, name: str, bits: int, symmetric: bool
) -> None:
    right = in_blocks(source, tmp_path / "few.onnx", bits, symmetric=symmetric)
    target = with_block_fault(right, name, 1, tmp_path / "wrong.onnx")
    done = conrepair.repair(source, target, output=tmp_path / "out", in_process=True)
    (fault,) = done.faults
    assert fault.target_layers == (f"m1_Q{bits}",) or fault.target_layers == ("m1",)
    assert any(BLOCK_FAULTS[name][1] in text for text in fault.evidence)
    assert done.mended
    repaired = onnx.load(str(done.model))
    assert [node.op_type for node in repaired.graph.node].count("MatMulNBits") == 5
    assert conrepair.compare(source, done.model, in_process=True).verdict == Verdict.QUANTIZED


def test_bits_of_all_activations_are_no_second_cause(tmp_path: Path) -> None:
    rows = np.random.default_rng(2).normal(size=(24, 3, 12, 12)).astype(np.float32)
    ours = Path(eight_bit_source(tmp_path).path)
    right = in_eight_bits(ours, tmp_path / "int8.onnx", rows)
    target = with_fault(right, "pads", tmp_path / "wrong.onnx")
    (fault,) = conrepair.localize(ours, target, data=rows[:16], in_process=True).faults
    assert "pads" in fault.evidence[0]
    assert not any("fewer bits" in text for text in fault.evidence)
