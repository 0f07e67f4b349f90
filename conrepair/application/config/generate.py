"""The part of a configuration that asks for random networks."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from conrepair.application.config.section import Section, of_options
from conrepair.application.config.strict import Int, OutputPath
from conrepair.application.verbs.generate import Generate
from conrepair.application.verbs.option import Options


class NetworksSection(Section):
    """What asks for random networks."""

    opset: Int = Field(Generate.default("opset"), ge=17, le=24, description="Of ONNX's operators.")


@of_options()
class GenerateConfig(NetworksSection):
    """Random valid networks with inputs and expected outputs, as `conrepair generate` makes them."""

    verb: ClassVar[type[Options]] = Generate

    folder: OutputPath = Field("networks", description="Their folder, in `output`.")
