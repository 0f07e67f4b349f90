"""Operators that change element types alone."""

from __future__ import annotations

from conrepair.generate.setting import Setting
from conrepair.generate.specifications.specification import operator
from conrepair.generate.tensors import INTEGERS


@operator("Cast")
def converted(s: Setting) -> None:
    dtype = s.element_type("to")
    x = s.input("input", domain=_whole(dtype))
    s.output(x.shape)


@operator("CastLike")
def converted_like(s: Setting) -> None:
    like = s.input("target_type")
    x = s.input("input", domain=_whole(like.dtype))
    s.output(x.shape)


def _whole(dtype: str) -> tuple[float, float] | None:
    """What every type of whole numbers has room for: others differ by the runtime."""
    if dtype not in INTEGERS:
        return None
    return (0.0 if dtype.startswith("u") else -127.0, 127.0)
