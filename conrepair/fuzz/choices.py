"""Attributes by which a network chooses what an operator computes: each way may be wrong for its own reason."""

from __future__ import annotations

import re

import onnx

from conrepair.frameworks.onnx_files.file import nodes_of

__all__ = ["choices"]

_OTHERS = re.compile("axis|^to$|type")  # whole numbers that are no truth values: places, and element types


def choices(model: onnx.ModelProto) -> tuple[str, ...]:
    """Names of attributes that hold a text or a truth value, each behind its operator's ("DFT.inverse").

    Which value it is isn't told: what's wrong is mostly so with several. Nor are sizes, which are as they come.

    Args:
        model: A reduced one, which has no attribute that doesn't matter.
    """
    return tuple(
        sorted(
            {
                f"{node.op_type}.{item.name}"
                for node in nodes_of(model.graph)
                for item in node.attribute
                if item.type == onnx.AttributeProto.STRING or (_is_truth(item) and not _OTHERS.search(item.name))
            }
        )
    )


def _is_truth(item: onnx.AttributeProto) -> bool:
    return item.type == onnx.AttributeProto.INT and item.i in {0, 1}
