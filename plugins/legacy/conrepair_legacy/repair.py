"""`model_repair_config`: a pair of models whose differences are localized and repaired."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import Any, get_args

from conrepair.application.config.older import KeyOutcome
from conrepair.ground.graph.kinds import EditKind
from conrepair_legacy.account import Context
from conrepair_legacy.origins import CannotDoError, ModelNames, origin_of
from conrepair_legacy.recipes import Recipe, account_for_size, recipe_of, recipe_words, sized
from conrepair_legacy.schema import (
    LegacyModel,
    LegacyRepair,
    LegacyRepairModel,
    LegacyRepairSettings,
)

_PATH = "$.model_repair_config"
_RANKING = ("enable_layer_analysis", "similar_sample", "dissimilar_sample", "no_of_layer_iterations")
# Wishes that are sorts of edits; the older tool had them on where nothing is said.
_SWITCHES: dict[str, EditKind] = {
    "enable_transpose": "transposes",
    "align_dimension": "inputs",
    "enable_dim_fix": "sizes",
    "clear_multiple_outputs": "outputs",
}
_SECONDS = 7200.0
_RECORDED = {
    "name": "a name for the model",
    "output": "the model's file says it",
    "output_name": "the model's file says it",
    "dtype": "the model's file says it",
    "library": "the file's format says it",
    "debug_enabled": "localizing needs no debug mode of TVM",
}


def translate_repair(
    context: Context, given: LegacyRepair, names: ModelNames, models: Sequence[LegacyModel]
) -> tuple[tuple[dict[str, Any], ...], dict[str, Any]]:
    """Translate the section.

    Args:
        context: Of the translation.
        given: The section.
        names: Of models.
        models: Whose build step may be what writes its files.

    Returns:
        The pair in our form (empty where it can't be had, and where it's one of `models` with its conversion); our
        section `repair`, where there's something to say in it.
    """
    is_own = _is_built_here(context, given, models)
    pair = () if is_own else _pair(context, given, names)
    _account_for_models(context, given)
    _account_for_settings(context, given)
    repaired = bool((is_own or pair) and given.settings.enable_model_repair)
    return pair, {"repair": _section(given.settings)} if repaired else {}


def _is_built_here(context: Context, given: LegacyRepair, models: Sequence[LegacyModel]) -> bool:
    """Whether the pair's files are those that the older build step writes for a model and its conversion.

    It calls an ONNX form of each "<name>_<library>.onnx". Files that are there are taken as they are.
    """
    texts = given.source_rel_path or "", given.target_rel_path or ""
    if any(context.paths.has(context.paths.path(text)) for text in texts if text):
        return False
    source, target = (_written_for(text, models) for text in texts)
    if source is None or target is None or source[0] != target[0] or "_to_" not in target[1]:
        return False
    name, route = target
    words = f"the model '{name}', whose ONNX form the older build step wrote there"
    context.account.translated(f"{_PATH}.source_rel_path", words)
    words = (
        f"its conversion {route}, which the older build step wrote there: the audit's own is localized and repaired"
    )
    context.account.translated(f"{_PATH}.target_rel_path", words)
    return True


def _written_for(text: str, models: Sequence[LegacyModel]) -> tuple[str, str] | None:
    """The name and the library in the name of a file."""
    stem = posixpath.splitext(posixpath.basename(text))[0].removesuffix("_final")
    for model in models:
        libraries = [model.library or "", *(item.library for item in model.dll_libraries)]
        for library in libraries:
            if stem == (f"{model.name}_{library}" if library else model.name):
                return model.name, library
    return None


def _pair(context: Context, given: LegacyRepair, names: ModelNames) -> tuple[dict[str, Any], ...]:
    enabled = bool(given.settings.enable_model_repair)
    source = _side(context, "source", given.source_rel_path, given.source_model_data)
    target = _side(context, "target", given.target_rel_path, given.target_model_data)
    if source is None or target is None:
        return ()
    for side in (source, target):
        side["name"] = names.new(posixpath.basename(side["path"]))
    account = context.account
    account.translated(f"{_PATH}.source_rel_path", f"model '{source['name']}', the file {source['path']}")
    words = f"model '{target['name']}', the file {target['path']}, compared with '{source['name']}'"
    account.translated(f"{_PATH}.target_rel_path", words)
    target["compare_with"] = source["name"]
    order = ("name", "path", "recipe", "compare_with")
    skip = {} if enabled else {"skip_analysis": True}
    return tuple({key: side[key] for key in order if key in side} | skip for side in (source, target))


def _side(context: Context, key: str, text: str | None, data: LegacyRepairModel) -> dict[str, Any] | None:
    place = f"{_PATH}.{key}_rel_path"
    try:
        if not text:
            raise CannotDoError("there is no file to compare. Give the path of a model")
        origin = origin_of(text, context.paths)
        if "path" not in origin.fields:
            raise CannotDoError(f"'{text}' is no file. Give the path of a model")
    except CannotDoError as error:
        context.account.refused(place, str(error))
        return None
    context.account.note(place, KeyOutcome.REFUSED, "the other model of the pair can't be had")
    return {"path": origin.fields["path"], "recipe": _recipe(context, key, data)}


def _recipe(context: Context, key: str, data: LegacyRepairModel) -> Recipe:
    place, account = f"{_PATH}.{key}_model_data", context.account
    name = data.model_name or data.name or ""
    try:
        recipe = recipe_of(data.library or "", name, enabled=data.preprocessing_enabled is not False)
        account.keys(place, data, {"model_name": recipe_words(recipe)}, KeyOutcome.TRANSLATED)
    except CannotDoError as error:
        account.refused(f"{place}.model_name", str(error))
        recipe = "raw"
    result = sized(recipe, data.image_dimension, data.input)
    account_for_size(account, place, data, result)
    account.keys(place, data, {"preprocessing_enabled": "the recipe"}, KeyOutcome.TRANSLATED)
    return result


def _account_for_models(context: Context, given: LegacyRepair) -> None:
    for key, data in (("source", given.source_model_data), ("target", given.target_model_data)):
        place, account = f"{_PATH}.{key}_model_data", context.account
        account.keys(place, data, _RECORDED)
        words = "the model's file says it; inputs are paired by what is computed from them"
        account.keys(place, data, dict.fromkeys(("input", "input_name"), words))
        account.keys(place, data, {"transpose_order": "the order of axes is found by localization, from the values"})
        words = "the model isn't read"
        for name in ("model_name", "image_dimension", "preprocessing_enabled"):
            if name in data.model_fields_set and f"{place}.{name}" not in account:
                account.ignored(f"{place}.{name}", words)
    words = "all outputs go below one folder: what is repaired is in repair/ of the audit's"
    context.account.keys(_PATH, given, {"out_rel_path": words})


def _account_for_settings(context: Context, given: LegacyRepair) -> None:
    account, place, settings = context.account, f"{_PATH}.settings", given.settings
    words = "faulty layers are named and repaired (stages.localize, stages.repair)"
    if not settings.enable_model_repair:
        words = "no repair is asked for; the pair stays, and is left out (skip_analysis)"
    account.keys(place, settings, {"enable_model_repair": words}, KeyOutcome.TRANSLATED)
    account.keys(place, settings, {"time_limit": "repair.seconds"}, KeyOutcome.TRANSLATED)
    account.keys(place, settings, dict.fromkeys(_RANKING, "not taken over: localization names the layers at fault"))
    for key, kind in _SWITCHES.items():
        off = getattr(settings, key) is False
        words = f"repair.edits: without '{kind}'" if off else f"repair.edits: '{kind}' are among them"
        account.keys(place, settings, {key: words}, KeyOutcome.TRANSLATED)
    if settings.continue_repair_when_image_fixed is False:
        words = "a repair ends when no layer is faulty, not when the prediction for one photo is right"
        account.refused(f"{place}.continue_repair_when_image_fixed", words)
    else:
        words = "a repair goes on until no layer is faulty"
        account.keys(place, settings, {"continue_repair_when_image_fixed": words}, KeyOutcome.TRANSLATED)


def _section(settings: LegacyRepairSettings) -> dict[str, Any]:
    """Our section `repair`."""
    left_out = {kind for key, kind in _SWITCHES.items() if getattr(settings, key) is False}
    edits = {"edits": [kind for kind in get_args(EditKind) if kind not in left_out]} if left_out else {}
    return {"seconds": _SECONDS if settings.time_limit is None else settings.time_limit} | edits
