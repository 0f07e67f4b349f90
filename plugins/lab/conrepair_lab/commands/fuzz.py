"""What the verb `fuzz` does: a campaign, or findings of one tried again."""

from __future__ import annotations

import argparse
import dataclasses
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from conrepair.application.cli.next_step import tell_next
from conrepair.application.cli.shared import engine_of
from conrepair.application.config.read import load_for_run
from conrepair.application.report.encode import encode
from conrepair.ground.runtime.errors import ExitCode, UsageError
from conrepair.ground.runtime.files.baseline import NO_REASON, named
from conrepair.ground.runtime.shown.progress import ProgressDisplay, say
from conrepair_lab.campaigns.rechecking import Rechecked, recheck
from conrepair_lab.campaigns.since import since
from conrepair_lab.fuzz.known import add_known
from conrepair_lab.options.fuzz import Fuzz
from conrepair_lab.report.fuzz.folder import PAGE, REPRODUCE
from conrepair_lab.report.fuzz.summary import Summary
from conrepair_lab.runs.fuzzing import fuzz as run_campaign

if TYPE_CHECKING:
    from conrepair.application.config.model import AuditConfig
    from conrepair_lab.sections import FuzzConfig


_AGAIN = {"there": "still there", "gone": "gone", "unknown": "can't tell"}


def fuzz(options: argparse.Namespace) -> int:
    """Run a campaign, or try findings again.

    Returns:
        The exit code: 1 where something is wrong that isn't known.
    """
    if [Path(item).suffix.lower() for item in options.models] == [".json"]:
        file = Path(options.models[0])
        config = load_for_run(file, quiet=options.quiet)
        if (asked := next((section for name, section, _ in config.asked if name == "fuzz"), None)) is None:
            raise UsageError(f"{file} has no section `fuzz` (docs/configuration.md).")
        with engine_of(options, config.engine).opened(quiet=options.quiet):
            return fuzz_configured(asked, config, file.absolute().parent, quiet=options.quiet)
    wanted = Fuzz.of(vars(options))
    if wanted.recheck is not None:
        folder = Path(wanted.recheck).absolute()
        with engine_of(options).opened(quiet=options.quiet):
            return _recheck(wanted, folder, as_json=options.format == "json", quiet=options.quiet)
    root = Path(options.output).absolute()
    if options.update_baseline:
        add_known(named(wanted.known), ())  # so that there's one, and a bad one is refused before anything is run
    with engine_of(options).opened(quiet=options.quiet):
        found = run_campaign(wanted, root, quiet=options.quiet)
    if options.update_baseline:
        add_known(named(wanted.known), found.fresh)
        known = (dataclasses.replace(item, known=item.known or NO_REASON) for item in found.findings)
        found = dataclasses.replace(found, findings=tuple(known))
    return _tell(found, root, as_json=options.format == "json")


def fuzz_configured(wanted: FuzzConfig, config: AuditConfig, base: Path, *, quiet: bool) -> int:
    """Run the campaign of a configuration.

    Args:
        wanted: The section for it.
        config: The whole.
        base: Folder that its relative paths start from.
        quiet: No progress.

    Returns:
        The exit code.
    """
    root = base / config.output / wanted.folder
    campaign = wanted.asked(Fuzz, base, workers=config.limits.workers)
    return _tell(run_campaign(campaign, root, quiet=quiet), root)


def _tell(summary: Summary, root: Path, *, as_json: bool = False) -> int:
    if as_json:
        say(json.dumps(encode(summary), indent=2, ensure_ascii=False))
    else:
        say("\n".join(summary.lines(str(root))))
        if summary.findings:
            first = root / "findings" / summary.findings[0].name / REPRODUCE
            tell_next(f"open {root / PAGE}; `python {first}` shows the first finding without conrepair")
    return summary.exit_code


def _recheck(wanted: Fuzz, folder: Path, *, as_json: bool, quiet: bool) -> int:
    room = Path(tempfile.gettempdir())
    if wanted.releases is not None:
        with ProgressDisplay(quiet=quiet) as display:
            each = since(
                folder, room, display, workers=wanted.workers, seconds=wanted.network_seconds, most=wanted.releases
            )
        if as_json:
            say(json.dumps([encode(item) for item in each], indent=2, ensure_ascii=False))
        else:
            for known in each:
                say(f"{known.finding.name}: {known.told}")
                say("\n".join(f"  {release}: {words}" for release, words in known.asked.items()))
        return int(ExitCode.EQUIVALENT)
    with ProgressDisplay(quiet=quiet) as display:
        found = recheck(folder, room, display, workers=wanted.workers, seconds=wanted.network_seconds)
    if as_json:
        say(json.dumps([encode(item) for item in found], indent=2, ensure_ascii=False))
    else:
        for item in found:
            say(f"{_AGAIN[item.verdict]}: {item.finding.name}: {item.words}")
    return int(_worst(found))


def _worst(found: list[Rechecked]) -> ExitCode:
    verdicts = {item.verdict for item in found}
    if "there" in verdicts:
        return ExitCode.DIFFERENT
    return ExitCode.EXECUTION if "unknown" in verdicts else ExitCode.EQUIVALENT
