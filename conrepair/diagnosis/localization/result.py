"""What localization finds, as values."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.run.kept import KeptLayer
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.record import GraphRecord
from conrepair.ground.runtime.words import counted, percent, shortened
from conrepair.verdicts.evaluate.verdict import Verdict

_LINE = 160


OPERAND = "operand"
"""The role of the constant that an elementwise operator computes with: no weight."""

MEASURED = "error added by this layer"
"""How the line of a fault's evidence begins that has its figures."""


@dataclass(frozen=True, kw_only=True)
class LocatedFault:
    """A place where the converted model stops being the original.

    Attributes:
        kind: Of fault.
        source_layers: The likeliest at fault first, as they are called in the original's file.
        target_layers: The same of the target.
        step: The converter that introduced it, where a route's models are known; "" otherwise.
        introduced_error: Relative L2 of the target's result against the source's, both fed the same.
        full_run_error: Relative L2 there when both run from their inputs on.
        noise_floor: Relative L2 of rounding errors there.
        confidence: 0 to 1: how sure it is that these layers belong together and differ.
        evidence: In words, the strongest first.
        source_tensor: Where the difference was measured.
        target_tensor: The same in the target.
        differences: How files differ there, without names, each with the layer of the target: the same words for all
            layers that one wrong rule of a converter changed.
        at_input: Whether it's what the target is fed, and no operator of its file.
        holds: Roles of the numbers that the first of the target's layers holds ("weight", "bias"; "operand" for the
            constant of an elementwise operator).
    """

    kind: Kind
    source_layers: tuple[str, ...]
    target_layers: tuple[str, ...]
    step: str = ""
    introduced_error: float = 0.0
    full_run_error: float = 0.0
    noise_floor: float = 0.0
    confidence: float = 1.0
    evidence: tuple[str, ...]
    source_tensor: str
    target_tensor: str
    differences: tuple[tuple[str, str], ...] = ()
    at_input: bool = False
    holds: tuple[str, ...] = ()

    @classmethod
    def of_error(
        cls,
        kind: Kind,
        source: tuple[str, tuple[str, ...]],
        target: tuple[str, tuple[str, ...]],
        evidence: Sequence[str],
        error: float = math.inf,
    ) -> LocatedFault:
        """A fault whose result is off by as much alone as in the whole run.

        Args:
            kind: Of fault.
            source: The tensor where that is seen, and the layers at fault.
            target: The same of the target.
            evidence: In words, the strongest first.
            error: Relative L2; infinite where nothing can be compared.
        """
        return cls(
            kind=kind,
            source_layers=source[1],
            target_layers=target[1],
            introduced_error=error,
            full_run_error=error,
            evidence=tuple(evidence),
            source_tensor=source[0],
            target_tensor=target[0],
        )

    @property
    def places(self) -> tuple[str, ...]:
        """Layers of the target, else a tensor: the source's, of what the target lacks."""
        return self.target_layers or (self.target_tensor or self.source_tensor,)

    @property
    def words(self) -> str:
        """What is wrong, in a sentence: the strongest evidence, else what was measured."""
        return next(iter(self.evidence), self.measured or "differs")

    @property
    def measured(self) -> str:
        """The error added by the layer, in words; "" where there's none, or where the fault isn't seen in it."""
        if math.isinf(self.introduced_error):
            return "" if self.kind == Kind.STRUCTURE else "gives infinite values or NaN where the original doesn't"
        if not self.introduced_error:
            return ""
        if self.introduced_error <= self.noise_floor:
            return "adds an error that is as small as rounding itself, and makes the outputs wrong"
        error, rounding = percent(self.introduced_error), percent(self.noise_floor)
        return f"adds an error of {error} itself (rounding error: {rounding})"


@dataclass(frozen=True)
class Rule:
    """Faults that are alike: one wrong rule of a converter, in all its places.

    Attributes:
        kind: Of fault.
        words: What differs, without names.
        layers: At fault, as the target calls them; the likeliest first.
        among: How many layers of that sort the target has; 0 where they are of several sorts.
        step: The converter that introduced it, where a route's models are known; "" otherwise.
    """

    kind: Kind
    words: str
    layers: tuple[str, ...]
    among: int = 0
    step: str = ""

    @property
    def text(self) -> str:
        """For a person, in one line."""
        count = len(self.layers)
        places = f"all {count}" if count == self.among else f"{count} of {self.among}" if self.among else str(count)
        return f"{self.words}, in {places} places"


@dataclass(frozen=True, kw_only=True)
class LayerRow:
    """What was measured at a pair of tensors.

    Attributes:
        source_tensor: Name.
        target_tensor: Name.
        source_layer: The layer that computes it.
        target_layer: The same of the target.
        source_operator: As the framework calls it.
        target_operator: The same of the target.
        introduced_error: Relative L2, both fed the source's activations before.
        introduced_cosine: Of the same.
        introduced_max_abs: Of the same.
        full_run_error: Relative L2, each after its own activations.
        full_run_cosine: Of the same.
        full_run_norm_ratio: Of the same.
        noise_floor: Relative L2 that rounding explains.
        inherited: Share of the full run's error that came from before.
        mismatched: Values that are NaN or infinite on one side only.
        layout: How the source's tensor lies in the target's.
        confidence: That both are the same tensor.
        guilty: Whether the introduced error is above what rounding explains.
        order: Position in the source.
        source_nodes: What the source computes it by from the pairs in front, by the nodes' names: several where the
            target has fused them.
        target_nodes: The same of the target.
    """

    source_tensor: str
    target_tensor: str
    source_layer: str
    target_layer: str
    source_operator: str
    target_operator: str
    introduced_error: float
    introduced_cosine: float
    introduced_max_abs: float
    full_run_error: float
    full_run_cosine: float
    full_run_norm_ratio: float
    noise_floor: float
    inherited: float
    mismatched: int
    layout: str
    confidence: float
    guilty: bool
    order: int
    source_nodes: tuple[str, ...] = ()
    target_nodes: tuple[str, ...] = ()

    @property
    def introduced_sqnr_db(self) -> float:
        """Signal to quantization noise of the introduced error, in decibel; infinite where there's none."""
        return _sqnr_db(self.introduced_error)

    @property
    def full_run_sqnr_db(self) -> float:
        """The same of the full run's."""
        return _sqnr_db(self.full_run_error)


def _sqnr_db(relative_l2: float) -> float:
    return -20 * math.log10(relative_l2) if relative_l2 else math.inf


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """How many operators and weights of a target were compared.

    Attributes:
        nodes: Operators that lie in front of a tensor that was compared.
        all_nodes: All operators.
        parameters: Numbers of weights of the former.
        all_parameters: Of all.
        unseen: Layers that weren't looked at.
        explained: Share of the outputs' error that comes in at the layers at fault, 0 to 1; None where the outputs
            are right, or it wasn't asked.
    """

    nodes: int
    all_nodes: int
    parameters: int
    all_parameters: int
    unseen: tuple[str, ...] = ()
    explained: float | None = None

    @property
    def is_enough(self) -> bool:
        """Whether half of the operators were compared: else nothing can be told from the rest."""
        return 2 * self.nodes >= self.all_nodes


@dataclass(frozen=True, kw_only=True, repr=False)
class Localization:
    """The result of a localization.

    Attributes:
        verdict: Of the whole.
        reason: In words.
        faults: The guiltiest first.
        layers: In the target's order.
        unmatched_source: Layers of the source whose results the target doesn't have.
        unmatched_target: The same the other way round.
        samples: How many inputs were compared.
        output_error: Largest relative L2 of an output in the full run.
        output_floor: Largest relative L2 of an output that the source's own rounding explains.
        notes: What a person should know of how it was done.
        options: As they were used.
        seconds: By part of the work.
        recipe: By which the target should be fed, where photos were prepared wrongly for it and a search was made.
        coverage: How much of the target was compared; None where its inputs already kept that from being asked.
        first: Samples that were looked at, by their places, where they aren't the dataset's first ones.
        latent: Faults that no sample shows, and that are of no rule of others.
        rules: Faults that are alike, as one finding with its places; that with the most first.
        graphs: What was looked into, by the SHA-256 of the model (or the build) that it's of.
        kept: What both sides have at the guiltiest layers, and at outputs.
        arithmetic: That explains all which float32 doesn't, but for the faults; "" where none was recognized.
    """

    verdict: Verdict
    reason: str
    faults: tuple[LocatedFault, ...] = ()
    layers: tuple[LayerRow, ...] = ()
    unmatched_source: tuple[str, ...] = ()
    unmatched_target: tuple[str, ...] = ()
    samples: int = 0
    output_error: float = 0.0
    notes: tuple[str, ...] = ()
    options: Options = field(default_factory=Options)
    seconds: dict[str, float] = field(default_factory=dict)
    recipe: RecipeFinding | None = None
    coverage: Coverage | None = None
    output_floor: float = 0.0
    rules: tuple[Rule, ...] = ()
    latent: tuple[LocatedFault, ...] = ()
    first: tuple[int, ...] = ()
    graphs: Mapping[str, GraphRecord] = field(default_factory=dict)
    kept: tuple[KeptLayer, ...] = ()
    arithmetic: str = ""

    def __repr__(self) -> str:
        found = f"{counted(len(self.faults), 'fault')}, {counted(len(self.layers), 'layer')}"
        return f"<Localization {self.verdict.value}: {shortened(self.reason, _LINE)}; {found}>"

    @property
    def alone(self) -> tuple[LocatedFault, ...]:
        """The faults that no rule stands for, the guiltiest first."""
        known = {rule.words for rule in self.rules}
        return tuple(
            fault
            for fault in self.faults
            if not fault.differences or any(words not in known for words, _ in fault.differences)
        )

    @property
    def is_right(self) -> bool:
        """Whether the verdict says that the converted model is right."""
        return self.verdict.is_right


@dataclass(frozen=True, kw_only=True)
class RecipeFinding:
    """What came out of a search of recipes.

    Attributes:
        recipe: The best one's fields, with its size.
        arrangement: How the finished picture must be fed: "as it is", or what was done to it.
        found: Whether it explains the answers; otherwise it's only the best of those that were tried.
        changes: What it does that the target's own recipe doesn't, in words.
        error: Relative error of the target's answers under it.
        error_before: The same under the target's own recipe.
        photos: How many it was judged on.
        runs: How often the target was run.
        complete: The search wasn't cut off by its budget.
        evidence: In words.
    """

    recipe: dict[str, Any]
    arrangement: str
    found: bool
    changes: tuple[str, ...]
    error: float
    error_before: float | None
    photos: int
    runs: int
    complete: bool
    evidence: str


# At which step of a conversion each fault came in.


def attribute_steps(
    result: Localization, intermediates: Sequence[tuple[str, Localization | None]], last: str
) -> Localization:
    """Name the converter that introduced each fault.

    Args:
        result: Of the last model of a route.
        intermediates: The steps before, in order, each with the localization of the model that it made; None where
            there's none.
        last: The step that made the last model.
    """
    faults = tuple(dataclasses.replace(fault, step=_step_of(fault, intermediates) or last) for fault in result.faults)
    missing = [step for step, found in intermediates if found is None]
    notes = result.notes
    if missing and faults:
        notes = (*notes, f"models made by {', '.join(missing)} couldn't be opened: the fault may have come in there")
    step_of = {layer: fault.step for fault in faults for _, layer in fault.differences}
    rules = tuple(dataclasses.replace(rule, step=step_of.get(rule.layers[0], "")) for rule in result.rules)
    return dataclasses.replace(result, faults=faults, rules=rules, notes=notes)


def _step_of(fault: LocatedFault, intermediates: Sequence[tuple[str, Localization | None]]) -> str:
    """The first step after which the same layers of the source are guilty; "" when they aren't before the last."""
    for step, found in intermediates:
        if found is not None and any(_same(fault, item) for item in found.faults):
            return step
    return ""


def _same(one: LocatedFault, two: LocatedFault) -> bool:
    return one.source_tensor == two.source_tensor or bool(set(one.source_layers) & set(two.source_layers))
