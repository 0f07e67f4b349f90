"""What a converter is: an edge between two formats."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conrepair.formats.models.formats import OWN, framework_needs
from conrepair.formats.models.model import Description, Model
from conrepair.ground.runtime.errors import ConfigError
from conrepair.ground.runtime.outside.environments import ENVIRONMENTS, normalized
from conrepair.ground.runtime.words import meant

_TRUTH = {"true": True, "false": False}


@dataclass(frozen=True)
class Option:
    """A setting of a converter.

    Attributes:
        default: Used when the configuration says nothing.
        meaning: For a person.
        choices: Allowed values, if they're few.
        least: Smallest allowed number.
        most: Largest allowed number.
        alternatives: Other values that make the same network, for a repair to try, the likeliest to help first.
    """

    default: Any
    meaning: str
    choices: tuple[Any, ...] | None = None
    least: float | None = None
    most: float | None = None
    alternatives: tuple[Any, ...] = ()

    def check(self, value: Any, where: str) -> Any:
        """Return `value` if it's of the default's type and allowed.

        Raises:
            ConfigError: if not.
        """
        if isinstance(self.default, float) and type(value) is int:
            value = float(value)  # 100 for 100.0
        if type(value) is not type(self.default):
            raise ConfigError(f"{where} takes {type(self.default).__name__} ({self.meaning}), not {value!r}")
        if self.choices is not None and value not in self.choices:
            raise ConfigError(f"{where} takes one of {list(self.choices)} ({self.meaning}), not {value!r}")
        if self.least is not None and value < self.least:
            raise ConfigError(f"{where} takes at least {self.least:g} ({self.meaning}), not {value!r}")
        if self.most is not None and value > self.most:
            raise ConfigError(f"{where} takes at most {self.most:g} ({self.meaning}), not {value!r}")
        return value

    def read(self, text: str, where: str) -> Any:
        """The value that a person wrote on a command line.

        Raises:
            ConfigError: if it isn't of the default's type, or not allowed.
        """
        value: Any = text
        if isinstance(self.default, bool):
            value = _TRUTH.get(text.lower(), text)
        elif isinstance(self.default, int | float):
            with contextlib.suppress(ValueError):
                value = type(self.default)(text)
        return self.check(value, where)


_SAMPLES = "calibration_samples"
CALIBRATION = {
    _SAMPLES: Option(100, "samples to calibrate with, spread over the dataset; all if it has fewer", least=1)
}
"""The option that all converters with calibration share."""


def calibration_samples(options: Mapping[str, Any]) -> int:
    """How many samples the options ask for."""
    return int(options[_SAMPLES])


@dataclass(frozen=True)
class Converter:
    """One tool's way from one format to another.

    Attributes:
        name: "source-target-tool" or the tool's own.
        source: Framework it reads.
        target: Framework it writes.
        distributions: Packages that take part, the tool first; their versions go into the provenance.
        convert: Writes the target into a folder and returns the file's or folder's name in it. Runs in a worker
            process; imports what it needs inside. Gets the model, the folder, options, and, where `calibrates` wants
            samples and there are data, `CalibrationFeeds`.
        options: By name.
        preference: The smaller, the sooner it's chosen among equals.
        accepts: Says why a model of the source framework is not for this converter; None when it is.
        automatic: Whether routes are found through it; else it's used only where it's named (`via`).
        intent: The precision that options ask for ("float16", "int8", "int8 weights"); None keeps the source's.
        calibrates: How many samples options want to calibrate with; 0 for none.
        as_quantized: The options that quantize as a file is quantized; None where it can't.
        environment: Name of the environment that its tool runs in, when it's not ours.
        parts: Names of what its option `without` leaves out, separated by commas; imports its tool.
    """

    name: str
    source: str
    target: str
    distributions: tuple[str, ...]
    convert: Callable[..., str]
    options: Mapping[str, Option] = field(default_factory=dict)
    preference: int = 10
    accepts: Callable[[Model], str | None] = lambda _: None
    automatic: bool = True
    intent: Callable[[Mapping[str, Any]], str | None] = lambda _: None
    calibrates: Callable[[Mapping[str, Any]], int] = lambda _: 0
    as_quantized: Callable[[Description], Mapping[str, Any] | None] = lambda about: None if about.quantized else {}
    environment: str | None = None
    parts: Callable[[], Sequence[str]] = tuple

    def complete(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The given options, checked, with defaults for the rest.

        Raises:
            ConfigError: for an unknown option or a value that isn't allowed.
        """
        unknown = sorted(set(options) - set(self.options))
        if unknown:
            known = ", ".join(f"{name} ({option.meaning})" for name, option in self.options.items())
            raise ConfigError(f"converter {self.name} has no option '{unknown[0]}'; it has: {known or 'none'}")
        return {
            name: option.check(options[name], f"option '{name}' of {self.name}")
            if name in options
            else option.default
            for name, option in self.options.items()
        }

    def changed(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Those of given options that aren't its defaults."""
        return {name: value for name, value in options.items() if value != self.options[name].default}

    @property
    def needs(self) -> frozenset[str]:
        """Frameworks it imports, for steering it to a warm worker."""
        formats = {self.source, self.target}
        if not formats <= OWN.keys():
            return framework_needs(self.source) | framework_needs(self.target)
        if "torch" in formats:
            return frozenset({"torch"})
        if self.environment is not None:  # the tool runs there
            return frozenset({self.target})
        return frozenset({"onnx" if formats == {"onnx"} else "tensorflow"})

    @property
    def job_needs(self) -> frozenset[str]:
        """What a job needs that converts: frameworks, and its tool's environment."""
        return self.needs if self.environment is None else self.needs | {self.environment}

    def versions(self) -> dict[str, str]:
        """Versions of the packages that take part; "missing" for one that isn't installed.

        For a tool in an environment of its own, those pinned there, made or not, and the hash of all its pins.
        """
        if self.environment is not None:
            environment = ENVIRONMENTS[self.environment]
            pins = environment.pins
            versions = {name: pins.get(normalized(name), "missing") for name in self.distributions}
            return versions | {f"environment {environment.name}": environment.key}
        import importlib.metadata  # it reads mail, which takes a while to import

        result = {}
        for name in self.distributions:
            try:
                result[name] = importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                result[name] = "missing"
        return result


def comma_parts(text: str) -> list[str]:
    """Names that an option has, separated by commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def parts_without(name: str, text: str, parts: Sequence[str]) -> list[str]:
    """What option `without` of a converter names.

    Args:
        name: Of the converter.
        text: Names, separated by commas.
        parts: All that there are.

    Raises:
        ConfigError: if there's none of a name.
    """
    off = comma_parts(text)
    for part in off:
        if part not in parts:
            raise ConfigError(f"option 'without' of {name}: there is no pass {part!r}{meant(part, parts)}")
    return off
