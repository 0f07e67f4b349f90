"""What people read has the words of the field, as docs/glossary.md lists them, and not those of the code."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.words import OURS, texts, without_noun

STOREYS = ("ground", "formats", "verdicts", "diagnosis", "laboratory", "application")
STILL = ("application/", "laboratory/", "testing.py")  # their messages are being mended
OTHERWISE = {"formats/tvm/settings.py": "the target's"}  # of TVM's target
WITHOUT_NOUN = {
    "ground": 190,
    "formats": 268,
    "verdicts": 66,
    "diagnosis": 192,
    "laboratory": 271,
    "application": 571,
}
"""Messages and docstrings in which no word of the glossary stands: `python -m tests.support.words` lists them. Where
there are fewer, the number here goes down; it never goes up."""


def test_messages_have_none_of_our_words() -> None:
    found = {
        f"{text.file}:{text.line}: {text.words!r} says {said[0]!r}"
        for text in texts()
        if text.shown and not text.file.startswith(STILL)
        if (said := OURS.search(text.words)) and OTHERWISE.get(text.file) != said[0]
    }
    assert not found, "\n".join(sorted(found))


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("`conv` introduces 0.16 where rounding explains 9.5e-07", ["introduces", "explains"]),
        ("only the source has the output `y`", ["the source"]),
        ("the source code of the factory, of the target shape", []),
    ],
)
def test_our_words_are_found(words: str, found: list[str]) -> None:
    assert OURS.findall(words) == found


def test_no_more_texts_lack_a_noun() -> None:
    counts = Counter(text.storey for text in without_noun())
    more = {storey: counts[storey] for storey in STOREYS if counts[storey] > WITHOUT_NOUN[storey]}
    assert not more, f"more than {WITHOUT_NOUN}: see python -m tests.support.words FOLDER"
