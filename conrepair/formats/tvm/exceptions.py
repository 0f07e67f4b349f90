"""Operators that a pass leaves alone, where all others are treated as ever."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from conrepair.formats.tvm.calls import Calls
from conrepair.formats.tvm.following import Following
from conrepair.formats.tvm.naming import MAIN, bindings_of, identity, with_main_by

_OPAQUE = 8  # relax's kOpaque: never fused with anything
_SCHEDULES = ("ApplyTuned", "ScheduleCPU")


def with_exceptions(step: str, module: Any, apart: Mapping[str, Collection[str]], following: Following) -> Any:
    """Prepare a module for a pass so that it leaves some operators alone.

    A kernel may be called for several operators; the one that is left alone gets a copy of its own.

    Args:
        step: Name of the pass that comes next.
        module: `tvm.IRModule`.
        apart: Names of operators, by what is not to happen to them: "unfused", "unscheduled".
        following: Says which operators a kernel stands for.

    Returns:
        The module; the same for passes that know no exceptions.
    """
    if step == "FuseOps" and apart["unfused"]:
        return _marked(module, set(apart["unfused"]), {"op_pattern": _OPAQUE}, following.calls(module))
    if step in _SCHEDULES and apart["unscheduled"]:
        return _marked(module, set(apart["unscheduled"]), {"tirx.is_scheduled": True}, following.calls(module))
    return module


def _marked(module: Any, wanted: Collection[str], attributes: Mapping[str, Any], calls: Calls | None) -> Any:
    from tvm import relax

    functions = {place.name_hint: function for place, function in module.functions_items()}
    made = [binding.value for binding in bindings_of(module[MAIN]) if _is_kernel(binding.value)]
    kernels = [] if calls is None else [call for call in calls.calls if not call.view]
    chosen = {
        identity(expression)
        for expression, call in zip(made, kernels, strict=True)
        if not set(wanted).isdisjoint(call.members) and getattr(expression.args[0], "name_hint", None) in functions
    }

    @relax.expr_functor.mutator
    class Marking(relax.PyExprMutator):
        def visit_call_(self, call: Any) -> Any:
            if identity(call) not in chosen:
                return super().visit_call_(call)
            name = call.args[0].name_hint
            function = functions[name]
            for key, value in attributes.items():
                function = function.with_attr(key, value)
            own = self.builder_.add_func(function, f"{name}_apart")
            return relax.Call(call.op, [own, *map(self.visit_expr, call.args[1:])], call.attrs, call.ty_args)

    replaced = {item.args[0].name_hint for item in made if identity(item) in chosen}
    return _without_unused(with_main_by(Marking(module), module), replaced)


def _without_unused(module: Any, replaced: Collection[str]) -> Any:
    """Without the kernels that were replaced in all places, which would be compiled for nobody."""
    from tvm import IRModule

    kernels = [binding.value for binding in bindings_of(module[MAIN]) if _is_kernel(binding.value)]
    used = {getattr(kernel.args[0], "name_hint", None) for kernel in kernels}
    left = {
        place: function
        for place, function in module.functions_items()
        if place.name_hint not in replaced or place.name_hint in used
    }
    return IRModule(left, attrs=module.attrs)


def _is_kernel(expression: Any) -> bool:
    from tvm import relax

    names = {"relax.call_tir", "relax.call_dps_packed"}
    return isinstance(expression, relax.Call) and getattr(expression.op, "name", "") in names
