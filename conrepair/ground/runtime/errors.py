"""The errors a user can cause, each with its exit code.

Every message says what happened, where, why, and what to do about it. The command line prints the
message alone; a traceback is for our own mistakes.
"""

from __future__ import annotations

import enum


class ExitCode(enum.IntEnum):
    """What the process returns (documented in README.md)."""

    EQUIVALENT = 0
    DIFFERENT = 1
    USAGE = 2
    MODEL_LOAD = 3
    EXECUTION = 4
    INTERRUPTED = 130


def known_code(value: int) -> ExitCode:
    """An exit code that another process, or a file, names; where there's no such one, that of a failure."""
    return ExitCode(value) if value in {*ExitCode} else ExitCode.EXECUTION


class ConrepairError(Exception):
    """Base of the errors that are reported without a traceback."""

    exit_code: ExitCode = ExitCode.EXECUTION


class UsageError(ConrepairError):
    """The command line or an argument is wrong."""

    exit_code = ExitCode.USAGE


class ConfigError(UsageError):
    """The configuration is wrong; the message names the JSON path."""


class DataError(UsageError):
    """A dataset is missing, empty, unreadable, or doesn't fit the model."""


class DeviceError(UsageError):
    """A device that a model shall run on isn't there."""


class MissingLibraryError(UsageError):
    """A library that isn't part of every installation is needed and not installed."""


class FetchError(UsageError):
    """A packaged model or data set could not be fetched or has the wrong hash."""


class ModelLoadError(ConrepairError):
    """A model file is missing, damaged, or of a format that can't be read."""

    exit_code = ExitCode.MODEL_LOAD


class ConversionError(ConrepairError):
    """A converter refused or failed, or there is no route."""


class SourceChangedError(ConversionError):
    """A file changed while it was read, so what was made from it is not what its hash says."""


class ToolError(ConversionError):
    """A tool in a process of its own raised something.

    Attributes:
        error: The exception's type.
        words: Its message.
        place: File and function that raised it.
    """

    def __init__(self, message: str, error: str = "", words: str = "", place: str = "") -> None:
        super().__init__(message)
        self.error, self.words, self.place = error, words, place


class ToolCrashError(ConversionError):
    """The process that a tool ran in died; unlike a refusal, that needn't happen again.

    Attributes:
        signal: The name of what it died of, or "exit".
    """

    def __init__(self, message: str, signal: str = "") -> None:
        super().__init__(message)
        self.signal = signal


class ToolEnvironmentError(UsageError):
    """The environment that a converter's tool needs could not be made, or isn't there."""


class InferenceError(ConrepairError):
    """A model loaded, but running it failed."""


class StorageError(ConrepairError):
    """A result could not be written (no space left, read-only folder)."""
