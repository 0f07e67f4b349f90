"""Which values of a module that is being optimized are tensors of the imported model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from conrepair.formats.tvm.calls import Calls, calls_of
from conrepair.formats.tvm.imported import Imported
from conrepair.formats.tvm.naming import MAIN, bindings_of, identity, renamed


class Following:
    """Follows names through passes.

    Most passes keep the name of a variable whose value they write otherwise. Two things lose it: a variable that is
    another one's second name, which is removed, and fusion, after which the values lie in functions of their own.

    Attributes:
        tensors: The tensors that each variable's name stands for.
    """

    def __init__(self, imported: Imported) -> None:
        self.tensors = dict(imported.names)
        self._imported = imported

    def calls(self, module: Any) -> Calls | None:
        """What a module calls; see `calls_of`."""
        inputs = [spec.name for spec in self._imported.inputs]
        return calls_of(module, inputs, self.tensors, self._imported.operators)

    def after(self, step: str, before: Any, module: Any) -> Any:
        """Carry names over a pass.

        Args:
            step: Name of the pass.
            before: The module that it got.
            module: What it made.

        Returns:
            The module, with names where they had been lost.
        """
        if step == "FuseOps":
            module = self._across_fusion(before, module)
        return self._to_the_first_name(module)

    def _to_the_first_name(self, module: Any) -> Any:
        """Give a variable's name to the one that it only repeats."""
        repeated: dict[int, Any] = {}
        tuples: dict[int, list[Any]] = {}
        names: dict[int, str] = {}
        for variable, value in _bound(module):
            first = _repeated(value, tuples)
            if isinstance(first, list):
                tuples[identity(variable)] = first
                continue
            if first is None:
                continue
            first = repeated.get(identity(first), first)
            repeated[identity(variable)] = first
            if variable.name not in self.tensors:
                continue
            known = names.get(identity(first), first.name)
            if known in self.tensors:
                held = self.tensors[known]
                self.tensors[known] = (*held, *(name for name in self.tensors[variable.name] if name not in held))
            else:
                names[identity(first)] = variable.name
                names[identity(variable)] = f"{variable.name}_again"
        return renamed(module, names)

    def _across_fusion(self, before: Any, module: Any) -> Any:
        """Fused functions hold what was in `main`: the same computations of the same values have the same names."""
        numbering = _Numbering()
        known: dict[int, list[str]] = {}
        for variable, number in numbering.of(before):
            if variable.name in self.tensors and isinstance(number, int):
                known.setdefault(number, []).append(variable.name)
        for first, *others in known.values():  # equal computations of equal values
            for other in others:
                self.tensors[first] = (*self.tensors[first], *self.tensors.pop(other))
        names = {
            identity(variable): known[number][0]
            for variable, number in numbering.of(module)
            if isinstance(number, int) and number in known
        }
        return renamed(module, names)


def _bound(module: Any) -> Iterator[tuple[Any, Any]]:
    for binding in bindings_of(module[MAIN]):
        yield binding.var, binding.value


def _repeated(value: Any, tuples: Mapping[int, list[Any]]) -> Any:
    """The variable that a value is, or those that a tuple holds; None for what is computed."""
    from tvm import relax

    if isinstance(value, relax.Var):
        return tuples.get(identity(value), value)
    if isinstance(value, relax.Tuple):
        return list(value.fields)
    if isinstance(value, relax.TupleGetItem) and identity(value.tuple_value) in tuples:
        item = tuples[identity(value.tuple_value)][value.index]
        return item if isinstance(item, relax.Var) else None
    return None


Number = int | tuple[Any, ...]
"""Of a value; of a tuple, those of its fields."""


class _Numbering:
    """Numbers values so that the same operation on the same values has the same number, in functions or not."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._held: list[Any] = []  # so that no other object gets the address of one that was seen

    def of(self, module: Any) -> list[tuple[Any, Number]]:
        """The variables of `main`, and their values' numbers."""
        functions = {place.name_hint: function for place, function in module.functions_items()}
        self._held.append(module)
        main = functions[MAIN]
        values: dict[int, Number] = {
            identity(parameter): self._number("input", place) for place, parameter in enumerate(main.params)
        }
        return list(self._walk(main, values, functions))

    def _number(self, *key: Any) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def _walk(
        self, function: Any, values: dict[int, Number], functions: Mapping[str, Any]
    ) -> Iterator[tuple[Any, Number]]:
        for binding in bindings_of(function):
            number = self._value(binding.value, values, functions)
            values[identity(binding.var)] = number
            yield binding.var, number

    def _value(self, value: Any, values: dict[int, Number], functions: Mapping[str, Any]) -> Number:
        from tvm import ir, relax

        if isinstance(value, relax.Var):
            return values[identity(value)]
        if isinstance(value, relax.Tuple):
            return tuple(self._value(field, values, functions) for field in value.fields)
        if isinstance(value, relax.TupleGetItem):
            whole = self._value(value.tuple_value, values, functions)
            return whole[value.index] if isinstance(whole, tuple) else self._number("item", whole, value.index)
        if isinstance(value, ir.Constant):
            return self._number("constant", identity(value))
        if isinstance(value, ir.GlobalVar):
            return self._number("global", value.name_hint)
        if not isinstance(value, relax.Call):
            return self._number("text", str(value))
        arguments = [self._value(argument, values, functions) for argument in value.args]
        if isinstance(value.op, ir.GlobalVar) and isinstance(functions.get(value.op.name_hint), relax.Function):
            called = functions[value.op.name_hint]
            own = {identity(one): two for one, two in zip(called.params, arguments, strict=True)}
            for _ in self._walk(called, own, functions):
                pass
            return self._value(called.body.body, own, functions)
        return self._number("call", str(value.op), tuple(arguments), str(value.attrs), str(value.ty_args))
