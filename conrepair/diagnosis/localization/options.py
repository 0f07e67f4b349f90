"""The options of a localization."""

from __future__ import annotations

from dataclasses import dataclass, field

from conrepair.verdicts.evaluate.tolerance import Tolerance


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options: margins, tolerances, and the precision that is intended.

    Attributes:
        samples: How many inputs are looked at.
        batch_size: At once, for models that leave it open.
        tolerance: Of outputs; an introduced error is a fault from `noise_margin` times its floor on.
        quantized: Whether the target is meant to be stored in few bits: then what those explain is no fault.
        drawn: Whether inputs are drawn at random: then calibrated ranges may be too small for them.
        unsaid: Whether nothing says which inputs to draw but what the target's calibration met.
        precision: That the target is meant to compute in: "float32", "float16" or "bfloat16".
        latent: Whether pieces are fed other values, too, to see faults that no sample shows.
        latent_counts: Whether those are faults as others are; else only those are that belong to a rule of others.
        static: Whether the files alone are compared, and nothing is run.
        recipe_runs: Runs of the target that a search of recipes may take, where photos are prepared wrongly.
        recipe_seconds: Seconds that it may take.
    """

    samples: int = 8
    batch_size: int = 4
    tolerance: Tolerance = field(default_factory=Tolerance)
    precision: str = "float32"
    quantized: bool = False
    drawn: bool = False
    unsaid: bool = False
    latent: bool = True
    latent_counts: bool = False
    static: bool = False
    recipe_runs: int = 300
    recipe_seconds: float = 60.0

    @property
    def noise_margin(self) -> float:
        """How many times its floor an introduced error may be."""
        return self.tolerance.noise_margin

    @property
    def same(self) -> float:
        """Relative L2 up to which outputs are the same, also where their elements decide alone."""
        relative_l2 = self.tolerance.relative_l2
        return 1e-4 if relative_l2 is None else relative_l2
