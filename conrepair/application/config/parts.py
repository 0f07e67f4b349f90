"""Parts of a configuration that other packages bring: sections that ask for more than an audit, and engines."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import Field, create_model

from conrepair.application.config.strict import Strict
from conrepair.ground.runtime.plugins import Registry, imported

Kind = TypeVar("Kind", bound=Strict)


@dataclass(frozen=True)
class Part:
    """What a configuration may ask for besides an audit, under a key of its own.

    Attributes:
        config: The pydantic model of its section; `folder` is where it writes, in `output`.
        words: What it asks for, as a sentence.
        runs: "package.module:function", which is given the section, the whole, the folder that relative paths start
            from and `quiet`, and returns the exit code.
        checks: Another one, which is given the first three, and yields a line for each thing that a run would refuse;
            "" for none.
    """

    config: type[Strict]
    words: str
    runs: str
    checks: str = ""

    @property
    def run(self) -> Callable[..., int]:
        """What `runs` names."""
        found: Callable[..., int] = imported(self.runs)
        return found

    def problems(self, *asked: Any) -> list[str]:
        """What a run would refuse."""
        return list(imported(self.checks)(*asked)) if self.checks else []


PARTS: Registry[Part] = Registry("sections", {}, Part)
"""By their keys."""


class Engine(Strict):
    """Where jobs run that don't run here."""

    def check(self) -> None:
        """Refuse a cluster that `opened` would refuse, without connecting to it.

        Raises:
            UsageError: if it isn't installed, or may not be used.
        """

    def opened(self, *, quiet: bool) -> contextlib.AbstractContextManager[None]:
        """Run the jobs of a block there.

        Args:
            quiet: Whether nothing is told of it.

        Raises:
            UsageError: if it may not be used, or isn't installed.
            DeviceError: if it doesn't answer.
        """
        raise NotImplementedError


ENGINES: Registry[type[Engine]] = Registry("engines", {}, type)
"""By the keys of `engine`."""


def with_parts(kind: type[Kind], parts: Mapping[str, tuple[type[Strict], str]]) -> type[Kind]:
    """A configuration with more parts, none of which must be given.

    Args:
        kind: Without them.
        parts: By their keys, each with what it asks for, as a sentence.
    """
    fields: dict[str, Any] = {
        name: (part | None, Field(None, description=words)) for name, (part, words) in parts.items()
    }
    return create_model(kind.__name__, __base__=kind, __module__=kind.__module__, __doc__=kind.__doc__, **fields)
