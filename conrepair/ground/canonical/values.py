"""Values that are computed, each once: equal operators of equal operands are one value.

Sums, products and powers are in one form, in real numbers. A value is a number; what computes it is its key. Both
networks of a comparison share a table: what one side computes has the other's number where it's the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from conrepair.ground.canonical.views import Shape, View, whole

Operand = View | float
Words = tuple[tuple[str, Hashable], ...]
_MOST_TERMS = 8  # of a product of sums that is written as a sum; longer ones stay a product


@dataclass(frozen=True)
class Key:
    """What computes a value.

    Attributes:
        op: Operator; "sum", "product" and "Pow" are in normal form.
        operands: Views of other values.
        words: Attributes, and whatever else tells it from others, by name.
        numbers: Factors of a sum's operands and its number, powers, or the bound of a maximum.
        parameters: Numbers of arrays; of a layer its weight, then its bias, if it has one.
    """

    op: str
    operands: tuple[View, ...] = ()
    words: Words = ()
    numbers: tuple[float, ...] = ()
    parameters: tuple[int | None, ...] = ()


class Values:
    """All values that are known.

    Attributes:
        keys: What computes each.
        shapes: Of each.
    """

    def __init__(self, alike: Callable[[float], float]) -> None:
        """Begin without values.

        Args:
            alike: Gives one number for all that rounding alone tells apart.
        """
        self._alike = alike
        self.keys: list[Key] = []
        self.shapes: list[Shape] = []
        self._numbers: dict[tuple[Key, Shape], int] = {}
        self._sums: dict[int, tuple[dict[View, float], float]] = {}

    def value(self, key: Key, shape: Shape) -> View:
        """What a key computes, as it lies."""
        number = self._numbers.setdefault((key, shape), len(self.keys))
        if number == len(self.keys):
            self.keys.append(key)
            self.shapes.append(shape)
        return whole(number, shape)

    def plain(self, view: View) -> View:
        """The value of a view, as it lies."""
        return whole(view.value, self.shapes[view.value])

    def key_of(self, view: Operand) -> Key | None:
        """What computes all of a view, if that's a value as it lies."""
        if isinstance(view, View) and view.is_plain and view.size == math.prod(self.shapes[view.value]):
            return self.keys[view.value]
        return None

    def applied(self, op: str, operands: Sequence[Operand], words: Words, shape: Shape) -> Operand:
        """An operator of each element, or of these and numbers.

        Args:
            op: Its name.
            operands: What it reads, of shapes that fit.
            words: Its attributes.
            shape: Of the result.
        """
        one, two = operands[0], operands[-1]
        match op:
            case "Add" | "Sub":
                return self._sum([(one, 1.0), (two, 1.0 if op == "Add" else -1.0)], shape)
            case "Mul":
                return self._expanded(one, two, shape)
            case "Div":
                return self._expanded(one, self._power(two, -1.0), shape)
            case "Pow" if not isinstance(two, View):
                return self._power(one, two)
            case "Sqrt":
                return self._power(one, 0.5)
            case "Max" | "Min" if not (isinstance(one, View) and isinstance(two, View)):
                return self._bounded(op, one, two)
        views = [item if isinstance(item, View) else self._number(item) for item in operands]
        return self.value(Key(op, tuple(sorted(views) if op in {"Max", "Min"} else views), words), shape)

    def _number(self, number: float) -> View:
        return self.value(Key("number", numbers=(self._alike(number),)), ())

    def _terms(self, item: Operand) -> tuple[dict[View, float], float]:
        """Of an operand as a sum: factors by what they're of, and a number."""
        if not isinstance(item, View):
            return {}, item
        own = self.shapes[item.value]
        if self.key_of(item) is None or item.value not in self._sums:
            return {item: 1.0}, 0.0
        terms, number = self._sums[item.value]
        if item.shape != own and any(view.shape != own for view in terms):
            return {item: 1.0}, 0.0
        return {view if item.shape == own else view.reshaped(item.shape): terms[view] for view in terms}, number

    def _sum(self, items: Sequence[tuple[Operand, float]], shape: Shape) -> Operand:
        """Of operands with factors; of a sum its terms."""
        total, number = dict[View, float](), 0.0
        for item, factor in items:
            terms, constant = self._terms(item)
            number += factor * constant
            for view, other in terms.items():
                total[view] = total.get(view, 0.0) + factor * other
        if not total:
            return number
        views = tuple(sorted(total))
        if len(views) == 1 and total[views[0]] == 1.0 and number == 0.0 and views[0].size == math.prod(shape):
            return views[0].reshaped(shape)
        numbers = (*(self._alike(total[view]) for view in views), self._alike(number))
        found = self.value(Key("sum", views, numbers=numbers), shape)
        self._sums.setdefault(found.value, (total, number))
        return found

    def _expanded(self, one: Operand, two: Operand, shape: Shape) -> Operand:
        """A product: of sums a sum of products, where that isn't too long."""
        sides = [self._terms(item) for item in (one, two)]
        parts: list[list[tuple[Operand, float]]] = [
            [*terms.items(), *([(1.0, number)] if number or not terms else [])] for terms, number in sides
        ]
        sums = all(terms for terms, _ in sides) and max(map(len, parts)) > 1 and one != two
        if not sums or len(parts[0]) * len(parts[1]) > _MOST_TERMS:
            return self._product(one, two, shape)
        found = [
            (self._product(left, right, shape), factor * other)
            for left, factor in parts[0]
            for right, other in parts[1]
        ]
        return self._sum(found, shape)

    def _product(self, one: Operand, two: Operand, shape: Shape) -> Operand:
        """Of two operands; their factors stand in front."""
        factor, powers = 1.0, dict[tuple[View, bool], float]()
        for item in (one, two):
            number, own = self._factors(item)
            factor *= number
            for view, power in own:
                # x * (1 / x) isn't 1 where x is 0.
                powers[view, power > 0] = powers.get((view, power > 0), 0.0) + power
        if not powers:
            return factor
        if not factor or not math.isfinite(factor):  # 0 times infinity isn't 0
            return self.value(Key("product", tuple(view for view, _ in powers), (("by", repr(factor)),)), shape)
        (view, _), *more = items = sorted(powers)
        if more:
            key = Key("product", tuple(view for view, _ in items), numbers=tuple(powers[item] for item in items))
            found = self.value(key, shape)
        else:
            found = self._raised(view, powers[items[0]])
        return self._sum([(found, factor)], shape)

    def _factors(self, item: Operand) -> tuple[float, list[tuple[View, float]]]:
        if not isinstance(item, View):
            return item, []
        lead, item = self._led(item)
        key = self.key_of(item)
        if key is not None and key.op == "product" and key.numbers and item.shape == self.shapes[item.value]:
            return lead, list(zip(key.operands, key.numbers, strict=True))
        if key is not None and key.op == "Pow" and key.numbers and key.numbers[0].is_integer():
            return lead, [(key.operands[0].reshaped(item.shape), key.numbers[0])]
        return lead, [(item, 1.0)]

    def _led(self, item: View) -> tuple[float, View]:
        """The factor of a sum's first term, and the sum without it."""
        terms, number = self._terms(item)
        lead = terms[min(terms)]
        if lead in {0.0, 1.0} or not math.isfinite(lead):
            return 1.0, item
        parts: list[tuple[Operand, float]] = [(view, factor / lead) for view, factor in terms.items()]
        found = self._sum([*parts, (number / lead, 1.0)], item.shape)
        return (lead, found) if isinstance(found, View) else (1.0, item)

    def _power(self, item: Operand, exponent: float) -> Operand:
        """Of an operand; its factor stands in front where that's the same."""
        if not isinstance(item, View):
            return item**exponent if item > 0 or (item and exponent.is_integer()) else math.nan
        lead, view = self._led(item)
        if lead < 0 and not exponent.is_integer():
            lead, view = 1.0, item
        key = self.key_of(view)
        if key is not None and key.op == "product" and key.numbers and exponent.is_integer():
            powers = tuple(power * exponent for power in key.numbers)
            found = self.value(Key("product", key.operands, numbers=powers), item.shape)
        else:
            found = self._raised(view, exponent)
        return self._sum([(found, lead**exponent)], item.shape)

    def _raised(self, view: View, exponent: float) -> View:
        key = self.key_of(view)
        # The square root of a square is no power of it where that's negative.
        if key is not None and key.op == "Pow" and key.numbers:
            inner = key.numbers[0]
            # Nor is the square of a root a power of what has none.
            if inner.is_integer() if exponent.is_integer() else not (exponent * inner).is_integer():
                exponent, view = exponent * inner, key.operands[0].reshaped(view.shape)
        return view if exponent == 1.0 else self.value(Key("Pow", (view,), numbers=(exponent,)), view.shape)

    def _bounded(self, op: str, one: Operand, two: Operand) -> Operand:
        """A maximum or minimum of an operand and a number: max(c x + b, a) is c max(x, (a - b) / c) + b.

        Of a lower and an upper bound above it, the lower one comes first.
        """
        choose = max if op == "Max" else min
        item, bound = (one, two) if isinstance(one, View) else (two, one)
        if isinstance(bound, View) or not isinstance(item, View):
            return choose(float(one), float(two))  # type: ignore[arg-type]
        terms, number = self._terms(item)
        lead = abs(terms[min(terms)]) or 1.0
        inner = self._sum([(view, factor / lead) for view, factor in terms.items()], item.shape)
        limit, key = (bound - number) / lead, self.key_of(inner)
        if key is not None and key.op == op and key.numbers and isinstance(inner, View):
            limit, inner = choose(limit, key.numbers[0]), key.operands[0].reshaped(inner.shape)
        if key is not None and (key.op, op) == ("Min", "Max") and key.numbers and limit <= key.numbers[0]:
            lower = self._bounded("Max", key.operands[0].reshaped(item.shape), limit)
            return self._sum([(self._bounded("Min", lower, key.numbers[0]), lead), (number, 1.0)], item.shape)
        views = (inner,) if isinstance(inner, View) else ()
        found = self.value(Key(op, views, numbers=(self._alike(limit),)), item.shape)
        return self._sum([(found, lead), (number, 1.0)], item.shape)
