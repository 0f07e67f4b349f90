"""Settings of the older form that concern the whole run: data, stages, analyses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from conrepair.config.legacy.account import UNREAD, Context, KeyOutcome
from conrepair.config.legacy.schema import LegacyConfig, LegacyModel

__all__ = ["account_for_settings", "dataset_of", "stages_of"]

_UNREAD = {
    "note": "a comment",
    "initial_analysis_enabled": UNREAD,
    "layer_analysis_enabled": UNREAD,
    "model_repair_enabled": f"{UNREAD}; model_repair_config.settings.enable_model_repair decides",
    "opt_alias": "a suffix of TVM's files",
}
_STAGES = {
    "build": ("build", "build_dlls"),
    "convert": ("build_dlls",),
    "execute": ("execute", "execute_dlls"),
    "evaluate": ("evaluate",),
}


def account_for_settings(context: Context, given: LegacyConfig) -> None:
    """Say what becomes of the settings of the whole run."""
    account = context.account
    account.keys("$", given, _UNREAD)
    words = "as the recipe of every model" if context.preprocessing else 'recipe "raw" for every model'
    account.keys("$", given, {"preprocessing_enabled": words}, KeyOutcome.TRANSLATED)
    if given.runs_no is not None and given.runs_no != 1:
        account.refused(
            "$.runs_no",
            f"{given.runs_no} runs: one is made, as answers don't change. For times, repeat it with --fresh",
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
    analysis = (
        "activations that TVM dumped aren't read. Instead switch on stages.localize and localize.suspiciousness, "
        "which capture them"
    )
    for key, words in {"enable_mutations": mutations, "conv_analysis_enabled": analysis}.items():
        if getattr(given, key):
            account.refused(f"$.{key}", words)
        else:
            account.keys("$", given, {key: "it asks for nothing"})
    account.keys("$", given, {"conv_analysis_data": "it goes with conv_analysis_enabled"})
