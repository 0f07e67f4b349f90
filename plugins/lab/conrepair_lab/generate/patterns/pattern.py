"""All patterns, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from conrepair_lab.generate.patterns.language import written
from conrepair_lab.generate.specifications.specification import registered
from conrepair_lab.generate.weaving import Body


@dataclass(frozen=True)
class Pattern:
    """Some nodes that belong together.

    Attributes:
        name: As configurations and results have it.
        aims: What it sets off: the optimizations' own names behind the runtime's ("onnxruntime:MatMulAddFusion").
        body: Puts it into a network; NotAllowedError where it doesn't fit.
    """

    name: str
    aims: tuple[str, ...]
    body: Body


class Registry:
    """Patterns of a package, each registered by one of its modules."""

    def __init__(self) -> None:
        self.known: dict[str, Pattern] = {}

    def add(self, name: str, *aims: str) -> Callable[[Body], Body]:
        """Register a function as a pattern.

        Args:
            name: In a few words.
            aims: What it sets off, as `Pattern.aims`; nothing for units of usual networks.
        """

        def put(body: Body) -> Body:
            self.known[name] = Pattern(name, aims, body)
            return body

        return put

    def add_written(self, text: str) -> None:
        """Register patterns that are equations, with their aims behind their names.

        Args:
            text: See `conrepair_lab.generate.patterns.language`.
        """
        for name, aims, body in written(text):
            self.add(name, *aims)(body)


_PATTERNS = Registry()
pattern, written_patterns = _PATTERNS.add, _PATTERNS.add_written


@cache
def patterns() -> Mapping[str, Pattern]:
    """All patterns, in alphabetical order."""
    return registered("conrepair_lab.generate.patterns", _PATTERNS.known)
