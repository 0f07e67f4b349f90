"""A configuration of either form, as a run takes it."""

from __future__ import annotations

from pathlib import Path

from conrepair.config.legacy.account import KeyOutcome
from conrepair.config.legacy.read import account_lines, read_any, runnable_config
from conrepair.config.model import AuditConfig
from conrepair.runtime.words import complain

__all__ = ["load_for_run"]


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
                f"{path} is a configuration of ConRepAIr; it's run as far as it can be.",
                *lines,
                f"`conrepair config migrate {path} -o NEW.json` writes the new form, and says all of this.",
            ]
        complain("\n".join(lines))
    return config
