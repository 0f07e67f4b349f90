"""Names of the imported model's tensors on Relax variables: passes keep variables' names, and nothing else.

No importer of TVM's keeps the names of nodes, and passes drop spans and attributes. What they do keep is the name of
the variable that a value is bound to; so each variable gets a name that occurs once, and stands for tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

MAIN = "main"
_PREFIX = "tensor_"


def named(module: Any, tensors: Mapping[str, Any]) -> tuple[Any, dict[str, tuple[str, ...]]]:
    """Name the variables of a module by what the importer made them for.

    Args:
        module: `tvm.IRModule` as an importer made it.
        tensors: The expression that the importer has for each tensor of the model.

    Returns:
        The module with other names; the tensors that each name stands for, in the model's order: several where an
        operator changes nothing (Identity).
    """
    bound: dict[int, Any] = {}
    for binding in bindings_of(module[MAIN]):
        bound[identity(binding.value)] = bound[identity(binding.var)] = binding.var
    found: dict[int, list[str]] = {}
    for name, expression in tensors.items():
        variable = bound.get(identity(expression))
        if variable is not None:
            found.setdefault(identity(variable), []).append(name)
    names = {key: f"{_PREFIX}{place}" for place, key in enumerate(found)}
    return renamed(module, names), {names[key]: tuple(items) for key, items in found.items()}


def bindings_of(function: Any) -> Iterator[Any]:
    """The bindings of a Relax function, in order; those inside branches are left out."""
    for block in function.body.blocks:
        yield from block.bindings


def identity(expression: Any) -> int:
    """The same number for the same object of TVM's, however often Python wraps it."""
    return hash(expression)


def renamed(module: Any, names: Mapping[int, str]) -> Any:
    """A module whose `main` calls variables otherwise.

    Args:
        module: `tvm.IRModule`.
        names: New ones, by the variables' `identity`.
    """
    if not names:
        return module
    from tvm import relax

    @relax.expr_functor.mutator
    class Renaming(relax.PyExprMutator):
        def visit_dataflow_var_def_(self, variable: Any) -> Any:
            return self._defined(variable, relax.DataflowVar)

        def visit_var_def_(self, variable: Any) -> Any:
            return self._defined(variable, relax.Var)

        def _defined(self, variable: Any, kind: Any) -> Any:
            name = names.get(identity(variable))
            if name is None:
                return variable
            made = kind(name, variable.ty)
            self.set_var_remap(variable, made)
            return made

    return with_main_by(Renaming(module), module)


def with_main_by(mutator: Any, module: Any) -> Any:
    """A module whose `main` is as a mutator of it makes it.

    Args:
        mutator: A `relax.PyExprMutator` of the module.
        module: `tvm.IRModule`.
    """
    for place, function in module.functions_items():
        if place.name_hint == MAIN:
            mutator.builder_.update_func(place, mutator.visit_expr(function))
    return mutator.builder_.get()
