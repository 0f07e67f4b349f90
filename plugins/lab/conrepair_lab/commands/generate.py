"""What the verb `generate` does: networks into a folder, and what they're like in a few lines."""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from conrepair.application.cli.next_step import command, tell_next
from conrepair.application.cli.shared import engine_of
from conrepair.application.report.unfinished import unfinished_page
from conrepair.ground.runtime.errors import ExitCode
from conrepair.ground.runtime.shown.progress import ProgressDisplay, output_console, say
from conrepair.ground.runtime.words import counted, number, percent
from conrepair_lab.campaigns.generating import GenerationRequest, generate, request_of
from conrepair_lab.campaigns.narrowing import support_of
from conrepair_lab.campaigns.network_folder import name_of
from conrepair_lab.generate.narrowing.table import Acceptance
from conrepair_lab.generate.wishes import Wishes
from conrepair_lab.options.generate import Generate

if TYPE_CHECKING:
    from conrepair.application.config.model import AuditConfig, LimitsConfig
    from conrepair_lab.sections import GenerateConfig


HEADER = ("operator", "takes", "element types", "axes", "never taken", "refusals")
"""Names of a row's cells."""


def show_support(name: str, wishes: Wishes, *, as_json: bool, quiet: bool) -> int:
    """Show what a target takes.

    Args:
        name: Of the target.
        wishes: Which operators, of which opset.
        as_json: All of it.
        quiet: No progress.

    Returns:
        The exit code.
    """
    with ProgressDisplay(quiet=quiet) as display:
        found = support_of(name, wishes.names, wishes.opset, display=display)
    if as_json:
        operators = {op: dataclasses.asdict(item) for op, item in found.items()}
        say(json.dumps({"target": name, "opset": wishes.opset, "operators": operators}, indent=2))
    else:
        table = Table(*HEADER, box=None, title=f"{name} takes {_whole(found)}", title_justify="left")
        for op, item in found.items():
            table.add_row(op, *cells_of(item))
        output_console().print(table)
    return int(ExitCode.EQUIVALENT)


def cells_of(item: Acceptance) -> tuple[str, str, str, str, str]:
    """A row without the operator's name."""
    return (
        f"{item.share:.0%} of {item.settings}",
        _listed(item.types),
        _listed(item.ranks),
        "; ".join(_never(item)),
        "; ".join(f"{count} {words}" for words, count in list(item.refusals.items())[:2]),
    )


def _whole(found: Mapping[str, Acceptance]) -> str:
    some = sum(item.taken > 0 for item in found.values())
    every = sum(item.taken == item.settings for item in found.values())
    return f"{some} of {len(found)} operators, {every} of them in all settings"


def _listed(taken: Mapping[str, Sequence[Any]]) -> str:
    return "; ".join(f"{name}: {' '.join(map(str, values)) or 'none'}" for name, values in taken.items())


def _never(item: Acceptance) -> list[str]:
    refused: list[tuple[str, Sequence[Any]]] = [*item.no_types.items(), *item.no_values.items()]
    refused += [(f"axes of {name}", values) for name, values in item.no_ranks.items()]
    return [f"{name}: {', '.join(map(str, values))}" for name, values in refused] if item.taken else ["all"]


_LISTED = 10
_LETTERS = 200
_OPTIMIZED = {
    "same": "same outputs for",
    "differs": "other outputs for",
    "fails": "refused",
    "crashed": "crashed on",
    "timeout": "never ended on",
}


def generate_networks(options: argparse.Namespace) -> int:
    """Generate networks as the options say.

    Returns:
        The exit code.
    """
    if not options.output and (options.output is not None or options.support is None):
        options.parser.error("give -o FOLDER, or --support TARGET to see what that takes")
    asked = request_of(Generate.of(vars(options)), Path.cwd())
    if options.output is None:
        return show_support(options.support, asked.wishes, as_json=options.format == "json", quiet=options.quiet)
    root = Path(options.output).absolute()
    with engine_of(options).opened(quiet=options.quiet):
        summary = _generated(asked, root, quiet=options.quiet, force=options.force)
    return tell_generated(summary, root, as_json=options.format == "json")


def asked_networks(wanted: GenerateConfig, limits: LimitsConfig, base: Path) -> GenerationRequest:
    """What networks a configuration asks for.

    Args:
        wanted: Its section.
        limits: Of its run.
        base: Folder that relative paths start from.

    Raises:
        UsageError: if a model or function that it names isn't there.
        ModelLoadError: if the functions may not be run.
    """
    return request_of(wanted.asked(Generate, base, workers=limits.workers), base, memory_gb=limits.memory_gb)


def generate_configured(wanted: GenerateConfig, config: AuditConfig, base: Path, *, quiet: bool) -> int:
    """Generate the networks of a configuration.

    Args:
        wanted: The section for them.
        config: The whole.
        base: Folder that its relative paths start from.
        quiet: No progress.

    Returns:
        The exit code.
    """
    root = base / config.output / wanted.folder
    asked = asked_networks(wanted, config.limits, base)
    return tell_generated(_generated(asked, root, quiet=quiet, force=not config.reuse), root)


def _generated(asked: GenerationRequest, root: Path, *, quiet: bool, force: bool) -> Mapping[str, Any]:
    with unfinished_page(root) as page, ProgressDisplay(quiet=quiet, page=page) as display:
        return generate(asked, root, display, force=force)


def tell_generated(summary: Mapping[str, Any], root: Path, *, as_json: bool = False) -> int:
    """Show a summary; the exit code.

    Args:
        summary: From `generating.generate`.
        root: The networks' folder.
        as_json: Show all of it, as it's written.
    """
    if as_json:
        say(json.dumps(summary, indent=2, ensure_ascii=False))
    else:
        say("\n".join([_headline(summary, root), *(f"  {line}" for line in _lines(summary))]))
        tell_next(_next(summary, root))
    return int(_exit_code(summary))


def _exit_code(summary: Mapping[str, Any]) -> ExitCode:
    """That of a difference where one was found, or there are fewer networks than were asked for."""
    if not summary["made"]:
        return ExitCode.EXECUTION
    wrong = summary["optimized"]["found"] or any(item["differs"] for item in summary["conversions"].values())
    return ExitCode.DIFFERENT if wrong or summary["refused"] or summary["left"] else ExitCode.EQUIVALENT


def _headline(summary: Mapping[str, Any], root: Path) -> str:
    operators, made, count = summary.get("operators", {}), summary["made"], summary["count"]
    told = f"{made:,} of {counted(count, 'network')}" if made < count else counted(made, "network")
    parts = f"{counted(sum(operators.values()), 'node')} of {counted(len(operators), 'operator')}"
    return f"{root}: {told} with {parts}, in {summary['seconds']:.1f} s"


def _lines(summary: Mapping[str, Any]) -> Iterator[str]:
    optimized = summary["optimized"]
    counts = ", ".join(f"{words} {optimized[key]:,}" for key, words in _OPTIMIZED.items() if optimized[key])
    yield f"ONNX Runtime with its optimizations: {counts or 'no network was run'}"
    for item in optimized["found"][:_LISTED]:
        yield f"  {name_of(item['index'])} {_told(item)}"
    yield from _more(len(optimized["found"]))
    if functions := summary["wishes"].get("functions"):
        yield f"your own functions, run unconfined: {', '.join(item.split()[0] for item in functions)}"
    if summary["made"]:
        yield _diversity(summary["diversity"])
        yield from _missed(summary)
    for name, item in summary["conversions"].items():
        same, others, failed = item["same"], len(item["differs"]), item["failed"]
        yield f"converted to {name}: same outputs for {same:,}, other outputs for {others:,}, failed on {failed:,}"
        for found in item["differs"][:_LISTED]:
            yield f"  {name_of(found['index'])} {_told(found)}"
        yield from _more(len(item["differs"]))
        for reason, count in list(item["reasons"].items())[:_LISTED]:
            yield f"  failed on {count:,}: {_short(reason)}"
        yield from _more(len(item["reasons"]))
    reasons = collections.Counter(_short(item["reason"]) for item in summary["refused"])
    for reason, count in reasons.most_common(_LISTED):
        numbers = [name_of(item["index"]) for item in summary["refused"] if _short(item["reason"]) == reason]
        shown = ", ".join(numbers[:3]) + (", ..." if count > 3 else "")
        yield f"{counted(count, 'network')} not made ({shown}): {reason}"
    yield from _more(len(reasons))
    if summary["left"]:
        yield f"{counted(summary['left'], 'network')} not started: the time was up; the same command continues"


def _diversity(told: Mapping[str, Any]) -> str:
    seen = told["operators"] - len(told["unseen"])
    return (
        f"diversity: {seen:,} of {counted(told['operators'], 'operator')}, {percent(told['edge'])} of their pairs, "
        f"{percent(told['vertex'])} of their settings; {percent(told['structural'])} of nodes with an ancestry of "
        f"their own; {percent(told['ones'])} of sizes are 1"
    )


def _missed(summary: Mapping[str, Any]) -> Iterator[str]:
    """Forms and patterns that were named, and are nowhere although they should be."""
    wishes, made = summary["wishes"], summary["made"]
    for kind, shares in (("forms", wishes["quotas"]), ("patterns", wishes["patterns"])):
        names = [name for name, share in shares.items() if share * made >= 1 and name not in summary.get(kind, {})]
        if names:
            need = "they need more nodes, or other operators, types or ranks"
            yield f"{kind} that no network has: {', '.join(names)}; {need}"


def _told(item: Mapping[str, Any]) -> str:
    if item["verdict"] != "differs":
        return f"{item['verdict']}: {_short(item['words'])}"
    by = "some aren't finite" if item["largest"] is None else f"by up to {number(item['largest'])}"
    return f"differs: {counted(item['elements'], 'element')} of `{item['output']}`, {by}"


def _more(count: int) -> Iterator[str]:
    if count > _LISTED:
        yield f"  and {count - _LISTED:,} more (generated.json)"


def _short(text: str) -> str:
    first = " ".join(text.split())
    return first if len(first) <= _LETTERS else f"{first[:_LETTERS]}..."


def _next(summary: Mapping[str, Any], root: Path) -> str:
    found = summary["optimized"]["found"]
    if found:
        model = root / name_of(found[0]["index"]) / "model.onnx"
        return f"{command('execute', model, '--backend', 'onnxruntime')} runs the first one that differs"
    first = next(iter(sorted(root.glob("*/model.onnx"))), None)
    return "" if first is None else f"{command('inspect', first)} lists the operators and inputs of the first one"
