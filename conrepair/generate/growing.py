"""How a network grows: an operator behind tensors that are there, or in front of one that no node makes yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

from conrepair.generate.drawing import Drawing, Fresh
from conrepair.generate.graph import Draft, Tensor
from conrepair.generate.setting import NotAllowedError, Operand, Port, Setting, Support
from conrepair.generate.solving import Solving
from conrepair.generate.specifications.registry import specifications
from conrepair.generate.tensors import TensorType

__all__ = ["Growing", "Pool"]

_FRESH = 0.08
"""How likely an input gets a new tensor although one that is there would do."""

_TRIES = 12
"""Settings of one operator that are drawn before another is chosen."""


class Pool:
    """A source of tensors that a draft has already; new ones where none fits.

    Args:
        draft: The network.
        most: Elements that a tensor may have.
    """

    def __init__(self, draft: Draft, most: int) -> None:
        self._draft, self._fresh = draft, Fresh(most)

    def take(self, port: Port, random: Random) -> Operand:
        if port.values is None and random.random() >= _FRESH:
            fitting = list(self._fitting(port))
            if fitting:
                name, chosen, _ = random.choices(fitting, [0.25 ** min(item[2], 4) for item in fitting])[0]
                return Operand(chosen, name=name, port=port)
        return self._fresh.take(port, random)

    def _fitting(self, port: Port) -> Iterator[tuple[str, TensorType, int]]:
        for name, tensor in self._draft.tensors.items():
            made = tensor.type
            if tensor.free and made.dtype in port.dtypes and port.pattern.allows(made.shape):
                yield name, made, tensor.readers


@dataclass
class Growing:
    """Adds operators to a draft.

    Attributes:
        random: What is drawn comes from here.
        operators: Names of those that may be added.
        support: Element types that may be used.
        most: Elements that a tensor may have.
        backward: How likely an operator is put in front.
    """

    random: Random
    operators: Sequence[str]
    support: Support = field(default_factory=Support)
    most: int = 4096
    backward: float = 0.3

    def grow(self, draft: Draft, nodes: int) -> None:
        """Add operators until there are so many."""
        refused = 0
        while len(draft.nodes) < nodes and refused < 50 + 20 * nodes:
            op = self.random.choice(self.operators)
            if not self._added(draft, op):
                refused += 1

    def _added(self, draft: Draft, op: str) -> bool:
        replaceable = [tensor for tensor in draft.sources.values() if tensor.values is None]
        if draft.nodes and replaceable and self.random.random() < self.backward:
            for tensor in self.random.sample(replaceable, min(3, len(replaceable))):
                setting = self._in_front(draft, op, tensor)
                if setting is not None:
                    draft.add(setting, instead_of=tensor.name)
                    return True
            return False
        setting = self._behind(draft, op)
        if setting is None:
            return False
        draft.add(setting)
        return True

    def _behind(self, draft: Draft, op: str) -> Setting | None:
        body = specifications()[op].body
        for _ in range(_TRIES):
            setting = Drawing(
                op, draft.opset, self.random, self.support, source=Pool(draft, self.most), most=self.most
            )
            try:
                body(setting)
            except NotAllowedError:
                continue
            if not draft.nodes or any(operand is not None and operand.name for operand in setting.inputs):
                return setting
        return None

    def _in_front(self, draft: Draft, op: str, tensor: Tensor) -> Setting | None:
        setting = Solving(op, draft.opset, self.random, self.support, target=tensor.type, most=self.most)
        try:
            specifications()[op].body(setting)
            setting.solved()
        except NotAllowedError:
            return None
        return setting
