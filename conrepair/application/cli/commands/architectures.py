"""What the verb `architectures` does: a configuration made of options."""

from __future__ import annotations

import argparse
import fnmatch
import os
from pathlib import Path
from typing import Any

from conrepair.application.cli.commands.audit import audit_and_report
from conrepair.application.config.load import parse_config
from conrepair.formats.converters.all_converters import converter
from conrepair.ground.runtime.errors import ConfigError, ExitCode
from conrepair.ground.runtime.shown.progress import say
from conrepair.ground.zoo.architectures import FAMILIES, select

_MEMORY_SHARE = 0.8


def architectures(options: argparse.Namespace) -> int:
    """Audit the selected architectures, or list them; the exit code."""
    return _list(options) if options.list else _audit(options)


def _list(options: argparse.Namespace) -> int:
    """Print the selected architectures with the input that each would get."""
    for family, names in _names(options).items():
        for item in select(family, names, _known(family, options.exclude)):
            size = item.size(options.size)
            values = "0..255" if item.pixels else "-1..1"
            say(f"{family:12} {item.name:22} {size} x {size}, {values}")
    return int(ExitCode.EQUIVALENT)


def _audit(options: argparse.Namespace) -> int:
    routes = [route.split(",") for route in options.via]
    formats = options.to or ([] if routes else ["onnx"])
    value = {
        "name": options.name,
        "output": str(Path(options.output).absolute()),
        "reuse": not options.fresh,
        "keep_models": options.keep_models,
        "limits": {
            "workers": options.workers,
            "seconds": options.each,
            "memory_gb": options.memory_gb or _share_of_memory(options.workers),
        },
        "architectures": [
            {
                "family": family,
                "names": names,
                "exclude": _known(family, options.exclude),
                "size": options.size,
                "seed": options.seed,
                "conversions": _conversions(family, formats, routes),
            }
            for family, names in _names(options).items()
        ],
    }
    config = parse_config(value, "command line")
    return audit_and_report(config, Path.cwd(), quiet=options.quiet, form=options.format)


def _names(options: argparse.Namespace) -> dict[str, list[str]]:
    """The names and patterns by the family that knows them.

    Raises:
        ConfigError: if one is known to none.
    """
    families = list(dict.fromkeys(options.family or FAMILIES))
    found = {family: _known(family, options.names) for family in families}
    for name in (*options.names, *options.exclude):
        if not any(_known(family, [name]) for family in families):
            select(families[0], [name])  # says which names are close
    return {family: names for family, names in found.items() if names}


def _known(family: str, patterns: list[str]) -> list[str]:
    names = [item.name for item in FAMILIES[family]]
    return [pattern for pattern in patterns if fnmatch.filter(names, pattern)]


def _conversions(family: str, formats: list[str], routes: list[list[str]]) -> list[dict[str, Any]]:
    """What a family is converted to: the formats, and the routes that begin at its own."""
    own = "torch" if family == "torchvision" else "keras"
    pinned = [route for route in routes if converter(route[0]).source == own]
    if not formats and not pinned:
        raise ConfigError(f"--via: none of these routes begins at {own}, the format of the family {family}")
    return [{"to": name} for name in formats] + [{"via": route} for route in pinned]


def _share_of_memory(workers: int) -> float:
    """GiB that each worker may hold, so that all of them together leave some to others."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return round(_MEMORY_SHARE * total / 2**30 / max(workers, 1), 1)
