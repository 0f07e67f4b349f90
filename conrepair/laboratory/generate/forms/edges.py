"""Nodes that give back what they got, between a tensor and some of those that read it."""

from __future__ import annotations

from conrepair.laboratory.generate.forms.form import form, written_forms
from conrepair.laboratory.generate.settings.tensors import INTEGERS, element_type
from conrepair.laboratory.generate.weaving import Weaver

written_forms("""
anything():
    some(ANY_TYPE, rank=ANY_RANK)
number():
    some(NUMERIC, rank=ANY_RANK)
identity transpose:
    x = anything(); over(x, Transpose(x, perm=axes(x)))
cast to its own type:
    x = anything(); over(x, cast(x, dtype(x)))
multiplied by one:
    x = number(); over(x, x * one(1, single(1, x)))
divided by one:
    x = number(); over(x, x / one(1, single(1, x)))
zero added:
    x = number(); zero = one(0, single(0, x)); over(x, one(zero + x, zero + x, x + zero, x - zero))
padded by nothing:
    x = anything(); over(x, Pad(x, ints(repeated(0, 2 * rank(x)))))
whole slice:
    x = anything(); end = one(2147483647, LAST, largest(sizes(x))); count = rank(x)
    over(x, Slice(x, ints(repeated(0, count)), ints(repeated(end, count)), ints(axes(x))))
concat of one:
    x = anything(); over(x, Concat(x, axis=axis(x)))
split into one:
    x = anything(); cut = axis(x); over(x, Split(x, ints(size(x, cut)), axis=cut))
reshape to the same shape:
    x = anything(); over(x, Reshape(x, one(ints(sizes(x)), ints(repeated(0, rank(x))), ints(-1, tail(x)))))
expand that does nothing:
    x = anything(); over(x, Expand(x, one(ints(sizes(x)), ints(repeated(1, rank(x))), ints(1))))
dropout in inference:
    x = some(FLOATS, rank=ANY_RANK); over(x, Dropout(x))
two transposes that cancel:
    x = anything(); order = shuffled(x); over(x, Transpose(Transpose(x, perm=order), perm=back(order)))
""")


@form("two casts that cancel")
def two_casts(w: Weaver) -> None:
    x = w.pick(INTEGERS, new=True)
    wide = w.node("Cast", x, to=element_type("int64" if w.type_of(x).dtype != "uint64" else "uint64"))
    w.takes_over(x, w.node("Cast", wide, to=element_type(w.type_of(x).dtype)))
