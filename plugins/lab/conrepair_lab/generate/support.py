"""Which element types a runtime takes for an operator, found by running one-operator models."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from random import Random

import onnx

from conrepair_lab.generate.graph import Draft
from conrepair_lab.generate.onnx_form import model_of
from conrepair_lab.generate.settings.drawing import drawn_settings
from conrepair_lab.generate.settings.ports import Support
from conrepair_lab.generate.settings.schemas import dtypes_of, schema_of

Accepts = Callable[[onnx.ModelProto, Draft], bool]
"""Whether a runtime takes a model and computes it."""

_TRIES = 8
_REFUSED = 1
"""Of that many tries: more are for the types' sake, and not for that of something else in a setting."""
_SEED, _MOST, _DRAWN = 20, 256, 100


class _Forced(Support):
    """Element types of one operator that are said in advance; those of operators inside of it are probed."""

    def __init__(self, op: str, forced: Mapping[str, str], others: Support) -> None:
        self._op, self._forced, self._others = op, forced, others

    def choices(self, op: str, bound: Mapping[str, str], variable: str, dtypes: tuple[str, ...]) -> tuple[str, ...]:
        if op != self._op:
            return self._others.choices(op, bound, variable, dtypes)
        wanted = self._forced.get(variable)
        return dtypes if wanted is None else tuple(dtype for dtype in dtypes if dtype == wanted)


class Probed(Support):
    """The element types with which a runtime takes operators; asked when an operator is first drawn.

    Args:
        opset: Of the models that it's asked with.
        accepts: The runtime.
        known: What was found before, by operator: allowed combinations of element types by type variable.
    """

    def __init__(self, opset: int, accepts: Accepts, known: Mapping[str, list[dict[str, str]]] | None = None) -> None:
        self._opset, self._accepts = opset, accepts
        self.found: dict[str, list[dict[str, str]]] = dict(known or {})
        self._asked: dict[tuple[str, tuple[tuple[str, str], ...], str], set[str | None]] = {}

    def choices(self, op: str, bound: Mapping[str, str], variable: str, dtypes: tuple[str, ...]) -> tuple[str, ...]:
        self.ask(op)
        taken = self._taken(op, tuple(bound.items()), variable)
        return dtypes if None in taken else tuple(dtype for dtype in dtypes if dtype in taken)

    def ask(self, op: str) -> None:
        """Find out about an operator, where that isn't done yet."""
        if op not in self.found:
            self.found[op] = self._probed(op)

    def _taken(self, op: str, bound: tuple[tuple[str, str], ...], variable: str) -> set[str | None]:
        key = (op, bound, variable)
        if key not in self._asked:
            fitting = (
                combination
                for combination in self.found[op]
                if all(combination.get(name, dtype) == dtype for name, dtype in bound)
            )
            self._asked[key] = {combination.get(variable) for combination in fitting}
        return self._asked[key]

    def _probed(self, op: str) -> list[dict[str, str]]:
        variables = type_variables(op, self._opset)
        combinations = itertools.product(*(dtypes_of(op, self._opset, name) for name in variables))
        named = (dict(zip(variables, combination, strict=True)) for combination in combinations)
        return [combination for combination in named if self._takes(op, combination)]

    def _takes(self, op: str, combination: Mapping[str, str]) -> bool:
        random = Random(_SEED)
        tries = refused = 0
        for setting in drawn_settings(op, self._opset, random, _Forced(op, combination, self), _MOST, _DRAWN):
            draft = Draft(self._opset)
            draft.add(setting)
            tries += 1
            refused += not self._accepts(model_of(draft, {}), draft)
            if refused > _REFUSED or tries == _TRIES:
                break
        return refused <= _REFUSED and refused < tries


def type_variables(op: str, opset: int) -> list[str]:
    """The type variables that an operator's inputs and outputs have."""
    schema = schema_of(op, opset)
    named = {constraint.type_param_str for constraint in schema.type_constraints}
    used = [formal.type_str for formal in (*schema.inputs, *schema.outputs)]
    return [name for name in dict.fromkeys(used) if name in named and dtypes_of(op, opset, name)]
