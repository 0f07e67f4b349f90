"""Sections that ask for what a verb does: their keys are the verb's options, which say all of themselves."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar, get_origin

from pydantic import Field, create_model, model_validator

from conrepair.application.config.strict import AnyPath, Bool, Float, Int, OutputPath, Seconds, Strict
from conrepair.application.verbs.option import (
    COUNT,
    DATA,
    FILE,
    NUMBER,
    OR_NONE,
    SECONDS,
    SEED,
    SHARE,
    SWITCH,
    Options,
    Value,
)
from conrepair.ground.intake import arguments
from conrepair.ground.runtime.bounds import MOST_SEED
from conrepair.ground.runtime.errors import UsageError

Asked = TypeVar("Asked", bound=Options)
Kind = TypeVar("Kind", bound="Section")

_MOST = 1_000_000
_LIMITS = "limits."  # of a run, which are another part of a configuration
_PATHS = frozenset({"accuracy", "data", "functions", "grown_from", "known", "learn", "models"})
Share = Annotated[Float, Field(ge=0, le=1)]
_KINDS: Mapping[Value, Any] = MappingProxyType(
    {
        SWITCH: Bool,
        COUNT: Annotated[Int, Field(ge=1, le=_MOST)],
        OR_NONE: Annotated[Int, Field(ge=0, le=_MOST)],
        SEED: Annotated[Int, Field(ge=0, le=MOST_SEED)],
        NUMBER: Float,
        SHARE: Share,
        SECONDS: Annotated[Seconds, Field(gt=0)],
        FILE: AnyPath,
        DATA: AnyPath,
    }
)


class Section(Strict):
    """Options of a verb by their names in Python, and the folder of what it writes.

    Attributes:
        verb: Whose options they are.
        each: Options that the verb gets for each of several models.
        kinds: Types in JSON of options that only this verb has.
        no_paths: What may stand where a path is expected, and is none.
    """

    verb: ClassVar[type[Options]]
    each: ClassVar[tuple[str, ...]] = ()
    kinds: ClassVar[Mapping[Value, Any]] = MappingProxyType({})
    no_paths: ClassVar[frozenset[str]] = frozenset()

    folder: OutputPath

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """One of the options."""

    @model_validator(mode="after")
    def _meant_together(self) -> Section:
        try:
            self.verb(**self._told, **dict.fromkeys(self.each))
        except UsageError as error:
            raise ValueError(str(error)) from error
        return self

    @property
    def _told(self) -> dict[str, Any]:
        options = {item.name for item in dataclasses.fields(self.verb)}
        return {name: value for name, value in self.model_dump().items() if name in options}

    def asked(self, verb: type[Asked], base: Path, **more: Any) -> Asked:
        """What the verb is asked for.

        Args:
            verb: This section's.
            base: Folder that relative paths start from.
            **more: Other options.

        Raises:
            UsageError: for options that can't be meant together.
        """
        paths = {name: self._placed(value, base) for name, value in self._told.items() if name in _PATHS}
        return verb(**(self._told | paths | more))

    def _placed(self, value: Any, base: Path) -> Any:
        """A path below a folder, or several; nothing, and what's no path, as it is."""
        if isinstance(value, tuple):
            return tuple(self._placed(item, base) for item in value)
        return value if value is None or value in self.no_paths else str(base / value)


def of_options(*without: str) -> Callable[[type[Kind]], type[Kind]]:
    """Give a section the options of its verb that it doesn't declare itself.

    Args:
        *without: Those that a configuration doesn't have.
    """

    def made(kind: type[Kind]) -> type[Kind]:
        fields = {
            name: _field(kind, about.value, default, kind.verb.meaning(name, flags=False))
            for name, about, default in kind.verb.declared()
            if name not in {*without, *kind.model_fields} and not about.key.startswith(_LIMITS)
        }
        named: dict[str, Any] = {"__module__": kind.__module__, "__doc__": kind.__doc__, **fields}
        return create_model(kind.__name__, __base__=kind, **named)

    return made


def _field(section: type[Section], value: Value, default: Any, words: str) -> Any:
    kind = section.kinds.get(value) or _kind(value)
    if get_origin(kind) is dict:
        return kind, Field(default_factory=dict, description=words)
    return (kind | None if default is None else kind), Field(default, description=words)


def _kind(value: Value) -> Any:
    """The type of an option in JSON."""
    if value in _KINDS:
        return _KINDS[value]
    if value.choices:
        return Literal[value.choices]
    if value.checked is arguments.FILES:
        return tuple[AnyPath, ...]
    return tuple[str, ...] if value.many else str
