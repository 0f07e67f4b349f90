"""What other machines have done so far of a run, as a page beside the folder that it will get."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from conrepair.ground.runtime.files.outputs import Output
from conrepair.ground.runtime.files.whole import put_text
from conrepair.ground.runtime.shown.standing import Standing


@contextlib.contextmanager
def unfinished_page(folder: Path) -> Iterator[Callable[[Standing], None]]:
    """Yield what writes the page anew; it goes when the block succeeds.

    Args:
        folder: Where the run will be.

    Raises:
        StorageError: if it can't be written, or removed.
    """
    output = Output(folder.with_name(f"{folder.name}.unfinished.html"), "run on other machines", beside=True)

    def write(standing: Standing) -> None:
        from conrepair.application.report.page.rendering import (  # Jinja2 takes a while to import
            policy,
            rendered,
            text_of,
        )

        at, style = time.strftime("%Y-%m-%d %H:%M:%S"), text_of("style.css")
        page = rendered("unfinished.html", standing=standing, name=folder.name, at=at, style=style, policy=policy())
        with output.write() as temporary:
            put_text(temporary, f"{page.strip()}\n")

    yield write
    output.remove()
