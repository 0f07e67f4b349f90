"""What compilers need before they can run a model: another format, a build."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conrepair.application.pipeline.plan import Conversion, conversions_along
from conrepair.application.pipeline.settings import BackendChoice
from conrepair.formats.backends.all_backends import backend
from conrepair.formats.converters.routes import find_route
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.errors import ConfigError, UsageError
from conrepair.ground.runtime.files.whole import sha256_of

if TYPE_CHECKING:
    from conrepair.application.config.model import AuditConfig, BackendConfig


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


def plan_preparation(name: str, model: Model, config: BackendChoice) -> tuple[Conversion, ...]:
    """The conversions that bring a model into the format that a backend takes; none where it takes it as it is.

    Args:
        name: Of the model: a configured one's, or a conversion's.
        model: The model.
        config: The backend.

    Raises:
        ConfigError: if there's no route.
    """
    elsewhere = config.in_release
    wanted = elsewhere.system.format if elsewhere else backend(config.name).takes(model, config.options)
    if wanted == model.framework:
        return ()
    return tuple(conversions_along(find_route(model.framework, wanted, model=model), name))


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
