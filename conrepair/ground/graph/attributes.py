"""An operator's attributes, read as what they are."""

from __future__ import annotations

from collections.abc import Mapping

from conrepair.ground.operators.record import Attribute


class Attributed:
    """What has attributes: a node of a network, an operation of an edit.

    Each accessor takes a default for an attribute that is missing or None. Without one such an attribute, and any of
    another type than the vocabulary's, is a TypeError.
    """

    attributes: Mapping[str, Attribute]

    def integer(self, name: str, default: int | None = None) -> int:
        """An axis, a count, a size."""
        return as_integer(self._value(name, default))

    def real(self, name: str, default: float | None = None) -> float:
        """A slope, an epsilon, a bound."""
        return as_real(self._value(name, default))

    def text(self, name: str, default: str | None = None) -> str:
        """A mode, a type."""
        return as_text(self._value(name, default))

    def _value(self, name: str, default: Attribute) -> Attribute:
        value = self.attributes.get(name)
        return default if value is None else value


def as_integer(value: Attribute) -> int:
    """An attribute's value that is an integer; files with numbers of one type have 1.0 for it.

    Raises:
        TypeError: if it's something else.
    """
    if as_real(value).is_integer():
        return int(as_real(value))
    raise TypeError(f"{value!r} is no integer")


def as_real(value: Attribute) -> float:
    """An attribute's value that is a number.

    Raises:
        TypeError: if it's something else.
    """
    if value is None or isinstance(value, str | tuple):
        raise TypeError(f"{value!r} is no number")
    return float(value)


def as_text(value: Attribute) -> str:
    """An attribute's value that is a text.

    Raises:
        TypeError: if it's something else.
    """
    if isinstance(value, str):
        return value
    raise TypeError(f"{value!r} is no text")
