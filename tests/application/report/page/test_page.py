"""report.html: what it says, and that nothing of a model's becomes markup."""

from __future__ import annotations

import dataclasses
import html
import io
import json
import re
import shlex
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import localizations
import pytest
from pages import HOSTILE, hostile
from rich.console import Console

import conrepair
from conrepair.application.report.localization.advice import about_step
from conrepair.application.report.localization.summary import print_localization
from conrepair.application.report.page.page import page_html
from conrepair.application.report.page.rendering import coded
from conrepair.application.report.result import Problem, Row
from conrepair.application.report.results import Localized
from conrepair.application.report.saved import read_result
from conrepair.ground.runtime.errors import ExitCode
from conrepair.ground.runtime.processes.workers import NO_DEVICE, NO_LIBRARY
from conrepair.ground.runtime.words import percent
from conrepair.verdicts.evaluate.verdict import Verdict


class _Page(HTMLParser):
    """The elements of a page, with the text in them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def data_in(text: str, row: int = 0) -> dict[str, object]:
    (found,) = re.findall(rf'<script type="application/json" id="data-row-{row}">(.*?)</script>', text, re.DOTALL)
    value: dict[str, object] = json.loads(found)
    return value


@pytest.fixture(scope="module")
def localized(tmp_path_factory: pytest.TempPathFactory) -> tuple[Localized, Path]:
    folder = tmp_path_factory.mktemp("pair")
    localizations.wrong_pads(folder)
    found = conrepair.localize(folder / "source.onnx", folder / "target.onnx", in_process=True)
    return found, found.save(folder / "out")


def test_the_page_lies_in_the_folder_and_follows_from_the_document(localized: tuple[Localized, Path]) -> None:
    _, folder = localized
    assert (folder / "report.html").read_text(encoding="utf-8") == page_html(read_result(folder))


def test_the_first_screen_says_what_is_at_fault(localized: tuple[Localized, Path]) -> None:
    text = page_html(read_result(localized[1]))
    head = _Page(text.partition("<main")[0])
    told = " ".join(" ".join(head.text).split())
    assert "faulty Don't ship target.onnx:" in told
    assert "<code>conv</code> has pads" in text
    assert "`conv`" not in told
    assert "<title>faulty: target.onnx against source.onnx - conrepair</title>" in text
    assert "conrepair localize: source.onnx → target.onnx" in told
    assert re.search(
        r"Predictions: \d+ of 32 differ\. Outputs: off by \d+ %, [\d,]+ times more than rounding\.", told
    )
    assert "Layers: 1 of 8 at fault." in told
    assert "conrepair repair /" in told
    assert "Looked at 8 samples" in told
    layers: list[dict[str, bool]] = data_in(text, 1)["layers"]  # type: ignore[assignment]
    (place,) = [number for number, layer in enumerate(layers) if layer["guilty"]]
    assert f"#row-1-layer-{place}" in [values.get("href") for tag, values in head.tags if tag == "a"]


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("`a<b` has `pads`", "<code>a&lt;b</code> has <code>pads</code>"),
        ("a ` alone, <b>", "a ` alone, &lt;b&gt;"),
        ("``", "``"),
    ],
)
def test_between_backticks_stands_code_and_all_is_escaped(text: str, html: str) -> None:
    assert str(coded(text)) == html


def test_inputs_are_shown_before_and_after_a_repair(localized: tuple[Localized, Path], tmp_path: Path) -> None:
    assert ">repaired</th>" not in page_html(localized[0].run)
    pair = (localized[1].parent / name for name in ("source.onnx", "target.onnx"))
    found = conrepair.repair(*pair, output=tmp_path / "out", in_process=True)
    text = page_html(read_result(tmp_path / "out"))
    told = " ".join(" ".join(_Page(text).text).split())
    wrong = sum(bool(item.differs) for item in found.row.inputs)
    assert wrong > 0
    assert f"Predictions that differ: before the repair {wrong}, now 0." in told
    head, _, body = text.partition('<div class="inputs">')[2].partition("<tbody>")
    names = re.findall(r"<th [^>]*>(.*?)</th>", head)
    assert names[3:7] == ["original", "converted", "repaired", "relative error"]
    assert names[7] == "error, repaired"
    rows = body.partition("</tbody>")[0].split("</tr>")[:-1]
    assert {row.count("<td") for row in rows} == {len(names)}
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL) for row in rows]
    assert all(cell[3] == cell[5] for cell in cells), "what the source says"
    assert any(cell[3] != cell[4] for cell in cells)
    assert {cell[7] for cell in cells} == {"0 %"}


def test_a_repair_shows_what_was_and_what_is_with_its_files(
    localized: tuple[Localized, Path], tmp_path: Path
) -> None:
    pair = [localized[1].parent / name for name in ("source.onnx", "target.onnx")]
    found = conrepair.repair(*pair, output=tmp_path / "out", in_process=True)
    assert found.result is not None
    text = page_html(read_result(tmp_path / "out"))
    head = text.partition("<main")[0]
    told = dict(re.findall(r'<th scope="row"><bdi>(.*?)</bdi></th>(<td>.*?)</tr>', head))
    before = found.result.unseen_before
    on = f"{before.samples} other random samples, which the search didn&#39;t see"
    assert told.pop(f"predictions that differ, on {on}") == (
        f"<td>{before.top1_differing} of {before.samples}</td><td>0 of {before.samples}</td>"
    )
    assert told["relative error of the outputs on these"].startswith(f"<td>{percent(before.error)}</td>")
    assert told["layers at fault"] == "<td>1</td><td>0</td>"
    assert told["error added by <code>conv</code>"].startswith("<td>150 %</td>")
    links = [values["href"] for tag, values in _Page(head).tags if tag == "a" and values.get("class") is None]
    assert {"repaired.onnx", "patch.json"} <= set(links)
    assert all((tmp_path / "out" / str(link)).is_file() for link in links if not str(link).startswith("#"))
    again = shlex.join(["conrepair", "compare", str(pair[0]), str(tmp_path / "out" / "repaired.onnx"), "--seed", "1"])
    assert html.escape(again) in head


def test_a_command_names_files_as_they_were_typed(localized: tuple[Localized, Path]) -> None:
    run = read_result(localized[1])
    typed = dataclasses.replace(run, command="conrepair localize 'source.onnx' x/target.onnx -o out")
    folder = localized[1].parent
    assert f"conrepair repair source.onnx {folder / 'target.onnx'}" in page_html(typed), "x/target.onnx is another"
    typed = dataclasses.replace(run, command=f"conrepair localize {folder.name}/source.onnx ./target.onnx")
    assert f"conrepair repair {folder.name}/source.onnx target.onnx" in page_html(typed).replace("./target", "target")


def test_cards_hold_every_node_once_and_follow_the_edges(localized: tuple[Localized, Path]) -> None:
    run = read_result(localized[1])
    data = data_in(page_html(run), 1)
    cards: list[dict[str, list[int | str]]] = data["cards"]  # type: ignore[assignment]
    step = run.rows[-1].localized.steps[0]
    for side, model in (("source", step.compared.source), ("target", step.compared.target)):
        nodes = [name for card in cards for name in card[side]]
        assert set(nodes) == {node.name for node in run.graphs[model.sha256].nodes}
    for place, card in enumerate(cards):
        assert all(int(before) < place for before in card["source_after"] + card["target_after"])
    for side in ("source_after", "target_after"):
        assert sum(len(card[side]) for card in cards) >= len(cards) - 1


def test_what_was_kept_stands_at_its_layer(localized: tuple[Localized, Path]) -> None:
    run = read_result(localized[1])
    data: dict[str, Any] = data_in(page_html(run), 1)
    (guilty,) = data["guilty"]
    step = run.rows[-1].localized.steps[0].localization
    assert set(map(int, data["kept"])) == {guilty, len(data["layers"]) - 1}, "and the output"
    kept = data["kept"][str(guilty)]
    assert (kept["source_tensor"], kept["full_run"]) == (data["layers"][guilty]["source_tensor"], False)
    assert kept["worst"][0]["index"] == list(step.kept[0].worst[0].index)


def test_nothing_is_asked_of_a_network_and_no_other_script_runs(localized: tuple[Localized, Path]) -> None:
    page = _Page(page_html(read_result(localized[1])))
    for tag, values in page.tags:
        assert tag not in {"link", "iframe", "object", "embed", "base", "form"}
        assert not [name for name in values if name.startswith("on")]
        for name in ("src", "href"):
            value = values.get(name) or "#"
            inside = "//" not in value and ":" not in value and not value.startswith(("/", "."))
            assert inside or value.startswith("data:image/jpeg;base64,"), "a place on the page, or a file beside it"
    (policy,) = [values["content"] for tag, values in page.tags if values.get("http-equiv")]
    assert policy is not None
    assert "default-src 'none'" in policy
    assert "script-src 'sha256-" in policy


def test_names_of_others_stay_text(tmp_path: Path) -> None:
    text = page_html(hostile(tmp_path))
    page = _Page(text)
    plain = _Page(page_html(localizations.run_of(localizations.made(3), localizations.about(), tmp_path)))
    assert not [values for tag, values in page.tags if tag == "img"]
    ours, theirs = ([tag for tag, _ in some.tags].count("script") for some in (page, plain))
    assert ours == theirs > 0
    layers: list[dict[str, str]] = data_in(text)["layers"]  # type: ignore[assignment]
    assert layers[0]["target_layer"] == HOSTILE


def test_an_audit_has_a_matrix_that_leads_to_its_rows(tmp_path: Path) -> None:
    run = localizations.run_of(localizations.made(3, {1: 0.5}), localizations.about(), tmp_path)
    (row,) = run.rows
    rows = [
        Row(model="net", conversion="", backend="libraries", kind="reference"),
        dataclasses.replace(row, verdict=Verdict.FAULTY, reference="net", conversion="a+b"),
        Row(
            model="net", conversion="c", backend="onnxruntime", kind="target", verdict=Verdict.NOISE, reference="net"
        ),
        Row(model="net", conversion="", backend="tvm", kind="reference", verdict=Verdict.NOISE, reference="net"),
        Row(
            model="net", conversion="", backend="gpu", kind="reference", problem=Problem(message="x", kind=NO_DEVICE)
        ),
    ]
    text = page_html(dataclasses.replace(run, kind="audit", rows=tuple(rows)))
    told = " ".join(" ".join(_Page(text).text).split())
    assert "Ship these 2: net/c on onnxruntime, net on tvm; don't ship " in told
    assert "of what is wrong in 1 target" in told
    links = [values.get("href") for tag, values in _Page(text).tags if tag == "a"]
    assert {"#row-1", "#row-2", "#row-3", "#row-4"} <= set(links)
    assert "a > b" in told
    assert "no device" in told


def test_a_matrix_of_one_model_says_why_of_each_backend(tmp_path: Path) -> None:
    run = localizations.run_of(localizations.made(3, {1: 0.5}), localizations.about(), tmp_path)
    (row,) = run.rows
    gone = Problem(message="qnn isn't installed here: pip install it", kind=NO_LIBRARY, exit_code=ExitCode.EQUIVALENT)
    rows = [
        Row(model="net", conversion="", backend="libraries", kind="reference"),
        dataclasses.replace(
            row, model="net", conversion="", verdict=Verdict.FAULTY, reason="off by 1; and more", backend="fast"
        ),
        Row(model="net", conversion="", backend="slow", kind="reference", verdict=Verdict.NOISE, reference="net"),
        Row(model="net", conversion="", backend="qnn", kind="reference", problem=gone, reason=gone.message),
    ]
    result = dataclasses.replace(run, kind="audit", rows=tuple(rows))
    told = " ".join(" ".join(_Page(page_html(result)).text).split())
    layer = re.search(r"fast faulty Faulty layer: (\S+) off by 1", told)
    assert layer is not None
    assert layer[1] == row.localized.result.faults[0].places[0]
    assert "qnn not installed qnn isn't installed here: pip install it" in told
    assert result.exit_code_of(rows[-1]) == 0


def test_an_audit_says_of_a_fault_what_localize_prints(tmp_path: Path) -> None:
    found = localizations.made(3, {1: 0.5})
    run = localizations.run_of(found, localizations.about(), tmp_path)
    (row,) = run.rows
    rows = tuple(dataclasses.replace(row, model=name, reference="net") for name in ("one", "two"))
    told = " ".join(" ".join(_Page(page_html(dataclasses.replace(run, kind="audit", rows=rows))).text).split())
    console = Console(file=io.StringIO(), width=1000)
    print_localization(found, console, about=about_step(row, run))
    printed = [line.strip() for line in console.file.getvalue().splitlines()]
    (place,) = [place for place, line in enumerate(printed) if line.startswith("1. ")]
    _, evidence, advice = printed[place + 1 : place + 4]
    assert "pads" in evidence
    assert evidence.replace("`", "") in told
    assert advice.startswith("next: ")
    assert advice.removeprefix("next: ").replace("`", "") in told


def test_a_run_without_layers_says_how_to_get_them(tmp_path: Path) -> None:
    row = Row(model="net", conversion="", backend="libraries", kind="target", verdict=Verdict.FAULTY, reason="other")
    run = localizations.run_of(localizations.made(1), localizations.about(), tmp_path)
    text = page_html(dataclasses.replace(run, rows=(row,)))
    assert "Layers weren't compared in this run" in text
    assert len(text) < 100_000, "libraries that draw layers aren't in it"
