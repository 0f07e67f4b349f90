"""Translate a configuration of the older form into ours, with an account of every key."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from conrepair.application.config.load import explain, parse_config
from conrepair.application.config.older import OlderForm, Translation
from conrepair.ground.runtime.errors import ConfigError
from conrepair_legacy.account import Account, Context
from conrepair_legacy.models import translate_model
from conrepair_legacy.origins import ModelNames, PathFinder, model_name
from conrepair_legacy.repair import translate_repair
from conrepair_legacy.schema import LegacyConfig
from conrepair_legacy.settings import UNREAD_KEYS, account_for_settings, backends_of, dataset_of, stages_of


def translate(value: Any, path: Path, duplicates: Sequence[str] = ()) -> Translation:
    """Translate a configuration.

    Args:
        value: The JSON value.
        path: Of its file; relative paths start at its folder.
        duplicates: Keys that stand twice in an object, of which the last counts.

    Raises:
        ConfigError: if a key that the older tool read has a value that it couldn't have read.
    """
    try:
        given = LegacyConfig.model_validate(value)
    except ValidationError as error:
        problems = "\n".join(explain(error, value))
        raise ConfigError(f"{path}: a ConRepAIr configuration with values of the wrong type:\n{problems}") from error
    context = Context(Account(), PathFinder(path.absolute().parent), given.preprocessing_enabled is not False)
    account_for_settings(context, given)
    backends = backends_of(context, given)
    models: list[dict[str, Any]] = []
    names = ModelNames()
    for index, model in enumerate(given.models):
        models += translate_model(context, f"$.models[{index}]", model, names)
    sections: dict[str, Any] = {}
    if given.model_repair_config is not None:
        pair, sections = translate_repair(context, given.model_repair_config, names, given.models)
        models += pair
    repairs = "repair" in sections
    stages = stages_of(context, given.models, repairs=repairs) | (
        {"localize": True, "repair": True} if repairs else {}
    )
    result = {
        "schema_version": 1,
        "name": _audit_name(path),
        "dataset": dataset_of(context, given),
        "models": models,
        "backends": backends,
        "stages": stages,
    } | sections
    for key in duplicates:
        context.account.ignored(f"$..{key}", "the key stands twice in one object; the last one counts")
    entries = context.account.complete(value)
    if not models:
        return Translation(None, None, entries, _TOOL)
    config = parse_config(result, f"{path}, translated")
    return Translation(result, config, entries, _TOOL)


def _audit_name(path: Path) -> str:
    name = model_name(path.stem)
    return f"{name}-audit" if name.lower() == "store" else name


_TOOL = "ConRepAIr"

# Keys that our form doesn't have, and that aren't a slip of the pen away from one it has.
_TOP = (LegacyConfig.model_fields.keys() | UNREAD_KEYS.keys()) - {"backend", "datasets", "models", "note", "quantize"}
_MODEL = frozenset({"build_dlls", "dll_libraries", "execute_dlls", "exec_out_relative"})


class ConRepAIr(OlderForm):
    """See `OlderForm`."""

    def has(self, value: Any) -> bool:
        """By keys that no other form has."""
        if not isinstance(value, dict):
            return False
        if _TOP & value.keys():
            return True
        models = value.get("models")
        return isinstance(models, list) and any(isinstance(model, dict) and _MODEL & model.keys() for model in models)

    def translate(self, value: Any, path: Path, duplicates: Sequence[str]) -> Translation:
        """See `OlderForm.translate`."""
        return translate(value, path, duplicates)


FORM = ConRepAIr()
"""An entry point of `conrepair.configurations`."""
