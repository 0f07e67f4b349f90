"""Inputs that are declared with other sizes than what a model is compared on has."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from conrepair.ground.data.binding import image_layout, layout_permutation
from conrepair.ground.data.sample_axes import any_batch, has_batch, with_axes_of
from conrepair.ground.data.tensor_spec import Dimension, TensorSpec

Sizes = tuple[tuple[int | None, ...], ...]
"""Of each input, in order; None for a size that is right."""


def sizes_wanted(fed: Sequence[TensorSpec], inputs: Sequence[TensorSpec]) -> Sizes | None:
    """The sizes with which a model's inputs would take what another model is fed.

    The batch isn't meant: how many samples a model takes at a time changes no answer.

    Args:
        fed: The other model's inputs, as it's fed.
        inputs: The model's own, as its file declares them.

    Returns:
        None where they do take it, or where it isn't for their sizes that they don't: inputs more or less, or axes.
    """
    if len(fed) != len(inputs):
        return None
    placed = with_axes_of(inputs, fed)
    if has_batch(fed) and has_batch(placed):
        fed, inputs = any_batch(fed), any_batch(placed)
    pairs = _partners(fed, inputs)
    if any(len(one.shape) != len(two.shape) for one, two in zip(pairs, inputs, strict=True)):
        return None
    found = tuple(_wanted(one, two) for one, two in zip(pairs, inputs, strict=True))
    return found if any(size is not None for shape in found for size in shape) else None


def sizes_in_words(fed: Sequence[TensorSpec], inputs: Sequence[TensorSpec], wanted: Sizes) -> str:
    """The declared shapes of inputs, and those that they would need, in words.

    Args:
        fed: The other model's inputs.
        inputs: The model's own.
        wanted: Of `sizes_wanted`.
    """
    return "; ".join(
        f"input {spec} is declared with another shape than {partner} of the original"
        for partner, spec in resized_inputs(fed, inputs, wanted)
    )


def resized_inputs(
    fed: Sequence[TensorSpec], inputs: Sequence[TensorSpec], wanted: Sizes
) -> list[tuple[TensorSpec, TensorSpec]]:
    """The inputs that get other sizes: the other model's that stands for each, and its own.

    Args:
        fed: The other model's inputs.
        inputs: The model's own.
        wanted: Of `sizes_wanted`.
    """
    pairs = zip(_partners(fed, inputs), inputs, wanted, strict=True)
    return [(one, two) for one, two, shape in pairs if any(size is not None for size in shape)]


def _partners(fed: Sequence[TensorSpec], inputs: Sequence[TensorSpec]) -> list[TensorSpec]:
    """What stands for each in the other model: whose feeds fit, else the one of its name, else one that's left."""

    def named(one: TensorSpec, two: TensorSpec) -> bool:
        return one.name == two.name

    def fits(one: TensorSpec, two: TensorSpec) -> bool:
        return one.stands_for_reals == two.stands_for_reals and layout_permutation(one.shape, two.shape) is not None

    free, found = list(fed), {}
    rules: list[Callable[[TensorSpec, TensorSpec], bool]] = [
        lambda one, two: named(one, two) and fits(one, two),
        fits,
        named,
        lambda one, two: len(one.shape) == len(two.shape),
        lambda _, __: True,
    ]
    for rule in rules:
        for place, spec in enumerate(inputs):
            partner = next((one for one in free if place not in found and rule(one, spec)), None)
            if partner is not None:
                found[place] = partner
                free.remove(partner)
    return [found[place] for place in range(len(inputs))]


def _wanted(fed: TensorSpec, spec: TensorSpec) -> tuple[int | None, ...]:
    same: tuple[int | None, ...] = (None,) * len(spec.shape)
    shape = fed.shape
    if layout_permutation(shape, spec.shape) is not None:
        return same
    layouts = f"{image_layout(fed)} {image_layout(spec)}"
    order = {"NCHW NHWC": (0, 2, 3, 1), "NHWC NCHW": (0, 3, 1, 2)}.get(layouts)
    turned = shape if order is None else [shape[axis] for axis in order]
    return tuple(_other(size, declared) for size, declared in zip(turned, spec.shape, strict=True))


def _other(size: Dimension, declared: Dimension) -> int | None:
    return size if isinstance(size, int) and isinstance(declared, int) and size != declared else None
