"""OpenVINO as a plug-in: its IR as a format, its runtime as a backend of ONNX files, its converter."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from conrepair.plugins import (
    Backend,
    ConfigError,
    Converter,
    Description,
    Format,
    Model,
    ModelLoadError,
    Network,
    Option,
    Runnable,
    Switch,
    TensorSpec,
    describe,
)

_ARITHMETIC = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}
_OPTIONS = {"device", "precision", "snippets", "threads"}
_SNIPPETS = "snippets"
_PROGRAM = """\
import openvino

model = openvino.Core().read_model("model.onnx")
compiled = openvino.Core().compile_model(model, "{device}", {told})


def compute(feeds):
    found = compiled([feeds[port.any_name] for port in model.inputs])
    return {{port.any_name: found[place].copy() for place, port in enumerate(model.outputs)}}
"""
_HEAD = 512


def _lacks() -> str:
    return "" if importlib.util.find_spec("openvino") else "pip install openvino"


class OpenVino(Format):
    """IR: the graph as .xml, and the weights beside it as .bin."""

    words = "OpenVINO IR (.xml)"
    suffixes = (".xml",)

    def recognizes(self, path: Path) -> bool:
        """By the element that it begins with."""
        if not path.is_file():
            return False
        with path.open("rb") as stream:
            return b"<net " in stream.read(_HEAD)

    def files(self, path: Path) -> Sequence[Path]:
        """Its weights."""
        weights = path.with_suffix(".bin")
        return [weights] if weights.is_file() else []

    def lacks(self) -> str:
        """See the base class."""
        return _lacks()

    def describe(self, model: Model) -> Description:
        """From the graph; nothing is compiled."""
        from conrepair_openvino.runtime import description

        return description(model)

    def load(self, model: Model, *, second_opinion: bool = False) -> Runnable:
        """On the processor, in float32, which OpenVINO would narrow by itself where the processor can."""
        from conrepair_openvino.runtime import Compiled, read

        if second_opinion:
            raise ModelLoadError("OpenVINO has one set of float32 kernels on a processor.")
        found = describe(model)
        return Compiled(model, read(model), found.inputs, found.outputs, {})

    def open_network(self, model: Model, inputs: Sequence[TensorSpec]) -> Network:
        """As a graph whose pieces OpenVINO computes."""
        from conrepair_openvino.network import opened

        return opened(model, inputs)


class OpenVinoBackend(Backend):
    """OpenVINO on a device, with its optimizations; options `device`, `precision` and `threads`."""

    packages: Mapping[str, str] = {"openvino": "openvino"}
    settings: Mapping[str, Mapping[str, Any]] = {"plain": {_SNIPPETS: False}, "": {}}
    narrowed = frozenset({"float64"})  # which the processor's kernels compute in float32

    def check(self, options: Mapping[str, Any]) -> None:
        """Refuse options that there aren't."""
        if unknown := sorted(set(options) - _OPTIONS):
            raise ConfigError(f"openvino has no option '{unknown[0]}'; it has: {', '.join(sorted(_OPTIONS))}")
        if options.get("precision", "f32") not in _ARITHMETIC:
            raise ConfigError(f"openvino's option precision is one of {', '.join(_ARITHMETIC)}")
        if type(options.get(_SNIPPETS, True)) is not bool:
            raise ConfigError(f"openvino's option snippets is true or false, not {options[_SNIPPETS]!r}")

    def takes(self, model: Model, options: Mapping[str, Any]) -> str:
        """ONNX, and its own."""
        return "openvino" if model.framework == "openvino" else "onnx"

    def arithmetic(self, options: Mapping[str, Any]) -> str:
        """That of the precision: f32 unless another one is asked for."""
        return _ARITHMETIC[options.get("precision", "f32")]

    def reach(self, options: Mapping[str, Any]) -> str:
        """Whatever isn't the processor is a device file."""
        return "confined" if options.get("device", "CPU") == "CPU" else "gpu"

    def load(self, model: Model, options: Mapping[str, Any]) -> Runnable:
        """Compile it for the device."""
        from conrepair_openvino.runtime import Compiled, read

        found = describe(model)
        return Compiled(model, read(model), found.inputs, found.outputs, options)

    def switches(self, options: Mapping[str, Any], load: Callable[[Mapping[str, Any]], Runnable]) -> list[Switch]:
        """The narrow precision, and fused kernels."""
        narrow, line = options.get("precision", "f32"), 'core.compile_model(model, "CPU", {"%s": "%s"})'
        found = [] if narrow == "f32" else [Switch(narrow, "arithmetic", line % ("INFERENCE_PRECISION_HINT", "f32"))]
        if options.get(_SNIPPETS, True):
            found.append(Switch(_SNIPPETS, "option", line % ("SNIPPETS_MODE", "DISABLE")))
        return found

    def without(self, options: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
        """In float32, and without fused kernels."""
        left = {**options, **({_SNIPPETS: False} if _SNIPPETS in names else {})}
        return {**left, "precision": "f32"} if {*names} - {_SNIPPETS} else left

    def program(self, options: Mapping[str, Any]) -> str:
        """The same of a model by OpenVINO alone."""
        return _PROGRAM.format(device=options.get("device", "CPU"), told=told(options))


def told(options: Mapping[str, Any]) -> dict[str, str]:
    """What OpenVINO is told for the backend's options.

    Args:
        options: Of the backend.
    """
    found = {"INFERENCE_PRECISION_HINT": options.get("precision", "f32"), "NUM_STREAMS": "1"}
    if options.get("threads"):
        found["INFERENCE_NUM_THREADS"] = str(options["threads"])
    return found if options.get(_SNIPPETS, True) else {**found, "SNIPPETS_MODE": "DISABLE"}


def _to_ir(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    import openvino

    converted = openvino.convert_model(model.path)
    openvino.save_model(converted, str(folder / "model.xml"), compress_to_fp16=options["compress_to_fp16"])
    return "model.xml"


FORMAT, BACKEND = OpenVino(), OpenVinoBackend()
ONNX_OPENVINO = Converter(
    "onnx-openvino",
    "onnx",
    "openvino",
    ("openvino",),
    _to_ir,
    {"compress_to_fp16": Option(False, "whether weights are stored in half precision, as OpenVINO does by default")},
    intent=lambda options: "float16" if options["compress_to_fp16"] else None,
)
