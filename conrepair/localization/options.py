"""What a localization may be told."""

from __future__ import annotations

from dataclasses import dataclass

from conrepair.localization.suspicion_draws import SuspicionSettings

__all__ = ["Options"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """Margins and intent.

    Attributes:
        samples: How many inputs are looked at.
        batch_size: At once, for models that leave it open.
        noise_margin: An introduced error is a fault from so many times its floor on.
        equivalent: Relative L2 of an output up to which it's equivalent; None: elements alone decide.
        rtol: Of an output's elements, relative to the source's; None: nobody asked for another than usual.
        atol: Of the same, in their units; as for `rtol`.
        quantized_top1: Share of top-1 answers in which a target in few bits may differ.
        quantized_cosine: That its outputs must keep with the source's.
        strict_signature: Whether inputs and outputs in another layout are a fault, too.
        quantized: Whether the target is meant to be stored in few bits: then what those explain is no fault.
        drawn: Whether inputs are drawn at random: then calibrated ranges may be too small for them.
        unsaid: Whether nothing says which inputs to draw but what the target's calibration met.
        precision: That the target is meant to compute in: "float32", "float16" or "bfloat16".
        latent: Whether pieces are fed other values, too, to see faults that no sample shows.
        latent_counts: Whether those are faults as others are; else only those are that belong to a rule of others.
        static: Whether the files alone are compared, and nothing is run.
        recipe_runs: Runs of the target that a search of recipes may take, where photos are prepared wrongly.
        recipe_seconds: Seconds that it may take.
        suspiciousness: How layers are ranked by the inputs on which the models disagree; None: they aren't.
        arithmetic: That the target is said to compute in (`conrepair.judging.arithmetic`); "" where nobody says.
    """

    samples: int = 8
    batch_size: int = 4
    noise_margin: float = 10.0
    equivalent: float | None = 1e-4
    rtol: float | None = None
    atol: float | None = None
    quantized_top1: float = 0.25
    quantized_cosine: float = 0.9
    strict_signature: bool = False
    precision: str = "float32"
    quantized: bool = False
    drawn: bool = False
    unsaid: bool = False
    latent: bool = True
    latent_counts: bool = False
    static: bool = False
    recipe_runs: int = 300
    recipe_seconds: float = 60.0
    suspiciousness: SuspicionSettings | None = None
    arithmetic: str = ""

    @property
    def chosen(self) -> bool:
        """Whether somebody chose what elements of the outputs may differ by."""
        return self.rtol is not None or self.atol is not None

    @property
    def same(self) -> float:
        """Relative L2 up to which outputs are the same, also where their elements decide alone."""
        return 1e-4 if self.equivalent is None else self.equivalent
