"""docs/my-model-gives-other-predictions.md: every command on the page does what it says, on small networks."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import localizations
import numpy as np
import onnxruntime
import pytest
import small_models as small
from PIL import Image

from conrepair.application.cli import main

PAGE = Path(__file__).parents[1] / "docs" / "my-model-gives-other-predictions.md"
COMMANDS = re.findall(r"^conrepair (.*?)  # ends with (\d)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("room")
    (folder / "made").mkdir()
    localizations.wrong_pads(folder / "made")
    for name, kept in (("source", "model"), ("source", "halfway"), ("target", "converted")):
        (folder / f"{kept}.onnx").write_bytes((folder / "made" / f"{name}.onnx").read_bytes())
    np.savez(folder / "inputs.npz", image=small.images(16))
    session = onnxruntime.InferenceSession(folder / "converted.onnx")
    results = session.run(None, {"image": small.images(16)})
    np.savez(folder / "outputs.npz", **dict(zip((item.name for item in session.get_outputs()), results, strict=True)))
    (folder / "photos").mkdir()
    for place in range(8):
        pixels = np.random.default_rng(place).integers(0, 255, (64, 64, 3), np.uint8)
        Image.fromarray(pixels).save(folder / "photos" / f"{place}.png")
    return folder


def test_each_block_is_of_commands_that_are_run() -> None:
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert sum(len(block.splitlines()) for block in blocks) == len(COMMANDS) > 10


def test_the_path_leads_to_a_file_that_answers_rightly(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(room)
    for words, code in COMMANDS:
        assert main(shlex.split(words)) == int(code), words
    for file in ("findings/report.html", "recipe/recipe.json", "changes/comparison.html", "again/repaired.onnx"):
        assert (room / file).is_file(), file
