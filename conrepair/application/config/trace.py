"""The part of a configuration that traces networks."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from conrepair.application.config.section import Section, of_options
from conrepair.application.config.strict import AnyPath, OutputPath
from conrepair.application.verbs.option import Options
from conrepair.application.verbs.options import Loaded
from conrepair.application.verbs.trace import Trace


@of_options("data", "timeout", *(name for name, *_ in Loaded.declared()))
class TraceConfig(Section):
    """Networks whose systems are searched for lost digits, as `conrepair trace` does."""

    verb: ClassVar[type[Options]] = Trace
    each: ClassVar[tuple[str, ...]] = ("model",)

    folder: OutputPath = Field("traces", description="Folder of what was found, in `output`.")
    models: tuple[AnyPath, ...] = Field(min_length=1, description="ONNX files, and folders of them.")
