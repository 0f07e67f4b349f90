"""The older configuration's settings of a run, and of the compiler, in the form of today."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from conrepair.application.config.older import KeyOutcome
from conrepair_legacy.account import UNREAD, Context
from conrepair_legacy.schema import LegacyConfig, LegacyDevice, LegacyModel

UNREAD_KEYS = {
    "note": "a comment",
    "initial_analysis_enabled": UNREAD,
    "layer_analysis_enabled": UNREAD,
    "model_repair_enabled": f"{UNREAD}; model_repair_config.settings.enable_model_repair decides",
    "opt_alias": "a suffix of TVM's files",
}
"""Keys of the whole that decide nothing, and why."""
_STAGES = {
    "build": ("build", "build_dlls"),
    "convert": ("build_dlls",),
    "execute": ("execute", "execute_dlls"),
    "evaluate": ("evaluate",),
}


def account_for_settings(context: Context, given: LegacyConfig) -> None:
    """Say what becomes of the settings of the whole run."""
    account = context.account
    account.keys("$", given, UNREAD_KEYS)
    words = "as the recipe of every model" if context.preprocessing else 'recipe "raw" for every model'
    account.keys("$", given, {"preprocessing_enabled": words}, KeyOutcome.TRANSLATED)
    if given.runs_no is not None and given.runs_no != 1:
        account.refused(
            "$.runs_no",
            f"{given.runs_no} runs: one is made, as outputs don't change. For times, repeat it with --fresh",
        )
    else:
        account.keys("$", given, {"runs_no": "one run"}, KeyOutcome.TRANSLATED)
    _account_for_analyses(context, given)


def dataset_of(context: Context, given: LegacyConfig) -> dict[str, Any]:
    """The data in our form: the selected folder, or the zoo's photos where there's none."""
    account, selected = context.account, given.selected_dataset or 0
    for index, item in enumerate(given.datasets):
        path = f"$.datasets[{index}]"
        account.keys(path, item, {"title": "a name for people", "type": UNREAD})
        account.keys(path, item, {"dataset_path_relative": "it isn't the selected dataset; there is one for a run"})
    if not 0 <= selected < len(given.datasets):
        where = "$.selected_dataset" if given.datasets else "$.datasets"
        missing = f"there is no dataset {selected} among {len(given.datasets)}" if given.datasets else "there is none"
        account.refused(where, f"{missing}; the zoo's photos are taken")
        if "selected_dataset" in given.model_fields_set and not given.datasets:
            account.ignored("$.selected_dataset", "there are no datasets")
        return {"zoo": "photos"}
    folder = given.datasets[selected].dataset_path_relative
    if not folder:
        account.refused(f"$.datasets[{selected}]", "it has no dataset_path_relative; the zoo's photos are taken")
        return {"zoo": "photos"}
    here = context.paths.path(folder)
    account.translated(f"$.datasets[{selected}].dataset_path_relative", f"dataset: folder {here}, without labels")
    account.keys("$", given, {"selected_dataset": "the dataset of the run"}, KeyOutcome.TRANSLATED)
    return {"folder": here, "labels": "none"}


def stages_of(context: Context, models: Sequence[LegacyModel], *, repairs: bool) -> dict[str, bool]:
    """Which stages run: those that any model asks for, as they are for the whole run.

    Args:
        context: Of the translation.
        models: All; skipped ones don't count unless all are.
        repairs: Whether a pair is localized, which needs answers.
    """
    active = [model for model in models if not model.skip_analysis] or list(models)
    stages = {stage: repairs or not active or _wanted(active, keys) for stage, keys in _STAGES.items()}
    for index, model in enumerate(models):
        for key in dict.fromkeys(key for keys in _STAGES.values() for key in keys):
            _account_for_stage(context, f"$.models[{index}].{key}", key, model, stages)
    return stages


def _wanted(models: Sequence[LegacyModel], keys: Sequence[str]) -> bool:
    return any(getattr(model, key) is not False for model in models for key in keys)


def _account_for_stage(context: Context, path: str, key: str, model: LegacyModel, stages: dict[str, bool]) -> None:
    if key not in model.model_fields_set:
        return
    on = [stage for stage, keys in _STAGES.items() if key in keys and stages[stage]]
    asked = bool(getattr(model, key))
    if asked or not on:
        names = [stage for stage, keys in _STAGES.items() if key in keys]
        context.account.translated(path, f"stages: {' and '.join(names)} {'on' if on else 'off'}")
    elif model.skip_analysis:
        context.account.ignored(path, "the model is left out")
    else:
        context.account.refused(
            path, f"stages are for the whole run, and {' and '.join(on)} is wanted elsewhere; so it's on"
        )


def _account_for_analyses(context: Context, given: LegacyConfig) -> None:
    account = context.account
    mutations = "mutations aren't made (nor could the older tool). Leave it out"
    analysis = "activations that TVM dumped aren't read. Instead switch on stages.localize, which captures them"
    for key, words in {"enable_mutations": mutations, "conv_analysis_enabled": analysis}.items():
        if getattr(given, key):
            account.refused(f"$.{key}", words)
        else:
            account.keys("$", given, {key: "it asks for nothing"})
    account.keys("$", given, {"conv_analysis_data": "it goes with conv_analysis_enabled"})


PASSES = (
    *("FoldBatchnormToConv2D", "DecomposeOpsForInference", "CanonicalizeBindings", "EliminateCommonSubexpr"),
    *("DeadCodeElimination", "FastMathTransform", "DispatchSampling", "DispatchSortScan", "AnnotateTIROpPattern"),
    *("FoldConstant", "FuseOps", "FuseTIR", "RewriteDataflowReshape", "StaticPlanBlockMemory", "KillAfterLastUse"),
)
"""Those of every target that may be added or left out; what they do is said in `conrepair.formats.tvm`."""

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
        account.refused(path, f"{target} isn't known: give llvm, opencl or cuda with -name=value")
        return None
    account.translated(path, f"target {target}" if tvm else "this machine's CPU")
    return target
