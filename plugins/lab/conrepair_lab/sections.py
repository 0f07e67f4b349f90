"""Parts of a configuration: networks, traces, campaigns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from conrepair.application.config.parts import Part
from conrepair.application.config.section import Section, Share, of_options
from conrepair.application.config.strict import AnyPath, Int, OutputPath
from conrepair.application.verbs.option import Options, Value
from conrepair.application.verbs.options import Loaded
from conrepair.ground.runtime.errors import UsageError
from conrepair_lab.options.fuzz import Fuzz
from conrepair_lab.options.generate import CASES, FORMS, PATTERNS, RANKS, Generate
from conrepair_lab.options.trace import EXACT, Trace

if TYPE_CHECKING:
    from conrepair.application.config.model import AuditConfig

_Rank = Annotated[Int, Field(ge=0, le=6)]


@of_options("data", "timeout", *(name for name, *_ in Loaded.declared()))
class TraceConfig(Section):
    """Networks whose systems are searched for lost digits, as `conrepair trace` does."""

    verb: ClassVar[type[Options]] = Trace
    each: ClassVar[tuple[str, ...]] = ("model",)

    folder: OutputPath = Field("traces", description="Folder of what was found, in `output`.")
    models: tuple[AnyPath, ...] = Field(min_length=1, description="ONNX files, and folders of them.")


class NetworksSection(Section):
    """What asks for random networks."""

    kinds: ClassVar[Mapping[Value, Any]] = MappingProxyType(
        {RANKS: tuple[_Rank, _Rank], FORMS: dict[str, Share], PATTERNS: dict[str, Share]}
    )
    no_paths: ClassVar[frozenset[str]] = frozenset({CASES})

    opset: Int = Field(Generate.default("opset"), ge=17, le=24, description="Of ONNX's operators.")


@of_options()
class GenerateConfig(NetworksSection):
    """Random valid networks with inputs and expected outputs, as `conrepair generate` makes them."""

    verb: ClassVar[type[Options]] = Generate

    folder: OutputPath = Field("networks", description="Their folder, in `output`.")


# The part of a configuration that asks for a campaign.


@of_options("recheck", "releases")
class FuzzConfig(NetworksSection):
    """Networks that are tried by converters, runtimes and compilers, as `conrepair fuzz` does."""

    verb: ClassVar[type[Options]] = Fuzz

    folder: OutputPath = Field("fuzz", description="Folder of the campaign, in `output`.")
    models: tuple[AnyPath, ...] = Field((), description="ONNX files to try, in place of generated networks.")


def generate_problems(section: GenerateConfig, config: AuditConfig, base: Path) -> Iterator[str]:
    """Networks that can't be."""
    from conrepair_lab.campaigns.narrowing import target
    from conrepair_lab.commands.generate import asked_networks
    from conrepair_lab.generate.checks import check_wishes  # imports ONNX

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
    from conrepair_lab.systems.registry import installed  # which takes a while to import

    yield from _absent({"trace.models": section.models}, base)
    for key, given in (("setting", section.setting), ("against", section.against)):
        if given is not None and given != EXACT:
            try:
                installed(given)
            except UsageError as error:
                yield f"$.trace.{key}: {error}"


def fuzz_problems(section: FuzzConfig, config: AuditConfig, base: Path) -> Iterator[str]:
    """Files, and systems, that aren't there."""
    from conrepair_lab.systems.registry import entry  # which takes a while to import

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


_COMMANDS = "conrepair_lab.commands"
GENERATE, TRACE, FUZZ = (
    Part(config, words, f"{_COMMANDS}.{name}:{name}_configured", f"{__name__}:{name}_problems")
    for name, config, words in (
        ("generate", GenerateConfig, "Random networks to make, after the audit."),
        ("trace", TraceConfig, "Networks to trace, after the audit."),
        ("fuzz", FuzzConfig, "A campaign, after the audit."),
    )
)
"""Entry points of `conrepair.sections`."""
