"""Settings of the older form that TVM was told: the device, the optimization level, passes."""

from __future__ import annotations

import re
from typing import Any

from conrepair.config.legacy.account import Context, KeyOutcome
from conrepair.config.legacy.schema import LegacyConfig, LegacyDevice

__all__ = ["PASSES", "backends_of"]

PASSES = (
    *("FoldBatchnormToConv2D", "DecomposeOpsForInference", "CanonicalizeBindings", "EliminateCommonSubexpr"),
    *("DeadCodeElimination", "FastMathTransform", "DispatchSampling", "DispatchSortScan", "AnnotateTIROpPattern"),
    *("FoldConstant", "FuseOps", "FuseTIR", "RewriteDataflowReshape", "StaticPlanBlockMemory", "KillAfterLastUse"),
)
"""Those of every target that may be added or left out; what they do is said in `conrepair.backends.tvm`."""

_TARGET = r"(llvm|opencl|cuda)( -[a-z][a-z0-9_-]*=\S+)*"
_TVM_ONLY = "only TVM was told, and the backend is another"
_NOTHING = "it asks for nothing"
_HIGHEST = 3
_UNQUANTIZED = "TVM doesn't quantize any more. Converters do: see their option `quantize`"
_LOCAL = {"local", "local_no_rpc", None}
# Passes of Relay, which the older tool used, whose work another pass does now.
_NOW = {
    "FastMath": "FastMathTransform",
    "FoldScaleAxis": "FoldBatchnormToConv2D",
    "OpFusion": "FuseOps",
    "SimplifyInference": "DecomposeOpsForInference",
} | {name: name for name in PASSES}


def backends_of(context: Context, given: LegacyConfig) -> list[Any]:
    """Where models run: in their own libraries, and compiled by TVM where that was the backend.

    Args:
        context: Of the translation.
        given: The whole configuration.
    """
    tvm = given.backend == "tvm"
    outcome = KeyOutcome.REFUSED if given.quantize and tvm else KeyOutcome.IGNORED
    words = _NOTHING if not given.quantize else _UNQUANTIZED if tvm else _TVM_ONLY
    context.account.keys("$", given, {"quantize": words}, outcome)
    target = _target(context, given, tvm=tvm)
    options: dict[str, Any] = {"setting": _setting(context, given, tvm=tvm)}
    if given.debug_enabled and tvm:
        context.account.translated("$.debug_enabled", "debug_enabled of backend tvm: each kernel's results are kept")
        options["debug_enabled"] = True
    else:
        context.account.keys("$", given, {"debug_enabled": _TVM_ONLY if given.debug_enabled else _NOTHING})
    passes = {key: _passes(context, given, key, tvm) for key in ("required_pass", "disabled_pass")}
    options |= {key: names for key, names in passes.items() if names}
    if not tvm:
        context.account.keys("$", given, {"backend": 'backends: ["libraries"]'}, KeyOutcome.TRANSLATED)
        return ["libraries"]
    if target is None:
        context.account.refused("$.backend", "TVM isn't used, as its device can't be: models run in their libraries")
        return ["libraries"]
    context.account.translated("$.backend", f"backends: libraries, and tvm for {target}, compared with them")
    return ["libraries", {"name": "tvm", "target": target, **options}]


def _setting(context: Context, given: LegacyConfig, *, tvm: bool) -> str:
    level = 2 if given.opt_level is None else min(max(given.opt_level, 0), _HIGHEST)
    if "opt_level" in given.model_fields_set:
        if tvm:
            context.account.translated("$.opt_level", f"setting O{level} of backend tvm, whose passes are Relax's")
        else:
            context.account.ignored("$.opt_level", _NOTHING if not given.opt_level else _TVM_ONLY)
    return f"O{level}"


def _passes(context: Context, given: LegacyConfig, key: str, tvm: bool) -> list[str]:
    """Passes that are known by name today; others are refused."""
    if key not in given.model_fields_set:
        return []
    value = getattr(given, key)
    names = [str(item) for item in (value if isinstance(value, list) else [value] if value else [])]
    if not names or not tvm:
        context.account.ignored(f"$.{key}", _TVM_ONLY if names else _NOTHING)
        return []
    known = list(dict.fromkeys(_NOW[name] for name in names if name in _NOW))
    unknown = [name for name in names if name not in _NOW]
    if unknown:
        left = f"; {', '.join(known)} of it is done" if known else ""
        context.account.refused(
            f"$.{key}",
            f"TVM's passes are Relax's now, and {', '.join(unknown)} isn't one that can be chosen{left}. "
            "`conrepair build MODEL --explain` lists them",
        )
    else:
        context.account.translated(f"$.{key}", f"{key} of backend tvm: {', '.join(known)}")
    return known


def _target(context: Context, given: LegacyConfig, *, tvm: bool) -> str | None:
    """The target of the selected device; None where models can't run there."""
    account, devices = context.account, given.devices
    account.keys("$.devices", devices, {"id": "the number of TVM's device"})
    named = devices.__pydantic_extra__ or {}
    for name in named:
        account.ignored(f"$.devices.{name}", "it isn't the selected device")
    if devices.selected is None:
        account.keys("$.devices", devices, {"selected": "it selects nothing"})
        return "llvm"
    if devices.selected not in named:
        account.refused(
            "$.devices.selected", f"there is no device '{devices.selected}'; models run on this machine's CPU"
        )
        return "llvm"
    account.translated("$.devices.selected", f"the device of the run: {devices.selected}")
    return _target_of(context, f"$.devices.{devices.selected}", named[devices.selected], tvm=tvm)


def _target_of(context: Context, path: str, device: LegacyDevice, *, tvm: bool) -> str | None:
    account, target = context.account, " ".join((device.target or "llvm").split())
    if device.host_type not in _LOCAL:
        address = device.address or "no address"
        account.refused(
            path, f"TVM reaches it by RPC ({address}): models run here. Name it in `devices` of the new form"
        )
        return None
    if not tvm and not target.startswith("llvm"):
        account.ignored(path, _TVM_ONLY)
        return None
    if re.fullmatch(_TARGET, target) is None:
        account.refused(path, f"{target} isn't a target that is known: llvm, opencl or cuda with -name=value")
        return None
    account.translated(path, f"target {target}" if tvm else "this machine's CPU")
    return target
