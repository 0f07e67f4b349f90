"""Windows of Keras's convolutions and poolings, which have words for their pads and no numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conrepair.editors.operation import NotEditableError
from conrepair.graph.layer_graph import Attribute, Node
from conrepair.networks.parts import window

__all__ = ["window_config"]

_ENTRIES = {"strides": "strides", "dilations": "dilation_rate"}


def window_config(
    node: Node, layer: Any, shape: Sequence[int] | None, changes: Mapping[str, Attribute]
) -> dict[str, Any]:
    """The entries of a configuration that say other strides, dilations or pads.

    Args:
        node: What the layer is in the vocabulary.
        layer: The layer.
        shape: Of what it reads.
        changes: Those of the attributes that change; the others stay.

    Raises:
        NotEditableError: if no word says the pads, or the layer has no such entry.
    """
    found = {_ENTRIES[name]: value for name, value in changes.items() if name in _ENTRIES}
    wanted = {**node.attributes, **changes}
    if isinstance(wanted["pads"], tuple):
        found["padding"] = _padding(node, layer, shape, wanted)
    missing = found.keys() - layer.get_config().keys()
    if missing:
        raise NotEditableError(f"{node.native} has no {', '.join(sorted(missing))}")
    return found


def _padding(node: Node, layer: Any, shape: Sequence[int] | None, wanted: Mapping[str, Any]) -> str:
    kernel, strides, dilations = (wanted[name] for name in ("kernel_shape", "strides", "dilations"))
    sizes = None if shape is None else tuple(shape[1:-1] if node.channels_last else shape[2:])
    known = ("causal", "same", "valid") if type(layer).__name__ == "Conv1D" else ("same", "valid")
    words = {window(kernel, strides, dilations, word, sizes)["pads"]: word for word in known}  # the last one counts
    word = layer.padding if _said(node, wanted) else words.get(wanted["pads"])
    if word is None:
        raise NotEditableError(f"{node.native} has no word for pads of {list(wanted['pads'])}")
    return str(word)


def _said(node: Node, wanted: Mapping[str, Any]) -> bool:
    """Whether nothing of the pads, or of what they follow from, changes."""
    return all(node.attributes[name] == wanted[name] for name in ("pads", "strides", "dilations"))
