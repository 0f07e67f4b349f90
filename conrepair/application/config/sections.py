"""The parts of a configuration: networks, traces, campaigns, and where jobs run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import Field

from conrepair.application.config.section import Section, of_options
from conrepair.application.config.strict import AnyPath, Int, OutputPath, Strict
from conrepair.application.verbs.fuzz import Fuzz
from conrepair.application.verbs.generate import Generate
from conrepair.application.verbs.option import Options
from conrepair.application.verbs.options import Loaded
from conrepair.application.verbs.trace import Trace
from conrepair.ground.runtime.plugins import Registry, imported

WITHOUT_TLS = "whoever reaches these addresses may run programs there and here"
"""What somebody writes who does without encryption and certificates."""


class DaskConfig(Strict):
    """A Dask cluster (docs/crowd.md)."""

    scheduler: str = Field(min_length=1, description="Address of its scheduler, as tls://10.0.0.1:8786.")
    exchange: str = Field(
        min_length=1,
        description="Where files go from machine to machine: a folder that all see under this name, or a URL that "
        "fsspec opens, as s3://bucket/place.",
    )
    without_tls: Literal["whoever reaches these addresses may run programs there and here"] | None = Field(
        None, description="Said in these words, addresses beyond this machine needn't be encrypted."
    )


@of_options("data", "timeout", *(name for name, *_ in Loaded.declared()))
class TraceConfig(Section):
    """Networks whose systems are searched for lost digits, as `conrepair trace` does."""

    verb: ClassVar[type[Options]] = Trace
    each: ClassVar[tuple[str, ...]] = ("model",)

    folder: OutputPath = Field("traces", description="Folder of what was found, in `output`.")
    models: tuple[AnyPath, ...] = Field(min_length=1, description="ONNX files, and folders of them.")


class NetworksSection(Section):
    """What asks for random networks."""

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


@dataclass(frozen=True)
class Part:
    """What a configuration may ask for besides an audit, under a key of its own.

    Attributes:
        config: The pydantic model of its section; `folder` is where it writes, in `output`.
        words: What it asks for, as a sentence.
        runs: "package.module:function", which is given the section, the whole, the folder that relative paths start
            from and `quiet`, and returns the exit code.
        checks: Another one, which is given the first three, and yields a line for each thing that a run would refuse;
            "" for none.
    """

    config: type[Strict]
    words: str
    runs: str
    checks: str = ""

    @property
    def run(self) -> Callable[..., int]:
        """What `runs` names."""
        found: Callable[..., int] = imported(self.runs)
        return found

    def problems(self, *asked: Any) -> list[str]:
        """What a run would refuse."""
        return list(imported(self.checks)(*asked)) if self.checks else []


_COMMANDS, _CHECKS = "conrepair.application.cli.commands", "conrepair.application.pipeline.part_checks"
PARTS: Registry[Part] = Registry(
    "sections",
    {
        name: Part(config, words, f"{_COMMANDS}.{name}:{name}_configured", f"{_CHECKS}:{name}_problems")
        for name, config, words in (
            ("generate", GenerateConfig, "Random networks to make, after the audit."),
            ("trace", TraceConfig, "Networks to trace, after the audit."),
            ("fuzz", FuzzConfig, "A campaign, after the audit."),
        )
    },
    Part,
)
"""By their keys."""
