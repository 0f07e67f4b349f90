"""Commands of the README and of pages are run as they stand there, and blocks of output are what they print.

A command that ends with a comment `# ends with N` is run in a folder with small networks, in the page's order; the
README's own Python makes its networks. `CONREPAIR_WRITE_PAGES=1 pytest tests_real/test_pages.py` writes blocks anew.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import localizations
import numpy as np
import onnxruntime
import pytest
import small_models as small
from PIL import Image

from conrepair.application.cli import main

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
STEPS = ROOT / "docs" / "my-model-gives-other-predictions.md"
COMMAND = re.compile(r"^ *conrepair (.*?)  +# (?:.*[,?] )?ends with (\d)$", re.MULTILINE)
BLOCK = re.compile(r"^```text\n\$ conrepair (.*)\n((?:(?!```).*\n)*)```$", re.MULTILINE)
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FIGURE = re.compile(r"\d[\d,.]*(?:e[+-]?\d+)?")
PAGES = [page for page in [README, *sorted((ROOT / "docs").glob("*.md"))] if COMMAND.search(page.read_text())]


def prepared(folder: Path) -> None:
    """Put what pages call a model, its conversion and inputs."""
    (folder / "made").mkdir()
    localizations.wrong_pads(folder / "made")
    for name, kept in (("source", "model"), ("source", "halfway"), ("target", "converted")):
        (folder / f"{kept}.onnx").write_bytes((folder / "made" / f"{name}.onnx").read_bytes())
    np.savez(folder / "inputs.npz", image=small.images(16))
    run_elsewhere(folder / "converted.onnx")
    shutil.copy(folder / "model.onnx", folder / "net.onnx")
    for release in (6, 7):
        told = {
            "name": f"release-{release}",
            "models": [{"name": "net", "path": "net.onnx", "conversions": ["torch"]}],
        }
        (folder / f"release-{release}.json").write_text(json.dumps(told))
    (folder / "photos").mkdir()
    for place in range(8):
        pixels = np.random.default_rng(place).integers(0, 255, (64, 64, 3), np.uint8)
        Image.fromarray(pixels).save(folder / "photos" / f"{place}.png")


def run_elsewhere(model: Path) -> None:
    """What a phone does with `inputs.npz`."""
    session = onnxruntime.InferenceSession(model)
    with np.load(model.parent / "inputs.npz") as arrays:
        feeds = {item.name: array for item, array in zip(session.get_inputs(), arrays.values(), strict=True)}
    results = session.run(None, feeds)
    named = dict(zip((item.name for item in session.get_outputs()), results, strict=True))
    np.savez(model.parent / "outputs.npz", **named)


def test_each_block_of_the_steps_is_of_commands_that_are_run() -> None:
    text = STEPS.read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.strip()]
    assert len(lines) == len(COMMAND.findall(text)) > 10


OF_PROCESSES = {"audits"}  # pages on backends that take what they're told from a process's environment
WITH_WORKERS = [
    pytest.param(page, marks=pytest.mark.workers if page.stem in OF_PROCESSES else (), id=page.stem) for page in PAGES
]


@pytest.mark.parametrize("page", WITH_WORKERS)
def test_commands_end_as_the_page_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    if page != README:
        prepared(tmp_path)
    if "net.pt2" in text:
        pytest.importorskip("torch")
        run_python(PYTHON.findall(README.read_text(encoding="utf-8"))[0])
    if "release-6" in text:
        main(["run", "release-6.json", "--quiet"])
    for words, code in COMMAND.findall(text):
        if "outputs.npz" in words and page == README:
            run_elsewhere(tmp_path / "net.onnx")
        assert main(shlex.split(words)) == int(code), words
    if page == README:
        run_python("\n".join(PYTHON.findall(text)))
    if page == STEPS:
        for file in ("findings/report.html", "recipe/recipe.json", "changes/comparison.html", "again/repaired.onnx"):
            assert (tmp_path / file).is_file(), file


def run_python(code: str) -> None:
    """As a script of its own in the current folder."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def test_blocks_of_output_are_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Words are compared, not figures: these are of the machine, too."""
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    run_python(PYTHON.findall(README.read_text(encoding="utf-8"))[0])
    text = README.read_text(encoding="utf-8")
    capsys.readouterr()

    def printed(block: re.Match[str]) -> str:
        main([*shlex.split(block[1]), "--quiet"])
        out = capsys.readouterr().out.replace(f"{tmp_path}/", "")
        return f"```text\n$ conrepair {block[1]}\n{out}```"

    now = BLOCK.sub(printed, text)
    if os.environ.get("CONREPAIR_WRITE_PAGES"):
        README.write_text(now, encoding="utf-8")
    assert BLOCK.search(text)
    assert plain(README.read_text(encoding="utf-8")) == plain(now)


def plain(text: str) -> str:
    """Without figures and the widths that follow from them."""
    return " ".join(FIGURE.sub("#", text).split())
