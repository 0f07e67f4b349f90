"""What operators make of views of values, in whatever order these lie in.

Where all that's read lies in one order, the operator is computed in the order in which the values lie themselves, so
that a network with its channels last has the values of one that has them first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from conrepair.ground.canonical.numbers import Numbers, Stored
from conrepair.ground.canonical.values import Key, Operand, Values, Words
from conrepair.ground.canonical.views import Shape, View, aligned, axis_of, whole

_PLAIN_PAD = ("mode", "constant"), ("value", 0.0)


class Operations:
    """Makes values.

    Attributes:
        values: All that there are.
        numbers: Arrays that they're computed with.
    """

    def __init__(self) -> None:
        self.numbers = Numbers()
        self.values = Values(self.numbers.alike)
        self._unknown = 0

    def unknown(self, shape: Shape) -> View:
        """A value that equals no other."""
        self._unknown += 1
        return self.values.value(Key("unknown", numbers=(self._unknown,)), shape)

    def transposed(self, view: View, perm: Sequence[int]) -> View:
        """A view with its axes in another order, as a value of its own if it must be."""
        found = view.transposed(perm)
        if found is not None:
            return found
        moved = self.values.value(Key("Reshape", (view,)), view.shape).transposed(perm)
        return moved if moved is not None else self.unknown(tuple(view.shape[axis] for axis in perm))

    def constant(self, stored: Stored, shape: Shape) -> Operand:
        """A parameter as an operand; a number where it's one."""
        if math.prod(shape) == 1:
            return float(stored.load().reshape(-1)[0])
        return self.values.value(Key("constant", parameters=(self.numbers.number(stored),)), shape)

    def parameter_of(self, item: Operand) -> int | None:
        """The number of a constant's array; None of what's no constant as it lies."""
        key = self.values.key_of(item)
        return key.parameters[0] if key is not None and key.op == "constant" else None

    def elementwise(self, op: str, operands: Sequence[Operand], words: Words, shape: Shape) -> Operand:
        """An operator of each element, in the order in which its largest operand lies.

        Args:
            op: Its name.
            operands: What it reads.
            words: Its attributes.
            shape: Of the result.
        """
        views, size = [item for item in operands if isinstance(item, View)], math.prod(shape)
        if len({view.atoms for view in views}) == 1 and all(
            view.size == size == math.prod(self.values.shapes[view.value]) for view in views
        ):
            own = self.values.shapes[min(view.value for view in views)]
            plain = [whole(item.value, own) if isinstance(item, View) else item for item in operands]
            found = self.values.applied(op, plain, words, own)
            if not isinstance(found, View) or found.is_plain:
                return views[0].of(found.value).reshaped(shape) if isinstance(found, View) else found
        perm = self._frame(views, shape)
        inside = [self._framed(item, perm, shape) if isinstance(item, View) else item for item in operands]
        found = self.values.applied(op, inside, words, tuple(shape[axis] for axis in perm))
        back = sorted(range(len(perm)), key=perm.__getitem__)
        return self.transposed(found, back) if isinstance(found, View) else found

    def _frame(self, views: Sequence[View], shape: Shape) -> tuple[int, ...]:
        """The order of axes in which the largest operand lies as it was computed."""
        for view in sorted(views):
            axes = aligned(view, self.values.shapes[view.value]) if view.size == math.prod(shape) else None
            if axes is not None:
                places = [-1] * (len(shape) - len(axes)) + [-1 if axis is None else axis for axis in axes]
                return tuple(sorted(range(len(shape)), key=places.__getitem__))
        return tuple(range(len(shape)))

    def _framed(self, item: View, perm: Sequence[int], shape: Shape) -> Operand:
        full = item.reshaped((1,) * (len(shape) - len(item.shape)) + item.shape)
        number = self.parameter_of(item)
        if number is None:
            return self.transposed(full, perm)
        turned = self.numbers.load(number).reshape(full.shape).transpose(perm)
        if (turned == turned.reshape(-1)[0]).all():
            return float(turned.reshape(-1)[0])
        return self.constant(Stored(lambda: turned), turned.shape)

    def reduced(self, op: str, x: View, axes: Sequence[int]) -> View:
        """A reduction along axes, which stay with the size 1."""
        rank = len(x.shape)
        along = {axis % rank for axis in axes}
        shape = tuple(1 if axis in along else size for axis, size in enumerate(x.shape))
        own = self.values.shapes[x.value]
        places = aligned(x, own)
        if places is None:
            return self.values.value(Key(op, (x,), (("axes", tuple(sorted(along))),)), shape)
        inner = sorted(place for axis in along if (place := places[axis]) is not None)
        left = tuple(1 if axis in inner else size for axis, size in enumerate(own))
        plain = whole(x.value, own)
        found = self.values.value(Key(op, (plain,), (("axes", tuple(inner)),)), left) if inner else plain
        order = [place for place in places if place is not None]
        rest = [axis for axis in range(len(own)) if axis not in order]
        return self.transposed(found, (*order, *rest)).reshaped(shape)

    def sliced(self, x: View, axis: int, start: int, end: int) -> View:
        """A part of a view along an axis."""
        if (start, end) == (0, x.shape[axis]):
            return x
        own, size = self.values.shapes[x.value], end - start
        places = aligned(x, own)
        place = None if places is None else places[axis]
        if place is not None:
            words = (("axis", place), ("start", start), ("end", end))
            piece = self.values.value(
                Key("Slice", (whole(x.value, own),), words), (*own[:place], size, *own[place + 1 :])
            )
            found = x.resized(piece.value, axis_of(own, place), size)
            if found is not None:
                return found
        words = (("axis", axis), ("start", start), ("end", end))
        return self.values.value(Key("Slice", (x,), words), (*x.shape[:axis], size, *x.shape[axis + 1 :]))

    def joined(self, views: Sequence[View], axis: int, shape: Shape) -> View:
        """Views one behind the other along an axis."""
        places = {aligned(view, self.values.shapes[view.value]) for view in views}
        found = places.pop() if len(places) == 1 else None
        ranks = {len(self.values.shapes[view.value]) for view in views}
        if found is None or None in found or ranks != {len(found)}:
            return self.values.value(Key("Concat", tuple(views), (("axis", axis),)), shape)
        inner = tuple(shape[found.index(place)] for place in range(len(found)))
        key = Key("Concat", tuple(map(self.values.plain, views)), (("axis", found[axis]),))
        return self.transposed(self.values.value(key, inner), [place for place in found if place is not None])

    def padded(self, x: View, pads: Sequence[int], words: Words, shape: Shape) -> View:
        """What is padded, or cut, along each axis.

        Args:
            x: The view.
            pads: In front of all axes, then behind them.
            words: Other attributes.
            shape: Of the result.
        """
        own, rank = self.values.shapes[x.value], len(x.shape)
        places = aligned(x, own)
        if places is None or None in places or len(own) != rank:
            return self.values.value(Key("Pad", (x,), (("pads", tuple(pads)), *words)), shape)
        perm = [places.index(axis) for axis in range(rank)]
        turned = tuple(pads[half + axis] for half in (0, rank) for axis in perm)
        key = Key("Pad", (whole(x.value, own),), (("pads", turned), *words))
        found = self.values.value(key, tuple(shape[axis] for axis in perm))
        return self.transposed(found, [place for place in places if place is not None])

    def around(self, view: View) -> tuple[View, tuple[int, ...]]:
        """What a layer of zeros was put around along spatial axes, and its pads; a view without pads elsewhere."""
        key, rank = self.values.key_of(view), len(view.shape)
        pads = dict(key.words).get("pads") if key is not None and key.op == "Pad" else None
        none = (0,) * (2 * (rank - 2))
        if key is None or not isinstance(pads, tuple) or view.shape != self.values.shapes[view.value]:
            return view, none
        spatial = [*range(2, rank), *range(rank + 2, 2 * rank)]
        beyond = any(pad and place not in spatial for place, pad in enumerate(pads))
        if beyond or min(pads) < 0 or key.words[1:] != _PLAIN_PAD:
            return view, none
        return key.operands[0], tuple(pads[place] for place in spatial)

    def softmax(self, x: View, axis: int) -> Operand:
        """As the exponentials of what lies below the largest one, by their sum."""
        peak = self.reduced("ReduceMax", x, (axis,))
        low = self.elementwise("Sub", [x, peak], (), x.shape)
        top = self.elementwise("Exp", [low], (), x.shape)
        if not isinstance(top, View):
            return np.nan
        return self.elementwise("Div", [top, self.reduced("ReduceSum", top, (axis,))], (), x.shape)
