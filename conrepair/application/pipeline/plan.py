"""From what a model shall be converted to, or what a backend takes, to the tree of conversions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from conrepair.application.pipeline.settings import BackendChoice
from conrepair.formats.backends.all_backends import backend
from conrepair.formats.converters.base import Converter
from conrepair.formats.converters.routes import Route, find_route, pinned_route
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.errors import ConfigError
from conrepair.ground.runtime.files.whole import sha256_of


@dataclass(frozen=True)
class Goal:
    """A conversion to try.

    Attributes:
        to: The format; None where the converters say it.
        via: The converters to use, in this order; None: the best route.
        options: By converter.
    """

    to: str | None = None
    via: tuple[str, ...] | None = None
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Conversion:
    """One converter applied to one model.

    Attributes:
        name: "source name/converter+converter", unique in an audit.
        parent: Name of what it converts: another conversion, or the source.
        step: The converter.
        options: Complete.
        asked: The precision that options of it or of its parents ask for; None keeps the source's.
        route: The converters so far, joined.
        final: Whether a configured route ends here.
    """

    name: str
    parent: str
    step: Converter
    route: str
    final: bool
    options: Mapping[str, Any] = field(default_factory=dict)
    asked: str | None = None

    @property
    def changed(self) -> dict[str, Any]:
        """The options that aren't the converter's defaults."""
        return self.step.changed(self.options)


def plan_conversions(
    name: str, goals: Sequence[Goal], model: Model
) -> tuple[list[Conversion], dict[str, ConfigError]]:
    """The conversions of a model, parents before children; common beginnings of routes are shared.

    Args:
        name: Of the task that makes the source.
        goals: What it's converted to.
        model: The source.

    Returns:
        The conversions, and why a goal can't be reached, by what was wanted.
    """
    plan: dict[str, Conversion] = {}
    impossible: dict[str, ConfigError] = {}
    for wanted in goals:
        try:
            route = _route(wanted, model)
            unused = sorted(set(wanted.options) - {step.name for step in route.steps})
            if unused:
                raise ConfigError(f"options are given for {unused[0]}, but the conversion is by {route.name}")
            for place, item in enumerate(conversions_along(route, name, wanted.options), 1):
                final = place == len(route.steps)
                if item.name not in plan or (final and not plan[item.name].final):
                    plan[item.name] = replace(item, final=final)
        except ConfigError as error:
            impossible["+".join(wanted.via) if wanted.via else f"to {wanted.to}"] = error
    return list(plan.values()), impossible


def chains(conversions: Sequence[Conversion]) -> Iterator[list[Conversion]]:
    """The routes of `plan_conversions`, conversion by conversion."""
    by_name = {item.name: item for item in conversions}
    for conversion in conversions:
        chain = [conversion]
        while chain[0].parent in by_name:
            chain.insert(0, by_name[chain[0].parent])
        if conversion.final:
            yield chain


def _route(wanted: Goal, model: Model) -> Route:
    if wanted.via:
        return pinned_route(wanted.via, model.framework, wanted.to)
    return find_route(model.framework, str(wanted.to), model=model)


def conversions_along(
    route: Route, source: str, options: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
) -> Iterator[Conversion]:
    """The conversions of a route, each behind its parent.

    Args:
        route: The converters.
        source: Name of the task that makes the model, which may be a conversion itself: names of what is made of it
            begin with it, so that the same conversion has one name.
        options: By converter.

    Raises:
        ConfigError: if an option isn't one.
    """
    parent, chain, asked = source, "", None
    for step in route.steps:
        chosen = step.complete(options.get(step.name, {}))
        label = step.name + "".join(f",{name}={value}" for name, value in sorted(step.changed(chosen).items()))
        chain = f"{chain}+{label}" if chain else label
        asked = step.intent(chosen) or asked
        name = f"{source}{'+' if '/' in source else '/'}{chain}"
        yield Conversion(name, parent, step, chain, False, chosen, asked)
        parent = name


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
    wanted = elsewhere.format if elsewhere else backend(config.name).takes(model, config.options)
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
