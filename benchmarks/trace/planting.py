"""Passes of TVM made faulty on purpose: what one writes is damaged, by a pass of its own or as a part of it."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from unittest import mock

from conrepair.formats.tvm import build
from conrepair.formats.tvm.naming import MAIN, bindings_of
from conrepair.formats.tvm.passes_run import MANDATORY
from conrepair.formats.tvm.settings import BuildContext, PlacedPass, steps_of

__all__ = ["MARK", "SORTS", "Place", "Plant", "planted", "surveyed"]

Module = Any

CONSTANT, DROPPED, MARK = "wrong constant", "operand dropped", "only sets the stage"
_ERROR = 1e-2
_PREFIX = "tensor_"  # of variables that keep their names, whatever else is left out (`conrepair.formats.tvm.naming`)
_LAST = "RemovePurityChecking"  # behind it there are no calls with results any more


def _topi() -> Any:
    from tvm import topi

    return topi


SORTS: dict[str, Callable[[Any], Any]] = {
    "scaled": lambda x: _topi().multiply(x, 1 + _ERROR),
    "shifted": lambda x: _topi().add(x, _ERROR),
    "half precision": lambda x: _topi().cast(_topi().cast(x, "float16"), "float32"),
    "reversed": lambda x: _topi().flip(x, axis=len(x.shape) - 1),
    "bounded": lambda x: _topi().clip(x, -0.5, 0.5),
    "sign lost": lambda x: _topi().abs(x),
    CONSTANT: lambda x: _topi().multiply(x, 1 + _ERROR),
    DROPPED: lambda x: _topi().identity(x),
}
"""What becomes of a result; of a call's constants; or what's taken in place of the result."""


@dataclass(frozen=True)
class Place:
    """Where a fault may lie.

    Attributes:
        step: Of the pipeline.
        applied: The application of that: "FuseOps#0".
        site: A variable of `main` behind it.
        sorts: Of `SORTS` that the call there allows.
    """

    step: str
    applied: str
    site: str
    sorts: tuple[str, ...]


@dataclass(frozen=True)
class Plant:
    """A fault.

    Attributes:
        place: Where.
        sort: Which, of `SORTS`; `MARK` does no harm.
        own: Number of a pass of its own behind the step; None: it's a part of the step.
        only_after: The plant without which it does no harm.
    """

    place: Place
    sort: str
    own: int | None = None
    only_after: Plant | None = None

    @property
    def application(self) -> str:
        """What to leave out."""
        return self.place.applied if self.own is None else f"Planted{self.own}#0"


@dataclass(frozen=True)
class _Otherwise(PlacedPass):
    """A step of the pipeline that is built in another way."""

    built: Callable[[BuildContext], Any] = lambda _: None

    @classmethod
    def than(cls, step: PlacedPass, built: Callable[[BuildContext], Any], name: str = "") -> PlacedPass:
        """One in a step's place."""
        known = {item.name: getattr(step, item.name) for item in dataclasses.fields(PlacedPass)}
        return cls(**known | {"name": name or step.name}, built=built)

    def build(self, place: BuildContext) -> Any:
        return self.built(place)


@contextlib.contextmanager
def surveyed() -> Iterator[list[Place]]:
    """Builds tell where faults may lie."""
    found: list[Place] = []

    def told(step: PlacedPass, _: set[Plant]) -> list[PlacedPass]:
        def make(place: BuildContext) -> Callable[[Module], Module]:
            one = step.build(place)

            def apply(module: Module) -> Module:
                made = one(module)
                if one.info.name not in MANDATORY:
                    found.extend(_places(step.name, f"{one.info.name}#0", made))
                return made

            return apply

        return [_Otherwise.than(step, make)]

    with _steps(told):
        yield found


@contextlib.contextmanager
def planted(plants: Sequence[Plant]) -> Iterator[None]:
    """Builds have faults."""

    def changed(step: PlacedPass, ran: set[Plant]) -> list[PlacedPass]:
        made = [step]
        for plant in (item for item in plants if item.place.step == step.name):
            if plant.own is None:
                made[0] = _Otherwise.than(step, _as_part(made[0], plant, ran))
            else:
                name = f"Planted{plant.own}"
                made.append(_Otherwise.than(step, _alone(name, plant, ran), name))
        return made

    with _steps(changed):
        yield


def _steps(changed: Callable[[PlacedPass, set[Plant]], list[PlacedPass]]) -> Any:
    """The pipeline's steps otherwise; each build begins with an empty set of plants that ran."""

    def steps(*asked: Any) -> list[PlacedPass]:
        ran: set[Plant] = set()
        known = steps_of(*asked)
        last = next(place for place, step in enumerate(known) if step.name == _LAST)
        return [item for step in known[: last + 1] for item in changed(step, ran)] + known[last + 1 :]

    return mock.patch.object(build, "steps_of", steps)


def _as_part(step: PlacedPass, plant: Plant, ran: set[Plant]) -> Callable[[BuildContext], Any]:
    def make(place: BuildContext) -> Any:
        one = step.build(place)
        return _pass(one.info.name, lambda module: _damaged(one(module), plant, ran))

    return make


def _alone(name: str, plant: Plant, ran: set[Plant]) -> Callable[[BuildContext], Any]:
    return lambda _: _pass(name, lambda module: _damaged(module, plant, ran))


def _pass(name: str, function: Callable[[Module], Module]) -> Any:
    import tvm

    return tvm.transform.module_pass(lambda module, _: function(module), opt_level=0, name=name)


def _places(step: str, applied: str, module: Module) -> Iterator[Place]:
    from tvm import ir, relax

    for binding in bindings_of(module[MAIN]):
        made, call = binding.var.ty, binding.value
        if not (binding.var.name.startswith(_PREFIX) and isinstance(call, relax.Call) and _real(made)):
            continue
        given = _operands(call)
        sorts = [sort for sort in SORTS if sort not in {CONSTANT, DROPPED}]
        sorts += [CONSTANT] if any(isinstance(item, ir.Constant) and _real(item.ty) for item in given) else []
        sorts += [DROPPED] if _like(given, made) else []
        yield Place(step, applied, binding.var.name, tuple(sorts))


def _operands(call: Any) -> list[Any]:
    from tvm import relax

    return [item for part in call.args for item in (part.fields if isinstance(part, relax.Tuple) else [part])]


def _real(made: Any) -> bool:
    sizes = getattr(getattr(made, "shape", None), "values", None)
    return bool(sizes) and str(made.dtype) == "float32"


def _like(given: Sequence[Any], made: Any) -> list[Any]:
    from tvm import relax

    return [item for item in given if isinstance(item, relax.Var) and str(item.ty) == str(made)]


def _damaged(module: Module, plant: Plant, ran: set[Plant]) -> Module:
    """The module with the fault in it."""
    ran.add(plant)
    if plant.sort == MARK or (plant.only_after is not None and plant.only_after not in ran):
        return module
    from tvm import relax

    @relax.expr_functor.mutator
    class Damaging(relax.PyExprMutator):
        there = inside = False

        def visit_var_binding_(self, binding: Any) -> None:
            self.there = binding.var.name == plant.place.site
            super().visit_var_binding_(binding)

        def visit_call_(self, call: Any) -> Any:
            there, self.there = self.there, False
            self.inside = there and plant.sort == CONSTANT
            made = super().visit_call_(call)
            self.inside = False
            if not there or plant.sort == CONSTANT:
                return made
            read = _like(_operands(made), call.ty)[0] if plant.sort == DROPPED else self.builder_.emit(made)
            return self._changed(read)

        def visit_generic_const_(self, constant: Any) -> Any:
            return self.builder_.emit(self._changed(constant)) if self.inside and _real(constant.ty) else constant

        def _changed(self, value: Any) -> Any:
            return self.builder_.call_te(SORTS[plant.sort], value, primfunc_name_hint="planted")

    damaging = Damaging(module)
    for place, function in module.functions_items():
        if place.name_hint == MAIN:
            damaging.builder_.update_func(place, damaging.visit_expr(function))
    return damaging.builder_.get()
