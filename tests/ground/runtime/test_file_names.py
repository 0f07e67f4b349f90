"""Names of files for texts of others: none leaves its folder, and no two are confused."""

from __future__ import annotations

import unicodedata
from pathlib import PurePosixPath, PureWindowsPath

from hypothesis import given
from hypothesis import strategies as st

from conrepair.ground.runtime.path_text import FileNames

ODD = st.text("./\\aA\0\r é\u0301", max_size=6) | st.sampled_from(["..", "con", "CON", "x" * 300])
TEXTS = st.text(max_size=300) | ODD


@given(st.lists(TEXTS, max_size=12))
def test_every_text_has_its_own_name_in_one_folder(texts: list[str]) -> None:
    names = FileNames()
    found = {text: names.of(text, text) for text in texts}
    assert {text: names.of(text, text) for text in reversed(texts)} == found
    for name in found.values():
        assert PurePosixPath(name).parts == PureWindowsPath(name).parts == (name,)
        assert name not in {".", ".."}
        assert len(name.encode()) <= 200
        assert name.isprintable()
    assert len({unicodedata.normalize("NFC", name.casefold()) for name in found.values()}) == len(found)


def test_a_name_that_was_made_for_another_is_not_taken() -> None:
    names = FileNames()
    made = names.of("a/b", "a/b")
    assert names.of(made, made) != made
    assert [FileNames().of(name, name) for name in ("MobileNetV2", "torch-onnx+onnx-keras")] == [
        "MobileNetV2",
        "torch-onnx+onnx-keras",
    ]
