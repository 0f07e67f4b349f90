"""Conversions of the older form, `<source>_to_<target>`, as routes through our converters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from conrepair_legacy.origins import CannotDoError

_FORMATS = {
    "tf": "tensorflow",
    "tensorflow": "tensorflow",
    "torch": "torch",
    "pytorch": "torch",
    "keras": "keras",
    "keras_library": "keras",
    "tflite": "tflite",
    "onnx": "onnx",
}
_EXPORTERS = {
    "torch": "torch-onnx-script",
    "keras": "keras-onnx-tf2onnx",
    "tensorflow": "savedmodel-onnx-tf2onnx",
    "tflite": "tflite-onnx-tf2onnx",
}
_FROM_ONNX: dict[str, tuple[str, ...]] = {
    "onnx": (),
    "torch": ("onnx2torch",),
    "keras": ("onnx-keras",),
    "tensorflow": ("onnx-keras", "keras-savedmodel"),
    "tflite": ("onnx-keras", "keras-tflite"),
}
# The older tool made every TFLite file with TensorFlow's default optimization, which quantizes weights.
_DIRECT = {("tensorflow", "tflite"): "savedmodel-tflite", ("keras", "tflite"): "keras-tflite"}
_QUANTIZING = frozenset({"savedmodel-tflite", "keras-tflite"})
_LOWEST, _HIGHEST = 7, 18
_REPLACED = frozenset({"onnx-keras", "keras-savedmodel"})


@dataclass(frozen=True)
class LegacyRoute:
    """A conversion in our form.

    Attributes:
        target: The format.
        via: Converters.
        options: By converter.
        remarks: What isn't as it was.
    """

    target: str
    via: tuple[str, ...]
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    def form(self, *, off: bool) -> dict[str, Any]:
        """As our configuration writes it.

        Args:
            off: Whether it's switched off.
        """
        via = [f"noop_{self.via[0]}", *self.via[1:]] if off else list(self.via)
        options = {name: dict(item) for name, item in self.options.items()}
        return {"via": via} | ({"options": options} if options else {})


def switched_off(library: str) -> bool:
    """Whether a library or conversion is one that the older tool left out."""
    return "noop" in library.lower()


def direction(library: str) -> tuple[str, str | None]:
    """The formats that a library or conversion reads and, for a conversion, writes.

    Raises:
        CannotDoError: if one isn't known.
    """
    plain = library.lower().replace("noop_", "").replace("noop", "").strip("_")
    source, _, target = plain.partition("_to_")
    for name in (source, target):
        if name and name not in _FORMATS:
            raise CannotDoError(
                f"'{library}': there is no format '{name}'. Known: torch, keras, keras_library, tf, tflite, onnx"
            )
    if not source:
        raise CannotDoError(f"'{library}' names no library")
    return _FORMATS[source], _FORMATS[target] if target else None


def route_of(library: str, source: str, target: str, opset: int | None) -> LegacyRoute:
    """The route that is closest to what the older tool did: the same tools where we have them.

    Args:
        library: As the older form names the conversion.
        source: Its format.
        target: The format to reach.
        opset: Of ONNX on the way; None leaves it to the converters.

    Raises:
        CannotDoError: if the formats are the same.
    """
    if source == target:
        raise CannotDoError(f"'{library}' converts {source} to itself. Give another format, or name converters (via)")
    via: tuple[str, ...]
    if (source, target) in _DIRECT:
        via = (_DIRECT[source, target],)
    elif library.lower().endswith("keras_library_to_tf"):
        via = ("keras-onnx-tf2onnx", "onnx2torch", "torch-onnx-script", "onnx-keras", "keras-savedmodel")
    else:
        via = ((_EXPORTERS[source],) if source in _EXPORTERS else ()) + _FROM_ONNX[target]
    options, remarks = _options(via, opset)
    if _REPLACED & set(via):
        remarks.append("ONNX becomes Keras by conrepair's own importer, where older tools did it")
    return LegacyRoute(target, via, options, tuple(remarks))


def _options(via: tuple[str, ...], opset: int | None) -> tuple[dict[str, dict[str, Any]], list[str]]:
    options: dict[str, dict[str, Any]] = {}
    remarks = []
    exporters = [name for name in via if name in _EXPORTERS.values()] if opset is not None else []
    if opset is not None and exporters and _LOWEST <= opset <= _HIGHEST:
        options |= {name: {"opset": opset} for name in exporters}
    elif exporters:
        remarks.append(f"opset {opset} isn't among {_LOWEST} to {_HIGHEST}, so the converter's default is taken")
    quantizing = [name for name in via if name in _QUANTIZING]
    if quantizing:
        options |= {name: {"quantize": "dynamic"} for name in quantizing}
        remarks.append("weights become int8, as they did there; quantize: none leaves them")
    return options, remarks
