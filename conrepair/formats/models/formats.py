"""Formats of models by their names: ours, and those of plug-ins."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from conrepair.ground.runtime.errors import ModelLoadError, UsageError
from conrepair.ground.runtime.plugins import Registry
from conrepair.ground.runtime.words import meant

if TYPE_CHECKING:
    from conrepair.formats.editing.editor import Editor
    from conrepair.formats.models.admission import UnusualContent
    from conrepair.formats.models.model import Description, Model
    from conrepair.formats.models.outline import Outline
    from conrepair.formats.models.runnable import Array, Runnable
    from conrepair.formats.networks.network import Network
    from conrepair.ground.data.tensor_spec import TensorSpec

    Observed = Callable[[Mapping[str, Array]], Mapping[str, Array]]

RECORDED = "recorded"
"""In place of a framework: outputs that were computed elsewhere, and no model."""

_ALIASES = {"pytorch": "torch", "tf": "tensorflow", "savedmodel": "tensorflow"}


class Format:
    """A format of model files, and the framework that runs them. What's imported is imported by its methods.

    Attributes:
        words: What its files are, as a list of formats has it: "OpenVINO IR (.xml)".
        suffixes: Of its files, in small letters; the first one is what a written file gets.
        channels: Where pictures have their channels: "first", "last", "kept" where they lie as in the file that was
            converted, or "" where nothing says it.
        exact_again: Whether a second opinion is in float64; else it's another set of float32 kernels.
        holds_code: Whether its files can hold code, so that `seal` looks through those that nobody trusts.
        library: What a worker has imported that has run it, so that it gets the next job; "": called as the format.
    """

    words: str = ""
    suffixes: tuple[str, ...] = ()
    channels: str = "first"
    exact_again: bool = False
    holds_code: bool = False
    library: str = ""

    def recognizes(self, path: Path) -> bool:
        """Whether a file, or folder, that none of our formats is, is of this one. Default: its suffix says so."""
        return path.suffix.lower() in self.suffixes

    def files(self, path: Path) -> Sequence[Path]:
        """Files beside a model's own that belong to it, as one with its weights."""
        return ()

    def lacks(self) -> str:
        """What isn't installed that it needs, with the command that brings it; "" for nothing."""
        return ""

    def describe(self, model: Model) -> Description:
        """Say what a model consists of.

        Raises:
            ModelLoadError: if it can't be loaded.
        """
        raise NotImplementedError

    def load(self, model: Model, *, second_opinion: bool = False) -> Runnable:
        """Make a model ready to run.

        Args:
            model: What to load.
            second_opinion: Compute the same function in another arithmetic (float64, other kernels): the
                difference between both is the rounding error to expect of any correct conversion.

        Raises:
            ModelLoadError: if it can't be loaded, or there's no other arithmetic.
        """
        raise NotImplementedError

    def seal(self, model: Model, place: Path) -> Iterable[UnusualContent]:
        """Look through a file that can hold code, without running any of it.

        Args:
            model: The file.
            place: Receives a copy of what was looked through, which is loaded; where there's none, the file is.

        Returns:
            What no ordinary file of the format has.
        """
        raise NotImplementedError

    def outline(self, model: Model) -> Outline | None:
        """What a file says that can't be loaded; None where it can't be read at all, or nobody can tell."""
        return None

    def open_network(self, model: Model, inputs: Sequence[TensorSpec]) -> Network:
        """Open a model as a graph that can be cut.

        Args:
            model: What to open.
            inputs: The model's, all sizes numbers.

        Raises:
            ModelLoadError: if it can't be read, or has no graph that can be cut.
        """
        raise ModelLoadError(f"{model.path}: {self.words} has no graph that can be cut.")

    def observed(self, model: Model, beside: Model) -> Observed:
        """Load a model whose tensors on the way can be seen, and not cut at.

        Args:
            model: What to load.
            beside: What it's compared with, by whose names tensors are told.

        Returns:
            Runs a batch: takes feeds by the names of inputs, and gives outputs by their names, in order, and behind
            them tensors on the way, as far as they can be seen, by the names that the other model has for them.

        Raises:
            ModelLoadError: if it can't be loaded, or nothing but its outputs can be seen.
        """
        raise ModelLoadError(f"{model.path}: of {self.words} nothing but the outputs can be seen.")

    @property
    def observes(self) -> bool:
        """Whether layers are looked at by `observed`, and not by `open_network`."""
        return type(self).observed is not Format.observed

    def editor(self, model: Model) -> Editor:
        """Read a model to change it.

        Raises:
            UsageError: if its files can't be changed.
        """
        raise UsageError(f"{model.path}: nothing changes files of {self.words}. Convert the original anew.")


class _Own(Format):
    """A format whose code is conrepair's, in modules that are called alike for all formats."""

    def __init__(self, name: str, words: str, *suffixes: str, library: str = "") -> None:
        self.name, self.words, self.suffixes, self.library = name, words, suffixes, library
        self.channels = "last" if name in {"keras", "tensorflow", "tflite"} else "first"
        self.exact_again, self.holds_code = name in {"torch", "keras"}, name in {"torch", "keras", "tensorflow"}

    def part(self, module: str) -> Any:
        """A module of the format's own."""
        return importlib.import_module(f"{__package__.rpartition('.')[0]}.{self.name}.{module}")

    def recognizes(self, path: Path) -> bool:
        """By its content, as of all of ours (`detect.container`)."""
        return False

    def describe(self, model: Model) -> Description:
        """See the base class."""
        found: Description = self.part("load.framework").FRAMEWORK.describe(model)
        return found

    def load(self, model: Model, *, second_opinion: bool = False) -> Runnable:
        """See the base class."""
        found: Runnable = self.part("load.framework").FRAMEWORK.load(model, second_opinion=second_opinion)
        return found

    def seal(self, model: Model, place: Path) -> Iterable[UnusualContent]:
        """See the base class."""
        found: Iterable[UnusualContent] = self.part("load.screening").seal(model, place)
        return found

    def outline(self, model: Model) -> Outline | None:
        """See the base class."""
        found: Outline = self.part("load.outline").outline(model)
        return found

    def open_network(self, model: Model, inputs: Sequence[TensorSpec]) -> Network:
        """See the base class."""
        found: Network = self.part("read.network").open_network(model, inputs)
        return found

    def editor(self, model: Model) -> Editor:
        """See the base class."""
        found: Editor = self.part("edit.editor").EDITOR(model)
        return found


OWN: Mapping[str, _Own] = MappingProxyType(
    {
        own.name: own
        for own in (
            _Own("torch", ".pt2 (torch.export), TorchScript (.pt, .pth, .ts)", *(".pt2", ".pt", ".pth", ".ts")),
            _Own("keras", ".keras, .h5", ".keras", ".h5", ".hdf5", library="tensorflow"),
            _Own("tensorflow", "SavedModel folder, frozen graph (.pb)", ".pb"),
            _Own("tflite", ".tflite", ".tflite", ".lite"),
            _Own("onnx", ".onnx", ".onnx"),
        )
    }
)
FORMATS: Registry[Format] = Registry("formats", OWN, Format)
"""By their names, which models have as `framework`."""

BY_SUFFIX: Mapping[str, str] = {suffix: name for name, form in OWN.items() for suffix in form.suffixes}
"""The format that each suffix of ours belongs to."""


def framework_needs(framework: str) -> frozenset[str]:
    """The libraries that a job imports for a framework, so that a worker that has them gets it.

    Keras stands on TensorFlow.
    """
    return frozenset() if framework == RECORDED else frozenset({FORMATS[framework].library or framework})


def format_name(text: str) -> str:
    """The name of a format as a person may write it: in any case, or by an alias."""
    return _ALIASES.get(text.lower(), text.lower())


def unknown_format(name: str) -> str | None:
    """Why a format's name isn't one, with the closest as a suggestion; None where it is.

    Args:
        name: From `format_name`.
    """
    if name in FORMATS:
        return None
    hint = meant(name, [*FORMATS, *_ALIASES], f"known: {', '.join(FORMATS)}")
    return f"unknown format '{name}'{hint}"


def other_formats(texts: Iterable[str]) -> tuple[str, ...]:
    """Formats that an ONNX model is converted to, each once.

    Args:
        texts: As a person writes them.

    Raises:
        ValueError: if one is unknown.
    """
    names = tuple(dict.fromkeys(map(format_name, texts)))
    for name in names:
        if problem := unknown_format(name):
            raise ValueError(problem)
    return tuple(name for name in names if name != "onnx")
