"""Which texts a network's inputs are made for: those that the tables hold in which they're looked up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from conrepair.ground.data.input_range import InputRange
from conrepair.ground.graph.layer_graph import LayerGraph, Node

_TABLES = {
    "CategoryMapper": ("cats_strings",),
    "LabelEncoder": ("keys_strings", "keys_tensor"),
    "OneHotEncoder": ("cats_strings",),
    "TfIdfVectorizer": ("pool_strings",),
}
_ASKING = {"Equal": "operand"}
_NUMBERS = ("0", "1", "2", "3", "7", "12")  # of texts that are read as such
_SPLITTING = {"RegexSplitWithOffsets", "StringRegexSplit", "StringSplit", "Tokenizer"}
_KEEPING = {"Flatten", "Identity", "Reshape", "Squeeze", "StringNormalizer", "StringStrip", "Unsqueeze"}
_CHOOSING = {"ArrayFeatureExtractor": "Y", "Gather": "indices"}


@dataclass(frozen=True)
class _Seen:
    """A tensor that is an input's texts.

    Attributes:
        columns: Which of the input's last axis; None for all.
        split: Whether each is one word of them.
        cased: Whether capitals made no difference.
    """

    columns: tuple[int, ...] | None = None
    split: bool = False
    cased: bool = False


def input_texts(graph: LayerGraph) -> Mapping[str, InputRange]:
    """The texts that inputs are looked up as.

    Args:
        graph: Of any format.

    Returns:
        By the name of the input's tensor; those that nothing is said about are left out.
    """
    found = {name: _of_input(graph, name) for name in graph.inputs if graph.tensors[name].dtype == "object"}
    return {name: known for name, known in found.items() if known is not None}


def _of_input(graph: LayerGraph, name: str) -> InputRange | None:
    shape = graph.tensors[name].shape or ()
    width = shape[-1] if len(shape) > 1 else 1
    words: list[dict[str, None]] = [{} for _ in range(width)]
    operators: dict[str, None] = {}
    sentences = False
    for node, texts, seen in _lookups(graph, name):
        operators[node.native] = None
        sentences |= seen.split
        texts = (*texts, *(text.title() for text in texts)) if seen.cased else texts
        for column in range(width) if seen.columns is None else seen.columns:
            words[column].update(dict.fromkeys(texts))
    if not all(words):
        known = [texts for texts in words if texts]
        if not known:
            return None
        words = [texts or known[0] for texts in words]
    listed = tuple(tuple(texts) for texts in words)
    same = len(set(listed)) == 1
    return InputRange(
        (),
        (),
        " and ".join(operators),
        axis=None if same else -1,
        words=listed[:1] if same else listed,
        sentences=sentences,
    )


def _lookups(graph: LayerGraph, name: str) -> Iterator[tuple[Node, tuple[str, ...], _Seen]]:
    """The nodes that look an input's texts up, with what they hold."""
    waiting, known = [(name, _Seen())], {name}
    while waiting:
        tensor, seen = waiting.pop()
        for node in graph.consumers.get(tensor, ()):
            texts = _texts(node)
            if texts:
                yield node, texts, seen
            behind = _behind(node, seen)
            if behind is not None and node.outputs[0] not in known:
                known.add(node.outputs[0])
                waiting.append((node.outputs[0], behind))


def _texts(node: Node) -> tuple[str, ...]:
    """What a node compares texts with, or reads in them."""
    if node.op == "Cast":
        return _NUMBERS
    for role in (*_TABLES.get(node.op, ()), *((_ASKING[node.op],) if node.op in _ASKING else ())):
        value = node.attributes.get(role)
        if isinstance(value, tuple):
            return tuple(map(str, value))
        if role in node.parameters:
            return tuple(_decoded(item) for item in node.parameters[role].numpy().reshape(-1).tolist())
    return ()


def _decoded(item: object) -> str:
    return item.decode(errors="replace") if isinstance(item, bytes) else str(item)


def _behind(node: Node, seen: _Seen) -> _Seen | None:
    """What a node makes of texts; None where it's none of them any more."""
    if node.op in _SPLITTING:
        return replace(seen, split=True)
    if node.op == "StringNormalizer" and node.attributes.get("case_change_action") in {"LOWER", "UPPER"}:
        return replace(seen, cased=True)
    if node.op in _KEEPING:
        return seen
    chosen = node.parameters.get(_CHOOSING.get(node.op, ""))
    if chosen is None or seen.columns is not None:
        return None
    return replace(seen, columns=tuple(int(place) for place in chosen.numpy().reshape(-1)))
