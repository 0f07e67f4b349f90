"""What a repair may take."""

from __future__ import annotations

from dataclasses import dataclass, field

from conrepair.diagnosis.localization.options import Options
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.graph.kinds import EditKind
from conrepair.ground.runtime.files.whole import HashedPath


@dataclass(frozen=True)
class Ran(HashedPath):
    """What a model has given to all samples in its own library.

    Attributes:
        path: Folder of `output_<index>.npy`, the samples in the dataset's order.
        sha256: Of the model: what it gives follows from that, the data and the batches.
        batch_size: In which it ran.
        outputs: In the model's order.
        ordered: Whether that means anything, and not names alone.
    """

    batch_size: int
    outputs: tuple[TensorSpec, ...]
    ordered: bool


@dataclass(frozen=True)
class RepairOptions:
    """What a repair may take.

    Attributes:
        localization: Samples and margins of every localization on the way.
        seconds: After which no further candidate is begun.
        unseen: Samples behind those that are localized by, to verify on; those are looked at again where the
            dataset has no more.
        edits: Only of these sorts; None: of all.
        bake_recipe: Whether another recipe for photos becomes operators of the model, where that can be said.
        labels: Of the samples, in the dataset's order; None where one isn't known.
        ran: What the source and the target, as they came, have given; None where that isn't known.
    """

    localization: Options = field(default_factory=Options)
    seconds: float = 600.0
    unseen: int = 64
    edits: frozenset[EditKind] | None = None
    bake_recipe: bool = False
    labels: tuple[int | None, ...] = ()
    ran: tuple[Ran | None, Ran | None] = (None, None)
