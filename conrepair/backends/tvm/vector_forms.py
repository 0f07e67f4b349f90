"""Functions that TVM puts into vectors, and then has no code for."""

from __future__ import annotations

__all__ = ["compute_one_by_one"]

_WITHOUT_FORM = ("tirx.cosh", "tirx.sinh")
_LEVEL = 11  # TVM's own is 10


def compute_one_by_one() -> None:
    """Tell TVM of functions that LLVM has for single numbers only, so that it takes a vector of them apart.

    It says of each that it may be in a vector (`TVectorizable`), and stops at it: "unknown intrinsic tirx.sinh".
    """
    import tvm

    for name in _WITHOUT_FORM:
        if tvm.ir.Op.get(name).get_attr("TVectorizable"):
            tvm.ir.register_op_attr(name, "TVectorizable", value=False, level=_LEVEL)
