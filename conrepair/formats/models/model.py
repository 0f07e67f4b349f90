"""A model as a value: where it is, what it is made from, what goes in and out."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from conrepair.ground.data.tensor_spec import TensorSpec, numpy_dtype
from conrepair.ground.runtime.words import shortened


@dataclass(frozen=True)
class Factory:
    """A call that builds a network.

    Attributes:
        target: "package.module:function".
        kwargs: Its keyword arguments (JSON-able).
        code: Hash of the factory's code, so that what was made with other code isn't taken for it.
    """

    target: str
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    code: str = ""


@dataclass(frozen=True)
class Provenance:
    """How a model came to be.

    Attributes:
        parent: sha256 of the model it was converted from.
        converter: Name of the converter.
        tools: Versions of the libraries that took part.
        options: The options that were used, defaults included.
        seconds: How long the conversion took.
        notes: What a person should know about it.
    """

    parent: str
    converter: str
    tools: Mapping[str, str]
    options: Mapping[str, Any]
    seconds: float = 0.0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Model:
    """A model on disk.

    Attributes:
        framework: "torch", "keras", "tensorflow", "tflite" or "onnx".
        path: Absolute path of the file or folder; of the weights when there is a factory.
        sha256: Of what `path` holds.
        factory: What builds the network, when the file holds only weights.
        inputs: Declared inputs, for formats that don't record them.
        trust: Whether code and pickles in the file may run.
        provenance: For a conversion.
    """

    framework: str
    path: str
    sha256: str
    factory: Factory | None = None
    inputs: tuple[TensorSpec, ...] = ()
    trust: bool = False
    provenance: Provenance | None = None

    @property
    def bare(self) -> Model:
        """The model without its provenance, which plays no role for what's done with it."""
        return dataclasses.replace(self, provenance=None)

    @property
    def origin(self) -> Path:
        """The file that other files of it lie beside."""
        return Path(self.path)


@dataclass(frozen=True)
class ChangedModel(Model):
    """A changed copy of a model whose file holds what was changed alone: for a search, nothing that is kept.

    Attributes:
        of: Path of the model as it came, whose files hold all other weights.
    """

    of: str = ""

    @property
    def origin(self) -> Path:
        """See the base class."""
        return Path(self.of)


_NARROW = {"int8", "uint8", "int4", "uint4", "int16", "uint16"}
_LONGEST = 60  # characters of metadata that are shown
_REAL = {"float16", "bfloat16", "float32", "float64"}


@dataclass(frozen=True)
class Description:
    """What a model consists of.

    Attributes:
        format: The file format in words ("TorchScript", "ONNX", "frozen graph").
        inputs: In order.
        outputs: In order.
        operators: How often each operator occurs.
        parameters: Number of weights.
        weights: Number of weights by dtype.
        matrices: Number of tensors with weights along two axes or more, by dtype; of formats that quantize.
        opset: ONNX opset of the default domain.
        computes: The narrower type that most layers with weights compute in; "" where that's the weights' own.
        states: Names of what a call leaves behind for the next.
        ir_version: Version of the ONNX format.
        producer: Tool that wrote the file, when it says so.
        metadata: What somebody wrote into the file for its users, by key; long texts shortened, with their hash.
        warnings: What goes wrong with the file on other processors, in words.
    """

    format: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    operators: Mapping[str, int]
    parameters: int
    weights: Mapping[str, int]
    opset: int | None = None
    ir_version: int | None = None
    computes: str = ""
    states: tuple[str, ...] = ()
    producer: str = ""
    matrices: Mapping[str, int] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @classmethod
    def counted(cls, operators: Iterable[str], weights: Mapping[str, int], **more: Any) -> Description:
        """A description of a model all of whose weights are its parameters.

        Args:
            operators: One for each time that it occurs, or a `Counter` of them.
            weights: Number of weights by dtype.
            more: All else that a description says.
        """
        counts = dict(sorted(Counter(operators).items()))
        return cls(operators=counts, parameters=sum(weights.values()), weights=dict(weights), **more)

    @property
    def precision(self) -> str:
        """The numeric intent that the weights show: float32, float16, mixed float16, or a kind of quantization.

        Quantized is what has most of its weights in few bits, or most of its matrices: tools leave large ones out
        whose operators they can't quantize (recurrent layers, tables).
        """
        total = sum(self.weights.values()) or 1
        real = sum(count for dtype, count in self.matrices.items() if dtype in _REAL)
        matrices = sum(count for dtype, count in self.matrices.items() if dtype in _NARROW)
        narrow = sum(count for dtype, count in self.weights.items() if dtype in _NARROW)
        if narrow / total > 0.5 or matrices > real or self.computes in _NARROW:
            if not all(spec.quantization for spec in self.inputs + self.outputs):
                return "quantized weights"
            return "partly quantized" if real else "full-integer quantized"
        if self.computes:
            return f"mixed {self.computes}"
        # What has no weights shows by what it takes and gives which numbers it computes with.
        ends = {spec.dtype for spec in self.inputs + self.outputs} & _REAL if not self.weights else set[str]()
        for dtype in ("float16", "bfloat16"):
            if self.weights.get(dtype, 0) / total > 0.5 or ends == {dtype}:
                return dtype
        return "float64" if self.weights.get("float64", 0) / total > 0.5 else "float32"

    def rows(self, missing: Iterable[str] = ()) -> list[tuple[str, str]]:
        """What a person reads of it: what each row is about, and its words.

        Args:
            missing: What can't be said without running the model.
        """
        missing = tuple(missing)
        version = f", IR version {self.ir_version}" if self.ir_version else ""
        opset = f", opset {self.opset}" if self.opset else ""
        stored = f": {', '.join(self.weights)} weights, computed in {self.computes}" if self.computes else ""
        counted = self.parameters or not missing
        return [
            ("format", f"{self.format}{version}{opset}"),
            *(("input", _with_grid(spec)) for spec in self.inputs),
            *(("output", _with_grid(spec)) for spec in self.outputs),
            *([("parameters", f"{self.parameters:,} ({self.precision}{stored})")] if counted else []),
            *([("state", ", ".join(self.states))] if self.states else []),
            ("operators", ", ".join(f"{name} {count}" for name, count in self.operators.items())),
            *(("missing", text) for text in missing),
            ("producer", self.producer or "not recorded"),
            *((f"metadata {key}", text) for key, text in self.metadata.items()),
            *(("warning", text) for text in self.warnings),
        ]

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:{width}}  {text}" for name, text in rows)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        rows = (f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in self.rows())
        return f"<table>{''.join(rows)}</table>"

    @property
    def quantized(self) -> bool:
        """Whether most of the weights are stored, or rounded before they're used, as integers of few bits."""
        return "quantized" in self.precision


def _with_grid(spec: TensorSpec) -> str:
    """An input or output with what its integers stand for."""
    grid = spec.quantization
    if grid is None:
        return str(spec)
    limits = np.iinfo(numpy_dtype(spec.dtype))
    low, high = (grid.scale * (int(end) - grid.zero_point) for end in (limits.min, limits.max))
    return f"{spec}, scale {grid.scale:.9g} and zero point {grid.zero_point}: holds {low:.4g} to {high:.4g}"


@dataclass(frozen=True)
class LoadedModel:
    """A model that exists on disk and was loaded once.

    Attributes:
        model: Where it is.
        description: What it consists of.
        missing: What isn't said of one of which nothing was run.
    """

    model: Model
    description: Description
    missing: tuple[str, ...] = ()

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """Its inputs, in order."""
        return self.description.inputs

    def with_inputs(self, inputs: tuple[TensorSpec, ...]) -> LoadedModel:
        """The same, without how it came to be, with sizes of inputs that its file leaves open."""
        return LoadedModel(self.model.bare, dataclasses.replace(self.description, inputs=inputs))


def short_text(value: bytes) -> str:
    """A text of a file's metadata; of one that's long, or isn't text, the hash, too."""
    text = value.rstrip(b"\0").decode(errors="replace")
    if len(text) <= _LONGEST and text.isprintable():
        return text
    return f"{shortened(text, _LONGEST)!r} ({len(value)} bytes, sha256 {hashlib.sha256(value).hexdigest()[:12]})"
