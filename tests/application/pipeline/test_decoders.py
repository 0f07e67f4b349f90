"""Decoders with a cache, as exporters write them: looked at with no option and no data."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from decoder_networks import TOTAL, WORDS, Symbols, decoder

from conrepair.application.cli import main


def called_by_number(name: str) -> str:
    return re.sub(r"\w+", lambda found: f"s{len(found[0])}", name)


NAMES: dict[str, Symbols] = {
    "sums": lambda name: name,
    "total": lambda name: "total_sequence_length" if name == TOTAL else name,
    "numbered": called_by_number,
    "unnamed": lambda _: None,
    "minus": lambda _: -1,
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    decoder(Path("net.onnx"))


@pytest.mark.parametrize("names", NAMES)
def test_sizes_fit_together(names: str, capsys: pytest.CaptureFixture[str]) -> None:
    decoder(Path("other.onnx"), NAMES[names])
    assert main(["compare", "other.onnx", "net.onnx", "-q"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"input_ids: whole numbers from 0 to {WORDS - 1} (Gather of {WORDS} rows)" in said
    assert "attention_mask: a mask of ones, then zeros, or otherwise (Sub and Mul)" in said
    first = {"sums": 8, "total": 8, "numbered": 17}.get(names, 16)
    assert f"position_ids: positions from {first} on (its name)" in said
    assert main(["localize", "other.onnx", "net.onnx", "-q"]) == 0


def test_sizes_that_no_choice_fits_are_told_with_what_to_declare(capsys: pytest.CaptureFixture[str]) -> None:
    def odd(model: onnx.ModelProto) -> None:
        node = next(node for node in model.graph.node if node.output[0] == "joined")
        node.input[1] = "seventeen"
        numbers = np.array([-1, 17 * 19, 8], np.int64)
        model.graph.initializer.append(onnx.numpy_helper.from_array(numbers, "seventeen"))

    decoder(Path("odd.onnx"), change=odd)
    assert main(["compare", "odd.onnx", "net.onnx", "-q"]) != 0
    said = " ".join(str(capsys.readouterr()).replace("\\n", " ").split())
    assert re.search(r"odd.onnx has dynamic shapes, and runs with none of \d+ choices of sizes", said)
    assert "--input input_ids=" in said
