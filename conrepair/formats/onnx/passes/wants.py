"""What a consumer of ONNX graphs asks of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Wants:
    """The subset of ONNX that a consumer reads. Model-local functions are inlined for all.

    Attributes:
        lowest: Smallest opset it reads; models of older ones are raised.
        highest: Largest opset it reads; models of newer ones are lowered. None: any.
        expand: Operators it lacks, to be replaced by their definition where ONNX has one.
        fold: Compute what depends on constants only.
        identities: Whether it can read Identity nodes; where not, they're taken out.
        batch: Number to write for a symbolic first dimension; None leaves it symbolic.
        explicit_pads: Paddings are numbers, not "as many as needed" (`auto_pad`).
        loops: Whether it can read Loop; where not, loops of known length are written out.
        own_outputs: Every output of the graph is the only output of a node of its own.
        rewrites: Names of `conrepair.formats.onnx.passes.rewrites`: the same in other operators.
    """

    lowest: int = 1
    highest: int | None = None
    expand: frozenset[str] = frozenset()
    fold: bool = True
    identities: bool = True
    batch: int | None = None
    explicit_pads: bool = False
    loops: bool = True
    own_outputs: bool = False
    rewrites: frozenset[str] = frozenset()
