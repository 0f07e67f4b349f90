"""localization.json: the result as a document with a schema."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

import conrepair
from conrepair.evaluate.verdict import Verdict
from conrepair.frameworks.model import Model
from conrepair.graph.kinds import Kind
from conrepair.localization.result import Localization
from conrepair.report.encode import encode
from conrepair.report.localization.about import About

__all__ = ["SCHEMA_VERSION", "LocalizationDocument", "localization_document"]

SCHEMA_VERSION = 1

Number = Annotated[float, Field(allow_inf_nan=False)] | Literal["inf", "-inf", "nan"]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class FaultDocument(_Strict):
    """A place where the target stops being its source."""

    kind: Kind
    source_layers: tuple[str, ...] = Field(description="Guiltiest first, as the source's file calls them.")
    target_layers: tuple[str, ...] = Field(description="Guiltiest first, as the target's file calls them.")
    step: str = Field(description='Converter that introduced it; "" where only the last model is known.')
    introduced_error: Number = Field(description="Relative L2, the target being fed the source's activations.")
    full_run_error: Number = Field(description="Relative L2 when both run from their inputs on.")
    noise_floor: Number = Field(description="Relative L2 that rounding explains.")
    confidence: Number = Field(description="0 to 1, that these layers belong together and differ.")
    evidence: tuple[str, ...] = Field(description="In words, the strongest first.")
    source_tensor: str = Field(description="Where the difference was measured.")
    target_tensor: str = Field(description="The same in the target.")
    differences: tuple[tuple[str, str], ...] = Field(
        description="What explains it, without names, each with the layer of the target."
    )
    at_input: bool = Field(description="Whether it's what the target is fed, and no operator of its file.")
    holds: tuple[str, ...] = Field(
        description="Roles of the numbers that the first of the target's layers holds: weight, bias, operand, ..."
    )


class RuleDocument(_Strict):
    """Faults that are alike: one wrong rule of a converter, in all its places."""

    kind: Kind
    words: str = Field(description="What differs, without names.")
    layers: tuple[str, ...] = Field(description="At fault, as the target's file calls them; the guiltiest first.")
    among: int = Field(ge=0, description="Layers of that sort in the target; 0 where they are of several sorts.")
    step: str = Field(description='Converter that introduced it; "" where only the last model is known.')


class LayerDocument(_Strict):
    """What was measured at a pair of tensors."""

    source_tensor: str
    target_tensor: str
    source_layer: str = Field(description="The layer that computes it.")
    target_layer: str = Field(description="The layer that computes it.")
    source_operator: str = Field(description="As the framework calls it.")
    target_operator: str = Field(description="As the framework calls it.")
    introduced_error: Number = Field(description="Relative L2, the target being fed the source's activations.")
    introduced_cosine: Number
    introduced_max_abs: Number
    full_run_error: Number = Field(description="Relative L2 when both run from their inputs on.")
    full_run_cosine: Number
    full_run_norm_ratio: Number
    noise_floor: Number = Field(description="Relative L2 that rounding explains.")
    inherited: Number = Field(description="Share of the full run's error that came from before.")
    mismatched: int = Field(ge=0, description="Values that are NaN or infinite on one side only.")
    layout: str = Field(description="How the source's tensor lies in the target's.")
    confidence: Number = Field(description="0 to 1, that both are the same tensor.")
    guilty: bool = Field(description="Whether the introduced error is above what rounding explains.")
    order: int = Field(ge=0, description="Position in the source; several rows can have the same.")
    source_nodes: tuple[str, ...] = Field(description="What the source computes it by from the pairs in front.")
    target_nodes: tuple[str, ...] = Field(description="The same of the target.")


class ModelDocument(_Strict):
    """One of both models."""

    path: str
    format: str = Field(description="File name's suffix without the dot; a folder's is the framework's name.")
    framework: str
    sha256: str


class RecipeDocument(_Strict):
    """What came out of a search of the recipe by which the target should be fed."""

    recipe: dict[str, JsonValue] = Field(description="The best one's fields, as a configuration has them.")
    arrangement: str = Field(description='"as it is", or what else must be done to the finished picture.')
    found: bool = Field(description="Whether it explains the answers.")
    changes: tuple[str, ...] = Field(description="What it does that the target's own recipe doesn't.")
    error: Number = Field(description="Relative error of the target's answers under it.")
    error_before: Number | None = Field(description="The same under the target's own recipe.")
    photos: int = Field(ge=0, description="How many it was judged on.")
    runs: int = Field(ge=0, description="How often the target was run.")
    complete: bool = Field(description="Whether the search wasn't cut off by its budget.")
    evidence: str


class DrawsDocument(_Strict):
    """How the statistics were made."""

    similar_sample: int = Field(description="Inputs on which the models agree, in each repetition.")
    dissimilar_sample: int = Field(description="Inputs on which they disagree, in each repetition.")
    repetitions: int
    seed: int
    significance: Number = Field(description="Share of false discoveries among a layer's significant elements.")


class ElementsDocument(_Strict):
    """How many elements of a layer differ between the two sorts of inputs, in one repetition."""

    elements: int
    significant: int = Field(description="After the correction, constant ones included.")
    constant: int = Field(description="The same on all inputs with the same answer, and not on another.")
    uncorrected: int = Field(description="With a p-value below the significance, constant ones included.")


class SuspectDocument(_Strict):
    """What the statistics say about a layer."""

    source_layer: str
    target_layer: str
    tests: tuple[ElementsDocument, ...] = Field(description="One for each repetition.")
    ranks: tuple[Number, ...] = Field(description="In each repetition, 1 the most suspicious.")
    params_mean_diff: Number | None = Field(description="Mean absolute difference of the weights.")
    reason: str | None = Field(description="Why it was not tested; null when it was.")


class SuspiciousnessDocument(_Strict):
    """Layers by how much more they differ where the models disagree than where they agree: a ranking, no verdict."""

    layers: tuple[SuspectDocument, ...] = Field(description="The most suspicious first.")
    incomparable: tuple[SuspectDocument, ...]
    similar: int = Field(ge=0, description="How many inputs the models agree on.")
    dissimilar: int = Field(ge=0, description="How many they disagree on.")
    settings: DrawsDocument
    shortage: str | None = Field(description="Why nothing was ranked; null when there were enough inputs.")


class OptionsDocument(_Strict):
    """What the localization was told."""

    samples: int
    batch_size: int
    noise_margin: Number = Field(description="An introduced error is a fault from so many times its floor on.")
    equivalent: Number | None = Field(
        description="Relative L2 up to which an output is equivalent; null: its elements alone decide."
    )
    rtol: Number | None = Field(description="Of an output's elements, relative to the source's; null: as usual.")
    atol: Number | None = Field(description="The same in the output's units; null: as usual.")
    quantized_top1: Number = Field(description="Share of top-1 answers in which a target in few bits may differ.")
    quantized_cosine: Number = Field(description="Cosine that its outputs must keep with the source's.")
    precision: str = Field(description="That the target is meant to compute in.")
    quantized: bool = Field(description="Whether it is meant to be stored in few bits.")
    drawn: bool = Field(description="Whether the inputs are drawn at random.")
    latent: bool = Field(description="Whether faults that no sample shows were looked for.")
    latent_counts: bool = Field(description="Whether those count as others do.")
    recipe_runs: int = Field(description="Runs of the target that a search of recipes may take.")
    recipe_seconds: Number = Field(description="Seconds that it may take.")
    suspiciousness: DrawsDocument | None = Field(description="How layers are ranked; null: they aren't.")
    seed: int | None = Field(description="Of what was drawn; null where nothing was.")


class CoverageDocument(_Strict):
    """How much of the target was compared."""

    nodes: int = Field(ge=0, description="Operators in front of a tensor that was compared.")
    all_nodes: int = Field(ge=0, description="All operators.")
    parameters: int = Field(ge=0, description="Numbers of weights of the former.")
    all_parameters: int = Field(ge=0, description="Of all operators.")
    unseen: tuple[str, ...] = Field(description="Layers that weren't looked at.")
    explained: Number | None = Field(
        description="Share of the outputs' error that comes in at the layers at fault; null where the outputs are "
        "right, or the target is stored in few bits."
    )


class BuildDocument(_Strict):
    """What a compiler made of the target."""

    path: str = Field(description="Of its folder, when it was compared.")
    sha256: str = Field(description="Of all in it.")


class LocalizationDocument(_Strict):
    """Which layers of a target differ from its source. Numbers that JSON lacks are "inf", "-inf" and "nan"."""

    schema_version: Literal[1]
    verdict: Verdict
    reason: str
    faults: tuple[FaultDocument, ...] = Field(description="The guiltiest first.")
    latent: tuple[FaultDocument, ...] = Field(description="Faults that no sample shows; no reason for a verdict.")
    rules: tuple[RuleDocument, ...] = Field(description="Faults that are alike; that with the most places first.")
    source: ModelDocument
    target: ModelDocument = Field(description="Where a build was compared: what was compiled.")
    build: BuildDocument | None = Field(description="Compared with the source; null where the target itself was.")
    data: str = Field(description="What was fed, in words.")
    samples: int = Field(ge=0, description="How many inputs were compared.")
    output_error: Number = Field(description="Largest relative L2 of an output in the full run.")
    first: tuple[int, ...] = Field(description="Places of the inputs looked at, where they aren't the first ones.")
    output_floor: Number = Field(description="Largest relative L2 of an output that the source's rounding explains.")
    layers: tuple[LayerDocument, ...] = Field(description="In the source's order.")
    unmatched_source: tuple[str, ...] = Field(description="Layers whose results the target doesn't have.")
    unmatched_target: tuple[str, ...] = Field(description="Layers whose results the source doesn't have.")
    notes: tuple[str, ...]
    seconds: dict[str, Number] = Field(description="By part of the work.")
    recipe: RecipeDocument | None = Field(
        description="By which the target should be fed, where photos are prepared wrongly for it."
    )
    suspiciousness: SuspiciousnessDocument | None = Field(description="Where that was asked for.")
    coverage: CoverageDocument | None = Field(description="Null where the inputs kept layers from being compared.")
    options: OptionsDocument
    versions: dict[str, str] = Field(description="Of conrepair and of the libraries.")


def localization_document(result: Localization, about: About) -> LocalizationDocument:
    """Put the result into the form that's published."""
    found = encode(result)
    layers = sorted(found["layers"], key=lambda row: row["order"])
    found.pop("graphs")
    return LocalizationDocument.model_validate(
        found
        | {
            "schema_version": SCHEMA_VERSION,
            "layers": layers,
            "source": _model(about.source),
            "target": _model(about.target),
            "build": {"path": about.build, "sha256": about.build_sha256} if about.build else None,
            "data": about.data,
            "options": encode(about.options) | {"seed": about.seed},
            "versions": {"conrepair": conrepair.__version__, **about.versions},
        }
    )


def _model(model: Model) -> dict[str, str]:
    return {
        "path": model.path,
        "format": Path(model.path).suffix.lstrip(".").lower() or model.framework,
        "framework": model.framework,
        "sha256": model.sha256,
    }
