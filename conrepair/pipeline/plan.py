"""From the configuration to what shall be done: sources, and the tree of conversions from each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from conrepair.config.model import AuditConfig, ConversionConfig, ModelConfig
from conrepair.converters.base import Converter
from conrepair.converters.routes import Route, find_route, pinned_route
from conrepair.runtime.errors import ConfigError

__all__ = ["Conversion", "active_models", "plan_conversions"]


@dataclass(frozen=True)
class Conversion:
    """One converter applied to one model.

    Attributes:
        name: "source name/converter+converter", unique in an audit.
        parent: Name of what it converts: another conversion, or the source.
        step: The converter.
        options: Complete.
        route: The converters so far, joined.
        final: Whether a configured route ends here.
    """

    name: str
    parent: str
    step: Converter
    route: str
    final: bool
    options: Mapping[str, Any] = field(default_factory=dict)


def active_models(config: AuditConfig) -> list[ModelConfig]:
    """The models to look at: `skip_analysis` leaves one out, and what is compared with it."""
    skipped = {model.name for model in config.models if model.skip_analysis}
    return [model for model in config.models if model.name not in skipped and model.compare_with not in skipped]


def plan_conversions(model: ModelConfig, framework: str) -> list[Conversion]:
    """The conversions of a model, parents before children; common beginnings of routes are shared.

    Args:
        model: The source.
        framework: Its framework.

    Raises:
        ConfigError: if a route doesn't exist or an option is wrong.
    """
    plan: dict[str, Conversion] = {}
    for index, wanted in enumerate(model.conversions):
        if not wanted.enabled:
            continue
        try:
            route = _route(wanted, framework)
            for name in wanted.options:
                if name not in {step.name for step in route.steps}:
                    raise ConfigError(f"options for '{name}', which the route {route.name} doesn't use")
            _add(plan, model.name, route, wanted)
        except ConfigError as error:
            raise ConfigError(f"model '{model.name}', conversions[{index}]: {error}") from error
    return list(plan.values())


def _route(wanted: ConversionConfig, framework: str) -> Route:
    if wanted.via:
        return pinned_route(wanted.via, framework, wanted.to)
    return find_route(framework, str(wanted.to))


def _add(plan: dict[str, Conversion], source: str, route: Route, wanted: ConversionConfig) -> None:
    parent, chain = source, ""
    for position, step in enumerate(route.steps):
        options = step.complete(wanted.options.get(step.name, {}))
        changed = {name: value for name, value in options.items() if value != step.options[name].default}
        label = step.name + "".join(f",{name}={value}" for name, value in sorted(changed.items()))
        chain = f"{chain}+{label}" if chain else label
        name = f"{source}/{chain}"
        final = position == len(route.steps) - 1
        if name not in plan or (final and not plan[name].final):
            plan[name] = Conversion(name, parent, step, chain, final, options)
        parent = name
