"""What a run would refuse of the sections of a configuration that ask for more than an audit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from conrepair.application.config.model import AuditConfig
from conrepair.application.config.sections import FuzzConfig, GenerateConfig, TraceConfig
from conrepair.application.pipeline.from_config import asked_networks
from conrepair.application.verbs.trace import EXACT
from conrepair.ground.runtime.errors import UsageError


def part_problems(config: AuditConfig, base: Path) -> list[str]:
    """All of it, a line for each, which begins with the place in the configuration.

    Args:
        config: The configuration.
        base: Folder that its relative paths start from.
    """
    return [line for _, section, part in config.asked for line in part.problems(section, config, base)]


def generate_problems(section: GenerateConfig, config: AuditConfig, base: Path) -> Iterator[str]:
    """Networks that can't be."""
    from conrepair.application.campaigns.narrowing_targets import target
    from conrepair.laboratory.generate.checks import check_wishes  # imports ONNX

    try:
        if section.support is not None:
            target(section.support)
        networks = asked_networks(section, config.limits, base)
        networks.material.check(networks.wishes)
        check_wishes(networks.wishes, None if networks.material.identity else ())
    except UsageError as error:
        yield f"$.generate: {error}"


def trace_problems(section: TraceConfig, config: AuditConfig, base: Path) -> Iterator[str]:
    """Networks, and systems, that aren't there."""
    from conrepair.laboratory.systems.registry import installed  # which takes a while to import

    yield from _absent({"trace.models": section.models}, base)
    for key, given in (("setting", section.setting), ("against", section.against)):
        if given is not None and given != EXACT:
            try:
                installed(given)
            except UsageError as error:
                yield f"$.trace.{key}: {error}"


def fuzz_problems(section: FuzzConfig, config: AuditConfig, base: Path) -> Iterator[str]:
    """Files, and systems, that aren't there."""
    from conrepair.laboratory.systems.registry import entry  # which takes a while to import

    lists = {"models": section.models, "learn": section.learn, "grown_from": section.grown_from}
    single = {key: [value] for key, value in {"known": section.known, "data": section.data}.items() if value}
    yield from _absent({f"fuzz.{key}": value for key, value in (lists | single).items()}, base)
    for name in section.systems:
        try:
            entry(name)
        except UsageError as error:
            yield f"$.fuzz.systems: {error}"


def _absent(named: dict[str, Sequence[str]], base: Path) -> Iterator[str]:
    for key, paths in named.items():
        yield from (f"$.{key}: no such file {base / path}" for path in paths if not (base / path).exists())
