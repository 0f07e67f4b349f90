"""Faults of PyTorch networks that several architectures can have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.families.architecture import Change, Fault, Writing
from conrepair.ground.graph.kinds import Kind

__all__ = [
    "attribute",
    "bias_lost",
    "exchanged",
    "input_as",
    "other_class",
    "replaced",
    "scaled",
    "tensor",
    "transposed",
    "written_as",
]


def other_class(kind: Kind, one: type, two: type, *, first: bool = False) -> Fault:
    """Modules of a class that compute as those of another one do, with the same parameters.

    Args:
        kind: Of fault.
        one: The class that's right.
        two: With a fault; its subclass.
        first: Only the first module.
    """
    return Fault(kind, _as_class(one, two, first))


def written_as(one: type, two: type) -> Writing:
    """The same, where the other class computes the same."""
    return Writing(_as_class(one, two, False))


def _as_class(one: type, two: type, first: bool) -> Change:
    def change(network: Any) -> None:
        found = [module for module in network.modules() if type(module) is one]
        if not found:
            raise ValueError(f"the network has no {one.__name__}")
        for module in found[:1] if first else found:
            module.__class__ = two

    return change


def tensor(kind: Kind, name: str, compute: Callable[[Any], Any]) -> Fault:
    """A tensor of the state dict with other numbers.

    Args:
        kind: Of fault.
        name: In the state dict.
        compute: The numbers, of the right ones.
    """

    def change(network: Any) -> None:
        state = network.state_dict()
        state[name] = compute(state[name].clone()).contiguous()
        network.load_state_dict(state)

    return Fault(kind, change)


def scaled(name: str, factor: float) -> Fault:
    """A tensor that is scaled."""
    return tensor(Kind.PARAMETERS, name, lambda numbers: numbers * factor)


def transposed(name: str, one: int = -1, two: int = -2) -> Fault:
    """A tensor with two axes exchanged that are of the same size."""
    return tensor(Kind.PARAMETERS, name, lambda numbers: numbers.transpose(one, two))


def bias_lost(name: str) -> Fault:
    """A module without its bias."""

    def change(network: Any) -> None:
        network.get_submodule(name).bias = None

    return Fault(Kind.PARAMETERS, change)


def exchanged(one: str, two: str) -> Fault:
    """Two tensors of the state dict in each other's place."""

    def change(network: Any) -> None:
        state = network.state_dict()
        state[one], state[two] = state[two].clone(), state[one].clone()
        network.load_state_dict(state)

    return Fault(Kind.PARAMETERS, change)


def attribute(name: str, value: Any, *modules: str, kind: Kind = Kind.HYPERPARAMETERS) -> Fault:
    """An attribute of modules with another value.

    Args:
        name: Of the attribute.
        value: Its value.
        modules: By name, or by the name of their class.
        kind: Of fault.
    """

    def change(network: Any) -> None:
        found = [item for path, item in network.named_modules() if path in modules or type(item).__name__ in modules]
        if not found:
            raise ValueError(f"the network has none of {modules}")
        for module in found:
            getattr(module, name)
            setattr(module, name, value)

    return Fault(kind, change)


def replaced(kind: Kind, name: str, make: Callable[[], Any]) -> Fault:
    """A module without parameters, another one in its place."""
    return Fault(kind, lambda network: network.set_submodule(name, make()))


def input_as(compute: Callable[[Any], Any]) -> Fault:
    """The first input, fed otherwise."""

    def change(network: Any) -> None:
        network.register_forward_pre_hook(lambda _, given: (compute(given[0]), *given[1:]))

    return Fault(Kind.PREPROCESSING, change)
