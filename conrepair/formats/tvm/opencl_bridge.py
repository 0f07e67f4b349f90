"""A Relax module whose kernels run through pyopencl: the rest of it is compiled for the CPU."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conrepair.ground.runtime.errors import ConversionError
from conrepair.ground.runtime.files.whole import write_json, write_text

_AXES = "xyz"
_LAUNCH = "tirx.call_ffi_kernel"
_DATA = "tirx.buffer_data"
_SPLIT = "tirx.SplitHostDevice"
_DEVICE_KERNEL = 2  # TVM's calling convention of what runs on a device


@dataclass(frozen=True)
class _Launch:
    """One launch of a kernel.

    Attributes:
        kernel: Its name in the source.
        arguments: In order: {"buffer": index of the parameter}, {"scratch": index}, or {"value": ..., "dtype": ...}.
        groups: Number of work groups, x y z.
        threads: Work items in each, x y z.
    """

    kernel: str
    arguments: list[dict[str, Any]]
    groups: list[int]
    threads: list[int]


@dataclass
class _Plan:
    """What one function does: its parameters are its inputs and then its results.

    Attributes:
        results: How many of the parameters are results.
        scratch: Bytes of each buffer that lives between launches.
        launches: In order.
    """

    results: int = 1
    scratch: list[int] = field(default_factory=list)
    launches: list[_Launch] = field(default_factory=list)


def _kernels_of(module: Any, target: Any) -> tuple[str, dict[str, _Plan]]:
    """Generate OpenCL C for all scheduled functions of a module.

    Args:
        module: `tvm.IRModule`, before lowering.
        target: For OpenCL, with a host.

    Returns:
        The source, and the plans by name of the function.

    Raises:
        ConversionError: if host code does more than launch kernels one after the other.
    """
    import tvm
    from tvm import relax, tirx
    from tvm.tirx.build import split_host_device_mods

    functions = {name: item for name, item in module.functions_items() if isinstance(item, tirx.PrimFunc)}
    if not functions:
        return "", {}
    kernels = relax.transform.AttachGlobalSymbol()(tvm.IRModule(functions))
    kernels = tirx.transform.BindTarget(target)(kernels)
    pipeline, _, finish = tirx.get_default_tir_pipeline(target)
    splits: list[Any] = []

    @tvm.ir.instrument.pass_instrument
    class Reading:
        def run_after_pass(self, split: Any, info: Any) -> None:
            if info.name == _SPLIT:
                splits.append(split)

    with tvm.transform.PassContext(opt_level=3, instruments=[Reading()]):
        lowered = pipeline(kernels)
    plans = {
        name.name_hint: _plan(name.name_hint, function)
        for name, function in splits[0].functions_items()
        if int(function.attrs.get("calling_conv", 0)) != _DEVICE_KERNEL
    }
    _, devices = split_host_device_mods(lowered)
    generate = tvm.get_global_func("target.build.opencl")
    sources = [generate(finish()(code), device).inspect_source("") for device, code in devices.items()]
    if len(sources) != 1:
        raise ConversionError(f"TVM generated code for {len(sources)} devices instead of one")
    return sources[0], plans


def _plan(name: str, function: Any) -> _Plan:
    """Read the host code of a function."""
    from tvm import tirx

    places = {variable: {"buffer": index} for index, variable in enumerate(function.params)}
    plan = _Plan()

    def follow(statement: Any) -> None:
        if isinstance(statement, tirx.SeqStmt):
            for part in statement.seq:
                follow(part)
        elif isinstance(statement, tirx.DeclBuffer):
            places[statement.buffer] = places[_origin(statement.data)]
        elif isinstance(statement, tirx.AllocBuffer):
            places[statement.buffer] = {"scratch": len(plan.scratch)}
            plan.scratch.append(_bytes(statement.buffer))
        elif isinstance(statement, tirx.Evaluate) and _is_call(statement.value, _LAUNCH):
            plan.launches.append(_launch(statement.value, places))
        else:
            raise ConversionError(
                f"kernel {name} needs TVM's own OpenCL runtime: its host code has a {type(statement).__name__}, "
                "and only launches one after the other can be carried over. Run it on llvm, or "
                "with a TVM that has OpenCL."
            )

    follow(function.body)
    return plan


def _launch(call: Any, places: dict[Any, dict[str, Any]]) -> _Launch:
    names = [str(name) for name in call.attrs.launch_params]
    kernel, *values = call.args
    given, extents = values[: len(values) - len(names)], values[len(values) - len(names) :]
    sizes = {name: int(extent) for name, extent in zip(names, extents, strict=True)}
    return _Launch(
        str(kernel.value),
        [_argument(value, places) for value in given],
        [sizes.get(f"blockIdx.{axis}", 1) for axis in _AXES],
        [sizes.get(f"threadIdx.{axis}", 1) for axis in _AXES],
    )


def _argument(value: Any, places: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    if _is_call(value, _DATA):
        return places[_origin(value)]
    return {"value": value.value, "dtype": str(value.ty)}


def _origin(data: Any) -> Any:
    """The buffer whose memory an expression names."""
    if not _is_call(data, _DATA):
        raise ConversionError(f"host code takes memory from {data}, which only TVM's own OpenCL runtime can follow")
    return data.args[0]


def _is_call(value: Any, operator: str) -> bool:
    return getattr(getattr(value, "op", None), "name", None) == operator


def _bytes(buffer: Any) -> int:
    import tvm

    size = tvm.runtime.DataType(str(buffer.dtype)).itemsize
    for extent in buffer.shape:
        size *= int(extent)
    return int(size)


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
    source, plans = _kernels_of(module, target)
    write_text(folder / PROGRAM, source)
    prefix = f"conrepair.opencl.{hashlib.sha256(source.encode()).hexdigest()[:_NAME_DIGITS]}."
    host = _calling_out(module, plans, prefix)
    functions = {name: dataclasses.asdict(plan) for name, plan in plans.items()}
    write_json(folder / PLANS, {"prefix": prefix, "functions": functions})
    return host


def _calling_out(module: Any, plans: dict[str, _Plan], prefix: str) -> Any:
    import tvm
    from tvm import relax

    @relax.expr_functor.mutator
    class CallingOut(relax.PyExprMutator):
        def visit_call_(self, call: Any) -> Any:
            call = self.visit_expr_post_order(call)
            if call.op != tvm.ir.Op.get("relax.call_tir") or call.args[0].name_hint not in plans:
                return call
            made = call.ty_args[0]
            results = list(made.fields) if isinstance(made, relax.TupleType) else [made]
            plans[call.args[0].name_hint].results = len(results)
            return relax.call_dps_packed(prefix + call.args[0].name_hint, call.args[1], out_ty=results)

    mutator = CallingOut(module)
    for name, function in module.functions_items():
        if isinstance(function, relax.Function):
            mutator.builder_.update_func(name, mutator.visit_expr(function))
    result = mutator.builder_.get()
    left = {name: function for name, function in result.functions_items() if name.name_hint not in plans}
    return tvm.IRModule(left, attrs=result.attrs)
