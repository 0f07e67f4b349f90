"""The site of docs/, as readers open it: built strictly, links checked, searched, nothing asked of other hosts."""

from __future__ import annotations

import functools
import http.server
import inspect
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import chromium

import conrepair
from conrepair.application.cli.main import command_line
from conrepair.application.cli.parser import Verbs

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("zensical")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "docs/site/build.py", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "html"


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    handler = functools.partial(Silent, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


class Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def test_the_references_have_each_option(site: Path) -> None:
    page = (site / "command-line.html").read_text(encoding="utf-8")
    (verbs,) = (action for action in command_line()._actions if isinstance(action, Verbs))
    for verb, parser in verbs.choices.items():
        section = page.partition(f'<h2 id="{verb}">')[2].partition("<h2 ")[0]
        for option in parser._option_string_actions:
            assert re.search(rf"<code>{option}[ <]", section), f"{verb} {option}"
    page = (site / "python-reference.html").read_text(encoding="utf-8")
    for name in set(conrepair.__all__) - {"__version__"}:
        assert f'<h3 id="{name.lower()}">' in page, name
    for option in inspect.signature(conrepair.localize).parameters:
        assert f"<code>{option}</code>" in page.partition('<h3 id="localize">')[2].partition("<h3 ")[0], option


def test_steps_are_one_list(site: Path) -> None:
    page = (site / "index.html").read_text(encoding="utf-8")
    steps = page.partition('<h2 id="it-runs-on-a-phone">')[2].partition("<h2 ")[0]
    (items,) = re.findall(r"<ol>(.*?)</ol>", steps, re.DOTALL)
    assert items.count("<li>") == 3
    assert items.count("conrepair") >= 3


def test_a_broken_site_is_noticed(site: Path) -> None:
    sys.path.insert(0, str(ROOT / "docs" / "site"))
    try:
        import checking
    finally:
        sys.path.pop(0)
    page = site / "broken.html"
    page.write_text(
        '<a href="nowhere.html"></a><a href="index.html#nothing"></a><img src="gone.png">'
        '<script src="https://cdn.example/x.js"></script><a href="https://example.com">fine</a>'
    )
    try:
        found = [line for line in checking.problems(site) if line.startswith("broken.html")]
    finally:
        page.unlink()
    assert len(found) == 4
    assert checking.problems(site) == []


def test_it_is_searched_and_asks_nothing_of_other_hosts(address: str) -> None:
    with chromium() as browser:
        page = browser.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address)
        page.keyboard.press("/")
        page.keyboard.type("strict signature", delay=20)
        page.get_by_text(re.compile(r"^[1-9]\d* results?$")).first.wait_for(timeout=20_000)
        assert asked
        assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []
