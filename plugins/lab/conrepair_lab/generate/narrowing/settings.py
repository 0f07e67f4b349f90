"""Settings of one operator that a target is tested with: some of each element type, and some of all sorts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from conrepair_lab.generate.narrowing.table import Fact, facts_of
from conrepair_lab.generate.settings.domains import Domain
from conrepair_lab.generate.settings.drawing import Drawing, Fresh, chosen_dtype, drawn_settings
from conrepair_lab.generate.settings.ports import NotAllowedError, Operand, Port, Support
from conrepair_lab.generate.settings.schemas import dtypes_of
from conrepair_lab.generate.settings.setting import Setting
from conrepair_lab.generate.settings.tensors import TensorType, value_in
from conrepair_lab.generate.specifications.specification import spoken
from conrepair_lab.generate.support import type_variables

FEWEST = 20
"""Settings of each operator, at least."""

_EACH = 3
"""Of each element type of each type variable."""

_DRAWN = 60
_MOST = 256
_LOOSE = 0.2


class _OfType(Support):
    """One type variable of one operator is said in advance."""

    def __init__(self, op: str, variable: str, dtype: str, support: Support) -> None:
        self._op, self._variable, self._dtype, self._support = op, variable, dtype, support

    def choices(self, op: str, bound: Mapping[str, str], variable: str, dtypes: tuple[str, ...]) -> tuple[str, ...]:
        left = self._support.choices(op, bound, variable, dtypes)
        said = (op, variable) == (self._op, self._variable)
        return tuple(dtype for dtype in left if dtype == self._dtype) if said else left


def settings_of(op: str, opset: int, support: Support) -> Iterator[Setting]:
    """Settings of an operator, always the same ones.

    Args:
        op: The operator.
        opset: Of the standard's operators.
        support: Within which they are.
    """
    random, count = Random(op), 0
    for variable in type_variables(op, opset):
        for dtype in dtypes_of(op, opset, variable):
            for _ in range(_EACH):
                narrower = _OfType(op, variable, dtype, support)
                setting = next(drawn_settings(op, opset, random, narrower, _MOST, _DRAWN), None)
                if setting is None:
                    break
                count += 1
                yield setting
    for _ in range(FEWEST - count):
        setting = next(drawn_settings(op, opset, random, support, _MOST, _DRAWN), None)
        if setting is not None:
            yield setting


@dataclass(kw_only=True)
class _Like(Drawing):
    """A setting that is as another one, where it may be.

    Attributes:
        other: The other one.
        free: Name of the attribute, or of the input of constants, that's drawn nonetheless; of what may be left out.
        dtypes: By type variable, in place of the other's.
        ranks: By input, in place of the other's.
        loose: How likely anything else is drawn, too: some facts are there only together.
    """

    other: Setting
    free: str = ""
    dtypes: Mapping[str, str] = field(default_factory=dict)
    ranks: Mapping[str, int] = field(default_factory=dict)
    loose: float = 0.0

    def _new(self, name: str) -> bool:
        return name == self.free or (self.loose > 0 and self.random.random() < self.loose)

    def _has(self, name: str) -> bool:
        if self._new(name):
            return super()._has(name)
        for formals, known in (self.schema.inputs, self.other.inputs), (self.schema.outputs, self.other.outputs):
            place = next((place for place, formal in enumerate(formals) if formal.name == name), len(formals))
            if place < len(formals):
                return place < len(known) and known[place] is not None
        return name in self.other.attributes

    def _taken(self, port: Port) -> Operand:
        formal = self._formal_input(port.name or None)
        place = self._place(formal)
        there = self.other.inputs[place] if place < len(self.other.inputs) else None
        wanted = self.ranks.get(port.name)
        dtype = self.dtypes.get(formal.type_str, there.type.dtype if there is not None else "")
        dtypes = (dtype,) if dtype in port.dtypes else port.dtypes
        if there is not None and there.array is None and wanted is None and port.pattern.allows(there.type.shape):
            return Operand(TensorType(chosen_dtype(dtypes, self.random), there.type.shape), port=port)
        found = super()._taken(replace(port, dtypes=dtypes))
        self.require(wanted in (None, found.type.rank), "another rank")
        return found

    def _value(self, name: str, domain: Domain) -> Any:
        value = self.other.attributes.get(name)
        if value is None or self._new(name) or not domain.allows(value):
            return super()._value(name, domain)
        self.attributes[name] = value
        return value

    def _constant(self, name: str, domain: Domain, dtypes: tuple[str, ...]) -> Any:
        formal = self._formal_input(name)
        place = self._place(formal)
        there = self.other.inputs[place] if place < len(self.other.inputs) else None
        if there is None or there.array is None or self._new(name) or not domain.allows(value_in(there.array)):
            return super()._constant(name, domain, dtypes)
        self._put(formal, there)
        return value_in(there.array)


def changed(taken: Setting, fact: Fact, support: Support) -> Setting | None:
    """A setting as one that was taken, but for one fact, and what is there only with it; None if none is found.

    Args:
        taken: That one.
        fact: Field of `Facts`, the name there, and the value: what's to be new.
        support: Within which it is.
    """
    kind, name, value = fact
    random, before = Random(f"{taken.op}/{name}/{value}"), set(facts_of(taken))
    forced: dict[str, Any] = (
        {"free": name} if kind == "values" else {"dtypes" if kind == "types" else kind: {name: value}}
    )
    best: tuple[int, Setting | None] = (_MOST, None)
    for loose in (0.0, _LOOSE):
        for _ in range(_DRAWN if best[1] is None else 0):
            setting = _Like(
                op=taken.op,
                opset=taken.opset,
                random=random,
                support=support,
                source=Fresh(_MOST),
                most=_MOST,
                other=taken,
                loose=loose,
                **forced,
            )
            with suppress(NotAllowedError):
                spoken(setting)
                found = set(facts_of(setting))
                apart = len(found - before)
                if fact in found and (apart == 1 or kind != "types"):
                    best = min(best, (apart, setting), key=lambda item: item[0])
    return best[1]
