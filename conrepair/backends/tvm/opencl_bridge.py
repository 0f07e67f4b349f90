"""A Relax module whose kernels run through pyopencl: the rest of it is compiled for the CPU."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

from conrepair.backends.tvm.opencl_kernels import Kernels, kernels_of
from conrepair.runtime.files import write_json, write_text

__all__ = ["PLANS", "PROGRAM", "bridged"]

PLANS = "kernels.json"
PROGRAM = "device.cl"
_NAME_DIGITS = 16


def bridged(module: Any, target: Any, folder: Path) -> Any:
    """Take the kernels out of a module; write them, and how they're launched.

    Args:
        module: `tvm.IRModule`, scheduled for a GPU, before lowering.
        target: For OpenCL, with a host.
        folder: Receives `PROGRAM` and `PLANS`.

    Returns:
        The module for the host: where it called a kernel, it calls a function that `opencl_run` registers.

    Raises:
        ConversionError: if a kernel's host code can't be carried over.
    """
    kernels = kernels_of(module, target)
    write_text(folder / PROGRAM, kernels.source)
    prefix = f"conrepair.opencl.{hashlib.sha256(kernels.source.encode()).hexdigest()[:_NAME_DIGITS]}."
    host = _calling_out(module, kernels, prefix)
    write_json(folder / PLANS, {"prefix": prefix, "functions": _plain(kernels)})
    return host


def _plain(kernels: Kernels) -> dict[str, Any]:
    return {name: dataclasses.asdict(plan) for name, plan in kernels.plans.items()}


def _calling_out(module: Any, kernels: Kernels, prefix: str) -> Any:
    import tvm
    from tvm import relax

    @relax.expr_functor.mutator
    class CallingOut(relax.PyExprMutator):
        def visit_call_(self, call: Any) -> Any:
            call = self.visit_expr_post_order(call)
            if call.op != tvm.ir.Op.get("relax.call_tir") or call.args[0].name_hint not in kernels.plans:
                return call
            made = call.ty_args[0]
            results = list(made.fields) if isinstance(made, relax.TupleType) else [made]
            kernels.plans[call.args[0].name_hint].results = len(results)
            return relax.call_dps_packed(prefix + call.args[0].name_hint, call.args[1], out_ty=results)

    mutator = CallingOut(module)
    for name, function in module.functions_items():
        if isinstance(function, relax.Function):
            mutator.builder_.update_func(name, mutator.visit_expr(function))
    result = mutator.builder_.get()
    left = {name: function for name, function in result.functions_items() if name.name_hint not in kernels.plans}
    return tvm.IRModule(left, attrs=result.attrs)
