"""The language of patterns and forms: the equations of `conrepair.ground.equations`, with words of its own.

An equation stands indented below a line with its name:

    conv, add and relu: onnxruntime:ConvAddActivationFusion
        x = image(); first = conv(x, 4); Relu(conv(x, 4) + first)

Operators are ONNX's; a number becomes a constant of the type of what it's computed with; of sizes alone, numbers are
computed. One of the operands of `one` is chosen at random. Other words with small letters are those of `parts`, or
are defined by an equation, too, below their names and operands. What has a name is computed once, and not before
something reads it.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from textwrap import dedent
from typing import Any

from conrepair.ground.equations.expression import ITEM, Term, parse
from conrepair_lab.generate.patterns.parts import NAMES, WORDS, scalar
from conrepair_lab.generate.weaving import Body, Weaver

_WORDS: dict[str, Callable[..., Any]] = dict(WORDS)
_OF_NUMBERS = {item.__name__: item for item in (operator.add, operator.sub, operator.mul, operator.neg)}
_OF_NUMBERS |= {"div": operator.truediv, "floordiv": operator.floordiv}
_HEAD = re.compile(r"(?P<name>[^:(]+)(\((?P<operands>.*)\))?:(?P<behind>.*)")


def written(text: str) -> Iterator[tuple[str, list[str], Body]]:
    """Read equations.

    Args:
        text: They, each below its name, and the words that are defined by equations.

    Returns:
        Each one's name, the words behind it in its line, and what puts it into a network.

    Raises:
        ValueError: if a line is neither an equation's name nor a word.
    """
    for block in re.split(r"\n(?=\S)", text.strip()):
        head, _, equation = block.partition("\n")
        found = _HEAD.fullmatch(head)
        if found is None:
            raise ValueError(f"{head!r} is neither an equation's name nor a word with its operands")
        if found["operands"] is None:
            yield found["name"], found["behind"].split(), partial(_written, dedent(equation), ())
        else:
            _WORDS[found["name"]] = partial(_written, dedent(equation), re.findall(r"\w+", found["operands"]))


def _written(text: str, operands: Sequence[str], w: Weaver, *values: Any) -> Any:
    """Put what an equation says into a network; its result."""
    return _Writing(w, {**NAMES, **dict(zip(operands, values, strict=True))}).value(parse(text))


class _Writing:
    """Adds the nodes of an equation; what has a name there is computed once."""

    def __init__(self, w: Weaver, names: Mapping[str, Any]) -> None:
        self._w, self._names = w, names
        self._known: dict[int, Any] = {}

    def value(self, item: Any) -> Any:
        """A tensor's name, a number, or several of them."""
        if isinstance(item, str):
            return self._names.get(item, item)
        if not isinstance(item, Term):
            return int(item) if float(item).is_integer() else item
        if id(item) not in self._known:
            self._known[id(item)] = self._computed(item)
        return self._known[id(item)]

    def _computed(self, term: Term) -> Any:
        if term.operator == "one":
            return self.value(self._w.one(term.operands))
        values = [self.value(item) for item in term.operands]
        said = {name: self._said(item) for name, item in term.attributes}
        if term.operator == ITEM:
            return values[0][said["place"]]
        if term.operator.islower():
            return _WORDS[term.operator](self._w, *values, **said)
        tensors = [item for item in values if isinstance(item, str)]
        if values and not tensors:
            return _OF_NUMBERS[term.operator.lower()](*values)
        inputs = [item if isinstance(item, str) else scalar(self._w, item, tensors[-1]) for item in values]
        made = self._w.nodes(term.operator, *inputs, **said)
        return made if "outputs" in said else made[0]

    def _said(self, item: Any) -> Any:
        """An attribute: what is written there as a number stays as it's written."""
        if isinstance(item, tuple):
            return tuple(map(self._said, item))
        return self.value(item) if isinstance(item, Term | str) else item
