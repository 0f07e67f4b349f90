"""What people read has the words of the field, as docs/glossary.md lists them, and not those of the code."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.words import OURS, texts, without_noun

OTHERWISE = {
    "conrepair/formats/tvm/settings.py": {"the target's"},  # of TVM's target
    "conrepair/application/report/page/matrix.py": {"answers"},  # a figure's name
    "conrepair/application/verbs/options.py": {"latent"},  # options' names
    "conrepair/application/pipeline/stages/localize.py": {"latent"},  # a word of an identity that's kept
    "plugins/lab/conrepair_lab/options/trace.py": {"answers"},  # an objective's name
    "plugins/crowd/conrepair_crowd/cluster.py": {"answers"},  # a scheduler does
}
WITHOUT_NOUN = {
    "conrepair": 4,
    "conrepair/application": 370,
    "conrepair/diagnosis": 193,
    "conrepair/formats": 228,
    "conrepair/ground": 200,
    "conrepair/verdicts": 66,
    "plugins/crowd": 28,
    "plugins/executorch": 4,
    "plugins/lab": 358,
    "plugins/legacy": 28,
    "plugins/onnx-keras": 38,
    "plugins/openvino": 8,
    "plugins/qnn": 2,
}
"""Messages and docstrings in which no word of the glossary stands: `python -m tests.support.words` lists them. Where
there are fewer, the number here goes down; it never goes up."""


def test_messages_have_none_of_our_words() -> None:
    found = {
        f"{text.file}:{text.line}: {text.words!r} says {said[0]!r}"
        for text in texts()
        if text.shown
        if (said := OURS.search(text.words)) and said[0] not in OTHERWISE.get(text.file, ())
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
    counts = Counter(text.part for text in without_noun())
    more = {part: count for part, count in counts.items() if count > WITHOUT_NOUN.get(part, 0)}
    assert not more, f"more than {WITHOUT_NOUN}: see python -m tests.support.words FOLDER"
