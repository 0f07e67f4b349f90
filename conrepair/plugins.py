"""What plug-ins are made of (docs/plugins.md): these names stay what they are from release to release."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from conrepair.application.cli.parser import Catalogue, Parser
    from conrepair.application.config.parts import Part
    from conrepair.application.config.strict import Strict
    from conrepair.diagnosis.localization.faces.region import Finding, Region
    from conrepair.formats.backends.base import Backend, Compiler, Switch
    from conrepair.formats.converters.base import Converter, Option
    from conrepair.formats.models.admission import UnusualContent
    from conrepair.formats.models.formats import Format
    from conrepair.formats.models.model import Description, Model
    from conrepair.formats.models.outline import Outline
    from conrepair.formats.models.registry import describe
    from conrepair.formats.models.runnable import Array, Runnable, loading
    from conrepair.formats.networks.network import Network, Segment
    from conrepair.ground.data.tensor_spec import Quantization, TensorSpec
    from conrepair.ground.graph.kinds import Kind
    from conrepair.ground.graph.layer_graph import LayerGraph, Node, Parameter, Tensor
    from conrepair.ground.runtime.errors import (
        ConfigError,
        ConversionError,
        DataError,
        DeviceError,
        InferenceError,
        ModelLoadError,
        UsageError,
    )

_PLACES = {
    "application.cli.parser": ("Catalogue", "Parser"),
    "application.config.parts": ("Part",),
    "application.config.strict": ("Strict",),
    "diagnosis.localization.faces.region": ("Finding", "Region"),
    "formats.backends.base": ("Backend", "Compiler", "Switch"),
    "formats.converters.base": ("Converter", "Option"),
    "formats.models.admission": ("UnusualContent",),
    "formats.models.formats": ("Format",),
    "formats.models.model": ("Description", "Model"),
    "formats.models.outline": ("Outline",),
    "formats.models.registry": ("describe",),
    "formats.models.runnable": ("Array", "Runnable", "loading"),
    "formats.networks.network": ("Network", "Segment"),
    "ground.data.tensor_spec": ("Quantization", "TensorSpec"),
    "ground.graph.kinds": ("Kind",),
    "ground.graph.layer_graph": ("LayerGraph", "Node", "Parameter", "Tensor"),
    "ground.runtime.errors": (
        *("ConfigError", "ConversionError", "DataError", "DeviceError"),
        *("InferenceError", "ModelLoadError", "UsageError"),
    ),
}
_ELSEWHERE = {name: place for place, names in _PLACES.items() for name in names}

__all__ = [
    "Array",
    "Backend",
    "Catalogue",
    "Compiler",
    "ConfigError",
    "ConversionError",
    "Converter",
    "DataError",
    "Description",
    "DeviceError",
    "Finding",
    "Format",
    "InferenceError",
    "Kind",
    "LayerGraph",
    "Model",
    "ModelLoadError",
    "Network",
    "Node",
    "Option",
    "Outline",
    "Parameter",
    "Parser",
    "Part",
    "Quantization",
    "Region",
    "Runnable",
    "Segment",
    "Strict",
    "Switch",
    "Tensor",
    "TensorSpec",
    "UnusualContent",
    "UsageError",
    "describe",
    "loading",
]

if not TYPE_CHECKING:  # which would take any name for one of these

    def __getattr__(name: str) -> object:
        """Import a type when it's asked for: a plug-in that's only listed costs next to nothing."""
        if name in _ELSEWHERE:
            return getattr(importlib.import_module(f"conrepair.{_ELSEWHERE[name]}"), name)
        raise AttributeError(f"module 'conrepair.plugins' has no attribute {name!r}")
