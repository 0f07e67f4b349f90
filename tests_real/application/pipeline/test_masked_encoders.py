"""Transformers with a mask that their code makes: `compare` and `localize` of the same files, some of them broken."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from masked_encoder import LENGTH, WORDS, MaskedEncoder, examples
from torch import nn

from conrepair.application.cli import main

BATCH = ({0: torch.export.Dim("batch")},) * 2


def same(_: MaskedEncoder) -> None:
    pass


def swapped(network: MaskedEncoder) -> None:
    network.blocks[0].swapped = True


def unmasked(network: MaskedEncoder) -> None:
    network.blocks[1].unmasked = True


def other_epsilon(network: MaskedEncoder) -> None:
    for layer in network.modules():
        if isinstance(layer, nn.LayerNorm):
            layer.eps = 1e-3


CHANGES = {"same": same, "swapped": swapped, "unmasked": unmasked, "other_epsilon": other_epsilon}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The encoder as .pt2 and as ONNX, and broken ones exported by PyTorch."""
    folder = tmp_path_factory.mktemp("encoders")
    network = MaskedEncoder().eval()
    torch.export.save(torch.export.export(network, examples(), dynamic_shapes=BATCH), folder / "source.pt2")
    for name, change in CHANGES.items():
        other = copy.deepcopy(network)
        change(other)
        torch.onnx.export(other, examples(), folder / f"{name}.onnx", dynamic_shapes=BATCH, verbose=False)
    generator = np.random.default_rng(0)
    ids = generator.integers(0, WORDS, (24, LENGTH))
    mask = (np.arange(LENGTH) < generator.integers(3, LENGTH, (24, 1))).astype(np.int64)
    np.savez(folder / "data.npz", input_ids=ids, attention_mask=mask)
    return folder


def code(verb: str, source: Path, target: Path, out: Path) -> int:
    return main([verb, str(source), str(target), "--data", str(source.parent / "data.npz"), "-q", "-o", str(out)])


@pytest.mark.parametrize(
    ("source", "change"), [*(("source.pt2", change) for change in CHANGES), ("same.onnx", "other_epsilon")]
)
def test_compare_and_localize_agree(folder: Path, tmp_path: Path, source: str, change: str) -> None:
    target = folder / f"{change}.onnx"
    found = [code(verb, folder / source, target, tmp_path / verb) for verb in ("compare", "localize")]
    assert found == [int(change != "same")] * 2
