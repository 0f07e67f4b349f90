"""What compilers need before they can run a model: another format, a build."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conrepair.backends.all_backends import backend
from conrepair.converters.routes import find_route
from conrepair.frameworks.model import Model
from conrepair.pipeline.plan import Conversion
from conrepair.pipeline.settings import BackendChoice
from conrepair.runtime.errors import ConfigError, UsageError
from conrepair.runtime.files import sha256_of

if TYPE_CHECKING:
    from conrepair.config.model import AuditConfig, BackendConfig

__all__ = [
    "Preparation",
    "backend_options",
    "backend_problems",
    "check_backends",
    "check_options",
    "plan_preparation",
]


@dataclass(frozen=True)
class Preparation:
    """The conversions that bring a model into the format that a backend takes.

    Attributes:
        conversions: Parents before children.
    """

    conversions: tuple[Conversion, ...]

    @property
    def result(self) -> str:
        """Name of the last one."""
        return self.conversions[-1].name

    @property
    def route(self) -> str:
        """The converters, joined."""
        return "+".join(item.step.name for item in self.conversions)


def check_backends(config: AuditConfig) -> None:
    """Refuse options that don't exist, before anything is done.

    Raises:
        ConfigError: naming each place in the configuration.
    """
    if problems := list(backend_problems(config)):
        raise ConfigError("\n".join(problems))


def backend_problems(config: AuditConfig) -> Iterator[str]:
    """Options of backends that don't exist, each with its place in the configuration."""
    places = {"$": config.backends} | {
        f"$.models[{i}]": model.backends or () for i, model in enumerate(config.models)
    }
    for place, backends in places.items():
        for index, item in enumerate(backends):
            try:
                check_options(item)
            except UsageError as error:
                yield f"{place}.backends[{index}]: {error}"


def check_options(config: BackendConfig) -> None:
    """Refuse options of a backend that don't exist.

    Raises:
        UsageError: naming the option.
    """
    backend(config.name).check(config.options)
    _ = BackendChoice(name=config.name, options=config.options).in_release  # says where there is none


def plan_preparation(name: str, model: Model, config: BackendChoice) -> Preparation | None:
    """What to convert a model to for a backend; None when it takes the model as it is.

    Args:
        name: Of the model: a configured one's, or a conversion's. Names of what is made of it begin with it, so a
            conversion that the audit makes anyway is the same.
        model: The model.
        config: The backend.

    Raises:
        ConfigError: if there's no route.
    """
    elsewhere = config.in_release
    wanted = elsewhere.system.format if elsewhere else backend(config.name).takes(model, config.options)
    if wanted == model.framework:
        return None
    conversions: list[Conversion] = []
    here, chain = name, ""
    for step in find_route(model.framework, wanted, model=model).steps:
        made = f"{here}+{step.name}" if "/" in here else f"{here}/{step.name}"
        chain = f"{chain}+{step.name}" if chain else step.name
        conversions.append(Conversion(made, here, step, chain, False, step.complete({})))
        here = made
    return Preparation(tuple(conversions))


def backend_options(config: BackendChoice) -> dict[str, Any]:
    """Options of a backend as a job takes them, a folder that it reads as an absolute path with its hash.

    Raises:
        ConfigError: if the folder doesn't exist.
    """
    options = dict(config.options)
    for key, use in (("database", "start anew"), ("built", "compile")):
        if options.get(key) is not None:
            folder = Path(options[key])
            if not folder.is_dir():
                raise ConfigError(f"backend {config.label}: {key} {folder} is no folder; leave it out to {use}")
            options |= {key: str(folder), f"{key}_sha256": sha256_of(folder)}
    return options
