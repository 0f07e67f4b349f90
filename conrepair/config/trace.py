"""The part of a configuration that traces networks."""

from __future__ import annotations

from pydantic import Field, model_validator

from conrepair.config.asked import check
from conrepair.config.strict import AnyPath, Bool, Float, Int, OutputPath, Seconds, Strict
from conrepair.runtime.bounds import MOST_SEED
from conrepair.tracing.search.names import MethodName, ObjectiveName
from conrepair.verbs.trace import Trace

_MOST = 10_000_000
_usual = Trace.default


class TraceConfig(Strict):
    """Networks whose systems are searched for lost digits, as `conrepair trace` does."""

    folder: OutputPath = Field("traces", description="Folder of what was found, in `output`.")
    models: tuple[AnyPath, ...] = Field(min_length=1, description="ONNX files, and folders of them.")
    setting: str = Field(_usual("setting"), description="How they're run: tvm-O3, ort-all, torch-compile...")
    against: str | None = Field(None, description="What that's compared with. Default: its optimizations off.")
    switch: str | None = Field(None, description="Try this pass, optimization or option alone.")
    accuracy: AnyPath | None = Field(None, description="accuracy.json: errors that aren't wrong, as they're known.")
    granularity: Int | None = Field(None, ge=1, le=_MOST, description="Most operators that TVM fuses into a kernel.")
    method: MethodName = Field(_usual("method"), description="How inputs are searched.")
    objective: ObjectiveName = Field(_usual("objective"), description="What the search makes as large as it can.")
    evaluations: Int = Field(_usual("evaluations"), ge=1, le=_MOST, description="Inputs that are tried.")
    seconds: Seconds = Field(_usual("seconds"), gt=0, description="For each search.")
    low: Float = Field(_usual("low"), description="Lower bound of inputs.")
    high: Float = Field(_usual("high"), description="Upper bound of inputs.")
    weights: Bool = Field(_usual("weights"), description="Search the weights, too.")
    seed: Int = Field(_usual("seed"), ge=0, le=MOST_SEED, description="Of the search.")
    builds: Int | None = Field(None, ge=1, le=_MOST, description="Most builds to find what's to blame.")

    @model_validator(mode="after")
    def _a_trace(self) -> TraceConfig:
        check(Trace, self, model=None)
        return self
