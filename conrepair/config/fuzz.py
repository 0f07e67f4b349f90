"""The part of a configuration that asks for a campaign."""

from __future__ import annotations

from pydantic import Field, model_validator

from conrepair.config.asked import check
from conrepair.config.generate import ProgrammedConfig, Share
from conrepair.config.strict import AnyPath, Bool, Int, OutputPath, Seconds
from conrepair.verbs.fuzz import Fuzz

_MOST = 10_000_000
_usual = Fuzz.default


class FuzzConfig(ProgrammedConfig):
    """Networks that are tried by converters, runtimes and compilers, as `conrepair fuzz` does."""

    folder: OutputPath = Field("fuzz", description="Folder of the campaign, in `output`.")
    models: tuple[AnyPath, ...] = Field((), description="ONNX files to try, in place of generated networks.")
    data: AnyPath | None = Field(None, description="Inputs to feed to `models` (.npz, first axis samples).")
    systems: tuple[str, ...] = Field(
        (), description="ort-all, tvm-O3, torch-compile, convert-onnxslim... Default: ONNX Runtime, optimizers."
    )
    count: Int = Field(_usual("count"), ge=0, le=_MOST, description="Networks of `nodes` operators.")
    alone: Int = Field(_usual("alone"), ge=0, le=_MOST, description="Networks of one operator, which come first.")
    slips: Share = Field(_usual("slips"), description="Share of patterns in which one node isn't as it should be.")
    bare: Share = Field(_usual("bare"), description="Share of networks that are one pattern and nothing else.")
    varied: Share = Field(
        _usual("varied"), description="Share of networks that run with drawn options of systems, or other threads."
    )
    slower: Bool = Field(_usual("slower"), description="Suspect what takes over twice as long as with most left out.")
    known: AnyPath | None = Field(None, description="Findings that are known (JSON).")
    network_seconds: Seconds = Field(_usual("network_seconds"), gt=0, description="For each network on each system.")
    reduction_seconds: Seconds = Field(
        _usual("reduction_seconds"), gt=0, description="In which a case is made smaller."
    )
    seconds: Seconds | None = Field(None, gt=0, description="After which nothing is begun. Default: no such limit.")

    @model_validator(mode="after")
    def _a_campaign(self) -> FuzzConfig:
        check(Fuzz, self)
        return self
