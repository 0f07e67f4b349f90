"""The page's tables: inputs with their photos, times, where it comes from."""

from __future__ import annotations

import dataclasses
import re
from html import unescape
from pathlib import Path

import localizations
import pytest
from PIL import Image

import conrepair
from conrepair.application.report.again.run import missing_of
from conrepair.application.report.page.page import page_html
from conrepair.application.report.result import AuditResult
from conrepair.ground.runtime.files.whole import sha256_of
from conrepair.verdicts.evaluate.inputs import ComparedInput

PICTURES = Path(__file__).parents[4] / "docs" / "pictures"


def rows_of(text: str, title: str) -> list[list[str]]:
    """The cells of the table behind a heading, as a reader sees them."""
    table = re.search(rf"{title}</h\d>.*?</table>", text, re.DOTALL)
    assert table is not None
    rows = re.findall(r"<tr.*?</tr>", table[0], re.DOTALL)
    cells = (re.findall(r"<t[dh]\b.*?</t[dh]>", row, re.DOTALL) for row in rows)
    return [[" ".join(unescape(re.sub(r"<[^>]*>", "", cell)).split()) for cell in row] for row in cells]


def of_photos(folder: Path) -> AuditResult:
    """A target that answers the second of two labelled photos otherwise."""
    inputs = tuple(
        ComparedInput(
            index=place,
            name=f"{place}.png",
            differs=place == 1,
            relative_l2=0.25 * place,
            max_abs=0.5 * place,
            label=7,
            reference=((7, 0.75), (2, 0.125)),
            candidate=((7, 0.75), (2, 0.125)) if place == 0 else ((2, 0.5), (7, 0.25)),
        )
        for place in (1, 0)
    )
    for item in inputs:
        Image.new("RGB", (90, 60), (200, 40, 40)).save(folder / item.name)
    run = localizations.run_of(localizations.made(2, {1: 0.5}), localizations.about(), folder)
    row = dataclasses.replace(run.rows[0], inputs=inputs, reference="net")
    return dataclasses.replace(run, rows=(row,), config={"data": str(folder)}, recipes={"net": {"name": "raw"}})


def test_inputs_have_name_label_both_answers_and_picture(tmp_path: Path) -> None:
    run = of_photos(tmp_path)
    text = page_html(run)
    assert rows_of(text, "Inputs") == [
        ["index", "input", "label", "predictions", "original", "converted", "relative error", "largest difference"],
        ["1", "1.png", "7", "differ", "7 0.75 2 0.12", "2 0.5 7 0.25", "25 %", "0.5"],
        ["0", "0.png", "7", "same", "7 0.75 2 0.12", "7 0.75 2 0.12", "0 %", "0"],
    ]
    assert len(re.findall(r'<img src="data:image/jpeg;base64,[^"]{300,}" alt=""', text)) == 2
    assert not any("photo" in line for line in missing_of(run, None))


def test_photos_that_are_gone_are_counted(tmp_path: Path) -> None:
    run = of_photos(tmp_path)
    (tmp_path / "1.png").unlink()
    (tmp_path / "0.png").write_bytes(b"no picture")
    text = page_html(run)
    assert "Of 2 the picture isn't on disk any more." in unescape(text)
    assert len(rows_of(text, "Inputs")) == 3
    assert "the photos of 2 inputs are gone" in missing_of(run, None)


def test_times_and_where_it_comes_from(tmp_path: Path) -> None:
    localizations.wrong_pads(tmp_path)
    pair = tmp_path / "source.onnx", tmp_path / "target.onnx"
    run = conrepair.localize(*pair, samples=200, seed=3, in_process=True).run
    run = dataclasses.replace(run, command="conrepair localize a b")
    head, source, target = rows_of(page_html(run), "Times")
    assert head[2:] == ["batches", "5 %", "median", "95 %", "to the original's", "significant"]
    assert source[:3] == ["source.onnx", "ONNX Runtime", source[2]]
    assert int(source[2]) > 5
    assert float(source[3]) <= float(source[4]) <= float(source[5])
    assert source[6:] == ["", ""]
    assert target[7].startswith(("yes (p ", "no (p "))
    told = dict(re.findall(r"<dt><bdi>(.*?)</bdi></dt><dd><bdi>(.*?)</bdi>", unescape(page_html(run))))
    assert (told["command"], told["option seed"], told["option samples"]) == ("conrepair localize a b", "3", "200")
    for kind, path in zip(("reference", "target"), pair, strict=True):
        assert sha256_of(path) in told[f"{path.name} ({kind})"]
    assert told["seed of target.onnx"] == "3"
    assert told["version of conrepair"] == conrepair.__version__


@pytest.mark.parametrize("name", ["report-first-screen", "report-repair", "report-audit"])
def test_pictures_in_the_docs_are_of_the_first_screen(name: str) -> None:
    with Image.open(PICTURES / f"{name}.png") as picture:
        assert picture.size == (1280, 800)
