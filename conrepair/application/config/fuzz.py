"""The part of a configuration that asks for a campaign."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from conrepair.application.config.generate import NetworksSection
from conrepair.application.config.section import of_options
from conrepair.application.config.strict import AnyPath, OutputPath
from conrepair.application.verbs.fuzz import Fuzz
from conrepair.application.verbs.option import Options


@of_options("recheck", "releases")
class FuzzConfig(NetworksSection):
    """Networks that are tried by converters, runtimes and compilers, as `conrepair fuzz` does."""

    verb: ClassVar[type[Options]] = Fuzz

    folder: OutputPath = Field("fuzz", description="Folder of the campaign, in `output`.")
    models: tuple[AnyPath, ...] = Field((), description="ONNX files to try, in place of generated networks.")
