"""Pictures for the docs: `make pictures AUDIT=generated/shipped`, with Debian's chromium.

The errors along a network are those of the README's example. The page of a localization is made of MobileNetV2 with
one convolution padded at the other edges, that of an audit is taken from a run that is there.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from browser import chromium, opened  # noqa: E402 (found by the path above)

_FOLDER = Path(__file__).parent
_WIDTH, _HEIGHT = 1280, 800


def main() -> None:
    """Write the pictures beside this file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--audit", type=Path, help="Folder of an audit, whose page is taken, too.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, chromium() as browser:
        folder = Path(scratch)
        subprocess.run([sys.executable, "-m", "benchmarks.verbs_cost", "--make", scratch], cwd=ROOT, check=True)
        for verb in ("localize", "repair"):
            words = [verb, "source.onnx", "wrong.onnx", "-q", "-o", verb]
            _conrepair(folder, *words)
        _localize_readme(folder)
        _take(browser, folder / "findings" / "report.html", "divisor-override", ".localization", most=390)
        _take(browser, folder / "localize" / "report.html", "report-first-screen", "")
        _take(browser, folder / "localize" / "report.html", "report-layers", ".localization", most=1250)
        _take(browser, folder / "localize" / "report.html", "report-graph", ".graph")
        _take(browser, folder / "repair" / "report.html", "report-repair", "", scheme="dark")
    if options.audit is not None:
        with chromium() as browser:
            _take(browser, options.audit.absolute() / "report.html", "report-audit", "")


def _localize_readme(folder: Path) -> None:
    """Localize in the network that the README's first script makes."""
    code = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.DOTALL | re.MULTILINE)[0]
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)
    _conrepair(folder, "localize", "net.pt2", "net.onnx", "-q", "-o", "findings")


def _conrepair(folder: Path, *words: str) -> None:
    subprocess.run([sys.executable, "-m", "conrepair", *words], cwd=folder, check=False, env=_environment())


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def _take(browser: Any, page: Path, name: str, selector: str, *, scheme: Any = "light", most: int = 0) -> None:
    with opened(browser, page, scheme=scheme, size=(_WIDTH, _HEIGHT)) as seen:
        box = seen.page.locator(selector).first.bounding_box() if selector else None
        clip = None if box is None else {**box, "height": min(box["height"], most or box["height"])}
        seen.page.screenshot(path=_FOLDER / f"{name}.png", clip=clip, full_page=clip is not None)


if __name__ == "__main__":
    main()
