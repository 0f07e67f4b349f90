"""Translate a configuration of the older form into ours, with an account of every key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from conrepair.application.config.legacy.account import Account, AccountEntry, Context, KeyOutcome
from conrepair.application.config.legacy.models import translate_model
from conrepair.application.config.legacy.paths import ModelNames, PathFinder, model_name
from conrepair.application.config.legacy.repair import RepairRequest, translate_repair
from conrepair.application.config.legacy.schema import LegacyConfig
from conrepair.application.config.legacy.settings import account_for_settings, backends_of, dataset_of, stages_of
from conrepair.application.config.load import explain, parse_config
from conrepair.application.config.model import AuditConfig
from conrepair.ground.runtime.errors import ConfigError


@dataclass(frozen=True)
class Translation:
    """A translated configuration.

    Attributes:
        value: In our form, as JSON; None when there's not one model in it.
        config: The same, checked.
        entries: What became of every key, in the order of the file.
        repair: The repair that is asked for, if there's a section for it.
    """

    value: dict[str, Any] | None
    config: AuditConfig | None
    entries: tuple[AccountEntry, ...]
    repair: RepairRequest | None

    @property
    def refused(self) -> tuple[AccountEntry, ...]:
        """What isn't done."""
        return tuple(entry for entry in self.entries if entry.outcome is KeyOutcome.REFUSED)

    @property
    def runnable(self) -> bool:
        """Whether there's anything to run."""
        return self.config is not None and any(
            not model.skip_analysis for model in self.config.models if model.compare_with is None
        )


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
    localize: dict[str, Any] = {}
    repair, repairs = None, False
    if given.model_repair_config is not None:
        pair, localize, repair = translate_repair(context, given.model_repair_config, names, given.models)
        models += pair
        repairs = repair is not None and repair.enabled
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
    } | ({"localize": localize} if localize else {})
    if repair is not None and repair.enabled:
        confined = {} if repair.edits is None else {"edits": list(repair.edits)}
        result["repair"] = {"seconds": repair.seconds} | confined
    for key in duplicates:
        context.account.ignored(f"$..{key}", "the key stands twice in one object; the last one counts")
    entries = context.account.complete(value)
    if not models:
        return Translation(None, None, entries, None)
    config = parse_config(result, f"{path}, translated")
    return Translation(result, config, entries, repair)


def _audit_name(path: Path) -> str:
    name = model_name(path.stem)
    return f"{name}-audit" if name.lower() == "store" else name
