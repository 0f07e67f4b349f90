"""Small changes of a network that leave it valid, as far as specifications know: each is tried and may not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random

from conrepair_lab.generate.forms.form import forms
from conrepair_lab.generate.graph import Draft, Node, Tensor
from conrepair_lab.generate.growing import Growing
from conrepair_lab.generate.patterns.pattern import patterns
from conrepair_lab.generate.settings.domains import Domain
from conrepair_lab.generate.settings.drawing import Drawing, Fresh, Source
from conrepair_lab.generate.settings.ports import NotAllowedError, Operand, Port, Support
from conrepair_lab.generate.settings.setting import Setting
from conrepair_lab.generate.settings.tensors import value_in
from conrepair_lab.generate.specifications.specification import spoken
from conrepair_lab.generate.symbolic import retyped
from conrepair_lab.generate.weaving import Weaver

_TRIES = 24
"""Settings that are drawn until one makes what is wanted."""

_KEPT = 0.5
"""How likely a constant stays where a node is drawn anew."""


@dataclass
class Changing:
    """The state that changes need.

    Attributes:
        growing: Adds operators, and knows which there may be.
        support: Element types of the runtime, whatever is wished of what's added.
    """

    growing: Growing
    support: Support

    @property
    def random(self) -> Random:
        """All that's drawn comes from here."""
        return self.growing.random

    @property
    def most(self) -> int:
        """Elements that a tensor may have."""
        return self.growing.most

    def settings(self, draft: Draft, names: Sequence[str], op: str = "") -> Iterator[tuple[Setting, list[str]]]:
        """Draw operators that read given tensors, in order, as far as they have inputs for them.

        Args:
            draft: The network.
            names: Of tensors; "" for none.
            op: The only operator; any by default.

        Yields:
            Settings that may be, each with the names that it doesn't read.
        """
        support = self.growing.support
        for _ in range(_TRIES):
            chosen = op or self.random.choice(self.growing.operators)
            source = _Given(draft, names, self.most)
            with suppress(NotAllowedError):
                setting = spoken(Drawing(chosen, draft.opset, self.random, support, source=source, most=self.most))
                if support.allows(setting):
                    yield setting, source.left


class _Given(Source):
    """A source of given tensors, one after the other; new ones behind them."""

    def __init__(self, draft: Draft, names: Sequence[str], most: int) -> None:
        self._draft, self.left, self._fresh = draft, list(filter(None, names)), Fresh(most)

    def take(self, port: Port, random: Random) -> Operand:
        if not self.left:
            return self._fresh.take(port, random)
        tensor = self._draft.tensors[self.left[0]]
        fits = tensor.type.dtype in port.dtypes and tensor.type.sized and port.pattern.allows(tensor.type.shape)
        if not fits or not _within(port, tensor):
            raise NotAllowedError("another tensor is there")
        self.left.pop(0)
        return Operand(tensor.type, name=tensor.name, port=port, array=tensor.value)

    def told(self, dtypes: tuple[str, ...], domain: Domain, random: Random) -> Operand | None:
        if not self.left:
            return None
        tensor = self._draft.tensors[self.left[0]]
        if tensor.value is None:
            return None
        self.left.pop(0)
        stays = tensor.type.dtype in dtypes and domain.allows(value_in(tensor.value))
        if stays and random.random() < _KEPT:
            return Operand(tensor.type, name=tensor.name, array=tensor.value)
        return None


def _within(port: Port, tensor: Tensor) -> bool:
    """Whether a tensor has values that an input must have."""
    if port.values is None or port.values == tensor.values:
        return True
    return tensor.value is not None and port.values.allows(tensor.value)


def another_operator(changing: Changing, draft: Draft) -> None:
    """A node becomes one of another operator that makes the same type."""
    node = _usual(changing, draft)
    for setting, _ in changing.settings(draft, node.inputs):
        if setting.op != node.op and _makes(setting, draft, node) and _read(setting) & set(node.inputs):
            draft.rewrite(node, setting)
            return
    raise NotAllowedError("no other operator fits")


def other_attributes(changing: Changing, draft: Draft) -> None:
    """A node gets other attributes, and constants; what is behind it gets other sizes, if it may."""
    node = _usual(changing, draft)
    for setting, left in changing.settings(draft, node.inputs, node.op):
        same = setting.attributes == node.attributes and not left and _read(setting) == set(filter(None, node.inputs))
        if same or len(setting.outputs) != len(node.outputs):
            continue
        draft.rewrite(node, setting)
        for name, made in retyped(draft, {}, changing.support).items():
            tensor = draft.tensors[name]
            if made != tensor.type and (name in draft.sources or not made.sized or made.elements > changing.most):
                raise NotAllowedError("other sizes that may not be")
            tensor.type = made
        return
    raise NotAllowedError("no other attributes are allowed")


def inserted(changing: Changing, draft: Draft) -> None:
    """A node that keeps the type comes between a tensor and some of those that read it."""
    random = changing.random
    names = [name for name, tensor in draft.tensors.items() if tensor.free and tensor.readers]
    if not names:
        raise NotAllowedError("nothing is read")
    old = random.choice(names)
    for setting, left in changing.settings(draft, [old]):
        if not left and setting.outputs and setting.outputs[0] == draft.tensors[old].type:
            readers = [node for node in draft.nodes if old in node.inputs]
            new = draft.add(setting).outputs[0]
            for node in random.sample(readers, random.randint(1, len(readers))):
                draft.replace_input(node, old, new)
            draft.sort()
            return
    raise NotAllowedError("no operator keeps the type")


def deleted(changing: Changing, draft: Draft) -> None:
    """A node is removed; its readers read its input instead."""
    fitting = [
        node
        for node in draft.nodes
        for name in dict.fromkeys(filter(None, node.inputs))
        if len(node.outputs) == 1 and draft.tensors[name].free
        if draft.tensors[name].type == draft.tensors[node.outputs[0]].type and draft.tensors[node.outputs[0]].readers
    ]
    if not fitting:
        raise NotAllowedError("no node keeps the type")
    draft.cut(changing.random.choice(fitting))


def grown(changing: Changing, draft: Draft) -> None:
    """An operator is put behind the network, or in front of it."""
    before = len(draft.nodes)
    changing.growing.grow(draft, before + 1)
    if len(draft.nodes) == before:
        raise NotAllowedError("nothing fits")


def woven(changing: Changing, draft: Draft) -> None:
    """A form or a pattern is put in."""
    every = {**{name: item.body for name, item in forms().items()}, **{n: p.body for n, p in patterns().items()}}
    name = changing.random.choice(sorted(every))
    weaver = Weaver(draft, changing.random, changing.growing.support, changing.most, name)
    with weaver.whole():
        every[name](weaver)
    draft.sort()


Change = Callable[[Changing, Draft], None]
"""Changes a network; NotAllowedError where it doesn't fit, and the network may be anything then."""

CHANGES: Mapping[str, Change] = {
    "another operator": another_operator,
    "other attributes": other_attributes,
    "a node between": inserted,
    "a node less": deleted,
    "a node more": grown,
    "a form or pattern": woven,
}
"""By name."""


def _usual(changing: Changing, draft: Draft) -> Node:
    """A node that a specification speaks of."""
    nodes = [
        node
        for node in draft.nodes
        if node.piece is None and all(draft.tensors[name].type.sized for name in filter(None, node.outputs))
    ]
    if not nodes:
        raise NotAllowedError("no specification speaks of any node")
    return changing.random.choice(nodes)


def _makes(setting: Setting, draft: Draft, node: Node) -> bool:
    made = [None if not name else draft.tensors[name].type for name in node.outputs]
    return setting.outputs == made


def _read(setting: Setting) -> set[str]:
    return {operand.name for operand in setting.inputs if operand is not None and operand.name}
