"""Something that differs between two regions, and could be what's wrong."""

from __future__ import annotations

from dataclasses import dataclass

from conrepair.diagnosis.localization.numbers import naming
from conrepair.ground.graph.kinds import Kind


@dataclass(frozen=True)
class Finding:
    """A difference.

    Attributes:
        kind: Of fault.
        words: What differs, for a person.
        source_layers: The guiltiest first, each once.
        target_layers: The same of the target.
        cause: The same for differences in several regions that one thing causes: the guiltiest layer of the target,
            where nothing else is said.
        weight: How much it explains: 1 for what certainly changes values, less for what conversions may do.
        rule: What differs without names, the same for layers that one wrong rule of a converter changed; "" where
            that can't be said.
        disturbed: Relative L2 of numbers that are a little off, without a rule; 0 for what's another difference.
    """

    kind: Kind
    words: str
    source_layers: tuple[str, ...]
    target_layers: tuple[str, ...]
    cause: str = ""
    weight: float = 1.0
    rule: str = ""
    disturbed: float = 0.0

    def __post_init__(self) -> None:
        for side in ("source_layers", "target_layers"):
            object.__setattr__(self, side, tuple(dict.fromkeys(getattr(self, side))))
        object.__setattr__(self, "cause", self.cause or f"at {self.target_layers[0]}")

    @property
    def is_certain(self) -> bool:
        """Whether conversions that are right don't differ so."""
        return self.weight > naming.CONVERTED
