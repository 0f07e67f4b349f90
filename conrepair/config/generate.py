"""The part of a configuration that asks for random networks."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from conrepair.config.strict import AnyPath, Bool, Float, Int, OutputPath, Seconds, Strict
from conrepair.frameworks.formats import other_formats
from conrepair.runtime.bounds import MOST_SEED
from conrepair.verbs.generate import Generate

_MOST = 1_000_000
_usual = Generate.default
Share = Annotated[Float, Field(ge=0, le=1)]
_Rank = Annotated[Int, Field(ge=0, le=6)]


class NetworksConfig(Strict):
    """What random networks are like."""

    nodes: Int = Field(_usual("nodes"), ge=1, le=_MOST, description="Operators of each.")
    seed: Int = Field(_usual("seed"), ge=0, le=MOST_SEED, description="Of all of them.")
    opset: Int = Field(_usual("opset"), ge=17, le=24, description="Of ONNX's operators.")
    operators: tuple[str, ...] = Field((), description="Only these operators. Default: all.")
    exclude: tuple[str, ...] = Field((), description="None of these operators.")
    dtypes: tuple[str, ...] = Field((), description="Only these element types. Default: all.")
    ranks: tuple[_Rank, _Rank] = Field(
        _usual("ranks"), description="Number of axes of tensors: the fewest and the most."
    )
    elements: Int = Field(_usual("elements"), ge=1, le=_MOST, description="Most elements of a tensor.")
    forms: dict[str, Share] = Field(
        default_factory=dict, description="Share of networks with a form of legal nonsense, by the form's name."
    )
    patterns: dict[str, Share] = Field(
        default_factory=dict, description="Share of networks with a pattern, by the pattern's name."
    )
    woven: Share = Field(_usual("woven"), description="How likely another pattern is put in, for each five nodes.")
    slips: Share = Field(_usual("slips"), description="Share of patterns in which one node isn't as it should be.")
    bare: Share = Field(_usual("bare"), description="Share of networks that are one pattern and nothing else.")
    single: Bool = Field(_usual("single"), description="One input and one output each.")
    symbolic: Share = Field(
        _usual("symbolic"), description="Share of networks that leave sizes open, half of them the batch."
    )
    deep: Share = Field(_usual("deep"), description="Share of networks whose operators stand behind each other.")
    large: Share = Field(_usual("large"), description="Share of networks with tensors of up to a million elements.")
    folded: Share = Field(_usual("folded"), description="Share of networks with nodes of weights alone.")
    extremes: Share = Field(
        _usual("extremes"),
        description="Share of networks with inputs and weights at the ends of their range.",
    )
    backward: Share = Field(_usual("backward"), description="How likely an operator is put in front of an input.")
    learn: tuple[AnyPath, ...] = Field(
        (), description="Models of which operators are learned, folders of models, or 'onnx' for ONNX's own cases."
    )
    grown_from: tuple[AnyPath, ...] = Field((), description="Models, or folders of them, that each is grown from.")
    changes: Int = Field(_usual("changes"), ge=0, le=_MOST, description="Of each that is grown from a model.")
    support: str | None = Field(
        None, description="Only what this runtime, compiler, converter or format takes: tvm, keras, onnx2torch..."
    )


class ProgrammedConfig(NetworksConfig):
    """What functions of a user's own narrow."""

    functions: tuple[str, ...] = Field(
        (), description="Your own filters and constraints, as FILE.py:NAME, relative to this file. They need `trust`."
    )
    trust: Bool = Field(_usual("trust"), description="Run the functions: programs, which aren't confined.")


class GenerateConfig(ProgrammedConfig):
    """Random valid networks with inputs and expected outputs, as `conrepair generate` makes them."""

    folder: OutputPath = Field("networks", description="Their folder, in `output`.")
    count: Int = Field(_usual("count"), ge=1, le=_MOST, description="How many.")
    to: Annotated[tuple[str, ...], AfterValidator(other_formats)] = Field(
        (), description="Formats to convert each to: torch, keras, tensorflow, tflite."
    )
    network_seconds: Seconds = Field(
        _usual("network_seconds"), gt=0, description="For each network, and each of its conversions."
    )
    seconds: Seconds | None = Field(None, gt=0, description="After which none is begun. Default: no such limit.")
