"""All specifications, by operator; and packages of which each module registers what it has, as those of forms do."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TypeVar

import onnx

from conrepair.ground.onnx_graphs.defaults import operator_called
from conrepair_lab.generate.settings.setting import Setting

Body = Callable[[Setting], None]
Entry = TypeVar("Entry")
_Spoken = TypeVar("_Spoken", bound=Setting)


@dataclass(frozen=True)
class Specification:
    """What an operator takes and makes.

    Attributes:
        op: Its name in ONNX's schemas.
        body: Speaks of a setting's inputs, attributes and outputs, in the order in which one depends on others.
        family: The module that has it.
        least_opset: Of the standard's operators, from which on it's so.
        still: Whether what it makes of finite values doesn't depend on them.
    """

    op: str
    body: Body
    family: str
    least_opset: int
    still: bool


_ALL: dict[str, Specification] = {}
_OPSETS = range(17, onnx.defs.onnx_opset_version() + 1)


def operator(*names: str, least_opset: int = 0, still: bool = False) -> Callable[[Body], Body]:
    """Register a specification for operators.

    Args:
        names: In ONNX's schemas; none for the one that the function is called like.
        least_opset: From which on it's so, where that isn't the one that ONNX has it from.
        still: Whether what they make of finite values doesn't depend on them.
    """

    def put(body: Body) -> Body:
        family = body.__module__.rpartition(".")[2]
        for name in names or [operator_called(body.__name__)]:
            first = next((opset for opset in _OPSETS if onnx.defs.has(name, opset)), _OPSETS[0])
            _ALL[name] = Specification(name, body, family, least_opset or first, still)
        return body

    return put


@cache
def specifications() -> Mapping[str, Specification]:
    """All of them, by operator, in the order of the alphabet."""
    return registered("conrepair_lab.generate.specifications", _ALL)


def spoken(setting: _Spoken) -> _Spoken:
    """A setting of which its operator's specification has spoken: all of it is known.

    Args:
        setting: New.

    Raises:
        NotAllowedError: if the specification forbids it.
    """
    specifications()[setting.op].body(setting)
    return setting


def registered(package: str, entries: dict[str, Entry]) -> Mapping[str, Entry]:
    """Import all modules of a package, so that they register their entries.

    Args:
        package: Its name.
        entries: Where they register them.

    Returns:
        The entries, in the order of the alphabet.
    """
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        importlib.import_module(f"{package}.{module.name}")
    return MappingProxyType(dict(sorted(entries.items())))
