"""Read a configuration of either form; show what became of an older one."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from os.path import relpath
from pathlib import Path
from typing import Any

from conrepair.application.config.load import parse_config, read_json
from conrepair.application.config.model import AuditConfig
from conrepair.application.config.older import AccountEntry, KeyOutcome, Translation, grouped, older_form
from conrepair.ground.runtime.errors import ConfigError
from conrepair.ground.runtime.path_text import real_path
from conrepair.ground.runtime.words import complain


@dataclass(frozen=True)
class LoadedConfig:
    """A configuration of either form.

    Attributes:
        config: Checked; None when an older one has no model that can be had.
        translation: Of an older one.
    """

    config: AuditConfig | None
    translation: Translation | None


def read_any(path: Path) -> LoadedConfig:
    """Read and check a configuration, older or not.

    Raises:
        ConfigError: if it's missing, no JSON, or doesn't fit its schema.
    """
    duplicates: list[str] = []
    value = read_json(path, duplicates)
    if (form := older_form(value)) is not None:
        translation = form.translate(value, path, duplicates)
        return LoadedConfig(translation.config, translation)
    if duplicates:
        raise ConfigError(f"{path}: the key '{duplicates[0]}' stands twice in one object; remove one")
    return LoadedConfig(parse_config(value, str(path)), None)


def runnable_config(path: Path, loaded: LoadedConfig) -> AuditConfig:
    """The configuration, if there's something to run in it.

    Raises:
        ConfigError: if not; it lists what was refused.
    """
    translation = loaded.translation
    if loaded.config is not None and (translation is None or translation.runnable):
        return loaded.config
    lines = [] if translation is None else _lines(translation.refused)
    why = "every model has skip_analysis" if loaded.config is not None else "it has no model that can be had"
    form = "" if translation is None else f"{translation.tool} "
    raise ConfigError("\n".join([f"{path}: nothing in this {form}configuration can be run: {why}", *lines]))


def load_for_run(path: Path, *, quiet: bool) -> AuditConfig:
    """Read a configuration of either form; say on standard error what becomes of an older one.

    Args:
        path: Of the file.
        quiet: Say only what is refused.

    Raises:
        ConfigError: if it's wrong, or nothing of it can be run.
    """
    loaded = read_any(path)
    config = runnable_config(path, loaded)
    if loaded.translation is not None:
        shown = (KeyOutcome.REFUSED,) if quiet else (KeyOutcome.REFUSED, KeyOutcome.TRANSLATED)
        lines = account_lines(loaded.translation, shown, count=not quiet)
        if not quiet:
            lines = [
                f"{path} is a configuration of {loaded.translation.tool}; it's run as far as it can be.",
                *lines,
                f"`conrepair config migrate {path} -o NEW.json` writes the new form, and says all of this.",
            ]
        complain("\n".join(lines))
    return config


def account_lines(
    translation: Translation, outcomes: Sequence[KeyOutcome] = tuple(KeyOutcome), *, count: bool = True
) -> list[str]:
    """What became of the keys, a line for each, like ones together.

    Args:
        translation: Whose.
        outcomes: Which to show.
        count: Say how many others there are.
    """
    lines = []
    for outcome in (KeyOutcome.REFUSED, KeyOutcome.TRANSLATED, KeyOutcome.IGNORED):
        entries = [entry for entry in translation.entries if entry.outcome is outcome]
        if outcome in outcomes:
            lines += _lines(entries)
        elif entries and count:
            lines.append(f"  {outcome}: {len(entries)} key{'s' if len(entries) > 1 else ''}")
    return lines


def moved(value: dict[str, Any], old: Path, new: Path) -> dict[str, Any]:
    """A configuration in our form whose relative paths start at another folder.

    Args:
        value: As JSON.
        old: The folder that they start at.
        new: The folder that they shall start at.
    """
    if real_path(old) == real_path(new):
        return value

    def move(path: str) -> str:
        return path if posixpath.isabs(path) else Path(relpath(real_path(old) / path, real_path(new))).as_posix()

    def in_place(item: dict[str, Any], *keys: str) -> dict[str, Any]:
        return item | {key: move(item[key]) for key in keys if key in item}

    return value | {
        "models": [in_place(model, "path", "weights") for model in value["models"]],
        "dataset": in_place(value["dataset"], "folder"),
    }


def _lines(entries: Sequence[AccountEntry]) -> list[str]:
    return [f"  {entry.outcome}: {entry.path}: {entry.words}" for entry in grouped(entries)]
