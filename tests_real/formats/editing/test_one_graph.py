"""The graph that an editor changes is the one that localization has looked at, in every format and small network.

What's known to differ is in `gaps/`, a file for each format; a line that is true of no network any more has to go.
"""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import pytest
from one_graph import differences, known_gaps
from small_files import FILES

_GAPS = {format_: Path(__file__).parent / "gaps" / f"{format_}.txt" for format_ in FILES}


@functools.cache
def found(format_: str, name: str) -> frozenset[str]:
    with tempfile.TemporaryDirectory() as folder:
        return frozenset(differences(FILES[format_][name](Path(folder))))


@pytest.mark.parametrize(("format_", "name"), [(format_, name) for format_ in FILES for name in FILES[format_]])
def test_both_graphs_are_one(format_: str, name: str) -> None:
    assert found(format_, name) <= known_gaps(_GAPS[format_])


@pytest.mark.parametrize("format_", FILES)
def test_gaps_are_still_there(format_: str) -> None:
    everywhere = {words for name in FILES[format_] for words in found(format_, name)}
    assert known_gaps(_GAPS[format_]) <= everywhere
