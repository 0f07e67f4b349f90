"""What an operator of a framework is made of: operators of the neutral graph, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np

from conrepair.ground.graph.layer_graph import Array, Attribute, Node, Parameter, Tensor
from conrepair.ground.graph.operators import LOGICAL, family
from conrepair.ground.runtime.words import free_name

Shape = tuple[int, ...] | None
PAIRS = {
    "Add": "Add",
    "Maximum": "Max",
    "Minimum": "Min",
    **{name.replace("Or", ""): name for name in family("comparison")},
    **{f"Logical{name}": name for name in LOGICAL},
}
"""What Keras and TensorFlow both call operators of two tensors, as far as they have them."""

REDUCTIONS = {name: f"Reduce{name}" for name in ("Mean", "Sum", "Max", "Min", "Prod")}
"""The same of what is along axes."""

INSIDE = ":inside"
"""How tensors between the parts of an operator are called: by what gives them, with this behind."""

PREVIOUS = -1
"""In `LayerPart.reads`: the tensor that the part in front gives."""


@dataclass(frozen=True)
class LayerPart:
    """One operator of a layer.

    Attributes:
        op: In the vocabulary, or native.
        attributes: See `Node`.
        parameters: See `Node`.
        channels_last: See `Node`.
        native: As Keras calls it; "" for the class of the layer.
        reads: Positions of the call's tensors, `PREVIOUS` for what the part in front gives; "" is read where a
            constant stands. None: what the part in front gives, or all of the call's tensors for the first part.
        shape: Of what it gives, for those that aren't the last; None where it isn't known.
    """

    op: str
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    channels_last: bool = False
    native: str = ""
    reads: tuple[int, ...] | None = None
    shape: Shape = None


_Rule = TypeVar("_Rule", bound=Callable[..., Any])


class Rules(dict[Any, Callable[[Any], Any]]):
    """What a framework's operators are in the vocabulary, by what the framework calls them.

    A rule is written for the vocabulary's operator and for a call of the framework's.
    """

    def of(self, operator: str, *natives: Any) -> Callable[[_Rule], _Rule]:
        """Decorate the rule of an operator of the vocabulary; which is called the same where no others are said."""

        def noted(rule: _Rule) -> _Rule:
            self.named(dict.fromkeys(natives or (operator,), operator), rule)
            return rule

        return noted

    def named(self, names: Mapping[Any, str], rule: Callable[..., Any]) -> None:
        """Note one rule for several operators, by what the framework calls them."""
        self.update({native: partial(rule, operator) for native, operator in names.items()})

    def parts(self, native: Any, call: Any) -> list[LayerPart]:
        """What a call is made of; nothing where it has no rule, or that asks for what isn't known."""
        try:
            return list(self[native](call))
        except (KeyError, TypeError, ValueError):
            return []


def same_pads(
    sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> tuple[int, ...]:
    """The pads that "same" stands for: the begins of all axes, then the ends, to which goes what's over."""
    totals = []
    for size, width, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True):
        covered = (-(-size // stride) - 1) * stride + (width - 1) * dilation + 1
        totals.append(max(covered - size, 0))
    return (*(total // 2 for total in totals), *(total - total // 2 for total in totals))


def window(
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: str | Sequence[int],
    sizes: Shape,
) -> dict[str, Attribute]:
    """The attributes of everything that slides.

    Args:
        kernel: Its sizes.
        strides: Of each axis.
        dilations: Of each axis.
        padding: "valid", "same", "causal", or the pads.
        sizes: Of the axes that "same" pads; None where they aren't known.
    """
    pads: Sequence[int] | None = (0,) * (2 * len(kernel))
    if not isinstance(padding, str):
        pads = padding
    elif padding == "causal":
        pads = ((kernel[0] - 1) * dilations[0], 0)
    elif padding == "same":
        pads = same_pads(sizes, kernel, strides, dilations) if sizes else None
    return {
        "kernel_shape": tuple(map(int, kernel)),
        "strides": tuple(map(int, strides)),
        "pads": pads if pads is None else tuple(map(int, pads)),
        "dilations": tuple(map(int, dilations)),
        "auto_pad": "SAME_UPPER" if pads is None else "NOTSET",
    }


def transposed_window(
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: str | Sequence[int],
    sizes: tuple[Shape, Shape],
) -> dict[str, Attribute]:
    """The same of a transposed convolution: the gradient of one that makes the input's sizes from the output's.

    Args:
        kernel: See `window`.
        strides: See `window`.
        dilations: See `window`.
        padding: Of that other convolution.
        sizes: Of the input, and of the output.
    """
    before, after = sizes
    found, extra = window(kernel, strides, dilations, padding, after), None
    pads = found["pads"]
    if before is not None and after is not None and isinstance(pads, tuple):
        cut = np.reshape(np.array(pads), (2, -1)).sum(0)
        covered = (np.array(before) - 1) * strides + (np.array(kernel) - 1) * dilations + 1
        extra = tuple(map(int, np.array(after) - (covered - cut)))
    return {**found, "group": 1, "output_padding": extra}


def out_in_kernel(kernel: Array) -> Array:
    """[*kernel, in, out] as [out, in, *kernel]."""
    return np.moveaxis(kernel, (-1, -2), (0, 1))


def in_out_kernel(weight: Array) -> Array:
    """[out, in, *kernel] as [*kernel, in, out]."""
    return np.moveaxis(weight, (0, 1), (-1, -2))


def depthwise_weight(kernel: Array) -> Array:
    """[*kernel, channels, multiplier] as [channels * multiplier, 1, *kernel]."""
    return np.moveaxis(kernel, (-2, -1), (0, 1)).reshape(-1, 1, *kernel.shape[:-2])


def depthwise_kernel(weight: Array, channels: int) -> Array:
    """[channels * multiplier, 1, *kernel] as [*kernel, channels, multiplier]."""
    return np.moveaxis(weight.reshape(channels, -1, *weight.shape[2:]), (0, 1), (-2, -1))


def plain(values: Mapping[str, Any]) -> dict[str, Attribute]:
    """Those of some settings that can be attributes."""
    found: dict[str, Attribute] = {}
    for name, value in values.items():
        if isinstance(value, (bool, int, float, str)):
            found[name] = value
        elif isinstance(value, (list, tuple)) and value:
            kinds = {type(item) for item in value}
            if len(kinds) == 1 and kinds <= {int, float, str}:
                found[name] = tuple(value)
    return found


def operand_roles(count: int) -> list[str]:
    """What so many constant pieces of a Concat, or terms of an Einsum, are as parameters."""
    return [f"operand_{number}" if number else "operand" for number in range(count)]


def slice_parts(shape: Shape, result: Shape, keys: Sequence[Any]) -> list[LayerPart]:
    """Python's indexing: a slice, then what indices take away and None adds.

    Args:
        shape: Of the tensor that's indexed.
        result: Of what comes out.
        keys: Slices, numbers, None and at most one Ellipsis.

    Raises:
        ValueError: if a shape isn't known, or a key is something else.
    """
    keys = list(keys)
    if shape is None or result is None or not all(_is_simple(item) for item in keys):
        raise ValueError("indexed by what is no constant, or of unknown sizes")
    if Ellipsis not in keys:
        keys.append(Ellipsis)
    missing = len(shape) - sum(item is not None and item is not Ellipsis for item in keys)
    at = keys.index(Ellipsis)
    keys[at : at + 1] = [slice(None)] * missing
    found, sizes = [], []
    for axis, item in enumerate(item for item in keys if item is not None):
        part = slice(item, item + 1 or None) if isinstance(item, int) else item
        start, end, step = part.indices(shape[axis])
        sizes.append(len(range(start, end, step)))
        if (start, end, step) != (0, shape[axis], 1):
            # An end in front of the first element: -1 would be counted from the axis's end.
            found.append((start, end if end >= 0 else -shape[axis] - 1, axis, step))
    parts = []
    if found:
        starts, ends, axes, steps = zip(*found, strict=True)
        attributes: dict[str, Attribute] = {"starts": starts, "ends": ends, "axes": axes, "steps": steps}
        parts.append(LayerPart("Slice", attributes, shape=tuple(sizes)))
    if tuple(sizes) != result or not parts:
        parts.append(LayerPart("Reshape", {"shape": result}))
    return parts


def _is_simple(item: Any) -> bool:
    return item is None or item is Ellipsis or isinstance(item, (int, slice))


def nodes_of(
    names: tuple[str, str],
    parts: Sequence[LayerPart],
    inputs: Sequence[str],
    outputs: tuple[str, ...],
    tensors: dict[str, Tensor],
    taken: set[str],
    beside: tuple[str, ...] = (),
) -> list[Node]:
    """The nodes of one operator of a framework, and the tensors between them.

    Args:
        names: Of the first node, and of the layer.
        parts: At least one.
        inputs: What `LayerPart.reads` counts; "" for those that aren't tensors of the graph.
        outputs: What the last part gives.
        tensors: Of the graph; those between the parts are added.
        taken: Names of nodes; those of the parts behind the first are added.
        beside: What the first part reads too.
    """
    nodes: list[Node] = []
    previous = ""
    for index, part in enumerate(parts):
        name = names[0] if index == 0 else free_name(f"{names[0]}/{part.native}", taken, "#")
        taken.update([name] if index else [])
        reads = part.reads if part.reads is not None else (PREVIOUS,) if index else range(len(inputs))
        read = (previous if position == PREVIOUS else inputs[position] for position in reads)
        given = tuple(tensor for tensor in read if tensor or part.reads) + (beside if index == 0 else ())
        results = outputs
        if index < len(parts) - 1:
            previous = f"{name}{INSIDE}"
            tensors[previous] = Tensor(previous, part.shape, tensors[outputs[0]].dtype, observable=False)
            results = (previous,)
        nodes.append(
            Node(
                name,
                names[1],
                part.op,
                part.native,
                given,
                results,
                part.attributes,
                part.parameters,
                part.channels_last,
            )
        )
    return nodes
