"""Whether inputs can be drawn as a file has them, and what a person must declare where they can't."""

from __future__ import annotations

from collections.abc import Sequence

from conrepair.data.symbolic_sizes import declaration, with_stated_sizes
from conrepair.data.tensor_spec import TensorSpec, has_batch, merge_declared

__all__ = ["can_be_drawn", "declarations"]

_OPTION = "--input "


def can_be_drawn(inputs: Sequence[TensorSpec]) -> bool:
    """Whether there are inputs, all of numbers, of which random ones can be made."""
    return bool(inputs) and all(spec.dtype != "string" for spec in inputs)


def declarations(inputs: Sequence[TensorSpec]) -> list[str]:
    """What to say with --input of sizes that nothing bounds, an input each, with sizes that they may have.

    Args:
        inputs: Of a model, as its file and the command line have them.
    """
    known: tuple[TensorSpec, ...] = tuple(inputs)
    said: list[str] = []
    for _ in inputs:
        if (spec := _first_open(known)) is None:
            break
        text = declaration(spec).removeprefix(_OPTION)
        sizes = text.rpartition("=")[2].partition(":")[0].split(",")
        shape = tuple(int(size) if size.isdecimal() else size for size in sizes)
        known = merge_declared(known, [TensorSpec(spec.name, shape, spec.dtype)])  # one symbol is one size in all
        said.append(text)
    return said


def _first_open(inputs: Sequence[TensorSpec]) -> TensorSpec | None:
    """An input without a definite shape but for its batch."""
    stated = with_stated_sizes(inputs)
    batches = {spec.shape[0] for spec in stated if spec.shape}
    whole = not has_batch(stated)
    for spec, named in zip(stated, inputs, strict=True):
        sizes = [size for size in spec.shape if size not in batches] if whole else spec.shape[1:]
        if any(not isinstance(size, int) for size in sizes):
            return named
    return None
