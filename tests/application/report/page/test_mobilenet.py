"""The page of MobileNetV2 with one convolution padded at the other edges, in a browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import chromium, opened

import conrepair
from benchmarks.verbs_cost import make_pair

_MOST = 5_000_000  # bytes


@pytest.mark.slow
def test_the_layer_at_fault_is_on_the_first_screen(tmp_path: Path) -> None:
    make_pair(tmp_path)
    found = conrepair.localize(tmp_path / "source.onnx", tmp_path / "wrong.onnx", in_process=True)
    (fault,) = found.faults
    page = found.save(tmp_path / "out") / "report.html"
    assert page.stat().st_size < _MOST
    with chromium() as browser, opened(browser, page) as seen:
        seen.page.locator(".pane canvas").first.wait_for()
        assert seen.in_sight("ol.guilty a.layer-link")
        assert seen.page.locator("ol.guilty a.layer-link").get_attribute("title") == fault.target_layers[0]
        assert seen.page.locator(".layer tr.differs th").all_text_contents() == ["pads (differs)"]
        assert seen.page.locator(".layers tbody tr").count() == len(found.localization.layers) == 100
        assert "18 of 19 blocks folded" in str(seen.page.locator(".graph .soft").first.text_content())
        assert "fitted line: converted = " in str(seen.page.locator(".layer .scattered").text_content())
        assert seen.violations() == []
        assert seen.requests == [page.as_uri()]
        assert seen.errors == []
