"""A user's own functions: filters, which keep a network or don't, and constraints, which narrow specifications."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from conrepair.ground.runtime.errors import ModelLoadError, UsageError
from conrepair_lab.generate.onnx_form import RefusedError
from conrepair_lab.generate.settings.ports import NotAllowedError, Support
from conrepair_lab.generate.settings.setting import Setting

if TYPE_CHECKING:
    from conrepair_lab.generate.generated import Generated

FILTER, CONSTRAINT, FINDING = "network", "setting", "finding"
"""Names of the parameter that a filter of networks has, a constraint, and a filter of findings."""


@dataclass(frozen=True)
class Function:
    """A function of a user: a filter or a constraint.

    Attributes:
        name: As it's told.
        kind: `FILTER`, `CONSTRAINT` or `FINDING`.
        call: The function.
    """

    name: str
    kind: str
    call: Callable[[Any], Any]

    def says(self, asked: Any) -> Any:
        """The function's result, or an error with its name and line.

        Raises:
            NotAllowedError: if it raises that.
            ModelLoadError: if it raises anything else.
        """
        try:
            return self.call(asked)
        except NotAllowedError:
            raise
        # A user's function may raise anything; it's reported, with its name.
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            raise ModelLoadError(
                f"{self.name} failed: {type(error).__name__}: {error} ({last.filename}, line {last.lineno})"
            ) from error


@dataclass(frozen=True)
class Functions:
    """All functions of a user."""

    every: Sequence[Function] = ()

    def narrowed(self, support: Support) -> Support:
        """A support that allows what the constraints do."""
        constraints = [item for item in self.every if item.kind == CONSTRAINT]
        return _Constrained(support, constraints) if constraints else support

    def keep(self, network: Generated) -> None:
        """Ask the filters whether to keep a network.

        Raises:
            RefusedError: if one doesn't keep the network.
        """
        for item in self.every:
            if item.kind == FILTER and not item.says(network):
                raise RefusedError(f"{item.name} doesn't keep it")

    def keeps(self, finding: Any) -> bool:
        """Whether the filters of findings keep a finding."""
        return all(item.says(finding) for item in self.every if item.kind == FINDING)


class _Constrained(Support):
    """What a runtime takes, as far as constraints allow it."""

    def __init__(self, support: Support, constraints: Sequence[Function]) -> None:
        self.within, self._constraints = support, constraints

    def allows(self, setting: Setting) -> bool:
        try:
            return super().allows(setting) and all(item.says(setting) in (True, None) for item in self._constraints)
        except NotAllowedError:
            return False


NONE = Functions()


def kind_by(name: str, parameters: Sequence[str]) -> str:
    """What a function is, by its parameter's name.

    Args:
        name: Of the function, as it's told.
        parameters: That it has.

    Raises:
        UsageError: if it's neither.
    """
    if len(parameters) == 1 and parameters[0] in (FILTER, CONSTRAINT, FINDING):
        return parameters[0]
    raise UsageError(
        f"{name}({', '.join(parameters)}): a filter has one parameter, `{FILTER}`; a constraint has one, "
        f"`{CONSTRAINT}`; a filter of findings, `{FINDING}`."
    )


def named(call: Callable[[Any], Any]) -> Function:
    """A function that's there as an object."""
    return Function(call.__name__, kind_by(call.__name__, list(inspect.signature(call).parameters)), call)
