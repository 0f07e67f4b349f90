"""Values that cross the border of a process, and those that don't."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from conrepair.ground.runtime.typed import plain, typed


@dataclass(frozen=True)
class _Pair:
    name: str
    sizes: tuple[int, ...]


def test_what_was_made_here_is_taken_as_it_is() -> None:
    value = _Pair("a", (1, 2))
    assert typed(_Pair, value) is value
    assert typed(_Pair, plain(value)) == value


def test_what_comes_from_elsewhere_is_checked() -> None:
    with pytest.raises(ValueError, match="sizes"):
        typed(_Pair, {"name": "a", "sizes": ["many"]})
