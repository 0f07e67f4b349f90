"""The rules by which operators are imported."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from conrepair.ground.onnx_graphs.defaults import operator_called

if TYPE_CHECKING:
    from conrepair_onnx_keras.importer.node import ImportedNode

Function: TypeAlias = "Callable[[ImportedNode], Any]"


@dataclass(frozen=True)
class ImportRule:
    """How one operator is imported.

    Attributes:
        operator: ONNX's name.
        domain: Of the operator; "" is ONNX's own.
        family: File that holds the rule.
        function: Gets the node; returns its output, or a list of its outputs.
        constant: Names of inputs that must be known when the model is imported.
        ignores: Attributes that don't change the answer; any other that the rule doesn't look at must be at its
            default, so that what a newer opset adds isn't passed over.
        refuses: What the rule doesn't do, for the documentation.
    """

    operator: str
    domain: str
    family: str
    function: Function
    constant: Sequence[str] = ()
    ignores: Sequence[str] = ()
    refuses: str = ""


_RULES: dict[tuple[str, str], ImportRule] = {}


def operator(
    *names: str, domain: str = "", constant: Sequence[str] = (), ignores: Sequence[str] = (), refuses: str = ""
) -> Callable[[Function], Function]:
    """Register a function as the rule of operators, of that which it's called like if none is named.

    See `ImportRule`.
    """

    def register(function: Function) -> Function:
        family = function.__module__.rpartition(".")[2]
        for name in names or [operator_called(function.__name__)]:
            _RULES[domain, name] = ImportRule(name, domain, family, function, constant, ignores, refuses)
        return function

    return register


@cache
def rules() -> dict[tuple[str, str], ImportRule]:
    """All rules by domain and operator."""
    package = importlib.import_module("conrepair_onnx_keras.importer.operators")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return _RULES
