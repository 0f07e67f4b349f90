"""A finished run: a model's outputs over a dataset."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.ground.data.stored_values import to_real
from conrepair.ground.data.tensor_spec import Quantization, TensorSpec, numpy_dtype
from conrepair.ground.metrics.tensors import relative_error
from conrepair.verdicts.evaluate.whole_numbers import are_whole, differing_share
from conrepair.verdicts.judging.floor import HALF_PRECISIONS

_PLAIN = {"float32", "float64"}


@dataclass(frozen=True)
class Intent:
    """The precision that a model is judged by.

    Attributes:
        found: Of the weights in the file, in words (`Description.precision`).
        asked: What the options of its converters asked for; None when nobody asked.
        origin: Precision of the source that the audit's converters made it from; None for a model that they
            didn't make, whose intent nobody but its file tells.
    """

    found: str = "float32"
    asked: str | None = None
    origin: str | None = None

    @property
    def meant(self) -> str:
        """What was asked for, else what the file shows if the source is as narrow or nobody knows better."""
        return self.asked or (self.found if self.silent is None else str(self.origin))

    @property
    def quantized(self) -> bool:
        """Whether eight bits are meant, so that a budget takes the place of rounding errors."""
        return _kind(self.meant) == "int8"

    @property
    def precision(self) -> str:
        """Whose rounding errors to expect: float16, bfloat16, or float32."""
        computes = self.meant.removeprefix("mixed ")
        return computes if computes in HALF_PRECISIONS else "float32"

    @property
    def silent(self) -> str | None:
        """What a converter did to the weights though nobody asked for it; None when all is as meant."""
        if self.asked is not None or self.origin is None or self.found in _PLAIN:
            return None
        return None if _kind(self.found) == _kind(self.origin) else self.found

    @property
    def complaint(self) -> str | None:
        """How the precision of the weights differs from what was asked for, in words."""
        if self.silent is not None:
            return f"most of its weights are {_in_words(self.silent)}, and nobody asked for that"
        if self.asked is not None and self.found in _PLAIN:
            return f"{self.asked} was asked for, but most of its weights are {self.found}"
        return None

    @property
    def text(self) -> str:
        """For a person: "int8 (asked for)", "float16 (nobody asked for it)"."""
        if self.asked is not None:
            missed = self.found in _PLAIN
            return f"{self.asked} (asked for{f'; most weights are {self.found}' if missed else ''})"
        if self.found in _PLAIN:
            return self.found
        if self.silent is not None:
            return f"{self.found} (nobody asked for it)"
        return f"{self.found} ({'as in the original' if self.origin is not None else 'found in the file'})"


def _in_words(precision: str) -> str:
    return "quantized" if _kind(precision) == "int8" else precision


def _kind(precision: str) -> str:
    """Quantized weights, full-integer and int8 are of one kind; weights that are cast, and those that were."""
    return "int8" if "quantized" in precision or precision.startswith("int8") else precision.removeprefix("mixed ")


Array = npt.NDArray[Any]

_MAPPED_BYTES = 1 << 24
STEADY = 1e-3
"""Relative difference between two runs of a model that isn't random; sums in another order differ by 1e-7."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a model gave.

    Attributes:
        name: Of the model and where it ran, unique in an audit.
        outputs: Specs, in the model's order.
        assumed: Names of outputs whose quantization is that of another model, as their own format can't say it.
        folder: Holds `output_<index>.npy` and `seconds.npy`; `again_<index>.npy` where the first batch, run twice,
            gave other bits, and `repeated_<index>.npy`, what more runs of it gave; `lengths_<index>.npy`, how many
            rows each sample has, of an output of which that varies.
        count: Number of samples.
        starts: First sample of each batch.
        quantized: Whether most weights of the model are stored in eight bits or fewer.
        precision: Of its weights, in words.
        operators: Number of operators of the model.
        arithmetic: Of these, those that don't only quantize or dequantize; None: all.
        rounds: Whether some quantize.
        exact: Whether it was computed in float64.
        converted: Whether the model is a conversion of the reference (and no model of somebody's own).
        intent: Which precision was meant; None: what the weights show.
        repeats: Whether the first batch gave the same bits twice.
        ordered: Whether the model's outputs have an order, and not names alone.
        channels: Where the model's format has the channels of a picture, "first" (behind the samples) or "last";
            "kept" where a converter left them as they were; "" where that isn't known.
        inputs: Specs, in the model's order; none where they aren't known.
        steps: In a row that make a sample; outputs have an axis of them behind the samples where it's more than one.
        states: Names of what the model keeps from one step to the next.
        computes_in: The arithmetic that it was computed in (`conrepair.verdicts.judging.arithmetic`); "" where
            nobody says.
    """

    name: str
    outputs: tuple[TensorSpec, ...]
    folder: Path
    count: int
    starts: tuple[int, ...] = (0,)
    quantized: bool = False
    precision: str = "float32"
    operators: int = 0
    arithmetic: int | None = None
    rounds: bool = False
    exact: bool = False
    converted: bool = False
    intent: Intent | None = None
    repeats: bool = True
    ordered: bool = True
    assumed: frozenset[str] = frozenset()
    channels: str = ""
    inputs: tuple[TensorSpec, ...] = ()
    steps: int = 1
    states: tuple[str, ...] = ()
    computes_in: str = "float32"

    @cached_property
    def arrays(self) -> dict[str, Array]:
        """Outputs by name as real numbers (complex ones as two); large ones are memory-mapped.

        Samples first, where each has one row; else the rows of all samples, of which `lengths` says whose they are.
        """
        return {spec.name: self._array(spec, _load(file)) for spec, file in self._files("output")}

    @cached_property
    def lengths(self) -> Mapping[str, npt.NDArray[np.int64]]:
        """How many rows each sample has, by the names of the outputs of which that varies."""
        return {spec.name: np.load(file)[: self.count] for spec, file in self._files("lengths") if file.exists()}

    @property
    def given(self) -> dict[str, Array]:
        """Outputs by name as a person takes them: complex numbers as such, an array of arrays where sizes vary."""
        found = {spec.name: _complex(self.arrays[spec.name], spec) for spec in self.outputs}
        return found | {name: _by_sample(found[name], lengths) for name, lengths in self.lengths.items()}

    @cached_property
    def seconds(self) -> npt.NDArray[np.float64]:
        """Time per sample: that of its batch, divided by the batch's size."""
        return np.asarray(np.load(self.folder / "seconds.npy")[: self.count], dtype=np.float64)

    @property
    def batch_seconds(self) -> npt.NDArray[np.float64]:
        """Time per sample of each batch, but the first of each size: that one includes tracing and preparations.

        Empty where no size came twice.
        """
        sizes = np.diff([*self.starts, self.count])
        warm = [start for place, start in enumerate(self.starts) if sizes[place] in sizes[:place]]
        return self.seconds[warm]

    @property
    def budgeted(self) -> bool:
        """Whether quantization was meant, so that its budget applies."""
        return self.quantized if self.intent is None else self.intent.quantized

    @property
    def asked(self) -> bool:
        """Whether somebody asked a converter for a precision."""
        return self.intent is not None and self.intent.asked is not None

    @property
    def rounding(self) -> str:
        """The precision whose rounding errors are to be expected."""
        return self.precision if self.intent is None else self.intent.precision

    @cached_property
    def unsteady(self) -> dict[str, float]:
        """Outputs that are random: their relative difference between two runs on the same inputs, beyond rounding."""
        if self.repeats:
            return {}
        again = {spec.name: self._array(spec, _load(file)) for spec, file in self._files("again")}
        found = {name: difference(self.arrays[name], array) for name, array in again.items()}
        return {name: relative for name, relative in found.items() if relative > STEADY}

    @cached_property
    def repeated(self) -> dict[str, Array]:
        """What outputs were when the first batch was run repeatedly, runs first; none of outputs of varying sizes."""
        files = [] if self.repeats else self._files("repeated")
        return {spec.name: _real(spec, _load(file)) for spec, file in files if file.exists()}

    def first(self, count: int) -> Run:
        """The same on the first samples alone.

        Args:
            count: Of samples, at most as many as there are.
        """
        return replace(self, count=count, starts=tuple(start for start in self.starts if start < count))

    def with_quantization_of(self, other: Run) -> Run:
        """The same with what its integers stand for taken from another run, whose model stores them alike.

        Keras and PyTorch have no place for a scale, so the integers that they give for a quantized source's look
        like numbers of their own. Outputs of one name are alike, else those of one type in their order.
        """
        unsaid = [spec for spec in self.outputs if spec.quantization is None and numpy_dtype(spec.dtype).kind in "iu"]
        known = [spec for spec in other.outputs if spec.quantization is not None]
        taken: dict[str, Quantization | None] = {}
        for dtype in {spec.dtype for spec in unsaid}:
            ours, theirs = ([spec for spec in specs if spec.dtype == dtype] for specs in (unsaid, known))
            by_name = {spec.name: spec for spec in theirs}
            if all(spec.name in by_name for spec in ours):
                theirs = [by_name[spec.name] for spec in ours]
            if len(ours) == len(theirs):
                taken |= {spec.name: one.quantization for spec, one in zip(ours, theirs, strict=True)}
        if not taken:
            return self
        outputs = tuple(replace(spec, quantization=taken.get(spec.name, spec.quantization)) for spec in self.outputs)
        return replace(self, outputs=outputs, assumed=frozenset(taken))

    def _files(self, kind: str) -> list[tuple[TensorSpec, Path]]:
        """Each output with its file of a kind."""
        return [(spec, self.folder / f"{kind}_{index}.npy") for index, spec in enumerate(self.outputs)]

    def _array(self, spec: TensorSpec, stored: Array) -> Array:
        """Values of an output for the samples that are meant, the real ones where integers stand for such."""
        rows = self.lengths[spec.name].sum() if spec.name in self.lengths else self.count
        return _real(spec, stored[:rows])

    def spec(self, name: str) -> TensorSpec:
        """The spec of an output."""
        return {spec.name: spec for spec in reversed(self.outputs)}[name]


@dataclass(frozen=True, kw_only=True)
class HeldRun(Run):
    """A run whose outputs are in memory, and that wasn't timed.

    Attributes:
        held: Outputs by name, samples first.
        rows: How many rows each sample has, by the names of the outputs of which that varies.
    """

    held: Mapping[str, Array] = field(default_factory=dict)
    rows: Mapping[str, npt.NDArray[np.int64]] = field(default_factory=dict)

    @cached_property
    def lengths(self) -> Mapping[str, npt.NDArray[np.int64]]:
        """As in files."""
        return {name: lengths[: self.count] for name, lengths in self.rows.items()}

    @cached_property
    def arrays(self) -> dict[str, Array]:
        """Outputs by name, as in files."""
        return {spec.name: self._array(spec, self.held[spec.name]) for spec in self.outputs}


def _real(spec: TensorSpec, array: Array) -> Array:
    """Real numbers where integers stand for such; of complex ones both parts, along a last axis of two."""
    if array.dtype.kind == "c":
        return np.asarray(np.ascontiguousarray(array)[..., None].view(array.real.dtype))
    return to_real(spec, array) if array.dtype.kind in "iu" else array


def _complex(array: Array, spec: TensorSpec) -> Array:
    """Complex numbers of their parts, where an output has such."""
    if not spec.dtype.startswith("complex"):
        return array
    return np.asarray(np.ascontiguousarray(array).view(spec.dtype)[..., 0])


def _by_sample(rows: Array, lengths: npt.NDArray[np.int64]) -> Array:
    """An array of the rows of each sample."""
    found = np.empty(len(lengths), object)
    for place, part in enumerate(np.split(rows, np.cumsum(lengths)[:-1])):
        found[place] = part
    return found


def difference(array: Array, again: Array) -> float:
    """Relative L2 between the first samples and what they gave again; of integers the share that differs.

    Args:
        array: Of all samples.
        again: Of the first ones, a second time.
    """
    array = array[: len(again)]
    if array.shape != again.shape:
        return math.inf
    if are_whole(array, again):
        return differing_share(array, again)
    return relative_error(array, again)


def _load(path: Path) -> Array:
    """Each mapped file is an open one, of which a process may have about a thousand: small arrays are read."""
    array: Array = np.load(path, mmap_mode="r" if path.stat().st_size > _MAPPED_BYTES else None)
    return array
