"""report.html in a browser: no error, no request, and all of it works by mouse and by keyboard."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import localizations
import numpy as np
import onnx
import pytest
from browser import Opened, chromium, opened
from crossed import crossed
from pages import HOSTILE, deep, hostile

import conrepair
from conrepair.application.report.page.page import page_html
from conrepair.ground.runtime.words import percent

_LAYERS = 1000
_DESK, _PHONE = (1280, 800), (390, 800)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def page_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a small network whose first convolution is padded at the other edges."""
    folder = tmp_path_factory.mktemp("pair")
    localizations.wrong_pads(folder)
    found = conrepair.localize(folder / "source.onnx", folder / "target.onnx", in_process=True)
    return found.save(folder / "out") / "report.html"


@pytest.mark.parametrize(
    ("scheme", "size"), crossed(["light", "dark"], [_DESK, _PHONE], quick=[("light", _DESK), ("dark", _PHONE)])
)
def test_it_opens_without_error_request_or_violation(
    browser: Any, page_path: Path, scheme: Any, size: tuple[int, int]
) -> None:
    with opened(browser, page_path, scheme=scheme, size=size) as seen:
        seen.page.locator(".pane canvas").first.wait_for()
        assert seen.requests == [page_path.as_uri()]
        assert seen.in_sight("h1 .badge")
        if size[0] > 1000:
            assert seen.in_sight("ol.guilty a.layer-link")
        width = seen.page.evaluate("document.documentElement.scrollWidth")
        assert width <= size[0], "the page doesn't scroll sideways"
        assert seen.violations() == []
        assert seen.errors == []


def test_tables_are_sorted_and_filtered(browser: Any, page_path: Path) -> None:
    with opened(browser, page_path) as seen:
        rows = seen.page.locator(".inputs tbody tr")
        index = seen.page.get_by_role("button", name="index", exact=True)
        index.click()
        assert rows.first.locator("td").first.text_content() == "0"
        index.click()
        assert rows.first.locator("td").first.text_content() == "31"
        assert seen.page.locator(".inputs th[aria-sort]").get_attribute("aria-sort") == "descending"
        seen.page.locator(".inputs .filter").fill("sample_00003")
        assert seen.page.locator(".inputs tbody tr:visible").count() == 1
        assert "1 of 32 shown" in (seen.page.locator(".inputs .count").text_content() or "")
        seen.page.locator(".inputs .filter").fill("")
        seen.page.locator(".only-different").check()
        shown = seen.page.locator(".inputs tbody tr:visible")
        assert 0 < shown.count() < 32
        assert shown.count() == seen.page.locator(".inputs tr.differs").count()
        assert seen.errors == []


def clicked(seen: Opened, side: int, item: str) -> None:
    """Click a node of a graph: of the original (0) or of the converted model (1)."""
    pane = seen.page.locator(".pane").nth(side)
    pane.scroll_into_view_if_needed()
    place = pane.evaluate("(e, item) => e._cyreg.cy.getElementById(item).renderedPosition()", item)
    pane.click(position={"x": place["x"], "y": place["y"]})


def drawn(seen: Opened, side: int = 0) -> dict[str, Any]:
    """How a graph stands: items by their ids with their classes, zoom and place."""
    found: dict[str, Any] = (
        seen.page.locator(".pane")
        .nth(side)
        .evaluate(
            "e => { const g = e._cyreg.cy; return { zoom: g.zoom(), pan: g.pan(),"
            " nodes: Object.fromEntries(g.nodes().map(n => [n.id(), n.classes()])) }; }"
        )
    )
    return found


def chosen_in(seen: Opened, side: int) -> list[str]:
    return [item for item, classes in drawn(seen, side)["nodes"].items() if "chosen" in classes]


def chosen(seen: Opened) -> str:
    return str(seen.page.locator(".layer h3").first.text_content())


def test_a_layer_is_chosen_in_graph_plot_table_and_by_its_link(browser: Any, page_path: Path) -> None:
    with opened(browser, page_path) as seen:
        assert chosen(seen) == "conv", "the guilty one at first"
        assert seen.page.locator(".layer tr.differs th").all_text_contents() == ["pads (differs)"]
        (before,) = chosen_in(seen, 0)
        other = next(item for item in drawn(seen)["nodes"] if item not in {before, "card0"})
        clicked(seen, 1, other)
        assert chosen(seen) != "conv"
        assert chosen_in(seen, 0) == chosen_in(seen, 1) == [other]
        assert seen.in_sight(".graph-view"), "the page stays at the graph"
        seen.page.get_by_role("button", name="Show this layer").click()
        assert seen.page.evaluate("document.activeElement.className") == "layer"
        seen.page.locator("ol.guilty a").first.click()
        seen.page.locator(".layer > h3", has_text=re.compile("^conv$")).wait_for()
        seen.page.locator(".layers td button").last.click()
        assert seen.page.locator(".layers tr.chosen").count() == 1
        assert chosen(seen) != "conv"
        seen.page.locator(".plot").scroll_into_view_if_needed()
        before = seen.page.locator(".plot .told").text_content()
        box = seen.page.locator(".u-over").bounding_box()
        assert box is not None
        seen.page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 50)
        assert seen.page.locator(".plot .told").text_content() != before
        seen.page.mouse.click(box["x"] + 3, box["y"] + 50)
        assert seen.errors == []


def test_a_command_is_copied_by_its_button(browser: Any, page_path: Path) -> None:
    with opened(browser, page_path) as seen:
        seen.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        command = seen.page.locator(".command").first
        button = command.get_by_role("button")
        button.focus()
        seen.page.keyboard.press("Enter")
        seen.page.locator(".copy", has_text="Copied").wait_for()
        assert seen.page.evaluate("navigator.clipboard.readText()") == command.locator("code").text_content()
        assert str(button.get_attribute("aria-label")).startswith("Copy: conrepair repair ")
        assert seen.errors == []


def test_activations_are_shown_of_what_was_kept(browser: Any, page_path: Path) -> None:
    with opened(browser, page_path) as seen:
        layer = seen.page.locator(".layer")
        maps = layer.locator("canvas.map")
        assert maps.count() == 3 * layer.locator(".pictures figure").count() > 0
        colours = maps.first.evaluate(
            "e => new Set(new Uint32Array(e.getContext('2d').getImageData(0, 0, e.width, e.height).data.buffer)).size"
        )
        assert colours > 10
        assert re.match(r"Channel \d+, original: -?[\d.]+ to [\d.]+$", str(maps.first.get_attribute("aria-label")))
        words = str(layer.locator("figure.scattered").text_content())
        assert re.search(
            r"fitted line: converted = -?[\d.]+ x original.*; correlation -?[\d.]+; [\d.]+ % of the values", words
        )
        assert layer.locator("svg.scatter circle:not(.worst)").count() > 100
        assert layer.locator("svg.scatter circle.worst").count() == 20
        assert layer.locator("svg.scatter .fitted").count() == 1
        assert layer.locator("svg.histogram").count() == 2, "activations and weight"
        numbers = [float(text) for text in layer.locator("td.number").all_text_contents()[:3]]
        assert numbers[1] - numbers[0] == pytest.approx(numbers[2], rel=1e-5)
        for name, words in (("light", "both models ran from their inputs on"), ("dark", "and not of this one")):
            seen.page.emulate_media(color_scheme=name)  # type: ignore[arg-type]
            seen.page.locator(".layers td button").nth(-1 if name == "light" else 1).click()
            assert words in str(layer.text_content())
            assert seen.violations() == []
        layer.get_by_role("button", name="conv", exact=True).click()
        assert chosen(seen) == "conv"
        assert seen.errors == []


def test_layers_are_named_below_the_plot(browser: Any, page_path: Path) -> None:
    with opened(browser, page_path) as seen:
        names = seen.page.locator(".plot").evaluate(
            "e => { const plot = e.querySelector('[role=slider]').plot, axis = plot.axes[0];"
            " return axis.values(plot, axis.splits(plot)); }"
        )
        assert len(names) == 8
        assert names[0] == "● conv", "what is at fault is marked"
        assert seen.errors == []


def test_shares_are_told_as_everywhere_else(browser: Any, page_path: Path) -> None:
    values = [0, 0.0047, 0.16, 0.999, 0.0951, 1e-6, 9.9e-7, 3.55, 9.96, 14.9, 1500, -0.25, -20, 0.1, 1e-3, 0.0995]
    with opened(browser, page_path) as seen:
        assert seen.page.evaluate("values => values.map(percent)", values) == list(map(percent, values))
        assert seen.page.evaluate("[NaN, Infinity].map(percent)") == ["not a number", "infinite"]


def test_dragging_zooms_and_a_button_shows_all_again(browser: Any, page_path: Path) -> None:
    with opened(browser, page_path) as seen:
        seen.page.locator(".plot").scroll_into_view_if_needed()
        whole = seen.page.locator(".u-over").screenshot()
        box = seen.page.locator(".u-over").bounding_box()
        assert box is not None
        seen.page.mouse.move(box["x"] + 0.1 * box["width"], box["y"] + 80)
        seen.page.mouse.down()
        seen.page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 80, steps=5)
        seen.page.mouse.up()
        assert seen.page.locator(".plot canvas").screenshot() != whole
        seen.page.get_by_role("button", name="Whole network").click()
        assert seen.errors == []


def test_on_paper_all_is_unfolded_light_and_within_the_page(browser: Any, page_path: Path) -> None:
    paper = (718, 1046)  # what the margins leave of A4
    with opened(browser, page_path, scheme="dark", size=paper) as seen:
        folded = seen.page.locator("details:not([open])").count()
        seen.page.emulate_media(media="print", color_scheme="dark")
        seen.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        told = seen.page.locator("body").inner_text()
        assert "Don't ship target.onnx" in told
        assert "What is at fault" in told
        assert "Command, files with their hashes" in told
        assert seen.page.locator("details.row:not([open])").count() == 0
        assert seen.page.locator(".inputs tbody tr:visible").count() == 25
        assert seen.page.locator(".layers tbody tr:visible").count() == 1, "only the one at fault"
        assert seen.page.locator("button:visible, input:visible").evaluate_all(
            "all => all.filter(e => !e.closest('td, th')).length"
        ) == 0  # fmt: skip
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= paper[0]
        for selector in (".u-wrap", ".graph-view", ".graph-view img", ".pictures figure"):
            box = seen.page.locator(selector).first.bounding_box()
            assert box is not None
            assert box["x"] + box["width"] <= paper[0]
            assert 20 < box["height"] < paper[1]
        assert seen.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        darkest = seen.page.locator(".plot canvas").evaluate(
            "e => { const all = e.getContext('2d').getImageData(0, 0, 66, e.height).data; let least = 255;"
            " for (let i = 0; i < all.length; i += 4) if (all[i + 3] === 255) least = Math.min(least, all[i]);"
            " return least; }"
        )
        assert darkest < 60, "the axis of the plot is in the colour of the text"
        seen.page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert seen.page.locator("details:not([open])").count() == folded
        assert 2 <= seen.page.pdf(format="A4").count(b"/Type /Page\n") <= 6
        assert seen.errors == []


def test_the_keyboard_alone_reaches_everything(browser: Any, page_path: Path) -> None:
    with opened(browser, page_path) as seen:
        reached = set()
        for _ in range(400):
            seen.page.keyboard.press("Tab")
            found = seen.page.evaluate(
                "(() => { const e = document.activeElement; if (e === document.body) return null;"
                " return e.className.baseVal ?? e.className ?? e.tagName; })()"
            )
            if found is None:
                break
            reached.add(str(found).split(" ")[0] or "button")
        assert {"skip", "layer-link", "graph-view", "copy", "filter", "only-different"} <= reached, reached
        slider = seen.page.get_by_role("slider")
        slider.focus()
        seen.page.keyboard.press("Home")
        first = slider.get_attribute("aria-valuetext")
        seen.page.keyboard.press("ArrowRight")
        assert slider.get_attribute("aria-valuetext") != first
        seen.page.keyboard.press("Enter")
        assert chosen(seen) in str(slider.get_attribute("aria-valuetext"))
        seen.page.locator(".graph-view").focus()
        seen.page.keyboard.press("End")
        words = str(seen.page.locator(".graph .told").text_content())
        assert chosen(seen) not in words
        seen.page.keyboard.press("Enter")
        assert chosen(seen) in words
        assert seen.errors == []


def test_names_of_others_are_shown_and_nothing_runs(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(page_html(hostile(tmp_path)), encoding="utf-8")
    with opened(browser, path) as seen:
        asked = []
        seen.page.on("dialog", lambda dialog: asked.append(dialog.message))
        for row in seen.page.locator("details.row > summary").all():
            row.click()
        assert asked == []
        assert HOSTILE in str(seen.page.locator("details.row h2").last.text_content())
        assert HOSTILE in str(seen.page.locator(".notes li").first.text_content())
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= 1280
        assert seen.page.locator("img").count() == 0
        layer = str(seen.page.locator(".layer").first.text_content())
        assert "Differences are shown 1000 times as large as they are." in layer
        assert "black: no finite number" in layer
        assert "no finite number: 0 in the original, 1 in the converted model" in layer
        assert seen.requests == [path.as_uri()]
        assert seen.errors == []


def test_several_targets_of_a_source_are_lines(browser: Any, tmp_path: Path) -> None:
    run = localizations.run_of(localizations.made(30, {7: 0.5}), localizations.about(), tmp_path)
    (row,) = run.rows
    rows = tuple(dataclasses.replace(row, model=name, reference="net") for name in ("one", HOSTILE))
    path = tmp_path / "report.html"
    path.write_text(page_html(dataclasses.replace(run, kind="audit", rows=rows)), encoding="utf-8")
    with opened(browser, path) as seen:
        assert seen.page.locator(".targets .key").all_text_contents() == ["one", HOSTILE]
        seen.page.locator(".targets").get_by_role("slider").focus()
        for _ in range(7):
            seen.page.keyboard.press("ArrowRight")
        assert "one 0.5" in str(seen.page.locator(".targets .told").text_content())
        for row in seen.page.locator("details.row > summary").all():
            row.click()
        seen.page.locator(".layer > h3").nth(1).wait_for()
        assert seen.violations() == []
        assert seen.errors == []


def test_both_graphs_are_in_step(browser: Any, page_path: Path) -> None:
    with opened(browser, page_path) as seen:
        before = drawn(seen)
        assert before["zoom"] == drawn(seen, 1)["zoom"]
        assert before["nodes"].keys() == drawn(seen, 1)["nodes"].keys()
        for side in (0, 1):
            pane = seen.page.locator(".pane").nth(side)
            pane.hover()
            seen.page.wait_for_timeout(500)  # a wheel that scrolls the page doesn't zoom what comes beneath it
            seen.page.mouse.wheel(0, -200)
            seen.page.wait_for_timeout(300)
            after = drawn(seen)
            assert after["zoom"] > before["zoom"], "the wheel zooms"
            seen.page.mouse.down()
            seen.page.mouse.move(900, 500, steps=4)
            seen.page.mouse.up()
            assert drawn(seen)["pan"] != after["pan"], "dragging moves"
            assert drawn(seen)["pan"] == drawn(seen, 1)["pan"]
            assert drawn(seen)["zoom"] == drawn(seen, 1)["zoom"]
            seen.page.get_by_role("button", name="Whole graph").click()
            before = drawn(seen)
        assert seen.errors == []


def test_a_deep_network_is_there_soon_folded_and_searched(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(page_html(deep(_LAYERS, tmp_path)), encoding="utf-8")
    assert path.stat().st_size < 10e6
    with opened(browser, path) as seen:
        graph = seen.page.locator(".graph")
        assert 20 < len(drawn(seen)["nodes"]) < 200
        assert "blocks folded" in str(graph.get_by_role("status").first.text_content())
        assert chosen(seen).startswith(f"block/{_LAYERS // 2}/conv")
        graph.get_by_role("searchbox").fill("block/77/")
        assert "1 found" in str(graph.get_by_role("status").first.text_content())
        assert "card77" not in drawn(seen)["nodes"], "it's in a block that is folded"
        seen.page.keyboard.press("Enter")
        assert chosen(seen).startswith("block/77/conv")
        assert chosen_in(seen, 0) == chosen_in(seen, 1) == ["card77"]
        graph.get_by_role("searchbox").fill("no such thing")
        assert "No layer has this" in str(graph.get_by_role("status").first.text_content())
        graph.get_by_role("button", name="Unfold all").click()
        assert len([item for item in drawn(seen)["nodes"] if item.startswith("card")]) == _LAYERS
        graph.get_by_role("button", name="Fold blocks").click()
        assert not [item for item in drawn(seen)["nodes"] if item.startswith("card")]
        seen.page.locator(".graph-view").focus()
        seen.page.keyboard.press("Home")
        assert chosen_in(seen, 1) == ["block0"]
        seen.page.keyboard.press("Enter")
        assert {"open0", "card0"} <= drawn(seen)["nodes"].keys()
        assert seen.page.locator(".layers tbody tr").count() == _LAYERS
        assert seen.errors == []


def test_a_right_conversion_is_said_to_be_safe(browser: Any, tmp_path: Path) -> None:
    weights = onnx.numpy_helper.from_array(np.eye(3, dtype=np.float32), "w")
    ends = [onnx.helper.make_tensor_value_info(end, 1, ["n", 3]) for end in "xy"]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMul", ["x", "w"], ["y"], "m")], "g", ends[:1], ends[1:], [weights]
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "net.onnx")
    found = conrepair.localize(tmp_path / "net.onnx", tmp_path / "net.onnx", in_process=True)
    with opened(browser, found.save(tmp_path / "out") / "report.html") as seen:
        assert "Safe to ship" in str(seen.page.locator("h1").text_content())
        assert seen.violations() == []
        assert seen.errors == []
