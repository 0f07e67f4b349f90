"""The kernels that a compiled model calls, in order: what each reads and writes, which operators it stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conrepair.formats.tvm.naming import MAIN, bindings_of, identity

CALLS = "calls.json"


@dataclass(frozen=True)
class ModelOperator:
    """An operator of the imported model.

    Attributes:
        name: As in the model; that of its first result where it has none.
        kind: As its framework calls it.
        reads: Tensors.
        writes: Tensors.
    """

    name: str
    kind: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]


@dataclass(frozen=True)
class KernelCall:
    """A call of a kernel.

    Attributes:
        function: Name by which the virtual machine calls it.
        reads: The value that each argument is; None for constants and sizes.
        writes: The values that it computes.
        view: Whether the result is the argument's memory, with another shape.
        members: Names of the operators that it stands for, or is a part of.
        part: Whether it's a part of one: what it computes is no tensor of the model.
    """

    function: str
    reads: tuple[str | None, ...]
    writes: tuple[str, ...]
    view: bool = False
    members: tuple[str, ...] = ()
    part: bool = False


@dataclass(frozen=True)
class Calls:
    """What a compiled model does.

    Attributes:
        inputs: The values that are given, in order.
        calls: In order.
        tensors: The imported model's tensors that a value is; none for a part of an operator.
        shapes: Of each value that a call writes, and its type.
        operators: The kind of each operator that a call stands for, by name.
    """

    inputs: tuple[str, ...]
    calls: tuple[KernelCall, ...]
    tensors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    shapes: Mapping[str, tuple[tuple[int, ...], str]] = field(default_factory=dict)
    operators: Mapping[str, str] = field(default_factory=dict)


def calls_of(
    module: Any, inputs: Sequence[str], names: Mapping[str, tuple[str, ...]], operators: Sequence[ModelOperator]
) -> Calls | None:
    """Read the calls off a module.

    Args:
        module: `tvm.IRModule` whose `main` is still in dataflow form, all operators written as kernels.
        inputs: Tensors that its parameters are.
        names: The tensors that its variables stand for.
        operators: Of the imported model, in order.

    Returns:
        None where which kernels run depends on values (branches), or how large what they compute is.
    """
    from tvm import relax

    reading = _Reading(names)
    for name, parameter in zip(inputs, module[MAIN].params, strict=False):
        reading.give(parameter, name)
    for binding in bindings_of(module[MAIN]):
        if isinstance(binding.value, relax.If) or not _definite(binding.var.ty):
            return None
        reading.bind(binding.var, binding.value)
    known = {tensor: value for value, tensors in reading.tensors.items() for tensor in tensors}
    members = _members(reading.calls, known, operators, inputs)
    calls = tuple(
        KernelCall(call.function, call.reads, call.writes, call.view, *found)
        for call, found in zip(reading.calls, members, strict=True)
    )
    mentioned = {name for call in calls for name in call.members}
    kinds = {operator.name: operator.kind for operator in operators if operator.name in mentioned}
    return Calls(tuple(reading.inputs), calls, reading.tensors, reading.shapes, kinds)


def _definite(made: Any) -> bool:
    """Whether all sizes of what a variable holds are numbers."""
    from tvm import relax

    if isinstance(made, relax.TupleType):
        return all(map(_definite, made.fields))
    sizes = getattr(getattr(made, "shape", None), "values", None) or ()
    return all(isinstance(getattr(size, "value", size), int) for size in sizes)


Value = str | None | tuple[Any, ...]
"""Name of a value; a tuple's fields; None for what isn't a tensor that a kernel computed."""


class _Reading:
    def __init__(self, names: Mapping[str, tuple[str, ...]]) -> None:
        self._names = names
        self._values: dict[int, Value] = {}
        self.inputs: list[str] = []
        self.calls: list[KernelCall] = []
        self.tensors: dict[str, tuple[str, ...]] = {}
        self.shapes: dict[str, tuple[tuple[int, ...], str]] = {}

    def give(self, parameter: Any, tensor: str) -> None:
        value = f"input {len(self.inputs)}"
        self.inputs.append(value)
        self.tensors[value] = (tensor,)
        self._values[identity(parameter)] = value

    def bind(self, variable: Any, expression: Any) -> None:
        from tvm import relax

        value = self._call(expression) if isinstance(expression, relax.Call) else self._value(expression)
        self._values[identity(variable)] = value
        if isinstance(value, str) and variable.name in self._names:
            held = self.tensors.get(value, ())
            more = tuple(name for name in self._names[variable.name] if name not in held)
            self.tensors[value] = (*held, *more)

    def _value(self, expression: Any) -> Value:
        from tvm import relax

        if isinstance(expression, relax.Var):
            return self._values.get(identity(expression))
        if isinstance(expression, relax.Tuple):
            return tuple(map(self._value, expression.fields))
        if isinstance(expression, relax.TupleGetItem):
            whole = self._value(expression.tuple_value)
            return whole[expression.index] if isinstance(whole, tuple) else None
        return None

    def _call(self, call: Any) -> Value:
        operator = getattr(call.op, "name", "")
        if operator in {"relax.call_tir", "relax.call_dps_packed"}:
            reads = self._arguments(call.args[1])
            function = call.args[0].name_hint if operator == "relax.call_tir" else str(call.args[0].global_symbol)
            return self._computed(function, reads, call.ty_args[0], view=False)
        if operator == "relax.reshape":
            return self._computed("vm.builtin.reshape", (self._one(call.args[0]),), call.ty, view=True)
        return None

    def _arguments(self, given: Any) -> tuple[str | None, ...]:
        from tvm import relax

        fields = given.fields if isinstance(given, relax.Tuple) else [given]
        return tuple(map(self._one, fields))

    def _one(self, expression: Any) -> str | None:
        value = self._value(expression)
        return value if isinstance(value, str) else None

    def _computed(self, function: str, reads: tuple[str | None, ...], made: Any, *, view: bool) -> Value:
        from tvm import relax

        fields = list(made.fields) if isinstance(made, relax.TupleType) else None
        writes = tuple(f"{len(self.calls)}.{place}" for place in range(1 if fields is None else len(fields)))
        for name, kind in zip(writes, [made] if fields is None else fields, strict=True):
            self.shapes[name] = tuple(int(size) for size in kind.shape.values), str(kind.dtype)
        self.calls.append(KernelCall(function, reads, writes, view))
        return writes[0] if fields is None else writes


Members = tuple[tuple[str, ...], bool]


def _members(
    calls: Sequence[KernelCall], known: Mapping[str, str], operators: Sequence[ModelOperator], inputs: Sequence[str]
) -> list[Members]:
    """The operators between what a kernel reads and what it writes.

    A kernel whose result is no tensor of the model is a part of what the kernels behind it stand for.
    """
    wanted = {value: tensor for tensor, value in known.items()}
    from_inputs = _depending(operators, inputs)
    found: list[Members] = []
    for call in calls:
        ends = [tensor for tensor, value in known.items() if value in call.writes]
        found.append((_between(from_inputs, known, ends), not any(value in wanted for value in call.writes)))
    readers: dict[str, list[int]] = {}
    for place, call in enumerate(calls):
        for value in filter(None, call.reads):
            readers.setdefault(value, []).append(place)
    for place in reversed(range(len(calls))):
        members, part = found[place]
        if part:
            behind = [found[reader][0] for value in calls[place].writes for reader in readers.get(value, ())]
            found[place] = (behind[0] if behind else members, True)
    return found


def _depending(operators: Sequence[ModelOperator], inputs: Sequence[str]) -> list[ModelOperator]:
    """The operators whose results depend on the inputs."""
    variable, found = set(inputs), []
    for operator in operators:
        if variable.intersection(operator.reads):
            variable.update(operator.writes)
            found.append(operator)
    return found


def _between(operators: Sequence[ModelOperator], known: Mapping[str, str], ends: Sequence[str]) -> tuple[str, ...]:
    """Names of the operators that compute some tensors from the nearest ones that are computed elsewhere."""
    needed, names = set(ends), []
    own = {known[name] for name in ends}
    for operator in reversed(operators):
        if needed.intersection(operator.writes):
            names.append(operator.name)
            needed.update(name for name in operator.reads if name not in known or known[name] in own)
    return tuple(reversed(names))
