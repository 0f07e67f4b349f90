"""What was opened last is held."""

from __future__ import annotations

import weakref
from pathlib import Path

from conrepair.ground.runtime.handing_on import Recent


def test_the_last_ones_are_held_as_far_as_their_files_are_small(tmp_path: Path) -> None:
    recent: Recent[object] = Recent(100)
    one, two, large = (tmp_path / name for name in ("one", "two", "large"))
    for path, size in ((one, 60), (two, 40), (large, 101)):
        path.write_bytes(bytes(size))
    first = recent.of(one, "so", object)
    assert recent.of(one, "so", object) is first
    other = recent.of(two, "so", object)
    assert recent.of(one, "so", object) is first
    assert recent.of(large, "so", object) is not recent.of(large, "so", object)
    assert recent.of(two, "so", object) is other
    assert recent.of(two, "otherwise", object) is not other
    assert recent.of(one, "so", object) is not first, "the one that wasn't asked for the longest time goes"


def test_what_changes_is_made_anew(tmp_path: Path) -> None:
    recent: Recent[list[int]] = Recent(100)
    path = tmp_path / "file"
    path.write_bytes(b"1")
    held = recent.of(path, "", list)
    path.write_bytes(b"22")
    assert recent.of(path, "", list) is not held
    changing = recent.of(path, "changing", list, stays=lambda _: False)
    assert recent.of(path, "changing", list) is not changing
    assert recent.of(tmp_path, "", list) is not recent.of(tmp_path, "", list)


def test_few_are_held_however_small_their_files_are(tmp_path: Path) -> None:
    recent: Recent[set[int]] = Recent(1 << 20)
    held = []
    for number in range(100):
        path = tmp_path / str(number)
        path.write_bytes(b"1")
        held.append(weakref.ref(recent.of(path, "", set)))
    assert [number for number, value in enumerate(held) if value() is not None] == list(range(68, 100))
